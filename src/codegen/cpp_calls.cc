// Operators. An aten operator of the built-in list is the function torch::name, a method where LibTorch has no such
// function (in-place ones, kMethods), or goes through the dispatcher (kNoFunction, and everything that is not in the
// list). C++ takes the arguments in the order of the schema; dtype, layout, device and pin_memory come as one
// TensorOptions.
#include <fxgraph/codegen/cpp_calls.h>

#include <algorithm>
#include <array>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/records/builtin_schemas.h>
#include <fxgraph/support/error.h>

namespace fx::internal {

namespace {

using Base = SchemaType::Base;

// Sorted by name: what LibTorch has as a method only …
constexpr std::array kMethods = std::to_array<std::string_view>({
    "backward",       "contiguous", "cpu",         "cuda",     "data",       "expand",
    "expand_as",      "mH",         "mT",          "matrix_H", "new_empty",  "new_empty_strided",
    "new_full",       "new_ones",   "new_zeros",   "numpy_T",  "pin_memory", "repeat",
    "requires_grad_", "reshape_as", "sum_to_size", "to",       "type_as",    "unfold",
    "view",           "view_as",
});
// … in-place operators that it has as a function only …
constexpr std::array kInPlaceFunctions = std::to_array<std::string_view>({
    "alpha_dropout_",
    "celu_",
    "dropout_",
    "elu_",
    "embedding_renorm_",
    "feature_alpha_dropout_",
    "feature_dropout_",
    "gelu_",
    "hardsigmoid_",
    "hardswish_",
    "hardtanh_",
    "leaky_relu_",
    "mish_",
    "rrelu_",
    "rrelu_with_noise_",
    "selu_",
    "silu_",
    "threshold_",
});
// … and what some version between 1.13 and 2.x has neither as function nor as method, or twice for the same arguments
// (stft).
constexpr std::array kNoFunction = std::to_array<std::string_view>({
    "_assert_scalar",
    "_functional_assert_async",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
    "_safe_softmax",
    "_scaled_dot_product_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_set_item",
    "as_tensor",
    "relu6_",
    "rms_norm",
    "scaled_dot_product_attention",
    "stft",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
});

struct Form {
  std::string_view target;
  std::string_view text;  // {} stands for the next argument
  CppKind kind;
};

// Operators on numbers, and questions about tensors that C++ asks by other names. Sorted.
constexpr std::array kForms = std::to_array<Form>({
    {"aten::Bool.Tensor", "{}.item<bool>()", CppKind::boolean},
    {"aten::Float.Scalar", "torch::Scalar({}).toDouble()", CppKind::floating},
    {"aten::Float.Tensor", "{}.item<double>()", CppKind::floating},
    {"aten::Float.int", "static_cast<double>({})", CppKind::floating},
    {"aten::FloatImplicit", "{}.item<double>()", CppKind::floating},
    {"aten::Int.Scalar", "torch::Scalar({}).toLong()", CppKind::integer},
    {"aten::Int.Tensor", "{}.item<int64_t>()", CppKind::integer},
    {"aten::Int.float", "static_cast<int64_t>({})", CppKind::integer},
    {"aten::IntImplicit", "{}.item<int64_t>()", CppKind::integer},
    {"aten::ScalarImplicit", "{}.item()", CppKind::scalar},
    {"aten::__and__.bool", "({} && {})", CppKind::boolean},
    {"aten::__and__.int", "({} & {})", CppKind::integer},
    {"aten::__getitem__.t", "element({}, {})", CppKind::other},
    {"aten::__not__", "!({})", CppKind::boolean},
    {"aten::__or__.bool", "({} || {})", CppKind::boolean},
    {"aten::__or__.int", "({} | {})", CppKind::integer},
    {"aten::__xor__.bool", "({} != {})", CppKind::boolean},
    {"aten::__xor__.int", "({} ^ {})", CppKind::integer},
    {"aten::add.float", "({} + {})", CppKind::floating},
    {"aten::add.float_int", "({} + {})", CppKind::floating},
    {"aten::add.int", "({} + {})", CppKind::integer},
    {"aten::add.int_float", "({} + {})", CppKind::floating},
    {"aten::dim", "{}.dim()", CppKind::integer},
    {"aten::div.float", "(static_cast<double>({}) / {})", CppKind::floating},
    {"aten::div.int", "(static_cast<double>({}) / {})", CppKind::floating},
    {"aten::eq.float", "({} == {})", CppKind::boolean},
    {"aten::eq.float_int", "({} == {})", CppKind::boolean},
    {"aten::eq.int", "({} == {})", CppKind::boolean},
    {"aten::eq.int_float", "({} == {})", CppKind::boolean},
    {"aten::floordiv.int", "floor_divide({}, {})", CppKind::integer},
    {"aten::ge.float", "({} >= {})", CppKind::boolean},
    {"aten::ge.float_int", "({} >= {})", CppKind::boolean},
    {"aten::ge.int", "({} >= {})", CppKind::boolean},
    {"aten::ge.int_float", "({} >= {})", CppKind::boolean},
    {"aten::gt.float", "({} > {})", CppKind::boolean},
    {"aten::gt.float_int", "({} > {})", CppKind::boolean},
    {"aten::gt.int", "({} > {})", CppKind::boolean},
    {"aten::gt.int_float", "({} > {})", CppKind::boolean},
    {"aten::is_complex", "{}.is_complex()", CppKind::boolean},
    {"aten::is_contiguous", "{}.is_contiguous()", CppKind::boolean},
    {"aten::is_floating_point", "{}.is_floating_point()", CppKind::boolean},
    {"aten::item", "{}.item()", CppKind::scalar},
    {"aten::le.float", "({} <= {})", CppKind::boolean},
    {"aten::le.float_int", "({} <= {})", CppKind::boolean},
    {"aten::le.int", "({} <= {})", CppKind::boolean},
    {"aten::le.int_float", "({} <= {})", CppKind::boolean},
    {"aten::len.Tensor", "{}.size(0)", CppKind::integer},
    {"aten::len.t", "static_cast<int64_t>({}.size())", CppKind::integer},
    {"aten::lt.float", "({} < {})", CppKind::boolean},
    {"aten::lt.float_int", "({} < {})", CppKind::boolean},
    {"aten::lt.int", "({} < {})", CppKind::boolean},
    {"aten::lt.int_float", "({} < {})", CppKind::boolean},
    {"aten::mul.float", "({} * {})", CppKind::floating},
    {"aten::mul.float_int", "({} * {})", CppKind::floating},
    {"aten::mul.int", "({} * {})", CppKind::integer},
    {"aten::mul.int_float", "({} * {})", CppKind::floating},
    {"aten::ne.float", "({} != {})", CppKind::boolean},
    {"aten::ne.float_int", "({} != {})", CppKind::boolean},
    {"aten::ne.int", "({} != {})", CppKind::boolean},
    {"aten::ne.int_float", "({} != {})", CppKind::boolean},
    {"aten::neg.float", "-({})", CppKind::floating},
    {"aten::neg.int", "-({})", CppKind::integer},
    {"aten::numel", "{}.numel()", CppKind::integer},
    {"aten::pow.float", "std::pow(static_cast<double>({}), static_cast<double>({}))", CppKind::floating},
    {"aten::pow.float_int", "std::pow(static_cast<double>({}), static_cast<double>({}))", CppKind::floating},
    {"aten::pow.int", "std::pow(static_cast<double>({}), static_cast<double>({}))", CppKind::floating},
    {"aten::pow.int_float", "std::pow(static_cast<double>({}), static_cast<double>({}))", CppKind::floating},
    {"aten::remainder.int", "floor_remainder({}, {})", CppKind::integer},
    {"aten::size", "{}.sizes().vec()", CppKind::integers},
    {"aten::size.int", "{}.size({})", CppKind::integer},
    {"aten::storage_offset", "{}.storage_offset()", CppKind::integer},
    {"aten::stride", "{}.strides().vec()", CppKind::integers},
    {"aten::stride.int", "{}.stride({})", CppKind::integer},
    {"aten::sub.float", "({} - {})", CppKind::floating},
    {"aten::sub.float_int", "({} - {})", CppKind::floating},
    {"aten::sub.int", "({} - {})", CppKind::integer},
    {"aten::sub.int_float", "({} - {})", CppKind::floating},
    {"aten::sym_numel", "{}.numel()", CppKind::integer},
    {"aten::sym_size", "{}.sizes().vec()", CppKind::integers},
    {"aten::sym_size.int", "{}.size({})", CppKind::integer},
    {"aten::sym_stride.int", "{}.stride({})", CppKind::integer},
    {"prim::dtype", "static_cast<int64_t>({}.scalar_type())", CppKind::integer},
    {"prim::max.int", "std::max<std::int64_t>({}, {})", CppKind::integer},
    {"prim::min.int", "std::min<std::int64_t>({}, {})", CppKind::integer},
});

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

bool is_options_block(const OperatorSchema& schema, std::size_t i) {
  constexpr std::array kBlock = {"dtype", "layout", "device", "pin_memory"};
  if (i + kBlock.size() > schema.arguments.size()) return false;
  for (std::size_t k = 0; k < kBlock.size(); ++k) {
    if (schema.arguments[i + k].name != kBlock[k]) return false;
  }
  return true;
}

// Whether another overload takes something in place `i` to which C++ turns as readily what is given: beside a list of
// ints all else; beside an int a bool; beside a number that may be left out a list, to which one number turns.
bool is_ambiguous(const OperatorSchema& schema, std::size_t i) {
  const SchemaType& wanted = schema.arguments[i].type;
  for (const OperatorSchema* other : overloads_of(Symbol(packet_of(schema.target.view())))) {
    if (other == &schema || other->index_of("out") >= 0 || i >= other->arguments.size()) continue;
    const SchemaType& type = other->arguments[i].type;
    const bool clashes = wanted.list ? !type.list || type.base != Base::integer
                                     : (wanted.optional && type.list) ||
                                           (wanted.base == Base::integer && type.base == Base::boolean && !type.list);
    if (clashes) return true;
  }
  return false;
}

// TorchScript's, which no dispatcher knows.
bool is_of_numbers(const OperatorSchema& schema) {
  const auto is_number = [](const auto& each) {
    const Base base = each.type.base;
    return !each.type.list && (base == Base::integer || base == Base::floating || base == Base::boolean ||
                               base == Base::scalar || base == Base::complex);
  };
  const bool of_torchscript = schema.target.view().starts_with("aten::") || schema.target.view().starts_with("prim::");
  return of_torchscript && !schema.arguments.empty() && !schema.returns.empty() &&
         std::ranges::all_of(schema.arguments, is_number) && std::ranges::all_of(schema.returns, is_number);
}

bool has_function(const OperatorSchema& schema, std::string_view name) {
  if (!schema.target.view().starts_with("aten::") || contains(kNoFunction, name)) return false;
  for (const SchemaArgument& argument : schema.arguments) {
    const SchemaType& type = argument.type;
    if (argument.name == "out" || type.base == Base::other || type.base == Base::generator) return false;
    if (type.list && (type.base == Base::boolean || type.base == Base::scalar || type.base == Base::string))
      return false;
  }
  return !builtin_declarations(packet_of(schema.target.view())).empty();
}

}  // namespace

CppCalls::Value CppCalls::call(const Node& node) {
  const Call call = call_of(node);
  Value result;
  if (!call.is_translated() && python(node, result)) return result;
  if (!call) {
    throw Error(ErrorKind::unsupported, "C++ has nothing for " + target_text(node.target()) +
                                            "; replace it by operators (fx::normalize_operators, fx::decompose)");
  }
  return call_operator(call);
}

CppCalls::Value CppCalls::call_operator(const Call& call) {
  const OperatorSchema& schema = call.schema();
  for (const auto& [name, value] : call.kwargs()) {
    const int index = schema.index_of(name);
    if (index >= 0 && static_cast<std::size_t>(index) < std::min(call.args().size(), schema.num_positional()))
      throw Error(ErrorKind::invalid_argument, "the argument '" + name.str() + "' is given twice");
  }
  for (const Form& form : kForms) {
    if (schema.target != form.target) continue;
    std::string text;
    std::size_t next = 0;
    for (std::size_t i = 0; i < form.text.size(); ++i) {
      if (form.text.substr(i).starts_with("{}")) {
        const Argument* bound = call.argument(next);
        text += argument(bound ? *bound : Argument(), schema.arguments[next].type, false, false);
        ++next;
        ++i;
      } else {
        text += form.text[i];
      }
    }
    used_floor_ = used_floor_ || form.text.starts_with("floor_");
    used_element_ = used_element_ || form.text.starts_with("element(");
    return {text, {form.kind}};
  }
  if (is_of_numbers(schema))
    throw Error(ErrorKind::unsupported, "C++ has nothing for " + target_text(schema.target) + ", which is of numbers");
  const std::string name(packet_of(schema.target.view()).substr(schema.target.view().find("::") + 2));
  if (!has_function(schema, name)) return dispatch(call);
  CppType type{CppKind::nothing};
  if (schema.returns.size() == 1) type = cpp_type_of(schema.returns[0].type);
  if (schema.returns.size() > 1) {
    type.kind = CppKind::tuple;
    for (const SchemaReturn& result : schema.returns) type.elements.push_back(cpp_type_of(result.type));
  }
  std::vector<std::string> arguments = cpp_arguments(call, /*boxed=*/false);
  const bool in_place = name.ends_with('_') && !contains(kInPlaceFunctions, name);
  if (!in_place && !contains(kMethods, name)) return {"torch::" + name + "(" + joined(arguments) + ")", type};
  const std::string self = arguments.front();
  arguments.erase(arguments.begin());
  return {self + "." + name + "(" + joined(arguments) + ")", type};
}

CppCalls::Value CppCalls::dispatch(const Call& call) {
  used_dispatcher_ = true;
  const std::string_view target = call.schema().target.view();
  const std::string_view packet = packet_of(target);
  const std::string_view overload = target.size() > packet.size() ? target.substr(packet.size() + 1) : "";
  std::string text = "call_operator(" + cpp_string(packet) + ", " + cpp_string(overload) + ", {" +
                     joined(cpp_arguments(call, /*boxed=*/true)) + "})";
  CppType type{CppKind::stack};
  for (const SchemaReturn& result : call.schema().returns) type.elements.push_back(cpp_type_of(result.type));
  if (type.elements.size() != 1) return {text, type};
  const std::string_view taken = cpp_from_ivalue(type.elements[0].kind);
  return {text + "[0]" + std::string(taken), type.elements[0]};
}

// In the order of the schema; what comes last and is the default is left out.
std::vector<std::string> CppCalls::cpp_arguments(const Call& call, bool boxed) {
  const OperatorSchema& schema = call.schema();
  std::vector<std::string> texts;
  std::size_t needed = 0;
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    const SchemaArgument& parameter = schema.arguments[i];
    if (!boxed && is_options_block(schema, i)) {
      texts.push_back(options(call, i));
      if (texts.back() != "torch::TensorOptions()") needed = texts.size();
      i += 3;
      continue;
    }
    const Argument* bound = call.argument(i);
    if (!bound) throw Error(ErrorKind::invalid_argument, "the argument '" + parameter.name.str() + "' is missing");
    texts.push_back(argument(*bound, parameter.type, boxed, !boxed && is_ambiguous(schema, i)));
    if (boxed || !parameter.default_value || *bound != *parameter.default_value) needed = texts.size();
  }
  texts.resize(needed);
  return texts;
}

std::string CppCalls::options(const Call& call, std::size_t first) {
  std::string text = "torch::TensorOptions()";
  for (std::size_t i = first; i < first + 4; ++i) {
    const Argument* bound = call.argument(i);
    if (!bound || bound->is_none()) continue;
    const SchemaArgument& parameter = call.schema().arguments[i];
    const std::string name = parameter.name == "pin_memory" ? "pinned_memory" : parameter.name.str();
    text += "." + name + "(" + argument(*bound, parameter.type, false, false) + ")";
  }
  return text;
}

std::string CppCalls::argument(const Argument& value, const SchemaType& type, bool boxed, bool ambiguous) {
  if (type.list && !(value.is_none() && type.optional)) return list(value, type, boxed, ambiguous);
  const bool is_number = type.base == Base::integer || type.base == Base::floating;
  if (ambiguous && type.optional && is_number) {
    if (value.is_none()) return type.list ? "at::OptionalIntArrayRef()" : "torch::nullopt";
    const std::string kind = type.base == Base::integer ? "int64_t" : "double";
    return "torch::optional<" + kind + ">(" + argument(value, type, boxed, false) + ")";
  }
  if (const Node* node = value.node_or_null()) return node_as(*node, type);
  if (value.is_none()) {
    if (boxed) return "c10::IValue()";
    return type.is_tensor() && !type.optional ? "torch::Tensor()" : "torch::nullopt";
  }
  if (type.is_tensor() && (value.is_number() || value.is_bool()))
    return "at::native::wrapped_scalar_tensor(" + cpp_literal(value) + ")";
  if (type.base == Base::floating && value.is_int()) return cpp_literal(Argument(value.as_float()));
  if (type.base == Base::dtype && value.is_int()) return cpp_dtype(static_cast<DType>(value.as_int()));
  if (type.base == Base::device && value.is_string()) return "torch::Device(" + cpp_string(value.as_string()) + ")";
  return (boxed || ambiguous) && value.is_int() ? "int64_t{" + cpp_literal(value) + "}" : cpp_literal(value);
}

std::string CppCalls::node_as(const Node& node, const SchemaType& type) {
  const Value& value = values_[node];
  const bool is_tensor = value.type.kind == CppKind::tensor;
  const bool is_scalar = value.type.kind == CppKind::scalar;
  switch (type.base) {
    case Base::tensor:
      if (value.type.kind == CppKind::integer || value.type.kind == CppKind::floating ||
          value.type.kind == CppKind::boolean || is_scalar) {
        return "at::native::wrapped_scalar_tensor(" + value.text + ")";
      }
      return value.text;
    case Base::scalar: return is_tensor ? value.text + ".item()" : value.text;
    case Base::integer:
      return is_tensor ? value.text + ".item<int64_t>()" : is_scalar ? value.text + ".toLong()" : value.text;
    case Base::floating:
      return is_tensor ? value.text + ".item<double>()" : is_scalar ? value.text + ".toDouble()" : value.text;
    case Base::boolean: return is_tensor ? value.text + ".item<bool>()" : value.text;
    default: return value.text;
  }
}

std::string CppCalls::list(const Argument& value, const SchemaType& type, bool boxed, bool ambiguous) {
  if (value.is_node()) return values_[value.node()].text;
  std::vector<std::string> elements;
  SchemaType element = type;
  element.list = false;
  element.optional = type.optional_elements;
  if (value.is_sequence()) {
    for (const Argument& each : value.elements()) elements.push_back(argument(each, element, false, false));
  } else {
    elements.assign(std::max<std::size_t>(type.fixed_size, 1), argument(value, element, false, false));
  }
  const std::string braced = "{" + joined(elements) + "}";
  if (type.is_tensor()) {
    const bool optional = type.optional_elements;
    return optional ? "c10::List<torch::optional<torch::Tensor>>(" + braced + ")"
                    : "std::vector<torch::Tensor>" + braced;
  }
  const std::string_view name = type.base == Base::floating  ? "double"
                                : type.base == Base::boolean ? "bool"
                                                             : "int64_t";
  if (boxed) return "c10::List<" + std::string(name) + ">(" + (elements.empty() ? "" : braced) + ")";
  if (type.base == Base::floating) return "torch::ArrayRef<double>(" + braced + ")";
  return ambiguous || elements.empty() ? "torch::IntArrayRef(" + braced + ")" : braced;
}

}  // namespace fx::internal
