#include <fxgraph/trace/inputs.h>

#include <algorithm>

#include <fxgraph/run/value.h>

namespace fx {

std::string_view Parameter::type_name() const {
  switch (kind) {
    case ParameterKind::floating: return "float";
    case ParameterKind::integer: return "int";
    case ParameterKind::boolean: return "bool";
    case ParameterKind::string: return "str";
    default: return "";
  }
}

namespace internal {

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
}  // namespace fx
