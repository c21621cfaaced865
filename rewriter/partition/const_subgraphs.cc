#include <fxgraph/rewriter/partition/const_subgraphs.h>

#include <ATen/ATen.h>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/partition/lower.h>
#include <fxgraph/rewriter/partition/split_module.h>

namespace fx {
namespace {

constexpr const char* kConstants = "const_subgraph";

/// True when the value is one tensor: what an attribute can hold.
bool is_tensor(const Node& node) {
  if (node.is(Op::call_function) && node.target() == python::kGetItem && !node.args().empty()) {
    const Node* maker = node.arg(0).node_or_null();
    const Call call = maker ? call_of(*maker) : Call();
    return call && !call.schema().returns.empty() && call.schema().returns[0].type.is_tensor();
  }
  const Call call = call_of(node);
  if (!call || call.schema().returns.size() != 1) return false;
  const SchemaType& type = call.schema().returns[0].type;
  return type.is_tensor() && !type.list;
}

/// The same for calls of modules whose body is known.
bool is_tensor(const GraphModule& module, const Node& node) {
  if (!node.is(Op::call_module)) return is_tensor(node);
  const auto called = module.find_submodule(node.target().str());
  const std::shared_ptr<const Graph> body = called ? module_body(called) : nullptr;
  const Node* output = body ? body->output_node() : nullptr;
  const Node* value = output ? output->arg(0).node_or_null() : nullptr;
  return value && is_tensor(*value);
}

NodeMap<bool> find_constants(const GraphModule& module, const std::function<bool(const Node&)>& skip) {
  const Graph& graph = module.graph();
  const Effects effects(module);
  std::vector<bool> returned(effects.num_sets());
  if (const Node* output = graph.output_node()) {
    output->for_each_input([&](const Node& value) {
      for (const Effects::Set set : effects.sets(value)) returned[set] = true;
    });
  }
  const auto movable = why_not_movable(module);
  NodeMap<bool> constant(graph, false);
  for (const Node& node : graph.nodes()) {
    if (!node.is_callable() || movable(node) || (skip && skip(node))) continue;
    bool all = true;
    node.for_each_input([&](const Node& input) { all &= input.is(Op::get_attr) || constant[input]; });
    for (const Effects::Set set : effects.sets(node)) all &= !returned[set];
    constant[node] = all;
  }
  // What goes over must be a tensor; what is no constant after all takes what it reads with it.
  for (const Node& node : graph.nodes().reversed()) {
    if (!constant[node] || is_tensor(module, node)) continue;
    for (const Node& user : node.users()) {
      if (!constant[user]) constant[node] = false;
    }
  }
  return constant;
}

}  // namespace

ConstSplit split_const_subgraphs(const GraphModule& module, const std::function<bool(const Node&)>& skip) {
  const NodeMap<bool> constant = find_constants(module, skip);
  const auto split = split_module(module, [](const Node&) { return 0; },
                                  {.tuple_return = true,
                                   .stays = [&](const Node& node) { return !constant[node]; },
                                   .name = [](std::int64_t) { return std::string(kConstants); }});
  ConstSplit result{split, nullptr, {}};
  const std::vector<Node*> calls = split->graph().find_nodes(Op::call_module, Symbol(kConstants));
  if (calls.empty()) return result;
  result.constants = std::dynamic_pointer_cast<GraphModule>(split->submodule(kConstants));
  Node& call = *calls.front();
  for (Node* element : call.users().to_vector()) {
    const std::string path = split->fresh_path("_FX_CONST_FOLDED_ATTRS");
    split->set_buffer(path, at::empty({0}));
    const auto at = split->graph().inserting_before(call);
    Node& read = split->graph().get_attr(Symbol(path));
    element->move_uses_to(read);
    split->graph().erase_node(*element);
    result.paths.push_back(path);
  }
  split->graph().erase_node(call);
  split->delete_submodule(kConstants);
  return result;
}

void ConstSplit::fold() const {
  if (!constants) return;
  const at::NoGradGuard inference;
  const c10::IValue values = constants->run({});
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const at::Tensor value = values.toTupleRef().elements().at(i).toTensor();
    // A view of a weight would keep all of it, and change with it.
    module->set_buffer(paths[i], value.clone());
  }
}

}  // namespace fx
