#include <fxgraph/rewriter/rules/free_sizes.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/shapes/shape_prop.h>

namespace fx::rules {

namespace {

constexpr std::int64_t kFirstFree = -2;

}  // namespace

std::vector<AbstractValue> of_any_size(const std::vector<TensorInfo>& inputs, Vary vary) {
  std::vector<AbstractValue> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TensorType type{inputs[i].dtype, {}, {}};
    type.sizes.assign(inputs[i].sizes.begin(), inputs[i].sizes.end());
    for (std::size_t dim = 0;
         dim < (vary == Vary::all ? type.sizes.size() : std::min<std::size_t>(1, type.sizes.size())); ++dim)
      type.sizes[dim] = SizeExpr::symbol("input" + std::to_string(i) + "[" + std::to_string(dim) + "]");
    if (inputs[i].is_contiguous()) type.strides = contiguous_strides(type.sizes);
    values.emplace_back(std::move(type));
  }
  return values;
}

void forget_branches(const Graph& graph, Shapes& shapes) {
  const auto branches = [](const Node& node) {
    return node.is_call("higher_order::cond") || node.is_call("higher_order::while_loop");
  };
  if (std::ranges::none_of(graph.nodes(), branches)) return;
  NodeMap<bool> unknown(graph, false);
  for (const Node& node : graph.nodes()) {
    bool from_branch = branches(node);
    node.for_each_input([&](const Node& input) { from_branch |= unknown[input]; });
    unknown[node] = from_branch;
    if (from_branch) shapes[node].tensors.clear();
  }
}

namespace {

/// True when the example says how many dimensions the call's results have in every call.
bool is_of_one_rank(const UndecidedCall& undecided) {
  if (undecided.inferred.of_rank) return false;
  const std::string_view packet = undecided.call ? packet_of(undecided.call.schema().target.view()) : "";
  if (packet == "aten::reshape" || packet == "aten::view") return undecided.arguments[1].list() != nullptr;
  for (std::size_t i = 0; i < undecided.arguments.size(); ++i) {
    const SchemaType* type = undecided.call ? &undecided.call.schema().arguments[i].type : nullptr;
    if (type && !type->is_tensor() && !type->list) continue;  // a number
    const AbstractValue& each = undecided.arguments[i];
    const bool of_tensors = !type || type->is_tensor();
    if (!each.is_known()) return false;
    if (each.list() && of_tensors && !std::ranges::all_of(*each.list(), &AbstractValue::is_known)) return false;
  }
  return true;
}

/// What the example shows of a call that no row decides: the types, and how many dimensions.
AbstractValue as_in_example(const UndecidedCall& undecided, const Shapes& shapes) {
  const TensorInfos& infos = shapes[undecided.node].tensors;
  if (infos.empty() || !is_of_one_rank(undecided)) return {};
  const bool is_of_list = !undecided.arguments.empty() && undecided.arguments[0].list();
  if (!undecided.call && (infos.size() > 1 || is_of_list)) return {};  // a tensor or a list of one
  AbstractValue::List types;
  for (const TensorInfo& info : infos) {
    TensorType type{info.dtype, {}, {}};
    for (std::size_t dim = 0; dim < info.sizes.size(); ++dim) type.sizes.push_back(undecided.fresh());
    types.emplace_back(std::move(type));
  }
  const bool is_list =
      undecided.call && (undecided.call.schema().returns.size() != 1 || undecided.call.schema().returns[0].type.list);
  return is_list ? AbstractValue(std::move(types)) : std::move(types[0]);
}

}  // namespace

void mark_free(const GraphModule& module, const std::vector<TensorInfo>& inputs, Shapes& shapes, Vary vary) {
  const Graph& graph = module.graph();
  ShapeSources sources = shape_sources(module);
  sources.other = [&](const UndecidedCall& call) {
    return &call.node.graph() == &graph ? as_in_example(call, shapes) : AbstractValue();
  };
  const SymbolicShapes symbolic(graph, of_any_size(inputs, vary), sources);
  std::map<SizeExpr, std::int64_t> known;
  std::int64_t next = kFirstFree;
  std::vector<const TensorType*> types;
  for (const Node& node : graph.nodes()) {
    TensorInfos& tensors = shapes[node].tensors;
    types.clear();
    symbolic[node].for_each_tensor([&](const TensorType& type) { types.push_back(&type); });
    const auto is_alike = [](const TensorInfo& info, const TensorType* type) {
      return info.sizes.size() == type->sizes.size();
    };
    if (!std::ranges::equal(tensors, types, is_alike)) tensors.clear();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (std::size_t dim = 0; dim < tensors[i].sizes.size(); ++dim) {
        const SizeExpr& size = types[i]->sizes[dim];
        if (size.is_integer()) continue;
        const auto [at, is_new] = known.emplace(size, next);
        tensors[i].sizes[dim] = at->second;
        tensors[i].strides.clear();
        if (is_new) --next;
      }
    }
  }
}

}  // namespace fx::rules
