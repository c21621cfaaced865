
#include <fxgraph/contract/assertions.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/quantize/input_limits.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fx::quantize {

namespace {

// Of an input by its own name, which the float program has, too.
const TensorInfo* tensor_named(const Node& value, const Trial::Values& values) {
  const auto known = values.find(value.name());
  return known == values.end() ? nullptr : known->second.tensor();
}

bool wants_elements(const Node& node, const Trial::Values& values) {
  if (!node.is(Op::call_function)) return false;
  const std::string_view target = node.target().view();
  if (target.starts_with("quantized::embedding")) return true;
  if (!target.starts_with("quantized::linear") || node.args().empty() || !node.arg(0).is_node()) return false;
  const Node& value = node.arg(0).node();
  const TensorInfo* quantized = float_tensor_of(value, values);
  const TensorInfo* input = quantized ? quantized : tensor_named(value, values);
  return !input || input->sizes.size() != 2;
}

void refuse_empty_inputs(Graph& graph, const Trial::Values& values) {
  if (std::ranges::none_of(graph.nodes(), [&](const Node& node) { return wants_elements(node, values); })) return;
  const std::vector<Node*> inputs = graph.placeholders();
  if (inputs.empty()) return;
  const auto scope = graph.inserting_before(*inputs.back()->next());
  for (Node* input : inputs) {
    const TensorInfo* tensor = tensor_named(*input, values);
    if (!tensor || !input->has_users() || std::ranges::count(tensor->sizes, 0) != 0) continue;
    Node& count = graph.call_function("aten::numel", {*input});
    AssertionWriter(graph).add(SizeRelation::more, count, 0,
                               "the input '" + input->target().str() +
                                   "' is empty, and LibTorch's int8 kernels of this program take no empty tensors");
  }
}

// `numel > batch * groups`
void refuse_groups_of_one(Graph& graph, Node& kernel, std::int64_t groups) {
  const auto scope = graph.inserting_before(kernel);
  Node& input = kernel.arg(0).node();
  Node& count = graph.call_function("aten::numel", {input});
  Node& batch = graph.call_function("aten::size.int", {input, 0});
  const Argument each = groups < 0 ? Argument(graph.call_function("aten::size.int", {input, 1})) : Argument(groups);
  Node& all = graph.call_function(python::kMul, {batch, each});
  AssertionWriter(graph).add(
      SizeRelation::more, count, all,
      "%" + kernel.name() +
          " is given groups of one number, of which LibTorch's int8 norms make something else than the norm of floats");
}

}  // namespace

std::optional<std::int64_t> groups_of_norm(const Node& kernel) {
  if (!kernel.is(Op::call_function) || kernel.args().size() < 2 || !kernel.arg(0).is_node()) return std::nullopt;
  if (kernel.target() == "quantized::instance_norm") return -1;
  if (kernel.target() == "quantized::group_norm" && kernel.arg(1).is_int()) return kernel.arg(1).as_int();
  return std::nullopt;
}

void assert_input_limits(GraphModule& converted, const Trial::Values& values) {
  refuse_empty_inputs(converted.graph(), values);
  std::vector<Node*> nodes;
  for (Node& node : converted.graph().nodes()) nodes.push_back(&node);
  for (Node* node : nodes) {
    if (const auto groups = groups_of_norm(*node)) refuse_groups_of_one(converted.graph(), *node, *groups);
  }
}

}  // namespace fx::quantize
