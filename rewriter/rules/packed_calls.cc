#include <fxgraph/rewriter/rules/packed_calls.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <fxgraph/ops/schema.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/value.h>

namespace fx::rules {

namespace {

const MemoryFormat& channels_last_format() {
  static const MemoryFormat kFormat{Symbol("channels_last")};
  return kFormat;
}

/// The format that a call of aten::contiguous asks for; empty when `node` is no such call.
Symbol asked_format(const Node& node) {
  if (!node.is_call("aten::contiguous")) return {};
  const Argument* format = bound_argument(node, "memory_format");
  if (!format || format->is_none()) return Symbol("contiguous_format");
  return format->kind() == ArgumentKind::memory_format ? format->as_memory_format().name : Symbol();
}

/// Calls that make another order of one attribute's numbers.
bool prepares(const Node& node) {
  if (!node.is_call("aten::clone") && !node.is_call("aten::t") && !is_plain_contiguous(node)) return false;
  const Node* source = node.args().empty() ? nullptr : node.arg(0).node_or_null();
  return source && source->is(Op::get_attr);
}

}  // namespace

Node& channels_last(Rewriter& rewriter, Node& value) {
  const NamedArgument format[] = {{"memory_format", channels_last_format()}};
  return rewriter.call_function("aten::contiguous", {value}, format);
}

Node& channels_last_weight(Rewriter& rewriter, Node& weight) {
  const NamedArgument format[] = {{"memory_format", channels_last_format()}};
  return rewriter.call_function("aten::clone", {weight}, format);
}

bool is_channels_last_call(const Node& node) { return asked_format(node) == "channels_last"; }
bool is_plain_contiguous(const Node& node) { return asked_format(node) == "contiguous_format"; }

std::size_t prepare_weights(GraphModule& module) {
  const at::NoGradGuard no_grad;
  Graph& graph = module.graph();
  std::size_t prepared = 0;
  for (Node& node : graph.nodes()) {
    if (!prepares(node)) continue;
    Node& source = node.arg(0).node();
    const std::string path = source.target().str();
    Graph alone;
    Node& weight = alone.get_attr(path);
    alone.output(alone.node_copy(node, [&](Node&) { return Argument(weight); }));
    GraphModule program(GraphModule::Attributes{{path, module.attribute(path).detach()}}, std::move(alone));
    const at::Tensor made = program.run({}).toTensor();
    const std::string fresh = module.fresh_path(path + "_packed");
    module.set_attribute(fresh, made.requires_grad() ? made.detach() : made);
    const auto scope = graph.inserting_before(node);
    Node& attribute = graph.get_attr(fresh);
    node.replace_all_uses_with(attribute);
    graph.erase_node(node);
    if (!source.has_users()) graph.erase_node(source);
    ++prepared;
  }
  return prepared;
}

}  // namespace fx::rules
