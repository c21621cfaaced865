#include <fxgraph/rewriter/quantize/target_engine.h>

#include <exception>

#include <fxgraph/rewriter/quantize/engine_limits.h>
#include <fxgraph/rewriter/quantize/packed.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx::quantize {

void TargetEngine::refuse(const std::string& node, const std::string& why) {
  refused_.emplace_back(node, std::string(to_string(backend_)) + ": " + why);
}

void TargetEngine::keep_float(const std::string& node, const std::string& why) {
  kept_.emplace_back(node, std::string(to_string(backend_)) + ": " + why);
}

void TargetEngine::ask_others(const std::string& node, const std::function<void(QuantBackend)>& pack) {
  for (const QuantBackend other : available_quant_backends()) {
    if (other == backend_) continue;
    std::string why;
    try {
      pack(other);
      continue;
    } catch (const Error& error) {
      why = error.message();
    } catch (const std::exception& error) {
      why = first_line(error);
    }
    why = "the engine " + std::string(to_string(other)) + " could not load it: " + why;
    if (every_engine_) throw Error(ErrorKind::unsupported, why);
    tied_.emplace_back(node, why);
    return;
  }
}

c10::IValue TargetEngine::pack_matrix(const std::string& node, const at::Tensor& weight, const c10::IValue& bias,
                                      std::int64_t largest_input) {
  const auto packed_for = [&](QuantBackend backend) {
    check_sums(backend, weight, largest_input);
    const EngineScope engine(backend);
    return call_operator("quantized::linear_prepack", {weight, bias});
  };
  c10::IValue packed = packed_for(backend_);
  ask_others(node, packed_for);
  return packed;
}

}  // namespace fx::quantize
