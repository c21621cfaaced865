#include <fxgraph/trace/disguise.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/accumulate.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <numeric>

namespace fx::internal {
namespace {

std::vector<std::int64_t> dense_strides(const at::Tensor& input, const std::vector<std::int64_t>& innermost_first,
                                        std::int64_t next) {
  std::vector<std::int64_t> strides(innermost_first.size());
  for (const std::int64_t dim : innermost_first) {
    strides[static_cast<std::size_t>(dim)] = next;
    next *= input.size(dim);
  }
  return strides;
}

// With so much room between the elements that no stride is what it was.
std::vector<std::int64_t> other_strides(const at::Tensor& input) {
  const std::vector<std::int64_t> outermost_first = order_in_memory(input);
  for (std::int64_t room = 1;; ++room) {
    std::vector<std::int64_t> strides = dense_strides(input, outermost_first, room);
    const bool any_is_as_before = std::any_of(outermost_first.begin(), outermost_first.end(), [&](std::int64_t dim) {
      return input.size(dim) > 1 && strides[static_cast<std::size_t>(dim)] == input.stride(dim);
    });
    if (!any_is_as_before) return strides;
  }
}

std::vector<std::int64_t> contiguous_strides(const at::Tensor& input) {
  const auto strides = c10::contiguous_strides(input.sizes());
  return {strides.begin(), strides.end()};
}

// Those of an image or a volume; contiguous ones else.
std::vector<std::int64_t> channels_last_strides(const at::Tensor& input) {
  if (input.dim() == 4) return c10::get_channels_last_strides_2d(input.sizes());
  return input.dim() == 5 ? c10::get_channels_last_strides_3d(input.sizes()) : contiguous_strides(input);
}

std::vector<std::int64_t> strides_of(const at::Tensor& input, Laid laid) {
  switch (laid) {
    case Laid::otherwise: return other_strides(input);
    case Laid::contiguous: return contiguous_strides(input);
    case Laid::channels_last: return channels_last_strides(input);
    default: return input.strides().vec();
  }
}

// What most operators take in its place.
at::ScalarType of_the_kind(at::ScalarType type) {
  switch (type) {
    case at::kDouble: return at::kFloat;
    case at::kComplexDouble: return at::kComplexFloat;
    case at::kLong: return at::kInt;
    case at::kBool: return at::kByte;
    default: break;
  }
  if (at::isComplexType(type)) return at::kComplexDouble;
  return at::isFloatingType(type) ? at::kDouble : at::kLong;
}

const OtherType* find_type(const std::vector<OtherType>& types, at::ScalarType from) {
  const auto found = std::find_if(types.begin(), types.end(), [&](const OtherType& type) { return type.from == from; });
  return found == types.end() ? nullptr : &*found;
}

}  // namespace

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

Disguise::Disguise(const std::vector<at::Tensor>& inputs, const std::vector<std::pair<std::string, at::Tensor>>& others)
    : changes_layout_(std::any_of(inputs.begin(), inputs.end(), may_be_laid_out_otherwise)) {
  for (const at::Tensor& input : inputs) {
    const at::ScalarType from = input.scalar_type();
    if (input.is_quantized() || find_type(types_, from)) continue;
    types_.push_back({from, of_the_kind(from)});
    for (const at::ScalarType to : {at::kFloat, at::kByte, at::kBool, at::kLong, at::kHalf}) {
      if (to != from && to != types_.back().to) further_types_.push_back({from, to});
    }
  }
  for (const auto& [name, other] : others) {
    if (!other.defined() || !other.is_floating_point() || other.is_quantized()) continue;
    if (!find_type(types_, other.scalar_type()))
      types_.push_back({other.scalar_type(), of_the_kind(other.scalar_type())});
  }
}

bool Disguise::may_be_laid_out_otherwise(const at::Tensor& input) {
  return input.dim() > 0 && input.numel() > 1 && input.layout() == at::kStrided;
}

bool Disguise::may_be(const std::vector<at::Tensor>& inputs, Laid laid) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const at::Tensor& input) {
    return may_be_laid_out_otherwise(input) && input.strides() != c10::IntArrayRef(strides_of(input, laid));
  });
}

std::vector<at::Tensor> Disguise::of(std::vector<at::Tensor> inputs, const std::vector<OtherType>& types, Laid laid) {
  for (at::Tensor& input : inputs) {
    const Laid wanted = may_be_laid_out_otherwise(input) ? laid : Laid::as_given;
    const OtherType* type = find_type(types, input.scalar_type());
    if (wanted == Laid::as_given && !type) continue;
    const at::TensorOptions options = type ? input.options().dtype(type->to) : input.options();
    const std::vector<std::int64_t> strides = strides_of(input, wanted);
    input = without_contents(input, input.sizes().vec(), strides, options);
  }
  return inputs;
}

}  // namespace fx::internal
