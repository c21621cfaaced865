#include <fxgraph/run/overloaded_call.h>

#include <mutex>
#include <utility>

#include <fxgraph/support/error.h>

namespace fx::internal {
namespace {

std::uint32_t kind_of(const c10::IValue& value) {
  if (value.isTensor()) return 1;
  if (value.isInt()) return 2;
  if (value.isDouble()) return 3;
  if (value.isBool()) return 4;
  if (value.isNone()) return 5;
  if (value.isString()) return 6;
  if (value.isList()) return 16 + (value.toListRef().empty() ? 0 : kind_of(value.toListRef()[0]) % 16);
  if (value.isTuple()) {
    const auto& elements = value.toTupleRef().elements();
    return 32 + (elements.empty() ? 0 : kind_of(elements[0]) % 16);
  }
  return value.isGenericDict() ? 7 : 8;
}

std::string kinds_text(const CallValues& call) {
  std::string text = "(";
  for (const c10::IValue& value : call.args) text += (text.size() > 1 ? ", " : "") + value.tagKind();
  for (const auto& [name, value] : call.kwargs)
    text += (text.size() > 1 ? ", " : "") + name.str() + "=" + value.tagKind();
  return text + ")";
}

}  // namespace

struct OverloadedCall::State {
  std::string name;
  OverloadSets sets;
  std::size_t num_args = 0;
  std::vector<Symbol> keywords;
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, const TorchOperator*>>
      chosen;  // few: a call site sees one or two kinds of values
};

OverloadedCall::OverloadedCall(std::string name, OverloadSets sets, std::size_t num_args, std::vector<Symbol> keywords)
    : state_(std::make_shared<State>()) {
  state_->name = std::move(name);
  state_->sets = std::move(sets);
  state_->num_args = num_args;
  state_->keywords = std::move(keywords);
}

void OverloadedCall::operator()(torch::jit::Stack& stack) const {
  std::uint64_t kinds = 1469598103934665603ull;
  CallValues call;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    kinds = (kinds ^ kind_of(stack[i])) * 1099511628211ull;
    if (i < state_->num_args) {
      call.args.push_back(std::move(stack[i]));
    } else {
      call.kwargs.emplace_back(state_->keywords[i - state_->num_args], std::move(stack[i]));
    }
  }
  stack.clear();
  const TorchOperator* target = choose(kinds, call);
  // Kinds do not tell all (lengths of lists, elements after the first): choose again where the remembered one does not
  // fit.
  if (!target || !bind_values(*target->schema, call, &stack)) {
    target = pick_overload(state_->sets, call);
    if (!target) {
      throw Error(ErrorKind::execution, "no overload of " + state_->name + " takes these arguments: " +
                                            kinds_text(call) + said_twice(state_->sets, call));
    }
    bind_values(*target->schema, call, &stack);
  }
  (*target)(stack);
  if (stack.size() > 1) {
    c10::IValue whole = c10::ivalue::Tuple::create(std::vector<c10::IValue>(stack.begin(), stack.end()));
    stack.clear();
    stack.push_back(std::move(whole));
  }
  if (stack.empty()) stack.emplace_back();
}

const TorchOperator* OverloadedCall::choose(std::uint64_t kinds, const CallValues& call) const {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [known, target] : state_->chosen) {
    if (known == kinds) return target;
  }
  const TorchOperator* target = pick_overload(state_->sets, call);
  state_->chosen.emplace_back(kinds, target);
  return target;
}

}  // namespace fx::internal
