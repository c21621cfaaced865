#include <fxgraph/rewriter/rules/operation_site.h>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/rules/operator_of.h>

namespace fx::rules {

namespace {

bool is_assertion(const Node& node) { return node.is_call(python::kAssert) || node.is_call("aten::_assert_async"); }

}  // namespace

std::optional<OperationSite> OperationSite::find(const GraphModule& module, Node& node,
                                                 const std::function<bool(std::string_view)>& wanted) {
  OperationSite site;
  site.module_ = &module;
  site.node_ = &node;
  const auto wanted_call = [&](const Node& caller) {
    const Call call = call_of(caller);
    return call && wanted(packet_of(call.schema().target.view())) ? call : Call();
  };
  site.call_ = wanted_call(node);
  if (site.call_) {
    site.caller_ = &node;
    return site;
  }
  if (!node.is(Op::call_module)) return std::nullopt;
  site.leaf_ = module.leaf(path_of(node));
  if (!site.leaf_ || !site.leaf_->body()) return std::nullopt;
  for (const Node& inner : site.leaf_->body()->nodes()) {
    if (const Call call = wanted_call(inner)) {
      if (site.caller_) return std::nullopt;  // two of them: which?
      site.caller_ = &inner;
      site.call_ = call;
    } else if (!is_assertion(inner) && effects_of(inner).impure()) {
      return std::nullopt;
    }
  }
  if (!site.caller_) return std::nullopt;
  const Node* output = site.leaf_->body()->output_node();
  if (!output || output->arg(0).node_or_null() != site.caller_) return std::nullopt;
  return site;
}

std::string_view OperationSite::packet() const { return packet_of(call_.schema().target.view()); }

Node* OperationSite::input() const {
  const Argument* first = call_.argument(0);
  Node* value = first ? first->node_or_null() : nullptr;
  if (!value || !leaf_) return value;
  // Inside a leaf the input must be its first parameter, and what the program passes for that is what enters.
  const std::vector<Node*> parameters = leaf_->body()->placeholders();
  if (parameters.empty() || parameters[0] != value || node_->args().empty()) return nullptr;
  return node_->args()[0].node_or_null();
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
