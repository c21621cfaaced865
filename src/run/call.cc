#include <fxgraph/run/call.h>

#include <algorithm>
#include <string_view>

#include <fxgraph/ir/target.h>
#include <fxgraph/nn/owning_module.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/run/call_target.h>
#include <fxgraph/run/plan.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace {

c10::IValue pack(torch::jit::Stack stack) {
  if (stack.size() == 1) return std::move(stack[0]);
  return stack.empty() ? c10::IValue() : c10::IValue(c10::ivalue::Tuple::create(std::move(stack)));
}

c10::IValue call_operator(const TorchOperator& op, const CallValues& call) {
  torch::jit::Stack stack;
  if (op.schema->is_vararg() && call.kwargs.empty()) {
    stack = call.args;
    stack.emplace_back(static_cast<std::int64_t>(call.args.size()));
  } else if (!bind_values(*op.schema, call, &stack)) {
    throw Error(ErrorKind::execution,
                "the arguments do not fit " + c10::toString(*op.schema) + said_twice({{&op}}, call));
  }
  op(stack);
  return pack(std::move(stack));
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

c10::IValue call_packets(const std::vector<Symbol>& packets, const CallValues& call) {
  const TorchOperator* op = pick_overload(packets, call);
  if (!op) {
    OverloadSets sets;
    for (const Symbol packet : packets) sets.push_back(torch_overloads(packet));
    throw Error(ErrorKind::execution,
                "no overload of " + packets.front().str() + " fits the arguments" + said_twice(sets, call));
  }
  return call_operator(*op, call);
}

/// A dtype is an int among values; as an argument it is not. The names that torch.nn.functional gives such parameters.
c10::TypePtr type_of_keyword(Symbol name) {
  if (name == "dtype") return c10::ScalarTypeType::get();
  return name == "memory_format" ? c10::TypePtr(c10::MemoryFormatType::get()) : nullptr;
}

/// The call as a node over placeholders, one for each value that no literal can be.
struct CallAsGraph : OwningModule {
  const Graph& graph() const override { return owned; }

  Argument argument_for(const c10::IValue& value, const c10::TypePtr& type = nullptr) {
    if (std::optional<Argument> literal = to_argument(value, type)) return std::move(*literal);
    inputs.push_back(value);
    return owned.placeholder("value_" + std::to_string(inputs.size()));
  }

  Graph owned;
  std::vector<c10::IValue> inputs;
};

std::optional<c10::IValue> call_normalized(Symbol target, const CallValues& call) {
  CallAsGraph made;
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  for (const c10::IValue& value : call.args) args.push_back(made.argument_for(value));
  for (const auto& [name, value] : call.kwargs)
    kwargs.push_back({name, made.argument_for(value, type_of_keyword(name))});
  made.owned.output(made.owned.call_function(target, args, kwargs));
  if (normalize_operators(made.owned) == 0) return std::nullopt;
  return Plan::compile(made)->run(made, std::move(made.inputs));
}

}  // namespace

c10::IValue call_function_target(Symbol target, const CallValues& call) {
  const CallTarget resolved = resolve_call(Op::call_function, target);
  if (resolved.function) return call_python(*resolved.function, call);
  if (resolved.op) {
    const bool fits = resolved.packets.empty() || bind_values(*resolved.op->schema, call, nullptr);
    const TorchOperator* other = fits ? nullptr : pick_overload(resolved.packets, call);
    return call_operator(other ? *other : *resolved.op, call);
  }
  if (!resolved.packets.empty()) return call_packets(resolved.packets, call);
  if (std::optional<c10::IValue> result = call_normalized(target, call)) return std::move(*result);
  const std::vector<Symbol> packets = packets_by_last_name(target);
  if (!packets.empty()) return call_packets(packets, call);
  throw Error(ErrorKind::not_found, "there is no operator " + target_text(target) +
                                        "; check its spelling, or load the library that registers it");
}

c10::IValue call_method_target(Symbol method, const CallValues& call) {
  const CallTarget resolved = resolve_call(Op::call_method, method);
  if (resolved.function) return call_python(*resolved.function, call);
  if (resolved.packets.empty()) throw Error(ErrorKind::not_found, "tensors have no method " + method.str());
  return call_packets(resolved.packets, call);
}

}  // namespace fx
