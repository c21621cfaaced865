#include <fxgraph/rewriter/quantize/record.h>

#include <fxgraph/support/error.h>

namespace fx::quantize {

std::shared_ptr<torch::nn::Module> QuantRecord::clone(const TorchDeviceOption&) const {
  auto copy = std::make_shared<QuantRecord>();
  copy->config = config;
  copy->training = training;
  copy->values = values;
  copy->observers = observers;
  copy->layers = layers;
  copy->state = state;
  copy->not_finite = not_finite;
  return copy;
}

void QuantRecord::State::restore(const at::Tensor& tensor) const {
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(value.sizes(), strides);
  // Of an expanded tensor one element is written for all that share its memory.
  at::Tensor to = tensor.detach(), from = value;
  for (std::int64_t dim = 0; dim < to.dim(); ++dim) {
    if (to.stride(dim) != 0 || to.size(dim) < 2) continue;
    to = to.narrow(dim, 0, 1);
    from = from.narrow(dim, 0, 1);
  }
  to.copy_(from);
  if (tensor.is_leaf()) tensor.set_requires_grad(requires_grad);
}

Shapes QuantRecord::shapes_of(const Graph& graph) const {
  Shapes shapes(graph);
  for (const Node& node : graph.nodes()) {
    if (const auto known = values.find(node.name()); known != values.end()) shapes[node] = known->second;
  }
  return shapes;
}

const QuantRecord& record_of(const GraphModule& prepared) {
  const auto record = std::dynamic_pointer_cast<QuantRecord>(prepared.find_submodule(kRecordPath));
  if (!record)
    throw Error(ErrorKind::invalid_argument, "the program was not prepared for quantization: call fx::prepare first");
  return *record;
}

Finiteness finiteness_of(const GraphModule& prepared, const QuantRecord& record) {
  Finiteness found{record.not_finite, {}};
  for (const auto& [value, path] : record.observers) {
    const auto module = prepared.submodule(path);
    const auto* observer = dynamic_cast<const Observer*>(module.get());
    (observer && observer->has_met_not_finite() ? found.not_finite : found.finite).insert(value);
  }
  return found;
}

QuantParameters observed_parameters(const GraphModule& prepared, const std::string& path) {
  const auto module = prepared.submodule(path);
  if (const auto* observer = dynamic_cast<const Observer*>(module.get())) return observer->parameters();
  if (const auto* fake = dynamic_cast<const FakeQuantize*>(module.get())) return fake->parameters();
  throw Error(ErrorKind::invalid_argument, "the module at '" + path + "' is no observer");
}

}  // namespace fx::quantize
