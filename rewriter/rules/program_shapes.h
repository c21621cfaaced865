// What optimize() knows of the shapes of a program that changes under it.
//
// Cost: a propagation of shapes the first time, afterwards of what has changed.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/rules/batch.h>
#include <fxgraph/rewriter/rules/free_sizes.h>
#include <fxgraph/shapes/shape_prop.h>

namespace fx::rules {

class ProgramShapes {
 public:
  /// `inputs` are the example's; without any nothing is known.
  ProgramShapes(GraphModule& module, const std::vector<TensorInfo>& inputs)
      : module_(module), inputs_(inputs), propagated_(module) {}

  /// Works out the shapes of what is new since the last time, as far as they hold. Sizes that differ from call to call
  /// are marked where `vary` says which of the inputs' do.
  void find(std::optional<Vary> vary = std::nullopt);
  /// Where the program computes across the samples of a batch, if it does: of inputs of any sizes, or else of any
  /// number of samples of the example's. The marks are those of the sizes asked last.
  std::optional<AcrossSamples> across_samples();
  /// True when the graph has an operator at which a rule that reads sizes could start.
  bool any_reader() const;

  /// True when inputs are known and the program takes them.
  bool known() const { return !inputs_.empty() && unknown_because_.empty(); }
  /// Why it does not.
  const std::string& unknown_because() const { return unknown_because_; }
  /// How many nodes' shapes were asked for, over all.
  std::size_t worked_out() const { return worked_out_; }
  Shapes& shapes() { return shapes_; }

 private:
  void propagate();
  void run();
  void forget_changing_forms();

  GraphModule& module_;
  std::vector<TensorInfo> inputs_;
  ShapeProp propagated_;
  Shapes shapes_;
  bool must_run_ = false;  // meta tensors do not do for this program
  std::size_t worked_out_ = 0;
  std::string unknown_because_;
};

}  // namespace fx::rules
