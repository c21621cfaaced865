#include <fxgraph/trace/second_call.h>

#include <deque>

#include <fxgraph/text/print.h>
#include <fxgraph/trace/dispatch.h>
#include <fxgraph/trace/left_over.h>
#include <fxgraph/trace/same_program.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {
namespace {

// The program went another way than in its first call. No std::exception: programs that handle those pass it on.
struct AnotherWay {};

// Hands out the nodes of a graph in their order to a program that asks for the same ones.
class Replay final : public NodeMaker {
 public:
  Replay(const Graph& graph, const std::function<bool(const std::string&)>& is_free)
      : is_free_(is_free), next_(const_cast<Node*>(first_node(graph))) {}

  Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view) override {
    Node* node = failed_ ? nullptr : next_;
    if (!node || node->op() != op || node->target() != target || !same(node->args(), args) ||
        !same_keywords(node->kwargs(), kwargs)) {
      failed_ = true;
      throw AnotherWay();
    }
    next_ = node->next();
    return *node;
  }
  bool is_free_attribute(const std::string& path) const override { return is_free_(path); }
  bool is_done() const { return !failed_ && !next_; }

 private:
  static bool same(ArgumentSpan a, ArgumentSpan b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!(a[i] == b[i])) return false;
    }
    return true;
  }

  static bool same_keywords(KwargSpan a, KwargSpan b) {
    if (a.size() != b.size()) return false;
    auto other = b.begin();
    for (const auto& [name, value] : a) {
      if (name != (*other).name || !(value == (*other).value)) return false;
      ++other;
    }
    return true;
  }

  const std::function<bool(const std::string&)>& is_free_;
  Node* next_;
  bool failed_ = false;
};

// In `type` are values whose shape is not known.
bool replay(const SecondCallPlan& plan, std::optional<at::ScalarType> type) {
  Replay maker(plan.graph, plan.is_free_attribute);
  const auto session = std::make_shared<Session>(maker, plan.session.engine());
  session->refer_to(plan.session);
  session->record_contiguous(plan.session.records_contiguous());
  if (type) session->tell_type(*type);
  LeftOver::watch(session);
  for (const CapturedTensor& captured : plan.session.captured()) {
    if (captured.of_root) session->add_attribute(captured.path, captured.tensor);
  }
  struct Close {
    Session& session;
    ~Close() { session.close(); }
  } close{*session};
  try {
    plan.run(*session, plan.graph);
  } catch (const AnotherWay&) {
    return false;
  } catch (const std::exception&) {
    return false;  // told apart by the calls from the start
  }
  return maker.is_done() && same_constants(plan.session, *session);
}

[[noreturn]] void refuse(const std::string& what, const std::string& cure, const Node* node = nullptr) {
  throw Error(ErrorKind::trace, "symbolic_trace: " + what + "; " + cure, node ? node->name() : "");
}

constexpr const char* kPassState =
    "pass what changes as an input and return it, or keep it in a registered buffer that is written in place";

void refuse_registered(const std::vector<StateChange>& changes) {
  for (const StateChange& change : changes) {
    if (change.kind == StateChange::Kind::registered)
      refuse("forward changes " + change.what + " of " + change.module + ", which a graph does not record",
             "do that outside of forward");
    if (change.kind == StateChange::Kind::random)
      refuse("forward seeds the random generator, or draws from it without an operator", "do that outside of forward");
  }
}

// Throws where a registered tensor was changed in a way that no graph records.
bool replaces_buffers(const SecondCallPlan& plan) {
  const std::vector<StateChange> changes = plan.state.changes();
  refuse_registered(changes);
  return !replaced_buffers(plan.session, changes).empty();
}

// `x.dtype() == kFloat` is no call that could be refused: it is false for what has no type yet. A call in which it is
// true shows it, where it is that, and not what the first call has left, that makes the difference.
void refuse_if_asks_for_type(const SecondCallPlan& plan) {
  if (!plan.session.has_unknown_shapes()) return;
  plan.state.restore();
  const bool is_same_in_float = replay(plan, at::kFloat);
  plan.state.restore();
  if (!is_same_in_float && replay(plan, {})) {
    plan.state.restore();
    throw unknown_shape(nullptr, "dtype()");
  }
}

// Whether somebody still holds what the call has computed of inputs or state.
bool keeps_values(const Session& session, const Graph& graph) {
  std::vector<std::uint8_t> depends;
  for (const ProxyImpl* proxy : LeftOver::proxies()) {
    if (proxy->session().get() != &session || proxy->is_constant() || !proxy->node()) continue;
    if (depends.empty()) depends = dependences(graph, session);
    if (depends[proxy->node()->id()] != kNothing) return true;
  }
  return false;
}

// Whether two calls make the same nodes of the same that the calls before them kept.
bool same_calls(const SeparateCall& a, const SeparateCall& b) {
  if (print_graph(a.graph) != print_graph(b.graph) || !same_constants(*a.session, *b.session)) return false;
  const Node* other = first_node(b.graph);
  for (const Node& node : a.graph.nodes()) {
    const Node *kept = a.session->kept_value(node), *other_kept = b.session->kept_value(*other);
    if (!kept != !other_kept || (kept && kept->id() != other_kept->id())) return false;
    other = other->next();
  }
  return true;
}

std::string text_without_contiguous(const Graph& graph) {
  Graph copy = graph.clone();
  for (Node* node : copy.find_nodes(Op::call_function, Symbol("aten::contiguous"))) {
    node->replace_all_uses_with(node->args()[0].node());
    copy.erase_node(*node);
  }
  return print_graph(copy);
}

// Its handles on what the calls have left are gone when it returns.
std::vector<BufferUpdate> compare_next_call(const SecondCallPlan& plan, SeparateCall& first, SeparateCall& second) {
  const std::vector<StateChange> between = plan.state.changes();
  second.session->follow_call(first.session);
  second.run();
  const std::vector<StateChange> later = plan.state.changes();
  SameProgram comparison(first.graph, *first.session, second.graph, *second.session, between,
                         replaced_buffers(*second.session, later));
  if (const std::optional<std::string> difference = comparison.find_difference()) {
    refuse("a second call of the program does something else than the first: " + *difference, kPassState);
  }
  refuse_registered(later);
  return comparison.updates(plan.graph);
}

// What outlives the next call may be read by a later one, as a delay line is. A log never is.
void compare_later_calls(const SecondCallPlan& plan, const SeparateCall& first, const SeparateCall& second) {
  constexpr int kMostCalls = 8;
  std::deque<SeparateCall> later;
  const SeparateCall* previous = &second;
  for (int call = 3; call <= kMostCalls && keeps_values(*first.session, first.graph); ++call) {
    SeparateCall& next = later.emplace_back(plan);
    next.session->follow_call(previous->session);
    try {
      next.run();
    } catch (const Error& error) {
      refuse("call " + std::to_string(call) + " of the program may use what the first call kept: " + error.message(),
             kPassState);
    }
    if (!same_calls(second, next))
      refuse("call " + std::to_string(call) + " of the program does something else than the second", kPassState);
    previous = &next;
  }
}

}  // namespace

SeparateCall::SeparateCall(const SecondCallPlan& plan)
    : session(std::make_shared<Session>(static_cast<NodeMaker&>(*this), plan.session.engine())), plan_(plan) {
  LeftOver::watch(session);
  session->record_contiguous(plan.session.records_contiguous());
  for (const CapturedTensor& captured : plan.session.captured()) {
    if (captured.of_root) session->add_attribute(captured.path, captured.tensor);
  }
}

SeparateCall::~SeparateCall() { end(); }

void SeparateCall::end() {
  session->close();
  if (session->has_proxies()) plan_.state.leave(*session);
}

void SeparateCall::run() {
  plan_.run(*session, graph);
  session->close();
}

Node& SeparateCall::create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) {
  return graph.create_node(op, target, args, kwargs, name);
}

bool SeparateCall::is_free_attribute(const std::string& path) const { return plan_.is_free_attribute(path); }

std::vector<BufferUpdate> compare_second_call(const SecondCallPlan& plan) {
  std::vector<BufferUpdate> updates;
  if (!replaces_buffers(plan) && replay(plan, at::kFloat) && !keeps_values(plan.session, plan.graph)) {
    refuse_registered(plan.state.changes());  // what counts has changed again
  } else {
    if (plan.session.has_other_threads()) throw order_of_threads();
    refuse_if_asks_for_type(plan);
    plan.state.restore();
    // Whatever follows ends before they do: it has handles on what they put back.
    SeparateCall first(plan), second(plan);
    try {
      first.run();
    } catch (const Error& error) {
      refuse("a second call of the program cannot be traced, it may use what the first call kept: " + error.message(),
             kPassState);
    }
    // The first call again: what could not be put back shows itself.
    if (const auto difference = SameProgram(plan.graph, plan.session, first.graph, *first.session).find_difference())
      refuse("a second call of the program does something else than the first: " + *difference, kPassState);
    updates = compare_next_call(plan, first, second);
    compare_later_calls(plan, first, second);
  }
  return updates;
}

bool is_same_if_contiguous(const SecondCallPlan& plan) {
  if (!plan.session.asks_before_contiguous()) return true;
  SeparateCall call(plan);
  call.session->pretend_contiguous();
  bool is_same = false;
  try {
    call.run();
    is_same = text_without_contiguous(call.graph) == text_without_contiguous(plan.graph);
  } catch (const std::exception&) {
  }
  plan.state.restore();
  return is_same;
}

}  // namespace fx::internal
