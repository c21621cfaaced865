#include <fxgraph/export/data_dependence.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include <fxgraph/export/operators.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/operator_flags.h>
#include <fxgraph/run/operators.h>

namespace fx::pt2 {
namespace {

// Questions about a tensor that its data does not answer.
bool asks_no_data(Symbol target) {
  using enum OperatorFlag;
  return has_flag(target, asks_sizes) || has_flag(target, asks_form) || has_flag(target, asks_otherwise);
}

bool asks_data(const Node& node) {
  const Call call = call_of(node);
  if (!call) return false;
  const OperatorSchema& schema = call.schema();
  const bool takes_tensor = !schema.arguments.empty() && schema.arguments[0].type.is_tensor();
  if ((takes_tensor && has_flag(schema.target, OperatorFlag::reads_data)) || data_decide_sizes(call)) return true;
  const TorchOperator* known = find_exported_operator(schema.target);
  return known && known->handle && !sizes_given_by(schema) && data_decide_sizes(*known->handle, schema.target);
}

bool depends_on_data(const Node& node, const ProgramValues& program) {
  using Kind = ValueShape::Kind;
  if (program.data.find(node)) return false;
  if (asks_data(node)) return true;
  const ValueShapes& shapes = program.values;
  const auto kind_of = [&](const Node& value) { return shapes[value].kind; };
  const bool is_number =
      kind_of(node) == Kind::integer || kind_of(node) == Kind::floating || kind_of(node) == Kind::boolean;
  const std::vector<Node*> inputs = node.all_input_nodes();
  const bool reads_tensor = std::ranges::any_of(inputs, [&](Node* input) { return kind_of(*input) == Kind::tensor; });
  if (is_number && reads_tensor) return !asks_no_data(node.target());
  bool by_mask = false;
  if (node.target() != "aten::index.Tensor") return false;
  for_each_node(node.arg(1), [&](const Node& index) {
    const DType type = shapes[index].tensor.dtype;
    by_mask |= kind_of(index) == Kind::tensor && (type == DType::boolean || type == DType::uint8);
  });
  return by_mask;
}

std::string listed(const Graph& graph, const std::function<bool(const Node&)>& is_one) {
  std::string all;
  for (const Node& node : graph.nodes()) {
    if (!node.is(Op::call_function) || !is_one(node)) continue;
    all += (all.empty() ? "" : ", ") + target_text(node.target()) + " at %" + node.name();
  }
  return all;
}

}  // namespace

std::string calls_of_data(const Graph& graph, const GraphModule& module) {
  std::string all;
  struct Each {
    const Graph* graph;
    const GraphModule* module;
  };
  std::vector<Each> left = {{&graph, &module}};
  std::set<const Graph*> seen = {&graph};  // asked only, not gone through
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Each each = left[i];
    const bool is_whole = each.graph == &graph;
    const std::string found = listed(
        *each.graph, [&](const Node& node) { return asks_data(node) && !(is_whole && DataSizes::may_be(node)); });
    if (!found.empty()) all += (all.empty() ? "" : ", ") + found;
    for (const Node& node : each.graph->nodes()) {
      if (!node.is(Op::get_attr)) continue;
      const auto inner = std::dynamic_pointer_cast<GraphModule>(each.module->find_submodule(node.target().str()));
      if (inner && seen.insert(&inner->graph()).second) left.push_back({&inner->graph(), inner.get()});
    }
  }
  return all;
}

std::string calls_of_data(const Graph& graph, const ProgramValues& shapes) {
  return listed(graph, [&](const Node& node) { return depends_on_data(node, shapes); });
}

}  // namespace fx::pt2
