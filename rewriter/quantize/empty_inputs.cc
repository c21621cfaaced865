#include <fxgraph/rewriter/quantize/empty_inputs.h>

#include <algorithm>
#include <string>
#include <string_view>

#include <fxgraph/rewriter/quantize/flat_program.h>

namespace fx::quantize {

namespace {

const TensorInfo* info_of(const Node& value, const Trial::Values& values) {
  const Meta* meta = value.find_meta();
  const std::string* name = meta ? meta->get<std::string>(meta_key::kValue) : nullptr;
  const auto known = values.find(name ? *name : value.name());
  return known == values.end() ? nullptr : known->second.tensor();
}

bool wants_elements(const Node& node, const Trial::Values& values) {
  if (!node.is(Op::call_function)) return false;
  const std::string_view target = node.target().view();
  if (target.starts_with("quantized::embedding")) return true;
  if (!target.starts_with("quantized::linear") || node.args().empty() || !node.arg(0).is_node()) return false;
  const TensorInfo* input = info_of(node.arg(0).node(), values);
  return !input || input->sizes.size() != 2;
}

}  // namespace

void refuse_empty_inputs(GraphModule& converted, const Trial::Values& values) {
  Graph& graph = converted.graph();
  if (std::ranges::none_of(graph.nodes(), [&](const Node& node) { return wants_elements(node, values); })) return;
  const std::vector<Node*> inputs = graph.placeholders();
  if (inputs.empty()) return;
  const auto scope = graph.inserting_before(*inputs.back()->next());
  for (Node* input : inputs) {
    const auto known = values.find(input->name());
    const TensorInfo* tensor = known == values.end() ? nullptr : known->second.tensor();
    if (!tensor || !input->has_users() || std::ranges::count(tensor->sizes, 0) != 0) continue;
    Node& count = graph.call_function("aten::numel", {*input});
    Node& any = graph.call_function("operator.gt", {count, 0});
    graph.call_function("torch._assert",
                        {any, "the input '" + input->target().str() +
                                  "' is empty, and LibTorch's int8 kernels of this program take no empty tensors"});
  }
}

}  // namespace fx::quantize
