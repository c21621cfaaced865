#include <fxgraph/export/literals.h>

#include <cmath>
#include <complex>
#include <vector>

#include <fxgraph/export/codes.h>

namespace fx::pt2 {
namespace {

template <typename T>
T known(std::optional<T> value, const char* what, std::int64_t code) {
  if (!value) {
    throw Error(ErrorKind::unsupported, std::string("the ") + what + " number " + std::to_string(code) +
                                            " is not known; a newer release of torch wrote this");
  }
  return *value;
}

std::vector<Argument> list_of(const Json& json, Argument (*element)(const Json&)) {
  std::vector<Argument> elements;
  for (const Json& each : array_of(json)) elements.push_back(element(each));
  return elements;
}

// Arguments that name no value.
struct LiteralKind {
  const char* kind;
  Argument (*read)(const Json& json);
};
const LiteralKind kLiterals[] = {
    {"as_none", [](const Json&) { return Argument(); }},
    {"as_int", [](const Json& json) { return Argument(integer_of(json)); }},
    {"as_float", [](const Json& json) { return Argument(float_of(json)); }},
    {"as_bool", [](const Json& json) { return Argument(boolean_of(json)); }},
    {"as_string", [](const Json& json) { return Argument(string_of(json)); }},
    {"as_complex",
     [](const Json& json) {
       return Argument(std::complex<double>(float_of(member(json, "real")), float_of(member(json, "imag"))));
     }},
    {"as_scalar_type",
     [](const Json& json) {
       return Argument(known(dtype_of_code(integer_of(json)), "element type", integer_of(json)));
     }},
    {"as_layout",
     [](const Json& json) { return Argument(known(layout_of_code(integer_of(json)), "layout", integer_of(json))); }},
    {"as_memory_format",
     [](const Json& json) {
       return Argument(known(memory_format_of_code(integer_of(json)), "memory format", integer_of(json)));
     }},
    {"as_ints",
     [](const Json& json) {
       return Argument::list(list_of(json, [](const Json& each) { return Argument(integer_of(each)); }));
     }},
    {"as_floats",
     [](const Json& json) {
       return Argument::list(list_of(json, [](const Json& each) { return Argument(float_of(each)); }));
     }},
    {"as_bools",
     [](const Json& json) {
       return Argument::list(list_of(json, [](const Json& each) { return Argument(boolean_of(each)); }));
     }},
    {"as_strings",
     [](const Json& json) {
       return Argument::list(list_of(json, [](const Json& each) { return Argument(string_of(each)); }));
     }},
    {"as_int_lists",
     [](const Json& json) {
       return Argument::list(list_of(json, [](const Json& row) {
         return Argument::list(list_of(row, [](const Json& each) { return Argument(integer_of(each)); }));
       }));
     }},
    {"as_float_lists",
     [](const Json& json) {
       return Argument::list(list_of(json, [](const Json& row) {
         return Argument::list(list_of(row, [](const Json& each) { return Argument(float_of(each)); }));
       }));
     }},
};

}  // namespace

std::optional<Argument> read_literal(const std::string& kind, const Json& value) {
  for (const LiteralKind& literal : kLiterals) {
    if (kind == literal.kind) return literal.read(value);
  }
  return std::nullopt;
}

Json write_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json write_device(const Device& device) {
  return {{"type", device.type.str()}, {"index", device.index < 0 ? Json() : Json(device.index)}};
}

Json write_literal(const Argument& value) {
  switch (value.kind()) {
    case ArgumentKind::none: return {{"as_none", true}};
    case ArgumentKind::boolean: return {{"as_bool", value.as_bool()}};
    case ArgumentKind::integer: return {{"as_int", value.as_int()}};
    case ArgumentKind::floating: return {{"as_float", write_float(value.as_float())}};
    case ArgumentKind::string: return {{"as_string", std::string(value.as_string())}};
    case ArgumentKind::complex:
      return {{"as_complex",
               {{"real", write_float(value.as_complex().real())}, {"imag", write_float(value.as_complex().imag())}}}};
    case ArgumentKind::dtype: {
      const auto code = code_of(value.as_dtype());
      return code ? Json{{"as_scalar_type", *code}} : Json();
    }
    case ArgumentKind::layout: {
      const auto code = code_of(value.as_layout());
      return code ? Json{{"as_layout", *code}} : Json();
    }
    case ArgumentKind::memory_format: {
      const auto code = code_of(value.as_memory_format());
      return code ? Json{{"as_memory_format", *code}} : Json();
    }
    case ArgumentKind::device: return {{"as_device", write_device(value.as_device())}};
    default: return Json();
  }
}

}  // namespace fx::pt2
