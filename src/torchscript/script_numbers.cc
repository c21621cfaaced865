#include <fxgraph/torchscript/script_numbers.h>

#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/jit/frontend/schema_matching.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/reflected.h>
#include <fxgraph/torchscript/script_schemas.h>

namespace fx::internal {

namespace {

namespace jit = torch::jit;
using jit::NamedValue;
using jit::Value;

std::string digits_of(double value) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

bool loses_its_kind(double value) {
  if (value == 0) return std::signbit(value);
  constexpr double kWrittenWithPoint = 1e10;
  return std::abs(value) >= kWrittenWithPoint && digits_of(value).find_first_of(".ein") == std::string::npos;
}

Value* call(jit::Graph& graph, c10::Symbol name, const std::vector<NamedValue>& inputs) {
  return jit::emitBuiltinCall(no_source(), graph, name, inputs, {});
}

Value* insert(jit::Graph& graph, const c10::IValue& value) {
  if (!is_misread(value)) return graph.insertConstant(value, no_source());
  if (value.isDouble())
    return call(graph, c10::aten::Float, {NamedValue(graph.insertConstant(digits_of(value.toDouble())))});
  std::vector<Value*> elements, keys;
  if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) {
      keys.push_back(insert(graph, item.key()));
      elements.push_back(insert(graph, item.value()));
    }
    const auto type = value.type()->expect<c10::DictType>();
    return graph.insertNode(graph.createDict(type->getKeyType(), type->getValueType(), keys, elements))->output();
  }
  for (const c10::IValue& element : elements_of(value)) elements.push_back(insert(graph, element));
  if (value.isTuple()) return graph.insertNode(graph.createTuple(elements))->output();
  return graph.insertNode(graph.createList(value.type()->expect<c10::ListType>()->getElementType(), elements))
      ->output();
}

bool is_int(const Value* value) { return value->type()->isSubtypeOf(*c10::IntType::get()); }

}  // namespace

bool is_misread(const c10::IValue& value) {
  if (value.isDouble()) return loses_its_kind(value.toDouble());
  const auto any = [](const auto& values) {
    return std::any_of(values.begin(), values.end(), [](const c10::IValue& each) { return is_misread(each); });
  };
  if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    return std::any_of(dict.begin(), dict.end(),
                       [](const auto& item) { return is_misread(item.key()) || is_misread(item.value()); });
  }
  return (value.isTuple() || value.isList()) && any(elements_of(value));
}

// TorchScript has no bool for a Scalar. As a tensor it gives way to any other type all the same; where no tensor can
// stand, the value is made one of a type that is known, and a number serves.
Value* insert_literal(jit::Graph& graph, const Argument& argument, const c10::TypePtr& type) {
  if (argument.is_bool() && type && is_tensor(*type))
    return graph.insertConstant(at::scalar_tensor(argument.as_bool(), at::kBool), no_source());
  if (argument.is_bool() && type && is_number(*type))
    return graph.insertConstant(static_cast<std::int64_t>(argument.as_bool()), no_source());
  return insert(graph, to_ivalue(argument, type));
}

Value* as_wanted(jit::Graph& graph, Value* value, const c10::TypePtr& type) {
  const c10::TypeKind kind = value->type()->kind();
  if (!type) return value;
  // None is no such value: LibTorch raises there, as it would where the value is used.
  if (kind == c10::TypeKind::OptionalType && !value->type()->isSubtypeOf(*type) &&
      value->type()->castRaw<c10::OptionalType>()->getElementType()->isSubtypeOf(*type))
    return call(graph, c10::aten::_unwrap_optional, {NamedValue(value)});
  if (kind == c10::TypeKind::IntType && type->kind() == c10::TypeKind::FloatType)
    return call(graph, c10::aten::Float, {NamedValue(value)});
  if (kind != c10::TypeKind::BoolType) return value;
  const bool as_float = type->kind() == c10::TypeKind::FloatType;
  if (is_number(*type) || as_float || type->kind() == c10::TypeKind::IntType) {
    Value* number = call(graph, c10::aten::Int, {NamedValue(value)});
    return as_float ? call(graph, c10::aten::Float, {NamedValue(number)}) : number;
  }
  return is_tensor(*type) ? call(graph, c10::aten::tensor, {NamedValue(value)}) : value;
}

Value* build_int_pow(jit::Graph& graph, const Node& node, const NamedValueOf& value_of) {
  const bool of_torch = node.target() == "aten::pow.int_to_int";
  if (!of_torch && node.target() != python::kPow && node.target() != python::kInPlacePow) return nullptr;
  if (node.args().size() != 2) return nullptr;
  Value *base = value_of(node.arg(0)).value(graph), *exponent = value_of(node.arg(1)).value(graph);
  if (!is_int(base) || !is_int(exponent)) return nullptr;
  if (of_torch)
    return call(graph, c10::aten::Int,
                {NamedValue(call(graph, c10::aten::pow, {NamedValue(base), NamedValue(exponent)}))});
  if (!node.arg(1).is_int())
    throw Error(ErrorKind::unsupported,
                "TorchScript has one type for a power: make the exponent a literal, or one of the two a float");
  std::int64_t left = node.arg(1).as_int();
  if (left < 0) return call(graph, c10::aten::pow, {NamedValue(base), NamedValue(exponent)});
  Value* power = nullptr;
  for (; left != 0; left >>= 1) {
    if ((left & 1) != 0) power = power ? call(graph, c10::aten::mul, {NamedValue(power), NamedValue(base)}) : base;
    if (left > 1) base = call(graph, c10::aten::mul, {NamedValue(base), NamedValue(base)});
  }
  return power ? power : graph.insertConstant(std::int64_t{1}, no_source());
}

}  // namespace fx::internal
