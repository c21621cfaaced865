#include <fxgraph/trace/tensor_memory.h>

#include <ATen/ops/clone.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>

#include <cstring>

#include <fxgraph/trace/dispatch_keys.h>

namespace fx::internal {

bool is_on_loan(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.device().is_cpu() || !tensor.has_storage())
    return false;
  const c10::Storage& storage = tensor.storage();
  // LibTorch's own memory has the allocator that made it; what is lent, none.
  return storage.nbytes() > 0 && !storage.allocator() &&
         storage.data_ptr().get_deleter() != c10::GetCPUAllocator()->raw_deleter();
}

at::Tensor own_copy(const at::Tensor& tensor) {
  const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
  const at::NoGradGuard no_grad;
  at::Tensor copy = tensor.clone();
  if (tensor.requires_grad() && tensor.is_leaf()) copy.set_requires_grad(true);
  return copy;
}

bool same_data(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  if (a.scalar_type() != b.scalar_type() || a.layout() != at::kStrided || b.layout() != at::kStrided) return false;
  if (a.sizes() != b.sizes() || a.is_quantized() || b.is_quantized()) return false;
  if (!a.device().is_cpu() || !b.device().is_cpu()) return false;
  const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

std::vector<std::int64_t> order_in_memory(const at::Tensor& tensor) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(tensor.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return tensor.stride(a) > tensor.stride(b); });
  return order;
}

at::Tensor without_contents(const at::Tensor& example, at::IntArrayRef sizes, at::IntArrayRef strides,
                            const at::TensorOptions& options) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 22;
  const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
  if (example.layout() != at::kStrided || example.is_quantized() || c10::multiply_integers(sizes) <= kMostElements)
    return at::empty_strided(sizes, strides, options);
  const at::Tensor shape = at::empty({0}, options);
  shape.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return shape;
}

}  // namespace fx::internal
