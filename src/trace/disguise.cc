#include <fxgraph/trace/disguise.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/accumulate.h>

#include <algorithm>

namespace fx::internal {
namespace {

// The last dimension outermost.
std::vector<std::int64_t> other_strides(const at::Tensor& input) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(input.dim()));
  std::int64_t next = 1;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    strides[i] = next;
    next *= input.size(static_cast<std::int64_t>(i));
  }
  return strides;
}

}  // namespace

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

Disguise::Disguise(const std::vector<at::Tensor>& inputs)
    : changes_layout_(std::any_of(inputs.begin(), inputs.end(), may_be_laid_out_otherwise)) {
  const auto floating =
      std::find_if(inputs.begin(), inputs.end(), [](const at::Tensor& input) { return input.is_floating_point(); });
  if (floating == inputs.end()) return;
  const at::ScalarType from = floating->scalar_type();
  type_ = {from, from == at::kDouble ? at::kFloat : at::kDouble};
}

bool Disguise::may_be_laid_out_otherwise(const at::Tensor& input) {
  return input.dim() > 1 && input.numel() > 1 && input.layout() == at::kStrided && input.is_contiguous() &&
         input.size(0) > 1 && input.numel() > input.size(0);
}

std::vector<at::Tensor> Disguise::of(std::vector<at::Tensor> inputs, bool other_type, bool other_layout) const {
  for (at::Tensor& input : inputs) {
    const bool lies_otherwise = other_layout && may_be_laid_out_otherwise(input);
    const bool is_converted = other_type && type_ && input.scalar_type() == type_->from;
    if (!lies_otherwise && !is_converted) continue;
    const at::TensorOptions options = is_converted ? input.options().dtype(type_->to) : input.options();
    const std::vector<std::int64_t> strides = lies_otherwise ? other_strides(input) : input.strides().vec();
    input = without_contents(input, input.sizes().vec(), strides, options);
  }
  return inputs;
}

}  // namespace fx::internal
