#include <fxgraph/trace/known_values.h>

#include <c10/core/GradMode.h>

#include <algorithm>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/run/call.h>
#include <fxgraph/run/keep_random_state.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/trace/cleanup.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/tensor_memory.h>

namespace fx::internal {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // of a tensor that is worth computing

enum : std::uint8_t { kUnknown = 1, kOfRoot = 2, kNeeded = 4, kKept = 8 };

class Evaluation {
 public:
  Evaluation(const Session& session, const std::vector<const Node*>& wanted)
      : session_(session),
        wanted_(wanted),
        graph_(wanted[0]->graph()),
        effects_(graph_),
        flags_(graph_.id_bound(), 0),
        memory_(effects_.num_sets(), 0) {
    last_ = wanted[0];
    for (const Node* node : wanted) last_ = last_->is_before(*node) ? node : last_;
  }

  // Whatever can be run of a call on the inputs that the session remembers.
  std::vector<at::Tensor> run_call() {
    for (const Node* node : wanted_) flags_[node->id()] |= kNeeded;
    find_needed();
    for (const Node& node : graph_.nodes()) {
      const bool needed = (flags_[node.id()] & kNeeded) != 0;
      writes_ |= needed && effects_.of(node).writes;
      if (&node == last_) break;
    }
    const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
    const at::AutoGradMode grad(!writes_ && at::GradMode::is_enabled());
    values_.resize(graph_.id_bound());
    for (const Node& node : graph_.nodes()) {
      if ((flags_[node.id()] & kNeeded) != 0) run_node(node);
      if (&node == last_) break;
    }
    std::vector<at::Tensor> tensors;
    for (const Node* node : wanted_) {
      const c10::IValue& value = values_[node->id()];
      tensors.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
    }
    return tensors;
  }

  std::optional<KnownValues> run() {
    classify();
    for (const Node* node : wanted_) flags_[node->id()] |= kNeeded;
    if (!find_needed()) return std::nullopt;
    const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
    const at::NoGradGuard no_grad;
    values_.resize(graph_.id_bound());
    for (const Node& node : graph_.nodes()) {
      if ((flags_[node.id()] & kNeeded) != 0) values_[node.id()] = evaluate_unless_large(node);
      if (&node == last_) break;
    }
    KnownValues known;
    for (const Node* node : wanted_) {
      known.values.push_back(values_[node->id()]);
      known.of_attribute |= (flags_[node->id()] & kOfRoot) != 0;
      known.of_kept |= (flags_[node->id()] & kKept) != 0;
    }
    return known;
  }

 private:
  // A write of something unknown makes the memory unknown.
  void classify() {
    for (const Node& node : graph_.nodes()) {
      std::uint8_t& own = flags_[node.id()];
      if (node.is(Op::get_attr)) {
        const CapturedTensor* captured = session_.captured_by(node);
        own = !captured ? kUnknown : captured->of_root ? kOfRoot : !captured->is_literal ? kKept : 0;
      } else if (!node.is(Op::call_function)) {
        own = kUnknown;
      } else {
        node.for_each_input([&](const Node& input) {
          own |= flags_[input.id()];
          for (const Effects::Set set : effects_.sets(input)) own |= memory_[set];
        });
        const NodeEffects& effects = effects_.of(node);
        if (effects.random || effects.unknown) own |= kUnknown;
        if (effects.writes) {
          for (const Effects::Set set : effects_.written_sets(node)) {
            // What is written to a buffer, or to another tensor from outside, is there in the next call, too.
            memory_[set] |= is_kept(set) ? std::uint8_t{kUnknown} : own;
            own |= memory_[set];
          }
        }
      }
      for (const Effects::Set set : effects_.sets(node)) {
        if (effects_.members(set).front() == &node) memory_[set] |= own;
      }
      if (&node == last_) break;
    }
  }

  bool is_kept(Effects::Set set) const {
    return (memory_[set] & kOfRoot) != 0 || std::ranges::any_of(effects_.members(set), [&](const Node* node) {
             const CapturedTensor* captured = node->is(Op::get_attr) ? session_.captured_by(*node) : nullptr;
             return captured && !captured->is_literal;
           });
  }

  // Backwards: what the value takes, and who writes the memory of that.
  bool find_needed() {
    for (const Node* node = last_; node; node = node->previous()) {
      std::uint8_t& own = flags_[node->id()];
      for (const Effects::Set set : effects_.written_sets(*node)) own |= memory_[set] & kNeeded;
      if ((own & kNeeded) == 0) continue;
      if ((own & kUnknown) != 0) return false;
      for (const Effects::Set set : effects_.sets(*node)) memory_[set] |= kNeeded;
      node->for_each_input([&](const Node& input) {
        flags_[input.id()] |= kNeeded;
        for (const Effects::Set set : effects_.sets(input)) memory_[set] |= kNeeded;
      });
    }
    return true;
  }

  // Without a value when it, or what it takes, has none.
  void run_node(const Node& node) {
    bool known = true;
    node.for_each_input([&](const Node& input) { known = known && !values_[input.id()].isNone(); });
    if (!known) return;
    try {
      c10::IValue& value = values_[node.id()];
      if (const at::Tensor input = session_.input(node); input.defined()) {
        value = own_copy(input);
      } else if (const Node* kept = session_.kept_value(node)) {
        value = values_of_call(session_.kept_session(node), {kept}).front();
      } else if (node.is(Op::get_attr)) {
        const CapturedTensor* captured = session_.captured_by(node);
        if (captured) value = writes_ ? own_copy(captured->tensor) : captured->tensor;
      } else if (!node.is(Op::placeholder)) {
        value = evaluate(node);
      }
      if (value.isTensor() && !value.toTensor().defined()) value = c10::IValue();
    } catch (const std::exception&) {  // as the program would have failed, and what it had by then stays
    }
  }

  c10::IValue evaluate_unless_large(const Node& node) const {
    const at::Tensor shape = session_.value_of(node);
    if (!node.is(Op::get_attr) && shape.defined() && shape.numel() > kMostElements)
      throw Error(ErrorKind::trace, "too large to be computed in a trace");
    return evaluate(node);
  }

  c10::IValue evaluate(const Node& node) const {
    if (node.is(Op::get_attr)) return own_copy(session_.captured_by(node)->tensor);
    const auto value_of = [this](Node& input) { return values_[input.id()]; };
    CallValues call;
    for (const Argument& argument : node.args()) call.args.push_back(to_ivalue(argument, nullptr, value_of));
    for (const auto& [name, value] : node.kwargs()) call.kwargs.emplace_back(name, to_ivalue(value, nullptr, value_of));
    return call_function_target(node.target(), call);
  }

  const Session& session_;
  const std::vector<const Node*>& wanted_;
  const Node* last_;  // of those
  const Graph& graph_;
  const Effects effects_;
  std::vector<std::uint8_t> flags_;   // by id
  std::vector<std::uint8_t> memory_;  // by set: of what is written there
  std::vector<c10::IValue> values_;
  bool writes_ = false;  // something needed is written in place
};

}  // namespace

std::vector<at::Tensor> values_of_call(const Session& session, const std::vector<const Node*>& nodes) {
  if (nodes.empty()) return {};
  const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
  const KeepRandomState keep;
  return Evaluation(session, nodes).run_call();
}

std::optional<KnownValues> known_values(const Session& session, const std::vector<const Node*>& nodes) {
  if (nodes.empty()) return KnownValues();
  try {
    return Evaluation(session, nodes).run();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void make_literals_anew(Graph& graph, Session& session) {
  static const Symbol kClone("aten::clone");
  std::vector<Node*> changed;
  std::optional<TrackedEffects> effects;
  for (const CapturedTensor& captured : session.captured()) {
    Node* node = captured.is_literal ? captured.attribute : nullptr;
    if (!node || node->is_erased()) continue;
    if (!effects) {
      effects.emplace(graph);
      effects->expect_writes();
    }
    if (effects->is_written(*node) || effects->is_returned(*node)) changed.push_back(node);
  }
  for (Node* literal : changed) {
    const auto at = graph.inserting_after(*literal);
    Node& copy = session.create_node(Op::call_function, kClone, {Argument(literal)});
    session.copy_value(*literal, copy);
    const std::vector<Node*> users = [&] {
      std::vector<Node*> all;
      for (Node& user : literal->users()) {
        if (&user != &copy) all.push_back(&user);
      }
      return all;
    }();
    for (Node* user : users) user->replace_input_with(*literal, copy);
  }
}

}  // namespace fx::internal
