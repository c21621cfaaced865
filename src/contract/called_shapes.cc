#include <fxgraph/contract/called_shapes.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace fx {
namespace {

AbstractValue value_of(const ValueInfo& value) {
  if (value.tensor()) return tensor_type(*value.tensor());
  AbstractValue::List tensors;
  for (const TensorInfo& tensor : value.tensors) tensors.emplace_back(tensor_type(tensor));
  return tensors.empty() ? AbstractValue() : AbstractValue(std::move(tensors));
}

}  // namespace

std::optional<CalledSizes> sizes_in_call(const Node& call, const std::function<AbstractValue(const Node&)>& value_of,
                                         const ModuleInfo& modules) {
  std::shared_ptr<const Graph> graph = modules.operators ? modules.operators(call) : nullptr;
  if (!graph || !modules.below) return std::nullopt;
  std::vector<AbstractValue> inputs;
  for (const Node* input : call.all_input_nodes()) inputs.push_back(value_of(*input));
  if (inputs.size() != graph->placeholders().size()) return std::nullopt;
  ModuleInfo below = modules.below(call.target().view());
  ShapeSources sources;
  sources.modules.body = below.body;
  sources.attribute = [&](std::string_view path) -> std::optional<TensorType> {
    const std::optional<TensorInfo> info = below.tensor ? below.tensor(path) : std::nullopt;
    return info ? std::optional(tensor_type(*info)) : std::nullopt;
  };
  SymbolicShapes sizes(*graph, std::move(inputs), sources);
  if (!sizes.refused().empty()) return std::nullopt;
  return CalledSizes{std::move(graph), std::move(sizes), std::move(below)};
}

std::optional<CalledShapes> shapes_in_call(const Node& call, const Shapes& shapes, const ModuleInfo& modules) {
  auto inside = sizes_in_call(
      call, [&](const Node& input) { return value_of(shapes[input]); }, modules);
  if (!inside) return std::nullopt;
  CalledShapes called{inside->graph, Shapes(*inside->graph), std::move(inside->modules)};
  for (const Node& node : inside->graph->nodes()) {
    inside->sizes[node].for_each_tensor([&](const TensorType& type) {
      if (std::optional<TensorInfo> info = tensor_info(type)) called.shapes[node].tensors.push_back(*std::move(info));
    });
  }
  return called;
}

}  // namespace fx
