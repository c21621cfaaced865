#include <fxgraph/module/state_keeper.h>

#include <ATen/ATen.h>

#include <algorithm>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/module/module_info.h>

namespace fx {

namespace {

/// The storage from end to end: a tensor may lie in it so that it cannot be written element by element.
at::Tensor bytes_of(const at::Tensor& tensor) {
  const auto size = static_cast<std::int64_t>(tensor.storage().nbytes());
  return at::empty({0}, at::TensorOptions(at::kByte).device(tensor.device())).set_(tensor.storage(), 0, {size}, {1});
}

/// True when a run may write to more than what it made itself.
bool writes_state(const GraphModule& module) {
  const Effects effects(module);
  return std::ranges::any_of(module.graph().nodes(), [&](const Node& node) {
    const NodeEffects& does = effects.of(node);
    if (does.unknown) return true;
    const auto written = effects.written_sets(node);
    if (written.empty()) return does.writes;
    return std::ranges::any_of(written, [&](Effects::Set set) { return effects.is_external(set); });
  });
}

}  // namespace

StateKeeper::StateKeeper(const GraphModule& module) {
  if (!writes_state(module)) return;
  const at::NoGradGuard no_grad;
  for (const std::vector<at::Tensor>& tensors : {module.parameters(), module.buffers()}) {
    for (const at::Tensor& tensor : tensors) saved_.push_back({tensor, at::alias(tensor), bytes_of(tensor).clone()});
  }
}

StateKeeper::~StateKeeper() {
  const at::NoGradGuard no_grad;
  for (const auto& [tensor, shape, bytes] : saved_) {
    bytes_of(shape).narrow(0, 0, bytes.numel()).copy_(bytes);
    if (tensor.sizes() == shape.sizes() && tensor.strides() == shape.strides() &&
        tensor.storage_offset() == shape.storage_offset() && tensor.is_alias_of(shape))
      continue;
    tensor.set_(shape.storage(), shape.storage_offset(), shape.sizes(), shape.strides());
  }
}

}  // namespace fx
