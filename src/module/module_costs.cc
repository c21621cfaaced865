#include <fxgraph/module/module_costs.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include <fxgraph/ir/target.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/run/value.h>

namespace fx::internal {
namespace {

std::vector<TensorInfo> parameter_infos(const LeafModule& leaf) {
  std::vector<TensorInfo> infos;
  for (const NamedTensor& tensor : leaf.tensors()) infos.push_back(tensor_info(tensor.tensor));
  return infos;
}

/// Modules whose forward branches on data, or is many operators: only their types tell.
std::optional<ModuleCall> by_type(const LeafModule& leaf) {
  const ModuleType* type = find_module_type(leaf.type_name());
  if (!type || type->cost_operator.empty()) return std::nullopt;
  return ModuleCall{Symbol(type->cost_operator), parameter_infos(leaf)};
}

/// Operators that multiply, beside those that take parameters.
bool is_product(const Node& node) {
  constexpr std::string_view kProducts[] = {"aten::linear", "aten::matmul", "aten::mm",     "aten::bmm",
                                            "aten::addmm",  "aten::einsum", "aten::baddbmm"};
  return std::ranges::find(kProducts, packet_of(node.target().view())) != std::end(kProducts);
}

/// The one operator that the body is, or is about: the one that takes the parameters, else the last, for what comes
/// before it are checks and views. Null where several take parameters or multiply.
const Node* main_operator(const Graph& body) {
  const Node *product = nullptr, *last = nullptr;
  std::size_t products = 0;
  for (const Node& node : body.nodes()) {
    if (!node.is(Op::call_function) || node.target().view().find("::") == std::string_view::npos) continue;
    bool counts = is_product(node);
    node.for_each_input([&](const Node& input) { counts |= input.is(Op::get_attr); });
    if (counts) product = &node;
    products += counts ? 1 : 0;
    last = &node;
  }
  return products > 1 ? nullptr : product ? product : last;
}

}  // namespace

std::optional<ModuleCall> cost_of_module(const GraphModule& module, const std::string& path) {
  const auto leaf = module.leaf(path);
  if (!leaf) return std::nullopt;
  if (!leaf->body()) return by_type(*leaf);
  if (const Node* main = main_operator(*leaf->body()))
    return ModuleCall{Symbol(packet_of(main->target().view())), parameter_infos(*leaf)};
  std::optional<ModuleCall> known = by_type(*leaf);
  // A trace gives attention each tensor once, so that what it takes cannot be told from the parameters behind.
  if (known && known->packet.view() == python::kMultiHeadAttention) known.reset();
  return known.value_or(ModuleCall{{}, parameter_infos(*leaf)});
}

}  // namespace fx::internal
