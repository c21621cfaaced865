#include <fxgraph/rewriter/rules/operation_site.h>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/effects.h>
#include <fxgraph/rewriter/rules/operator_of.h>

namespace fx::rules {

namespace {

bool is_assertion(const Node& node) { return node.is_call("torch._assert") || node.is_call("aten::_assert_async"); }

}  // namespace

std::optional<OperationSite> OperationSite::find(const GraphModule& module, Node& node,
                                                 const std::function<bool(std::string_view)>& wanted) {
  OperationSite site;
  site.module_ = &module;
  site.node_ = &node;
  const auto accept = [&](const Node& call) {
    const OperatorSchema* schema = overload_of(call);
    if (!schema || !wanted(packet_of(schema->target.view()))) return false;
    site.schema_ = schema;
    return true;
  };
  if (accept(node)) {
    site.call_ = &node;
    return site;
  }
  if (!node.is(Op::call_module)) return std::nullopt;
  site.leaf_ = module.leaf(path_of(node));
  if (!site.leaf_ || !site.leaf_->body()) return std::nullopt;
  for (const Node& inner : site.leaf_->body()->nodes()) {
    if (accept(inner)) {
      if (site.call_) return std::nullopt;  // two of them: which?
      site.call_ = &inner;
    } else if (inner.is(Op::call_function) && !is_assertion(inner) && effects_of(inner).impure()) {
      return std::nullopt;
    }
  }
  if (!site.call_) return std::nullopt;
  const Node* output = site.leaf_->body()->output_node();
  if (!output || output->arg(0).node_or_null() != site.call_) return std::nullopt;
  return site;
}

std::string_view OperationSite::packet() const { return packet_of(schema_->target.view()); }

Node* OperationSite::input() const {
  const Argument* first = bound_argument(*schema_, *call_, 0);
  Node* value = first ? first->node_or_null() : nullptr;
  if (!value || !leaf_) return value;
  // Inside a leaf the input must be its first parameter, and what the program passes for that is what enters.
  const std::vector<Node*> parameters = leaf_->body()->placeholders();
  if (parameters.empty() || parameters[0] != value || node_->args().empty()) return nullptr;
  return node_->args()[0].node_or_null();
}

const Argument* OperationSite::argument(std::string_view name) const {
  const int index = schema_->index_of(Symbol::find(name));
  return index < 0 ? nullptr : bound_argument(*schema_, *call_, static_cast<std::size_t>(index));
}

bool OperationSite::is_none(std::string_view name) const {
  const Argument* value = argument(name);
  return !value || value->is_none();
}

std::optional<bool> OperationSite::literal_bool(std::string_view name) const {
  const Argument* value = argument(name);
  if (!value || !value->is_bool()) return std::nullopt;
  return value->as_bool();
}

at::Tensor OperationSite::tensor(std::string_view name) const {
  const Argument* value = argument(name);
  const Node* node = value ? value->node_or_null() : nullptr;
  if (!node || !node->is(Op::get_attr)) return {};
  return leaf_ ? leaf_->find_tensor(path_of(*node)) : module_->find_attribute(path_of(*node));
}

std::string OperationSite::tensor_path(std::string_view name) const {
  const Argument* value = argument(name);
  const Node* node = value ? value->node_or_null() : nullptr;
  if (!node || !node->is(Op::get_attr)) return {};
  return leaf_ ? path_of(*node_) + "." + path_of(*node) : path_of(*node);
}

}  // namespace fx::rules
