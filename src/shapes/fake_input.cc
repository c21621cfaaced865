#include <fxgraph/shapes/fake_input.h>

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>

#include <cstdint>

namespace fx::internal {

namespace {

std::int64_t storage_extent(const at::Tensor& tensor) {
  std::int64_t extent = 1;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) == 0) return 0;
    extent += (tensor.size(i) - 1) * tensor.stride(i);
  }
  return extent;
}

at::Tensor as_number_if(bool is_number, at::Tensor tensor) {
  if (is_number) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

}  // namespace

at::Tensor to_meta(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized()) return {};
  at::Tensor meta =
      at::empty_strided(tensor.sizes(), tensor.strides(), at::TensorOptions(tensor.scalar_type()).device(at::kMeta));
  return as_number_if(is_number(tensor), std::move(meta));
}

at::Tensor fake_input(const at::Tensor& meta, int fill) {
  if (!meta.defined()) return meta;
  at::Tensor storage = at::full({storage_extent(meta)}, fill, at::TensorOptions(meta.scalar_type()).device(at::kCPU));
  at::Tensor result = storage.as_strided(meta.sizes(), meta.strides());
  const std::int64_t rank = meta.dim();
  if (rank >= 2 && meta.size(-1) == meta.size(-2) && meta.is_floating_point() && meta.stride(-1) != 0 &&
      meta.stride(-2) != 0) {
    result.diagonal(0, -2, -1).fill_(fill == 0 ? 1 : static_cast<double>(meta.size(-1) + 1));
  }
  return as_number_if(is_number(meta), std::move(result));
}

at::Tensor own_shape(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0),
                                                                          /*allow_tensor_metadata_change=*/true));
}

bool is_number(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->is_wrapped_number(); }

}  // namespace fx::internal
