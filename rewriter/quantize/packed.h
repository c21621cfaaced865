// Packed weights: what an engine makes of a quantized weight, kept as an attribute of the program.
#pragma once

#include <ATen/Context.h>

#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/quantize/config.h>

namespace fx::quantize {

/// Sets LibTorch's engine, for packing and for running, while it lives.
class EngineScope {
 public:
  explicit EngineScope(QuantBackend backend);
  ~EngineScope();
  /// True when another engine was set before.
  bool differs() const { return at::globalContext().qEngine() != before_; }
  EngineScope(const EngineScope&) = delete;
  EngineScope& operator=(const EngineScope&) = delete;

 private:
  at::QEngine before_;
};

/// Calls an operator by name with all its arguments. Throws what it throws.
c10::IValue call_operator(std::string_view target, std::vector<c10::IValue> arguments);

/// Puts an object into the program, beside `weight_path`, as `<stem>`; returns its path.
std::string install_object(GraphModule& module, const std::string& weight_path, const std::string& stem,
                           c10::IValue object);

}  // namespace fx::quantize
