// Layers whose weights are quantized and whose values are not: dynamic and weight-only quantization.
//
// dynamic: linear, LSTM and GRU find the range of their input anew in each run. weight-only: linear and convolutions
// compute with the weight read back from whole numbers; an embedding has a kernel of its own.
#pragma once

#include <string>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/rewriter/quantize/annotation.h>
#include <fxgraph/rewriter/quantize/target_engine.h>

namespace fx::quantize {

class FloatInputPlan {
 public:
  /// Finds the layers that their settings quantize so. `annotation` is of the same program.
  FloatInputPlan(const GraphModule& flat, const Shapes& shapes, const Annotation& annotation);

  /// What is done with a node, in words; null when nothing.
  const std::string* how(const Node& node) const { return find(layers_, node); }
  /// Why it is not done though its settings ask for it; null when it is, or when there is no such way for the operator.
  const std::string* why_not(const Node& node) const { return find(refused_, node); }
  /// Does it, for an engine or as reference form; `target` notes what it refused and so stays float.
  void apply(GraphModule& flat, TargetEngine& target) const;

 private:
  struct Layer {
    Node* node;
    const QuantSettings* settings;
    std::string how;  ///< or why not
  };
  static const std::string* find(const std::vector<Layer>& layers, const Node& node);

  std::vector<Layer> layers_, refused_;
};

}  // namespace fx::quantize
