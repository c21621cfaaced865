// XNNPACK as a back end: convolutions and linear layers with their weights packed once, activations inside.
//
//   fx::Lowered lowered = fx::lower(*gm, fx::XnnpackBackend(), {.examples = {x}});
//
// Through LibTorch's own `prepacked` operators, so nothing else is needed. It takes conv2d and linear in float32 on the
// CPU whose weight and bias are parameters or constants, and relu, relu6, hardtanh and clamp by numbers behind one of
// them that nothing else reads. What it computes differs from LibTorch's kernels by rounding. It is for inference:
// gradients do not flow through it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <fxgraph/rewriter/partition/lower.h>

namespace fx {

/// Compiles convolutions and linear layers with XNNPACK; see the top of this file for what it takes.
class XnnpackBackend : public Backend {
 public:
  /// True when LibTorch was built with it.
  static bool is_available();
  std::string name() const override { return "xnnpack"; }
  bool supports(const CallFacts& call) const override { return !why_not(call); }
  std::optional<std::string> why_not(const CallFacts& call) const override;
  /// Throws Error(unsupported) when LibTorch was built without XNNPACK.
  std::shared_ptr<torch::nn::Module> compile(std::shared_ptr<GraphModule> part) const override;
};

}  // namespace fx
