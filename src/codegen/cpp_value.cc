#include <fxgraph/codegen/cpp_value.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include <fxgraph/ir/target.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

namespace {

struct Named {
  std::string_view name;
  std::string_view cpp;
};

constexpr std::array kDTypes = std::to_array<Named>({
    {"uint8", "kByte"},
    {"int8", "kChar"},
    {"int16", "kShort"},
    {"int32", "kInt"},
    {"int64", "kLong"},
    {"float16", "kHalf"},
    {"float32", "kFloat"},
    {"float64", "kDouble"},
    {"complex64", "kComplexFloat"},
    {"complex128", "kComplexDouble"},
    {"bool", "kBool"},
    {"bfloat16", "kBFloat16"},
    {"complex32", "kComplexHalf"},
    {"qint8", "kQInt8"},
    {"quint8", "kQUInt8"},
    {"qint32", "kQInt32"},
});
constexpr std::array kLayouts = std::to_array<Named>({
    {"strided", "torch::kStrided"},
    {"sparse_coo", "torch::kSparse"},
    {"sparse_csr", "torch::kSparseCsr"},
    {"_mkldnn", "torch::kMkldnn"},
});
constexpr std::array kMemoryFormats = std::to_array<Named>({
    {"contiguous_format", "Contiguous"},
    {"preserve_format", "Preserve"},
    {"channels_last", "ChannelsLast"},
    {"channels_last_3d", "ChannelsLast3d"},
});

// Sorted. C++'s words, and those that generated code itself uses.
// clang-format off
constexpr std::array kTaken = std::to_array<std::string_view>({
    "add_tensor",      "alignas",         "alignof",         "and",             "and_eq",          "asm",
    "at",              "auto",            "bitand",          "bitor",           "bool",            "break",
    "c10",             "call_operator",   "case",            "catch",           "char",            "class",
    "compl",           "concept",         "const",           "consteval",       "constexpr",       "constinit",
    "continue",        "decltype",        "default",         "delete",          "do",              "double",
    "element",         "else",            "enum",            "errno",           "explicit",        "export",
    "extern",          "false",           "float",           "floor_divide",    "floor_remainder", "for",
    "forward",         "friend",          "goto",            "if",              "inline",          "int",
    "int64_t",         "int_pow",         "linux",           "long",            "mutable",         "namespace",
    "new",             "noexcept",        "not",             "not_eq",          "nullptr",         "operator",
    "or",              "or_eq",           "private",         "protected",       "public",          "register",
    "requires",        "return",          "short",           "signed",          "sizeof",          "static",
    "std",             "stderr",          "stdin",           "stdout",          "struct",          "switch",
    "template",        "this",            "throw",           "torch",           "true",            "try",
    "typedef",         "typename",        "union",           "unix",            "unsigned",        "using",
    "virtual",         "void",            "volatile",        "while",           "xor",             "xor_eq",
});
// clang-format on

template <std::size_t N>
std::string_view find(const std::array<Named, N>& names, std::string_view name, const char* what) {
  for (const Named& each : names) {
    if (each.name == name) return each.cpp;
  }
  throw Error(ErrorKind::unsupported, "C++ has no name for the " + std::string(what) + " torch." + std::string(name));
}

std::string floating(double value) {
  if (std::isnan(value)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(value)) return std::string(value < 0 ? "-" : "") + "std::numeric_limits<double>::infinity()";
  std::string text;
  format_float(text, value);
  return text;
}

std::string integer(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) return "std::numeric_limits<int64_t>::min()";
  const bool wide =
      value > std::numeric_limits<std::int32_t>::max() || value < -std::numeric_limits<std::int32_t>::max();
  return wide ? "int64_t{" + std::to_string(value) + "}" : std::to_string(value);
}

}  // namespace

CppType cpp_type_of(const SchemaType& type) {
  using Base = SchemaType::Base;
  if (type.list) {
    if (type.base == Base::tensor) return {CppKind::tensors};
    return {type.base == Base::integer ? CppKind::integers : CppKind::other};
  }
  switch (type.base) {
    case Base::tensor: return {CppKind::tensor};
    case Base::scalar: return {CppKind::scalar};
    case Base::integer: return {CppKind::integer};
    case Base::floating: return {CppKind::floating};
    case Base::boolean: return {CppKind::boolean};
    case Base::string: return {CppKind::string};
    default: return {CppKind::other};
  }
}

std::string_view cpp_declared(const CppType& type) {
  switch (type.kind) {
    case CppKind::tensor: return "torch::Tensor";
    case CppKind::scalar: return "torch::Scalar";
    case CppKind::integer: return "int64_t";
    case CppKind::floating: return "double";
    case CppKind::boolean: return "bool";
    case CppKind::string: return "std::string";
    case CppKind::tensors: return "std::vector<torch::Tensor>";
    case CppKind::integers: return "std::vector<int64_t>";
    default: return "auto";
  }
}

std::string_view cpp_from_ivalue(CppKind kind) {
  switch (kind) {
    case CppKind::tensor: return ".toTensor()";
    case CppKind::scalar: return ".toScalar()";
    case CppKind::integer: return ".toInt()";
    case CppKind::floating: return ".toDouble()";
    case CppKind::boolean: return ".toBool()";
    case CppKind::string: return ".toStringRef()";
    case CppKind::tensors: return ".toTensorVector()";
    case CppKind::integers: return ".toIntVector()";
    default: return "";
  }
}

std::string cpp_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append(1, '\\').append(1, c);
    } else if (byte < 0x20 || byte == 0x7f || c == '?') {  // octal: it ends after three digits; "??" starts a trigraph
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\%03o", byte);
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string cpp_dtype(DType dtype) { return "torch::" + std::string(find(kDTypes, to_string(dtype), "dtype")); }

std::string cpp_literal(const Argument& argument) {
  using Kind = ArgumentKind;
  switch (argument.kind()) {
    case Kind::none: return "torch::nullopt";
    case Kind::boolean: return argument.as_bool() ? "true" : "false";
    case Kind::integer: return integer(argument.as_int());
    case Kind::floating: return floating(argument.as_float());
    case Kind::complex:
      return "c10::complex<double>(" + floating(argument.as_complex().real()) + ", " +
             floating(argument.as_complex().imag()) + ")";
    case Kind::string: return cpp_string(argument.as_string());
    case Kind::dtype: return cpp_dtype(argument.as_dtype());
    case Kind::device: return "torch::Device(" + cpp_string(to_string(argument.as_device())) + ")";
    case Kind::layout: return std::string(find(kLayouts, argument.as_layout().name.view(), "layout"));
    case Kind::memory_format:
      return "torch::MemoryFormat::" +
             std::string(find(kMemoryFormats, argument.as_memory_format().name.view(), "memory format"));
    default: break;
  }
  throw Error(ErrorKind::unsupported, "C++ has no literal for " + to_string(argument));
}

std::string cpp_identifier(std::string_view name) {
  std::string out = to_identifier(name);
  if (out[0] == '_') return "v" + out;  // the compiler's, when a capital follows
  return std::ranges::binary_search(kTaken, out) ? "v_" + out : out;
}

}  // namespace fx::internal
