#include <fxgraph/testing/hostile/tensors.h>

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

namespace fx::hostile {

namespace {

// Element by element on the bytes: the tensors are small, and an operator of LibTorch costs more than they do.
template <typename T, typename Visit>
void visit_elements(const at::Tensor& tensor, Visit&& visit) {
  T* const data = static_cast<T*>(tensor.data_ptr());
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  std::vector<std::int64_t> index(sizes.size(), 0);
  const std::int64_t count = tensor.numel();
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(data[at]);
    for (std::size_t d = sizes.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < sizes[d]) break;
      at -= strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

template <typename Visit>
void visit_numbers(const at::Tensor& tensor, Visit&& visit) {
  if (tensor.is_complex()) {
    const at::Tensor plain = tensor.is_conj() ? at::_conj(tensor) : tensor;
    return visit_numbers(at::view_as_real(plain.is_neg() ? at::_neg_view(plain) : plain), visit);
  }
  switch (tensor.scalar_type()) {
    case at::kFloat: return visit_elements<float>(tensor, visit);
    case at::kDouble: return visit_elements<double>(tensor, visit);
    case at::kHalf: return visit_elements<at::Half>(tensor, visit);
    case at::kBFloat16: return visit_elements<at::BFloat16>(tensor, visit);
    case at::kLong: return visit_elements<std::int64_t>(tensor, visit);
    case at::kInt: return visit_elements<std::int32_t>(tensor, visit);
    case at::kShort: return visit_elements<std::int16_t>(tensor, visit);
    case at::kChar: return visit_elements<std::int8_t>(tensor, visit);
    case at::kByte: return visit_elements<std::uint8_t>(tensor, visit);
    case at::kBool: return visit_elements<bool>(tensor, visit);
    default: return;
  }
}

double draw_number(Random& random, Numbers numbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kSpecial = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, 0.0, -0.0, 1.0};
  if (numbers == Numbers::special && random.chance(40)) return kSpecial[random.below(kSpecial.size())];
  // A sum of uniform numbers is near enough to a normal one.
  return 4 * (random.fraction() + random.fraction() + random.fraction() - 1.5);
}

}  // namespace

at::Tensor draw_tensor(Random& random, const TensorForm& form, Numbers numbers) {
  const std::size_t layout = random.below(10);
  const std::size_t rank = form.sizes.size();
  std::vector<std::int64_t> strides(rank, 1);
  std::int64_t step = layout == 1 && rank ? 2 : 1;  // every other element
  for (std::size_t d = rank; d-- > 0;) {
    const std::size_t at = layout == 0 ? rank - 1 - d : d;  // transposed
    strides[at] = step;
    step *= std::max<std::int64_t>(form.sizes[at], 1);
  }
  if (layout == 2 && rank >= 2) strides[0] = 0;  // one row, repeated
  if (layout == 3 && rank == 4) {                // channels last
    const auto& sizes = form.sizes;
    strides = {sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1]};
  }
  const at::TensorOptions options = at::TensorOptions().dtype(form.type);
  at::Tensor tensor = at::empty_strided(form.sizes, strides, options);
  if (layout == 4) {  // in the middle of its storage
    constexpr std::int64_t kBefore = 2;
    at::Tensor whole =
        at::zeros({static_cast<std::int64_t>(tensor.storage().nbytes() / tensor.itemsize()) + 3}, options);
    whole.unsafeGetTensorImpl()->set_sizes_and_strides(form.sizes, strides);
    whole.unsafeGetTensorImpl()->set_storage_offset(kBefore);
    tensor = std::move(whole);
  }
  const bool integral = at::isIntegralType(form.type, true);
  visit_numbers(tensor, [&](auto& element) {
    double number = draw_number(random, numbers);
    if (integral) number = std::isfinite(number) ? std::round(number) : 3;
    if (form.type == at::kByte) number = std::abs(number);
    element = static_cast<std::remove_reference_t<decltype(element)>>(number);
  });
  return tensor;
}

at::Tensor copy_of(const at::Tensor& tensor) {
  const std::size_t bytes = tensor.storage().nbytes();
  const auto width = static_cast<std::int64_t>(tensor.itemsize());
  at::Tensor copy = at::empty({static_cast<std::int64_t>(bytes) / width}, tensor.options());
  if (bytes > 0) std::memcpy(copy.data_ptr(), tensor.storage().data(), bytes);
  copy.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  copy.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  copy._set_conj(tensor.is_conj());
  copy._set_neg(tensor.is_neg());
  return copy;
}

at::Tensor nudged(Random& random, const at::Tensor& tensor, double step) {
  at::Tensor copy = copy_of(tensor);
  if (step == 0 || (!tensor.is_floating_point() && !tensor.is_complex())) return copy;
  visit_numbers(copy, [&](auto& element) {
    using Element = std::remove_reference_t<decltype(element)>;
    const auto number = static_cast<double>(element);
    const double by = std::max(step, static_cast<double>(std::numeric_limits<Element>::epsilon()));
    if (std::isfinite(number)) element = static_cast<Element>(number * (1 + by * (random.chance(50) ? 1 : -1)));
  });
  return copy;
}

at::Tensor tamed(const at::Tensor& tensor) {
  at::Tensor copy = copy_of(tensor);
  if (!tensor.is_floating_point() && !tensor.is_complex()) return copy;
  double next = 0.37;
  visit_numbers(copy, [&](auto& element) {
    if (!std::isfinite(static_cast<double>(element)))
      element = static_cast<std::remove_reference_t<decltype(element)>>(next);
    next = -1.3 * next + (std::abs(next) > 2 ? -next : 0.1);
  });
  return copy;
}

void fill(const at::Tensor& tensor, double number) {
  if (tensor.defined() && tensor.is_neg()) return fill(tensor._neg_view(), -number);
  if (tensor.defined() && tensor.is_complex()) {
    const at::Tensor parts = at::view_as_real(tensor.is_conj() ? tensor.conj() : tensor);
    fill(parts.select(-1, 0), number);
    return fill(parts.select(-1, 1), tensor.is_conj() ? -number : number);
  }
  visit_numbers(tensor,
                [&](auto& element) { element = static_cast<std::remove_reference_t<decltype(element)>>(number); });
  if (tensor.defined() && !tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();  // as fill_ does
}

std::vector<double> elements_of(const at::Tensor& tensor) {
  std::vector<double> numbers;
  const at::Tensor plain = tensor.is_conj() || tensor.is_neg() ? tensor.resolve_conj().resolve_neg() : tensor;
  if (plain.is_complex()) return elements_of(at::view_as_real(plain));
  numbers.reserve(static_cast<std::size_t>(plain.numel()));
  visit_numbers(plain, [&](auto& element) { numbers.push_back(static_cast<double>(element)); });
  return numbers;
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "None";
  std::ostringstream out;
  out << tensor.scalar_type() << tensor.sizes();
  if (!tensor.is_contiguous()) out << " strides " << tensor.strides();
  const std::vector<double> numbers = elements_of(tensor);
  if (numbers.size() > 12) return out.str() + " {…}";
  out << " {";
  for (std::size_t i = 0; i < numbers.size(); ++i) out << (i ? ", " : "") << numbers[i];
  out << "}";
  return out.str();
}

}  // namespace fx::hostile
