#include <fxgraph/trace/second_call.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>

#include <fxgraph/ir/target.h>
#include <fxgraph/trace/dispatch.h>
#include <fxgraph/trace/same_program.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& cure, const Node* node = nullptr) {
  throw Error(ErrorKind::trace, "symbolic_trace: " + what + "; " + cure, node ? node->name() : "");
}

constexpr const char* kPassState =
    "pass what changes as an input and return it, keep it in a registered buffer, or name it in TraceOptions::state";

void refuse_change(const SecondCallPlan& plan) {
  if (const std::string change = plan.state.change(); !change.empty())
    refuse("forward " + change + ", which a graph does not record", "do that outside of forward");
}

[[noreturn]] void refuse_unknown(const Node& node) {
  refuse("the program keeps %" + node.name() + " (" + target_text(node.target()) +
             "), whose value is not known when the trace has ended",
         "give examples for all inputs, or return it instead", &node);
}

// What somebody still holds of a call, literals apart.
std::vector<const Node*> kept_nodes(Session& session) {
  std::vector<const Node*> nodes;
  for (const ProxyImpl* proxy : alive_proxies(session)) {
    if (!proxy->is_constant() && proxy->node()) nodes.push_back(proxy->node());
  }
  return nodes;
}

// Whether any of it was computed of inputs or state.
bool keeps_values(const SecondCallPlan& plan) {
  const std::vector<const Node*> kept = kept_nodes(*plan.session);
  if (kept.empty()) return false;
  const std::vector<std::uint8_t> depends = dependences(plan.graph, *plan.session);
  return std::any_of(kept.begin(), kept.end(), [&](const Node* node) { return depends[node->id()] != kNothing; });
}

bool keeps_any(Session& session, const std::set<const Node*>& nodes) {
  const std::vector<const Node*> kept = kept_nodes(session);
  return std::any_of(kept.begin(), kept.end(), [&](const Node* node) { return nodes.contains(node); });
}

// Of a call whose nodes have the ids of the first one's.
std::vector<KeptUpdate> updates_in(const SecondCallPlan& plan, const Graph& graph,
                                   const std::vector<BufferUpdate>& updates) {
  std::vector<KeptUpdate> kept;
  for (const BufferUpdate& update : updates)
    kept.push_back({graph.node_by_id(update.value->id()), tensor_at(*plan.session, update.attribute)});
  return kept;
}

// Of the first call nothing is traced any more; `unknown` is what later calls keep and nobody can tell.
void end_first_call(const SecondCallPlan& plan, const std::vector<BufferUpdate>& updates, const Node* unknown) {
  become_buffers(*plan.session, updates_in(plan, plan.graph, updates));
  const Node* found = become_values(*plan.session);
  unknown = unknown ? unknown : found;
  if (unknown && plan.is_module) refuse_unknown(*unknown);
}

// The calls behind a first one, each of which finds what those before have left.
class Calls {
 public:
  explicit Calls(const SecondCallPlan& plan) : plan_(plan) {}
  ~Calls() { end_calls({}); }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  LaterCalls compare() {
    refuse_change(plan_);
    compare_second();
    compare_later();
    refuse_change(plan_);
    plan_.state.restore();
    // What the first call alone makes, and nobody reads yet, is kept as well.
    const bool keeps_constants =
        keeps_any(*plan_.session, constants_) || calls_.front().graph.size() != plan_.graph.size();
    end_first_call(plan_, updates_, end_calls(later_));
    return {updates_, keeps_constants};
  }

 private:
  SeparateCall& call_again() {
    const std::shared_ptr<Session> before = calls_.empty() ? plan_.session : calls_.back().session;
    SeparateCall& call = calls_.emplace_back(plan_);
    call.session->follow_call(before);
    return call;
  }

  void compare_second() {
    const std::vector<ReplacedBuffer> replaced = replaced_buffers(*plan_.session, plan_.state.replaced());
    SeparateCall& second = call_again();
    second.session->tell_type(at::kFloat);
    try {
      second.run();
    } catch (const Error& error) {
      refuse_if_asks_for_type();
      refuse("a second call of the program cannot be traced, it may use what the first call kept: " + error.message(),
             kPassState);
    }
    if (replaced.empty() && is_alike(plan_.graph, *plan_.session, second.graph, *second.session)) return;
    SameProgram comparison(plan_.graph, *plan_.session, second.graph, *second.session, replaced,
                           replaced_buffers(*second.session, plan_.state.replaced()), &plan_.state);
    if (const std::optional<std::string> difference = comparison.find_difference()) {
      refuse_if_asks_for_type();
      if (plan_.session->has_other_threads()) throw order_of_threads();
      refuse("a second call of the program does something else than the first: " + *difference, kPassState);
    }
    updates_ = comparison.updates();
    constants_ = comparison.constants();
    for (const BufferUpdate& update : updates_) {
      for (const Node* image : comparison.images_of(*update.value, kept_nodes(*second.session)))
        later_.push_back({image, tensor_at(*plan_.session, update.attribute)});
    }
  }

  // `x.dtype() == kFloat` is no call that could be refused: it is false for what has no type yet. A call in which it is
  // so again shows that it was true in the second, and that this makes the difference.
  void refuse_if_asks_for_type() {
    if (!plan_.session->has_unknown_shapes()) return;
    SeparateCall& third = call_again();
    try {
      third.run();
    } catch (const Error&) {
      return;
    }
    if (is_alike(plan_.graph, *plan_.session, third.graph, *third.session)) throw unknown_shape(nullptr, "dtype()");
  }

  // What outlives the next call may be read by a later one, as a delay line is. A log never is.
  void compare_later() {
    constexpr std::size_t kMostCalls = 7;
    const SeparateCall& second = calls_.front();
    for (bool is_open = !updates_.empty() || keeps_values(plan_); is_open && calls_.size() < kMostCalls;
         is_open = keeps_values(plan_)) {
      const std::string number = std::to_string(calls_.size() + 2);
      SeparateCall& next = call_again();
      next.session->tell_type(at::kFloat);
      try {
        next.run();
      } catch (const Error& error) {
        refuse("call " + number + " of the program may use what the first call kept: " + error.message(), kPassState);
      }
      if (!is_alike(second.graph, *second.session, next.graph, *next.session))
        refuse("call " + number + " of the program does something else than the second", kPassState);
    }
  }

  // The latest first: what it has kept may be computed of what those before it have.
  const Node* end_calls(const std::vector<KeptUpdate>& in_second) {
    const Node* unknown = nullptr;
    for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
      std::vector<KeptUpdate> updates = in_second;
      for (KeptUpdate& update : updates) update.value = call->graph.node_by_id(update.value->id());
      const Node* found = call->end(updates);
      unknown = unknown ? unknown : found;
    }
    return unknown;
  }

  const SecondCallPlan& plan_;
  std::deque<SeparateCall> calls_;
  std::vector<BufferUpdate> updates_;
  std::vector<KeptUpdate> later_;  // in the second call
  std::set<const Node*> constants_;
};

}  // namespace

SeparateCall::SeparateCall(const SecondCallPlan& plan)
    : session(std::make_shared<Session>(static_cast<NodeMaker&>(*this), plan.session->engine())), plan_(plan) {
  session->record_contiguous(plan.session->records_contiguous());
  for (const CapturedTensor& captured : plan.session->captured()) {
    if (captured.of_root) session->add_attribute(captured.path, captured.tensor);
  }
}

SeparateCall::~SeparateCall() { end(); }

const Node* SeparateCall::end(const std::vector<KeptUpdate>& updates) {
  session->close();
  if (!session->has_proxies()) return nullptr;
  become_buffers(*session, updates);
  return become_values(*session);
}

void SeparateCall::run() {
  plan_.run(*session, graph);
  session->close();
}

Node& SeparateCall::create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) {
  return graph.create_node(op, target, args, kwargs, name);
}

bool SeparateCall::is_free_attribute(const std::string& path) const { return plan_.is_free_attribute(path); }

LaterCalls compare_second_call(const SecondCallPlan& plan) { return Calls(plan).compare(); }

LaterCalls end_of_only_call(const SecondCallPlan& plan) {
  LaterCalls later;
  for (const ReplacedBuffer& each : replaced_buffers(*plan.session, plan.state.replaced()))
    later.updates.push_back({each.buffer->path, const_cast<Node*>(each.value)});
  plan.state.restore();
  end_first_call(plan, later.updates, nullptr);
  return later;
}

namespace {

// One call after all others; what it keeps is ordinary afterwards. Nothing where it fails.
std::unique_ptr<SeparateCall> call_once_more(const SecondCallPlan& plan, const std::vector<BufferUpdate>& updates) {
  auto call = std::make_unique<SeparateCall>(plan);
  bool came_through = false;
  try {
    call->run();
    came_through = true;
  } catch (const std::exception&) {
  }
  plan.state.restore();
  const bool is_alike = came_through && call->graph.id_bound() == plan.bound;
  call->end(is_alike ? updates_in(plan, call->graph, updates) : std::vector<KeptUpdate>());
  if (!came_through) call.reset();
  return call;
}

}  // namespace

void run_again(const SecondCallPlan& plan, const std::vector<BufferUpdate>& updates) { call_once_more(plan, updates); }

void check_last_call(const SecondCallPlan& plan, const std::vector<BufferUpdate>& updates) {
  const auto call = call_once_more(plan, updates);
  std::optional<std::string> difference = "it throws";
  if (call) {
    if (is_alike(plan.graph, *plan.session, call->graph, *call->session)) return;
    difference = SameProgram(plan.graph, *plan.session, call->graph, *call->session).find_difference();
  }
  if (difference) refuse("a later call of the program does something else than the first: " + *difference, kPassState);
}

}  // namespace fx::internal
