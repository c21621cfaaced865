#include <fxgraph/ops/records/python_types.h>

#include <cstddef>

namespace fx::internal {

namespace {

using Base = SchemaType::Base;

constexpr ArgumentType kTensor{Base::tensor};
constexpr ArgumentType kInt{Base::integer};
constexpr ArgumentType kFloat{Base::floating};
constexpr ArgumentType kBool{Base::boolean};
constexpr ArgumentType kIntList{Base::integer, true};

struct NamedKind {
  std::string_view name;
  ArgumentType kind;
};

// What `getattr(tensor, name)` gives. clang-format off
constexpr NamedKind kAttributes[] = {
    {"shape", kIntList},
    {"ndim", kInt},
    {"itemsize", kInt},
    {"nbytes", kInt},
    {"dtype", {Base::dtype}},
    {"device", {Base::device}},
    {"layout", {Base::layout}},
    {"is_cuda", kBool},
    {"is_sparse", kBool},
    {"is_quantized", kBool},
    {"is_meta", kBool},
    {"requires_grad", kBool},
    {"T", kTensor},
    {"mT", kTensor},
    {"H", kTensor},
    {"mH", kTensor},
    {"data", kTensor},
    {"real", kTensor},
    {"imag", kTensor},
    {"grad", kTensor},
};

// What these tensor methods give, `size` and `stride` when they are asked for one dimension.
constexpr NamedKind kMethods[] = {
    {"size", kInt},
    {"stride", kInt},
    {"dim", kInt},
    {"ndimension", kInt},
    {"numel", kInt},
    {"nelement", kInt},
    {"element_size", kInt},
    {"storage_offset", kInt},
    {"__len__", kInt},
    {"item", {Base::scalar}},
    {"get_device", kInt},
    {"is_contiguous", kBool},
    {"is_floating_point", kBool},
    {"is_complex", kBool},
    {"is_signed", kBool},
};

constexpr NamedKind kFunctionTypes[] = {
    {"builtins.len", kInt},   {"builtins.int", kInt},      {"builtins.float", kFloat}, {"builtins.bool", kBool},
    {"math.ceil", kInt},      {"math.floor", kInt},        {"math.trunc", kInt},       {"math.gcd", kInt},
    {"math.prod", kInt},      {"math.sqrt", kFloat},       {"math.exp", kFloat},       {"math.log", kFloat},
    {"math.log2", kFloat},    {"math.pow", kFloat},        {"math.sin", kFloat},       {"math.cos", kFloat},
    {"math.tanh", kFloat},    {"torch.sym_int", kInt},     {"torch.sym_sum", kInt},    {"torch.sym_float", kFloat},
    {"torch.sym_not", kBool}, {"torch._sym_sqrt", kFloat},
};

constexpr NamedKind kAnnotations[] = {
    {"int", kInt},
    {"float", kFloat},
    {"bool", kBool},
    {"number", {Base::scalar}},
    {"str", {Base::string}},
    {"Tensor", kTensor},
    {"torch.Tensor", kTensor},
    {"torch._tensor.Tensor", kTensor},
    {"List[int]", kIntList},
    {"torch.Size", kIntList},
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
    {"operator.add", kInt},       {"operator.sub", kInt},  {"operator.mul", kInt},  {"operator.floordiv", kInt},
    {"operator.mod", kInt},       {"operator.neg", kInt},  {"operator.pos", kInt},  {"operator.abs", kInt},
    {"operator.iadd", kInt},      {"operator.isub", kInt}, {"operator.imul", kInt}, {"operator.ifloordiv", kInt},
    {"operator.truediv", kFloat}, {"operator.pow", kInt},  {"operator.ipow", kInt}, {"operator.eq", kBool},
    {"operator.ne", kBool},       {"operator.lt", kBool},  {"operator.le", kBool},  {"operator.gt", kBool},
    {"operator.ge", kBool},       {"builtins.max", kInt},  {"builtins.min", kInt},  {"builtins.abs", kInt},
    {"builtins.round", kInt},     {"torch.sym_max", kInt}, {"torch.sym_min", kInt}, {"torch.sym_ite", kInt},
    {"aten::add", kInt},          {"aten::sub", kInt},     {"aten::mul", kInt},     {"aten::div", kFloat},
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

}  // namespace fx::internal
