// The parts of a session that have to do with gradients, and with values kept from an earlier call.
#include <ATen/ops/zeros_like.h>

#include <fxgraph/trace/caller.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/tensor_memory.h>
#include <fxgraph/trace/trace_error.h>

namespace fx::internal {

// Outside of an operator: the program asks for a handle, and the tracer's modes may be on.
Argument Session::detached(Node& node) {
  static const Symbol kDetach("aten::detach");
  Node& made = create_node(Op::call_function, kDetach, {Argument(node)});
  if (const at::Tensor value = value_of(node); value.defined()) remember(made, value, device_of(node));
  mark_without_grad(made);
  return made;
}

Argument Session::argument_without_grad(const at::Tensor& tensor) {
  Argument argument = argument_for(tensor);
  Node* node = argument.node_or_null();
  if (!node || without_grad_.contains(node->id())) return argument;
  const at::Tensor value = value_of(*node);
  const bool never = value.defined() && !may_have_gradient(value.scalar_type());
  if (never || (node->is(Op::get_attr) && !proxy_impl(tensor) && !tensor.requires_grad())) return argument;
  return detached(*node);
}

c10::intrusive_ptr<c10::TensorImpl> Session::without_grad(const ProxyImpl& proxy) {
  const c10::impl::ExcludeDispatchKeyGuard untraced(kTraceKeys);
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  Node& node = detached(*proxy.node()).node();
  return c10::make_intrusive<ProxyImpl>(shared_from_this(), &node, proxy.value(), proxy.known_device());
}

// The answer is a plain bool to the program, and nothing shows what it does with it.
bool Session::requires_grad(const ProxyImpl& proxy) const {
  const at::Tensor& value = proxy.value();
  const bool never = value.defined() && !may_have_gradient(value.scalar_type());
  static const Symbol kDetach("aten::detach");
  const bool detached = proxy.node()->target() == kDetach || without_grad_.contains(proxy.node()->id());
  if (!is_open() || never || detached || proxy.was_constant() || modes_.inside_function() || caller_notes_type())
    return false;
  throw gradient_question(proxy.node());
}

// Autograd never sees a proxy, and an input may be anything.
void Session::asked_history(const ProxyImpl& proxy, const char* call) const {
  if (!modes_.inside_function()) throw history_question(proxy.node(), call);
}

// set_requires_grad(true), also as an option of a factory, is no operator.
void Session::require_grad(ProxyImpl& proxy) {
  static const Symbol kRequireGrad("aten::requires_grad_");
  proxy.forget_made_to_require_grad();
  Node& node = create_node(Op::call_function, kRequireGrad, {Argument(proxy.node())});
  remember(node, proxy.value(), proxy.known_device());
  proxy.rebind(node);
}

// ── Values of an earlier call ────────────────────────────────────────────────────────────────────────────────────────

Node& Session::kept_node(const ProxyImpl& kept) {
  Node*& node = kept_nodes_[&kept];
  if (node) return *node;
  node = &create_node(Op::get_attr, "_kept_" + std::to_string(kept_values_.size()));
  kept_values_.emplace(node->id(), KeptValue{kept.node(), kept.session().get()});
  remember(*node, kept.value(), kept.known_device());
  if (kept.session()->without_grad_.contains(kept.node()->id())) mark_without_grad(*node);
  return *node;
}

at::Tensor Session::input(const Node& node) const {
  const auto found = inputs_.find(node.id());
  if (found == inputs_.end()) return {};
  return found->second.blank ? at::zeros_like(found->second.tensor) : found->second.tensor;
}

const Node* Session::kept_value(const Node& node) const {
  const auto found = kept_values_.find(node.id());
  return found == kept_values_.end() ? nullptr : found->second.node;
}

bool Session::follows(const Session& session) const {
  for (const Session* each = first_call_.get(); each; each = each->first_call_.get()) {
    if (each == &session) return true;
  }
  return false;
}

}  // namespace fx::internal
