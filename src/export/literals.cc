#include <fxgraph/export/literals.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

namespace fx::pt2 {
namespace {

constexpr std::pair<std::int64_t, DType> kDTypes[] = {
    {1, DType::uint8},
    {2, DType::int8},
    {3, DType::int16},
    {4, DType::int32},
    {5, DType::int64},
    {6, DType::float16},
    {7, DType::float32},
    {8, DType::float64},
    {9, DType::complex32},
    {10, DType::complex64},
    {11, DType::complex128},
    {12, DType::boolean},
    {13, DType::bfloat16},
    {28, DType::uint16},
    {29, DType::float8_e4m3fn},
    {30, DType::float8_e5m2},
    {31, DType::float8_e4m3fnuz},
    {32, DType::float8_e5m2fnuz},
    {34, DType::uint32},
    {35, DType::uint64},
};

// Names by number; number 0 is "unknown".
constexpr std::string_view kLayouts[] = {"",           "sparse_coo", "sparse_csr", "sparse_csc",
                                         "sparse_bsr", "sparse_bsc", "_mkldnn",    "strided"};
constexpr std::string_view kMemoryFormats[] = {"", "contiguous_format", "channels_last", "channels_last_3d",
                                               "preserve_format"};

[[noreturn]] void refuse_number(const char* what, std::int64_t code) {
  throw Error(ErrorKind::unsupported, std::string("the ") + what + " number " + std::to_string(code) +
                                          " is not known; a newer release of torch wrote this");
}

Symbol name_of(std::span<const std::string_view> names, const char* what, const Json& json) {
  const std::int64_t code = integer_of(json);
  if (code < 1 || code >= std::ssize(names)) refuse_number(what, code);
  return Symbol(names[static_cast<std::size_t>(code)]);
}

Json number_of(std::span<const std::string_view> names, Symbol name) {
  const auto found = std::ranges::find(names, name.view());
  return found == names.end() ? Json() : Json(found - names.begin());
}

Argument read_dtype(const Json& json) {
  const auto row = std::ranges::find(kDTypes, integer_of(json), &std::pair<std::int64_t, DType>::first);
  if (row == std::end(kDTypes)) refuse_number("element type", integer_of(json));
  return Argument(row->second);
}

Json write_dtype(DType dtype) {
  const auto row = std::ranges::find(kDTypes, dtype, &std::pair<std::int64_t, DType>::second);
  return row == std::end(kDTypes) ? Json() : Json(row->first);
}

Argument read_device(const Json& json) {
  Device device{Symbol(string_of(member(json, "type")))};
  if (const Json* index = find_member(json, "index")) device.index = static_cast<std::int32_t>(integer_of(*index));
  return Argument(device);
}

Json write_device(const Device& device) {
  return {{"type", device.type.str()}, {"index", device.index < 0 ? Json() : Json(device.index)}};
}

Argument read_complex(const Json& json) {
  return Argument(std::complex<double>(float_of(member(json, "real")), float_of(member(json, "imag"))));
}

Json write_complex(std::complex<double> value) {
  return {{"real", write_float(value.real())}, {"imag", write_float(value.imag())}};
}

struct LiteralKind {
  std::string_view name;
  ArgumentKind kind;
  Argument (*read)(const Json& json);
  Json (*write)(const Argument& value);  ///< null where there are no words
};
const LiteralKind kLiterals[] = {
    {"as_none", ArgumentKind::none, [](const Json&) { return Argument(); }, [](const Argument&) { return Json(true); }},
    {"as_int", ArgumentKind::integer, [](const Json& json) { return Argument(integer_of(json)); },
     [](const Argument& value) { return Json(value.as_int()); }},
    {"as_float", ArgumentKind::floating, [](const Json& json) { return Argument(float_of(json)); },
     [](const Argument& value) { return write_float(value.as_float()); }},
    {"as_bool", ArgumentKind::boolean, [](const Json& json) { return Argument(boolean_of(json)); },
     [](const Argument& value) { return Json(value.as_bool()); }},
    {"as_string", ArgumentKind::string, [](const Json& json) { return Argument(string_of(json)); },
     [](const Argument& value) { return Json(value.as_string()); }},
    {"as_complex", ArgumentKind::complex, read_complex,
     [](const Argument& value) { return write_complex(value.as_complex()); }},
    {"as_scalar_type", ArgumentKind::dtype, read_dtype,
     [](const Argument& value) { return write_dtype(value.as_dtype()); }},
    {"as_device", ArgumentKind::device, read_device,
     [](const Argument& value) { return write_device(value.as_device()); }},
    {"as_layout", ArgumentKind::layout,
     [](const Json& json) { return Argument(Layout{name_of(kLayouts, "layout", json)}); },
     [](const Argument& value) { return number_of(kLayouts, value.as_layout().name); }},
    {"as_memory_format", ArgumentKind::memory_format,
     [](const Json& json) { return Argument(MemoryFormat{name_of(kMemoryFormats, "memory format", json)}); },
     [](const Argument& value) { return number_of(kMemoryFormats, value.as_memory_format().name); }},
};

// `as_int_lists` are lists of `as_ints`, and those lists of `as_int`.
std::optional<std::string> kind_of_elements(std::string_view kind) {
  constexpr std::string_view kLists = "_lists", kList = "s";
  if (kind.ends_with(kLists)) return std::string(kind.substr(0, kind.size() - kLists.size())) + "s";
  return kind.ends_with(kList) ? std::optional(std::string(kind.substr(0, kind.size() - kList.size()))) : std::nullopt;
}

}  // namespace

std::optional<Argument> read_literal(const std::string& kind, const Json& value) {
  const auto* row = std::ranges::find(kLiterals, kind, &LiteralKind::name);
  if (row != std::end(kLiterals)) return row->read(value);
  const std::optional<std::string> of_elements = kind_of_elements(kind);
  if (!of_elements) return std::nullopt;
  // The elements of an empty list must be known, too.
  const std::string single = kind_of_elements(*of_elements).value_or(*of_elements);
  if (std::ranges::find(kLiterals, single, &LiteralKind::name) == std::end(kLiterals)) return std::nullopt;
  std::vector<Argument> elements;
  for (const Json& each : array_of(value)) elements.push_back(*read_literal(*of_elements, each));
  return Argument::list(elements);
}

Json write_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json write_literal(const Argument& value) {
  const auto* row = std::ranges::find(kLiterals, value.kind(), &LiteralKind::kind);
  Json json = row == std::end(kLiterals) ? Json() : row->write(value);
  return json.is_null() ? json : Json{{std::string(row->name), std::move(json)}};
}

}  // namespace fx::pt2
