#include <fxgraph/rewriter/quantize/strides.h>

#include <algorithm>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/layout_checks.h>
#include <fxgraph/rewriter/quantize/flat_program.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/support/error.h>

namespace fx::quantize {

namespace {

bool writes_to_values(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return effects_of(node).writes; });
}

void views_become_reshapes(GraphModule& flat) {
  const Effects effects(flat);
  const auto is_written = [&](const Node& node) {
    return std::ranges::any_of(effects.sets(node), [&](Effects::Set set) { return !effects.writers(set).empty(); });
  };
  std::vector<Node*> views;
  for (Node& node : flat.graph().nodes()) {
    const bool is_view = node.is_call("aten::view") || node.is_call("aten::_unsafe_view");
    if (is_view && !is_written(node)) views.push_back(&node);
  }
  for (Node* each : views) {
    Node& node = *each;
    node.set_args_kwargs(all_arguments(call_of(node)), KwargSpan());
    node.set_target("aten::reshape");
  }
}

}  // namespace

void ask_for_no_strides(GraphModule& flat, const std::vector<c10::IValue>& example) {
  views_become_reshapes(flat);
  std::vector<Node*> readers;
  for (Node& node : flat.graph().nodes()) {
    if (node.is(Op::call_function) && packet_of(node.target().view()) == "aten::as_strided") readers.push_back(&node);
  }
  if (readers.empty()) return;
  const StateKeeper keeper(flat);
  const Shapes shapes = propagate_shapes(flat, example);
  for (const Node* node : readers) {
    const Node& input = call_of(*node).argument(0)->node();
    const TensorInfo* info = shapes[input].tensor();
    if (info && info->is_contiguous()) continue;
    throw Error(ErrorKind::unsupported,
                "%" + node->name() + " reads the memory of %" + input.name() +
                    ", which is not contiguous, by strides that quantization would change: write it with slices",
                node->name());
  }
}

void restore_strides(GraphModule& converted, const Trial::Values& values) {
  Graph& graph = converted.graph();
  const bool can_tell = writes_to_values(graph) || std::ranges::any_of(graph.nodes(), internal::reads_layout);
  if (!can_tell) return;
  std::vector<Node*> floats;
  for (Node& node : graph.nodes()) {
    if (node.is_call("aten::dequantize.self") && !node.arg(0).node().is(Op::get_attr)) floats.push_back(&node);
  }
  for (Node* node : floats) {
    const TensorInfo* info = float_tensor_of(node->arg(0).node(), values);
    if (info && !info->is_contiguous()) continue;
    const auto scope = graph.inserting_before(*node->next());
    Node& contiguous = graph.call_function("aten::contiguous", {*node});
    node->replace_all_uses_with(contiguous, [&](const Node& user) { return &user != &contiguous; });
  }
}

}  // namespace fx::quantize
