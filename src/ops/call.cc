#include <fxgraph/ops/call.h>

#include <algorithm>

#include <fxgraph/ops/overload_resolution.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx::internal {

namespace {

// An operator called without overload: the default one when it fits without conversions, else the best.
const OperatorSchema* packet_schema(const TargetInfo& info, const Node& node) {
  if (info.exact) return info.schema;
  if (info.schema && conversion_cost(*info.schema, node.args(), node.kwargs()).value == 0) return info.schema;
  return best_overload(*info.overloads, node.args(), node.kwargs(), true);
}

}  // namespace

bool is_spelt_as_operator(const Node& node) {
  if (node.is(Op::call_function)) return target_info(node.target()).exact;
  return !node.is(Op::call_method);
}

bool is_spelt_in_python(Op op, Symbol target) {
  if (op != Op::call_function) return op == Op::call_method;
  return target_info(target).overloads->empty() && !candidate_overloads(op, target).empty();
}

}  // namespace fx::internal

namespace fx {

Call::Call(const OperatorSchema& schema, std::vector<Argument> args, std::vector<NamedArgument> kwargs)
    : schema_(&schema), translated_(true), own_(std::make_shared<const Arguments>(std::move(args), std::move(kwargs))) {
  args_ = own_->args;
  kwargs_ = own_->kwargs;
}

const Argument* Call::argument(std::string_view name) const {
  const int index = schema_ ? schema_->index_of(Symbol::find(name)) : -1;
  return index < 0 ? nullptr : argument(static_cast<std::size_t>(index));
}

Call call_of(const Node& node) {
  if (node.is(Op::call_function)) {
    const internal::TargetInfo& info = internal::target_info(node.target());
    if (!info.overloads->empty()) {
      const OperatorSchema* own = internal::packet_schema(info, node);
      return own ? Call(*own, node.args(), node.kwargs()) : Call();
    }
  } else if (!node.is(Op::call_method)) {
    return {};
  }
  return internal::python_call(node);
}

// ── A table of them ──────────────────────────────────────────────────────────────────────────────────────────────────

Calls::Calls(const Graph& graph)
    : position_(graph),
      hooks_(const_cast<Graph&>(graph), {.created = [this](Node& node) { look_at(node); },
                                         .erased = [this](Node& node) { forget(node); },
                                         .changed = [this](Node& node) { look_again(node); }}) {
  for (Node& node : const_cast<Graph&>(graph).nodes()) look_at(node);
}

Call Calls::operator[](const Node& node) const {
  if (const Call* known = translated(node)) return *known;
  return call_of(node);
}

void Calls::forget(const Node& node) {
  std::uint32_t& at = position_[node];
  if (at == 0) return;
  calls_[at - 1] = {};
  free_.push_back(at);
  at = 0;
}

// True when the node calls another operator than was known.
bool Calls::look_at(Node& node) {
  const Call* known = translated(node);
  const OperatorSchema* before = known && *known ? &known->schema() : nullptr;
  forget(node);
  if (internal::is_spelt_as_operator(node)) return false;
  Call now = call_of(node);
  const OperatorSchema* after = now ? &now.schema() : nullptr;
  if (now && !now.is_translated()) return after != before;
  if (free_.empty()) {
    calls_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(calls_.size()));
  }
  position_[node] = free_.back();
  free_.pop_back();
  calls_[position_[node] - 1] = std::move(now);
  return after != before;
}

// What a user calls may hang on what this node gives.
void Calls::look_again(Node& node) {
  look_at(node);
  std::vector<Node*> open = {&node};
  while (!open.empty()) {
    Node& next = *open.back();
    open.pop_back();
    for (Node& user : next.users()) {
      if (!internal::is_spelt_as_operator(user) && look_at(user)) open.push_back(&user);
    }
  }
}

// ── Schemas ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Symbol operator_name(const OperatorSchema& schema) { return internal::target_info(schema.target).name; }

}  // namespace fx
