#include <fxgraph/run/call.h>

#include <fxgraph/ir/target.h>
#include <fxgraph/run/python_calls.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace {

c10::IValue pack(torch::jit::Stack stack) {
  if (stack.size() == 1) return std::move(stack[0]);
  return stack.empty() ? c10::IValue() : c10::IValue(c10::ivalue::Tuple::create(std::move(stack)));
}

c10::IValue call_operator(const TorchOperator& op, const CallValues& call) {
  torch::jit::Stack stack;
  if (!bind_values(*op.schema, call, &stack)) {
    throw Error(ErrorKind::execution, "the arguments do not fit " + c10::toString(*op.schema));
  }
  op(stack);
  return pack(std::move(stack));
}

c10::IValue call_python(const PythonFunction& function, const CallValues& call) {
  std::vector<c10::IValue> values = call.args;
  for (const auto& [name, value] : call.kwargs) {
    std::size_t i = 0;
    while (i < function.parameters.size() && name != function.parameters[i]) ++i;
    if (i == function.parameters.size()) {
      throw Error(ErrorKind::execution, std::string(function.target) + " has no argument " + name.str());
    }
    if (values.size() <= i) values.resize(i + 1);
    values[i] = value;
  }
  return function.call(values);
}

c10::IValue call_packets(Symbol target, const std::vector<Symbol>& packets, const CallValues& call) {
  if (packets.empty()) {
    throw Error(ErrorKind::not_found, "there is no operator " + target_text(target) +
                                          "; check its spelling, or load the library that registers it");
  }
  const TorchOperator* op = pick_overload(packets, call);
  if (!op) throw Error(ErrorKind::execution, "no overload of " + packets.front().str() + " fits the arguments");
  return call_operator(*op, call);
}

}  // namespace

c10::IValue call_function_target(Symbol target, const CallValues& call) {
  target = canonical_target(target);
  if (const PythonFunction* function = find_python_function(target)) return call_python(*function, call);
  if (const TorchOperator* op = find_torch_operator(target)) return call_operator(*op, call);
  return call_packets(target, packets_of_function(target), call);
}

c10::IValue call_method_target(Symbol method, const CallValues& call) {
  if (const PythonFunction* function = find_python_method(method)) return call_python(*function, call);
  return call_packets(method, packets_of_method(method), call);
}

}  // namespace fx
