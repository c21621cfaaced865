#include <fxgraph/ops/records/python_types.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace fx::internal {

namespace {

using Base = SchemaType::Base;

struct NamedKind {
  std::string_view name;
  ArgumentType kind;
};

// What `getattr(tensor, name)` gives. clang-format off
constexpr NamedKind kAttributes[] = {
    {"shape", kIntListType},  {"ndim", kIntType},          {"itemsize", kIntType},     {"nbytes", kIntType},
    {"dtype", {Base::dtype}}, {"device", {Base::device}},  {"layout", {Base::layout}}, {"is_cuda", kBoolType},
    {"is_sparse", kBoolType}, {"is_quantized", kBoolType}, {"is_meta", kBoolType},     {"requires_grad", kBoolType},
    {"T", kTensorType},       {"mT", kTensorType},         {"H", kTensorType},         {"mH", kTensorType},
    {"data", kTensorType},    {"real", kTensorType},       {"imag", kTensorType},      {"grad", kTensorType},
};

// What these tensor methods give, `size` and `stride` when they are asked for one dimension.
constexpr NamedKind kMethods[] = {
    {"size", kIntType},
    {"stride", kIntType},
    {"dim", kIntType},
    {"ndimension", kIntType},
    {"numel", kIntType},
    {"nelement", kIntType},
    {"element_size", kIntType},
    {"storage_offset", kIntType},
    {"__len__", kIntType},
    {"item", {Base::scalar}},
    {"get_device", kIntType},
    {"is_contiguous", kBoolType},
    {"is_floating_point", kBoolType},
    {"is_complex", kBoolType},
    {"is_signed", kBoolType},
};

constexpr NamedKind kFunctionTypes[] = {
    {"builtins.len", kIntType},      {"builtins.int", kIntType},      {"builtins.float", kFloatType},
    {"builtins.bool", kBoolType},    {"math.ceil", kIntType},         {"math.floor", kIntType},
    {"math.trunc", kIntType},        {"math.gcd", kIntType},          {"math.prod", kIntType},
    {"math.sqrt", kFloatType},       {"math.exp", kFloatType},        {"math.log", kFloatType},
    {"math.log2", kFloatType},       {"math.pow", kFloatType},        {"math.sin", kFloatType},
    {"math.cos", kFloatType},        {"math.tanh", kFloatType},       {"torch.sym_int", kIntType},
    {"torch.sym_sum", kIntType},     {"torch.sym_float", kFloatType}, {"torch.sym_not", kBoolType},
    {"torch._sym_sqrt", kFloatType},
};

constexpr NamedKind kAnnotations[] = {
    {"int", kIntType},
    {"float", kFloatType},
    {"bool", kBoolType},
    {"number", {Base::scalar}},
    {"str", {Base::string}},
    {"Tensor", kTensorType},
    {"torch.Tensor", kTensorType},
    {"torch._tensor.Tensor", kTensorType},
    {"List[int]", kIntListType},
    {"torch.Size", kIntListType},
    {"torch.dtype", {Base::dtype}},
    {"torch.device", {Base::device}},
    {"complex", {Base::complex}},
    {"torch.layout", {Base::layout}},
    {"torch.memory_format", {Base::memory_format}},
    {"list", {Base::other, true}},
    {"List[float]", {Base::floating, true}},
    {"List[bool]", {Base::boolean, true}},
    {"List[str]", {Base::string, true}},
    {"List[Tensor]", {Base::tensor, true}},
    {"List[torch.Tensor]", {Base::tensor, true}},
};

// Python's operators on numbers, and ATen's without an overload: what two ints give; a float on either side gives a
// float instead, but for comparisons.
constexpr NamedKind kArithmetic[] = {
    {"operator.add", kIntType},       {"operator.sub", kIntType},  {"operator.mul", kIntType},
    {"operator.floordiv", kIntType},  {"operator.mod", kIntType},  {"operator.neg", kIntType},
    {"operator.pos", kIntType},       {"operator.abs", kIntType},  {"operator.iadd", kIntType},
    {"operator.isub", kIntType},      {"operator.imul", kIntType}, {"operator.ifloordiv", kIntType},
    {"operator.truediv", kFloatType}, {"operator.pow", kIntType},  {"operator.ipow", kIntType},
    {"operator.eq", kBoolType},       {"operator.ne", kBoolType},  {"operator.lt", kBoolType},
    {"operator.le", kBoolType},       {"operator.gt", kBoolType},  {"operator.ge", kBoolType},
    {"builtins.max", kIntType},       {"builtins.min", kIntType},  {"builtins.abs", kIntType},
    {"builtins.round", kIntType},     {"torch.sym_max", kIntType}, {"torch.sym_min", kIntType},
    {"torch.sym_ite", kIntType},      {"aten::add", kIntType},     {"aten::sub", kIntType},
    {"aten::mul", kIntType},          {"aten::div", kFloatType},
};
// clang-format on

template <std::size_t N>
const ArgumentType* find_kind(const NamedKind (&table)[N], std::string_view name) {
  for (const NamedKind& row : table) {
    if (row.name == name) return &row.kind;
  }
  return nullptr;
}

}  // namespace

const ArgumentType* attribute_type(std::string_view name) { return find_kind(kAttributes, name); }
const ArgumentType* method_type(std::string_view name) { return find_kind(kMethods, name); }
const ArgumentType* function_type(std::string_view name) { return find_kind(kFunctionTypes, name); }
const ArgumentType* annotated_type(std::string_view annotation) { return find_kind(kAnnotations, annotation); }
const ArgumentType* arithmetic_type(std::string_view name) { return find_kind(kArithmetic, name); }

std::string_view annotation_of(const ArgumentType& kind) {
  const auto row = std::ranges::find(kAnnotations, kind, &NamedKind::kind);
  return row == std::end(kAnnotations) ? std::string_view() : row->name;
}

}  // namespace fx::internal
