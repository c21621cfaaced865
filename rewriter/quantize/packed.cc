#include <fxgraph/rewriter/quantize/packed.h>

#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/support/error.h>

namespace fx::quantize {

namespace {

at::QEngine engine_of(QuantBackend backend) {
  switch (resolve_quant_backend(backend)) {
    case QuantBackend::fbgemm: return at::QEngine::FBGEMM;
    case QuantBackend::onednn: return at::QEngine::ONEDNN;
    case QuantBackend::qnnpack: return at::QEngine::QNNPACK;
    default: return at::globalContext().qEngine();
  }
}

}  // namespace

EngineScope::EngineScope(QuantBackend backend) : before_(at::globalContext().qEngine()) {
  at::globalContext().setQEngine(engine_of(backend));
}

EngineScope::~EngineScope() { at::globalContext().setQEngine(before_); }

c10::IValue call_operator(std::string_view target, std::vector<c10::IValue> arguments) {
  const TorchOperator* op = find_torch_operator(target);
  if (!op) throw Error(ErrorKind::unsupported, "this LibTorch has no operator " + std::string(target));
  torch::jit::Stack stack = std::move(arguments);
  (*op)(stack);
  return stack.at(0);
}

std::string install_object(GraphModule& module, const std::string& weight_path, const std::string& stem,
                           c10::IValue object) {
  const std::string path = module.fresh_path(join_path(split_path(weight_path).first, stem));
  module.add_submodule(path, std::make_shared<ObjectAttribute>(std::move(object)));
  return path;
}

}  // namespace fx::quantize
