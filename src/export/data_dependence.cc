#include <fxgraph/export/data_dependence.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <vector>

#include <fxgraph/export/exported_operator.h>
#include <fxgraph/ops/records/operator_flags.h>
#include <fxgraph/ops/schema.h>

namespace fx::pt2 {
namespace {

// Questions about a tensor that its data does not answer.
bool asks_no_data(Symbol target) {
  using enum OperatorFlag;
  return has_flag(target, asks_sizes) || has_flag(target, asks_form) || has_flag(target, asks_otherwise);
}

// What LibTorch's tags do not say: operators that are made of others that do.
bool is_made_of_tagged(const Node& node) {
  const auto given = [&](const char* keyword, std::size_t at) {
    const Argument* value = node.kwarg(keyword);
    if (!value && at < node.args().size()) value = &node.args()[at];
    return value && !value->is_none();
  };
  const Symbol target = node.target();
  if (target == "aten::repeat_interleave.self_Tensor") return !given("output_size", 3);
  if (target == "aten::repeat_interleave.Tensor") return !given("output_size", 1);
  if (target == "aten::where") return node.args().size() + node.kwargs().size() == 1;
  constexpr std::string_view kOthers[] = {"aten::nonzero_numpy", "aten::tensor_split.tensor_indices_or_sections",
                                          "aten::_pack_padded_sequence", "aten::_pad_packed_sequence"};
  return std::ranges::find(kOthers, target.view()) != std::end(kOthers);
}

// A number of classes that is given is the size; -1 asks the data.
bool counts_classes(const Node& node) {
  const Argument* classes = node.args().size() == 2 ? &node.args()[1] : node.kwarg("num_classes");
  return !classes || !classes->is_int() || classes->as_int() < 0;
}

bool is_tagged(const Node& node, std::initializer_list<at::Tag> tags) {
  const TorchOperator* known = find_exported_operator(node.target());
  if (!known) return false;
  const auto handle = c10::Dispatcher::singleton().findSchema({known->schema->name(), known->schema->overload_name()});
  return handle && std::ranges::any_of(tags, [&](at::Tag tag) { return handle->hasTag(tag); });
}

bool asks_data(const Node& node) {
  if (node.target() == "aten::index.Tensor") return false;  // the types of the indices say
  if (node.target() == "aten::one_hot") return counts_classes(node);
  const bool is_repeat = node.target() == "aten::repeat_interleave.Tensor";
  return is_made_of_tagged(node) ||
         (!is_repeat && is_tagged(node, {at::Tag::dynamic_output_shape, at::Tag::data_dependent_output}));
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
