// split_const_subgraphs: what a program computes from its weights alone, as a program of its own, FX's const_fold.
//
//   fx::ConstSplit split = fx::split_const_subgraphs(*gm);
//   split.fold();                         // at load: computes the constants once, here and not in the file
//   split.module->forward(x);
//
// A constant that the caller gets, or that somebody writes to, is computed in every call as before: folded it would be
// one tensor for all calls. For inference: gradients do not reach the weights. To fold at once there is the rule
// `constant-folding`. Thread-safety: none.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx {

/// A program in two: one that computes constants, one that reads them.
struct ConstSplit {
  std::shared_ptr<GraphModule> module;     ///< reads the constants from its attributes
  std::shared_ptr<GraphModule> constants;  ///< takes nothing, returns them as a tuple; null when there are none
  std::vector<std::string> paths;          ///< of the attributes, in the order of the tuple

  /// Computes the constants and gives them to `module`.
  void fold() const;
};

/// Splits; `module` stays as it is, tensors are shared. Calls for which `skip` returns true stay where they are.
ConstSplit split_const_subgraphs(const GraphModule& module, const std::function<bool(const Node&)>& skip = {});

}  // namespace fx
