// Transformations that can be taken back: those of Hugging Face's optimum, and any rules.
//
//   fx::Transformation fold = fx::compose({fx::ChangeTrueDivToMulByInverse(), fx::FuseBatchNorm2dInConv2d()});
//   fold(*gm);                                        // or fold.transform(*gm)
//   fx::transformed_nodes(*gm, "FuseBatchNorm2dInConv2d");
//   fold.reverse(*gm);                                // the program as it was, to the letter
//
// What a transformation changed is noted at the nodes that it made or changed, copies of the program included, so that
// another object of the same transformation can take it back. Names, order, arguments, tensors, modules and their order
// are then what they were (in a copy of the program, copies of them); what was edited elsewhere meanwhile stays.
// Weights come back as they were before: training in between is lost for those that the transformation replaced.
//
// Cost: the transformation, and a look at all nodes and tensors before and after. Thread-safety: none.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// A change of a program that can be taken back; see the top of this file.
class Transformation {
 public:
  /// `transform` changes the program in any way that leaves it whole. What it did is noted under `name`.
  Transformation(std::string name, std::function<void(GraphModule&)> transform);

  /// What its changes are noted under.
  const std::string& name() const { return name_; }
  /// Applies it; returns how many nodes it made, changed and removed. An exception leaves what `transform` left.
  std::size_t transform(GraphModule& module) const;
  /// The same as transform().
  std::size_t operator()(GraphModule& module) const { return transform(module); }
  /// Takes back all that transformations of this name did and nobody took back yet, the latest first; returns how many
  /// nodes that restored or removed. Throws Error(invalid_argument) naming the node when a node that it made or changed
  /// has been changed again since: that must be taken back first. The program is then as it was.
  std::size_t reverse(GraphModule& module) const;

 private:
  friend Transformation compose(std::vector<Transformation> parts);
  std::string name_;
  std::function<void(GraphModule&)> transform_;
  std::vector<Transformation> parts_;  // of compose
};

/// The parts one after the other; reversed, the last first.
Transformation compose(std::vector<Transformation> parts);
/// Rules or groups of rules by name, as optimize() takes them; `inputs` as there.
Transformation reversible_rules(std::string name, std::vector<std::string> rules, std::vector<TensorInfo> inputs = {});
/// The nodes that transformations of this name made or changed and that are not taken back, in graph order; of all
/// transformations for an empty name.
std::vector<Node*> transformed_nodes(GraphModule& module, const std::string& name = "");

/// Linear layers on one input become one, and views of its result.
Transformation MergeLinears();
/// The bias of a linear layer becomes a column of its weight, for an input with a column of ones.
Transformation FuseBiasInLinear();
/// A division by a number becomes a multiplication.
Transformation ChangeTrueDivToMulByInverse();
/// Batch normalisation by running statistics is folded into the convolution before it.
Transformation FuseBatchNorm2dInConv2d();
/// … into the linear layer before or behind it, where that gives or takes a matrix: `inputs` tell the shapes.
Transformation FuseBatchNorm1dInLinear(std::vector<TensorInfo> inputs);

}  // namespace fx
