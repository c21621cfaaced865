#include <fxgraph/run/call.h>

#include <algorithm>
#include <string_view>

#include <fxgraph/ir/target.h>
#include <fxgraph/run/call_target.h>
#include <fxgraph/run/python_calls.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace {

c10::IValue pack(torch::jit::Stack stack) {
  if (stack.size() == 1) return std::move(stack[0]);
  return stack.empty() ? c10::IValue() : c10::IValue(c10::ivalue::Tuple::create(std::move(stack)));
}

c10::IValue call_python(const PythonFunction& function, const CallValues& call) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::execution, std::string(function.target) + what);
  };
  const std::size_t count = function.parameters.size();
  std::vector<c10::IValue> values = call.args;
  if (count != 0 && values.size() > count)
    refuse(" takes " + std::to_string(count) + " arguments, the call has " + std::to_string(values.size()));
  std::vector<bool> given(values.size(), true);
  for (const auto& [name, value] : call.kwargs) {
    const auto i = static_cast<std::size_t>(
        std::ranges::find_if(function.parameters,
                             [&, &name = name](const char* parameter) {
                               return name == parameter || (name == "input" && std::string_view(parameter) == "self");
                             }) -
        function.parameters.begin());
    if (i == count) refuse(" has no argument '" + name.str() + "'");
    if (i < given.size() && given[i]) refuse(" is given the argument '" + name.str() + "' twice");
    values.resize(std::max(values.size(), i + 1));
    given.resize(values.size());
    values[i] = value;
    given[i] = true;
  }
  for (std::size_t i = 0; i < std::min(function.least, given.size()); ++i) {
    if (!given[i]) refuse(std::string(" needs the argument '") + function.parameters[i] + "'");
  }
  return function.call(values);
}

c10::IValue run(const TorchOperator& op, torch::jit::Stack stack) {
  op(stack);
  return pack(std::move(stack));
}

/// The arguments of an operator that is spelt out.
torch::jit::Stack bind(const TorchOperator& op, const CallValues& call) {
  torch::jit::Stack stack;
  if (op.schema->is_vararg() && call.kwargs.empty()) {
    stack = call.args;
    stack.emplace_back(static_cast<std::int64_t>(call.args.size()));
  } else if (!bind_values(*op.schema, call, stack)) {
    std::string twice;
    for (const auto& [name, value] : call.kwargs) {
      const auto index = op.schema->argumentIndexWithName(name.str());
      if (index && static_cast<std::size_t>(*index) < call.args.size())
        twice = "; argument '" + name.str() + "' is given twice";
    }
    throw Error(ErrorKind::execution, "the arguments do not fit " + c10::toString(*op.schema) + twice);
  }
  return stack;
}

c10::IValue call_target(Op op, Symbol target, const CallValues& call) {
  if (const TorchOperator* exact = exact_operator(op, target)) return run(*exact, bind(*exact, call));
  const CallOnValues found(op, target, call);
  if (found.op()) return run(*found.op(), found.arguments());
  if (const PythonFunction* function = find_python_function(op, target)) return call_python(*function, call);
  if (internal::candidate_overloads(op, target).empty()) throw Error(ErrorKind::not_found, no_such_target(op, target));
  throw Error(ErrorKind::execution, found.refusal());
}

}  // namespace

std::string no_such_target(Op op, Symbol target) {
  if (op == Op::call_method) return "tensors have no method '" + target.str() + "'";
  if (target.view().starts_with("torch."))
    return "'" + target.str() +
           "' is no operator by itself; check its spelling, write it in operators, or make it a function of yours with "
           "fx::wrap";
  return "there is no operator '" + target.str() + "'; check its spelling, or load the library that registers it";
}

const TorchOperator* bind_call(Op op, Symbol target, const CallValues& call, torch::jit::Stack& stack) {
  if (const TorchOperator* exact = exact_operator(op, target))
    return bind_values(*exact->schema, call, stack) ? exact : nullptr;
  const CallOnValues found(op, target, call);
  if (found.op()) stack = found.arguments();
  return found.op();
}

c10::IValue call_function_target(Symbol target, const CallValues& call) {
  return call_target(Op::call_function, target, call);
}

c10::IValue call_method_target(Symbol method, const CallValues& call) {
  return call_target(Op::call_method, method, call);
}

}  // namespace fx
