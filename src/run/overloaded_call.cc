#include <fxgraph/run/overloaded_call.h>

#include <deque>
#include <mutex>
#include <utility>

#include <fxgraph/run/call_target.h>
#include <fxgraph/run/python_calls.h>
#include <fxgraph/support/error.h>

namespace fx::internal {
namespace {

/// Kinds of all elements: which overload takes a list hangs on each.
std::uint64_t mixed(std::uint64_t hash, const c10::IValue& value) {
  const auto mix = [](std::uint64_t before, std::uint64_t next) { return (before ^ next) * 1099511628211ull; };
  if (!value.isList() && !value.isTuple()) return mix(hash, static_cast<std::uint64_t>(kind_of(value)));
  hash = mix(hash, value.isList() ? 16 : 32);
  for (const c10::IValue& each : value.isList() ? value.toListRef() : value.toTupleRef().elements())
    hash = mixed(hash, each);
  return mix(hash, 64);
}

}  // namespace

struct OverloadedCall::State {
  Graph graph;  // the call, over placeholders
  const Node* node = nullptr;
  std::mutex mutex;
  std::deque<std::pair<std::uint64_t, CallOnValues>> chosen;  // few: a call site sees one or two kinds of values

  const CallOnValues& choose(std::uint64_t kinds, const torch::jit::Stack& values) {
    const std::lock_guard lock(mutex);
    for (const auto& [known, call] : chosen) {
      if (known == kinds) return call;
    }
    return chosen
        .emplace_back(std::piecewise_construct, std::forward_as_tuple(kinds), std::forward_as_tuple(*node, values))
        .second;
  }
};

OverloadedCall::OverloadedCall(const Node& node) : state_(std::make_shared<State>()) {
  NodeMap<Node*> fakes(node.graph());
  for (Node* input : node.all_input_nodes()) {
    Node& made = state_->graph.placeholder(input->name());
    if (std::string kind = enumerator_kind(*input); !kind.empty()) made.meta().set(meta_key::kType, std::move(kind));
    fakes[*input] = &made;
  }
  state_->node = &state_->graph.node_copy(node, [&](Node& input) { return Argument(fakes[input]); });
}

void OverloadedCall::operator()(torch::jit::Stack& stack) const {
  std::uint64_t kinds = 1469598103934665603ull;
  for (const c10::IValue& value : stack) kinds = mixed(kinds, value);
  const CallOnValues& call = state_->choose(kinds, stack);
  if (!call.op()) {
    const PythonFunction* function = find_python_function(state_->node->op(), state_->node->target());
    if (!function || !state_->node->kwargs().empty()) throw Error(ErrorKind::execution, call.refusal());
    std::vector<c10::IValue> values = call.positional(stack);
    stack = {function->call(values)};
    return;
  }
  stack = call.arguments(stack);
  (*call.op())(stack);
  if (stack.size() > 1) {
    c10::IValue whole = c10::ivalue::Tuple::create(std::vector<c10::IValue>(stack.begin(), stack.end()));
    stack.clear();
    stack.push_back(std::move(whole));
  }
  if (stack.empty()) stack.emplace_back();
}

}  // namespace fx::internal
