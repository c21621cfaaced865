// What element types LibTorch's arithmetic gives.
#include <algorithm>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {

bool is_float(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32 || dtype == DType::float64;
}
bool is_complex(DType dtype) {
  return dtype == DType::complex32 || dtype == DType::complex64 || dtype == DType::complex128;
}
bool is_whole(DType dtype) { return dtype == DType::boolean || dtype <= DType::int64; }
DType as_float(DType dtype) { return is_whole(dtype) ? DType::float32 : dtype; }
DType as_real(DType dtype) {
  return dtype == DType::complex32    ? DType::float16
         : dtype == DType::complex64  ? DType::float32
         : dtype == DType::complex128 ? DType::float64
                                      : dtype;
}

namespace {

DType as_complex(DType dtype) {
  return dtype == DType::float16 ? DType::complex32 : dtype == DType::float64 ? DType::complex128 : DType::complex64;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    const auto part = [](DType each) { return is_complex(each) ? as_real(each) : each; };
    const DType x = part(a), y = part(b);
    // Whole numbers change nothing.
    if (is_whole(x)) return b;
    if (is_whole(y)) return a;
    return as_complex(promote(x, y));
  }
  if (is_float(a) || is_float(b)) {
    if (!is_float(a)) return b;
    if (!is_float(b)) return a;
    const bool both_small = a != DType::float32 && a != DType::float64 && b != DType::float32 && b != DType::float64;
    if (both_small) return DType::float32;
    if (a == DType::float64 || b == DType::float64) return DType::float64;
    return DType::float32;
  }
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (a == DType::uint8 || b == DType::uint8) {
    const DType other = a == DType::uint8 ? b : a;
    return other == DType::int8 ? DType::int16 : other;
  }
  return std::max(a, b);
}

namespace {

/// LibTorch's categories: tensors with dimensions count before those without, and these before numbers.
std::optional<DType> combined(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (is_complex(*higher)) return higher;
  if (is_float(*higher)) return is_complex(*lower) ? as_complex(*higher) : higher;
  if (*higher == DType::boolean || is_float(*lower) || is_complex(*lower)) return promote(*higher, *lower);
  return higher;
}

std::optional<DType> dtype_of_number(const AbstractValue& value) {
  if (value.number()) return value.number()->is_real() ? DType::float32 : DType::int64;
  if (!value.literal()) return std::nullopt;
  switch (value.literal()->kind()) {
    case ArgumentKind::boolean: return DType::boolean;
    case ArgumentKind::integer: return DType::int64;
    case ArgumentKind::floating: return DType::float32;
    case ArgumentKind::complex: return DType::complex64;
    default: return std::nullopt;
  }
}

}  // namespace

DType SizeCall::promoted(std::span<const AbstractValue* const> values) const {
  std::optional<DType> of_dims, of_none, of_numbers;
  const auto add = [](std::optional<DType>& category, DType dtype) {
    category = category ? promote(*category, dtype) : dtype;
  };
  for (const AbstractValue* value : values) {
    if (const TensorType* tensor = value->tensor()) {
      add(tensor->sizes.empty() ? of_none : of_dims, tensor->dtype);
    } else if (const std::optional<DType> dtype = dtype_of_number(*value)) {
      add(of_numbers, *dtype);
    } else if (!value->is_none()) {
      give_up("the type of an argument is not known");
    }
  }
  const std::optional<DType> result = combined(of_dims, combined(of_none, of_numbers));
  if (!result) give_up("no argument has a type");
  return *result;
}

DType SizeCall::promoted(std::initializer_list<std::string_view> names) const {
  std::vector<const AbstractValue*> values;
  for (const std::string_view name : names) {
    if (given(name)) values.push_back(&argument(name));
  }
  return promoted(values);
}

}  // namespace fx::internal
