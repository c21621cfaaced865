#include <fxgraph/shapes/shape_prop.h>

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fxgraph/module/module_info.h>
#include <fxgraph/run/plan.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/call_fit.h>
#include <fxgraph/shapes/storage_numbers.h>

namespace fx {
Shapes propagate_shapes(GraphModule& module, std::vector<c10::IValue> inputs) {
  Shapes shapes(module.graph());
  StorageNumbers storages;
  const auto plan = Plan::compile(module, {.observe = true});
  const c10::IValue result = plan->run(module, std::move(inputs), [&](const Node& node, const c10::IValue& value) {
    TensorInfos infos = tensor_infos(value);
    storages.renumber(value, infos);
    shapes[node] = std::move(infos);
  });
  if (const Node* output = module.graph().output_node()) {
    TensorInfos infos = tensor_infos(result);
    storages.renumber(result, infos);
    shapes[*output] = std::move(infos);
  }
  return shapes;
}

Shapes propagate_shapes(GraphModule& module, const std::vector<TensorInfo>& inputs) {
  std::vector<c10::IValue> values;
  for (const TensorInfo& info : inputs) values.emplace_back(zeros_like_info(info));
  return propagate_shapes(module, std::move(values));
}

namespace {

/// A number for each symbol, as different as ranges allow.
void choose(const AbstractValue& value, const SizeRanges& ranges, std::map<std::string, std::int64_t>& example) {
  const auto add = [&](const SizeExpr& size) {
    size.for_each_symbol([&](const std::string& symbol) {
      const auto known = ranges.find(symbol);
      const SizeRange range = known == ranges.end() ? SizeRange() : known->second;
      const std::int64_t number = range.min.value_or(0) + 5 + 2 * static_cast<std::int64_t>(example.size());
      example.emplace(symbol, std::min(number, range.max.value_or(number)));
    });
  };
  if (value.tensor()) std::ranges::for_each(value.tensor()->sizes, add);
  if (value.number()) add(*value.number());
  if (!value.list()) return;
  for (const AbstractValue& each : *value.list()) choose(each, ranges, example);
}

}  // namespace

SymbolicShapes propagate_shapes(GraphModule& module, std::vector<AbstractValue> inputs, const SizeRanges& ranges) {
  std::map<std::string, std::int64_t> example;
  for (const AbstractValue& input : inputs) choose(input, ranges, example);
  ShapeSources sources = shape_sources(module);
  sources.ranges = ranges;
  for (const auto& [symbol, number] : example) sources.ranges.try_emplace(symbol, SizeRange{0, std::nullopt});
  sources.other = [&](const UndecidedCall& call) {
    const auto value_of = [&](const Node& node) -> const AbstractValue& { return call.values[node]; };
    if (call.inferred.of_rank) return AbstractValue();  // a few sizes do not say how many dimensions there are
    return &call.node.graph() == &module.graph() ? fit_call(module, call.node, value_of, example, sources.ranges)
                                                 : AbstractValue();
  };
  return SymbolicShapes(module.graph(), std::move(inputs), sources);
}

ShapeSources shape_sources(const GraphModule& module) {
  const auto attribute = [&module](std::string_view path) -> std::optional<TensorType> {
    const at::Tensor tensor = module.find_attribute(std::string(path));
    if (!tensor.defined() || tensor.layout() != at::kStrided) return std::nullopt;
    return tensor_type(tensor_infos(tensor).front());
  };
  return {.modules = module_info(module), .attribute = attribute};
}

at::Tensor zeros_like_info(const TensorInfo& info) {
  const at::ScalarType type = to_scalar_type(info.dtype);
  if (c10::isQIntType(type)) {
    throw Error(ErrorKind::unsupported, "the shape " + to_string(info) +
                                            " does not tell the scale of a quantized input; give values, or a float");
  }
  return at::zeros(info.sizes, at::TensorOptions(type).device(to_torch_device(info.device)));
}

namespace {

// Dense in the order of `dims` from the outermost, sizes of one apart.
bool is_dense_in_order(const TensorInfo& info, const std::vector<std::size_t>& dims) {
  std::int64_t expected = 1;
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    if (info.sizes[*dim] == 1) continue;
    if (info.strides[*dim] != expected) return false;
    expected *= info.sizes[*dim];
  }
  return true;
}

}  // namespace

MemoryFormat memory_format_of(const TensorInfo& info) {
  if (info.is_contiguous()) return {"contiguous_format"};
  if (info.sizes.size() == 4 && is_dense_in_order(info, {0, 2, 3, 1})) return {"channels_last"};
  if (info.sizes.size() == 5 && is_dense_in_order(info, {0, 2, 3, 4, 1})) return {"channels_last_3d"};
  return {};
}

}  // namespace fx
