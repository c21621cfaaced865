#include <fxgraph/trace/inputs.h>

#include <algorithm>
#include <iterator>

#include <fxgraph/run/value.h>

namespace fx {

namespace internal {

const LiteralKind& literal_kind(ParameterKind kind) {
  using Value = const c10::IValue&;
  static constexpr LiteralKind kKinds[] = {
      {ParameterKind::floating, "float", "a number", [](Value value) { return value.isDouble() || value.isInt(); }},
      {ParameterKind::integer, "int", "an int", [](Value value) { return value.isInt(); }},
      {ParameterKind::boolean, "bool", "a bool", [](Value value) { return value.isBool(); }},
      {ParameterKind::string, "str", "a string", [](Value value) { return value.isString(); }},
      {ParameterKind::other_literal, "", "a literal",
       [](Value value) { return value.isScalar() || value.isIntList() || value.isString(); }}};
  const auto* const known = std::ranges::find(kKinds, kind, &LiteralKind::kind);
  return known == std::end(kKinds) ? kKinds[4] : *known;
}

std::size_t Inputs::count_of(const std::vector<Parameter>& parameters, std::size_t required) const {
  const std::size_t given = count(0);
  const bool needs_value =
      std::any_of(parameters.begin() + static_cast<std::ptrdiff_t>(required), parameters.end(),
                  [](const Parameter& parameter) { return parameter.kind != ParameterKind::tensor; });
  return given == 0 && !needs_value ? parameters.size() : count(required);
}

c10::IValue Inputs::any_value(const InputItem& item) {
  if (!item.example || item.example->isTensor()) return tensor(item);
  if (!item.example->isTuple() && !item.example->isTensorList()) return literal(item, ParameterKind::other_literal);
  std::vector<c10::IValue> values;
  for (const InputItem& part : elements(item, kAnyLength)) values.push_back(any_value(part));
  if (item.example->isTuple()) return c10::ivalue::Tuple::create(std::move(values));
  return make_list(std::move(values), c10::TensorType::get());
}

void Inputs::refuse_none() {
  throw Error(ErrorKind::invalid_argument,
              "symbolic_trace: an input that is None is of a type that cannot be; give its value among the examples");
}

c10::IValue Inputs::bind_any(const Parameter& parameter) {
  InputItem item;
  if (!next(parameter, item)) return {};
  return any_value(item);
}

}  // namespace internal

std::string_view Parameter::type_name() const { return internal::literal_kind(kind).type; }

}  // namespace fx
