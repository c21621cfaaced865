// What optimize() knows of the shapes of a program that changes under it.
//
// Cost: a propagation of shapes the first time, afterwards of what has changed; of other sizes see FreeSizes.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fxgraph/rewriter/rules/free_sizes.h>

namespace fx::rules {

class ProgramShapes {
 public:
  /// `inputs` are the example's; without any nothing is known.
  ProgramShapes(GraphModule& module, const std::vector<TensorInfo>& inputs)
      : module_(module), inputs_(inputs), propagated_(module), free_sizes_(module, inputs) {}

  /// Works out the shapes of what is new since the last time, as far as they hold. `hide_free`: sizes that differ from
  /// call to call are marked.
  void find(bool hide_free);
  /// True when the graph has an operator at which a rule that reads sizes could start.
  bool any_reader() const;
  /// Finds the sizes that the program takes: see FreeSizes.
  void find_samples() { free_sizes_.find_samples(must_run_); }

  /// True when inputs are known and the program takes them.
  bool known() const { return !inputs_.empty() && unknown_because_.empty(); }
  /// Why it does not.
  const std::string& unknown_because() const { return unknown_because_; }
  /// How many nodes' shapes were asked for, over all.
  std::size_t worked_out() const { return worked_out_; }
  Shapes& shapes() { return shapes_; }
  FreeSizes& free_sizes() { return free_sizes_; }

 private:
  void propagate();
  void run();
  void forget_changing_forms();

  GraphModule& module_;
  std::vector<TensorInfo> inputs_;
  ShapeProp propagated_;
  FreeSizes free_sizes_;
  Shapes shapes_;
  bool must_run_ = false;  // meta tensors do not do for this program
  std::size_t worked_out_ = 0;
  std::string unknown_because_;
};

}  // namespace fx::rules
