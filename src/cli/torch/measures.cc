#include "cli/torch/measures.h"

#include "analysis/liveness.h"
#include "ir/target.h"
#include "module/value.h"

namespace fx::cli {

namespace {

std::vector<TensorInfo> parameter_infos(const LeafModule& leaf) {
  std::vector<TensorInfo> infos;
  for (const NamedTensor& tensor : leaf.tensors()) infos.push_back(tensor_info(tensor.tensor));
  return infos;
}

}  // namespace

CostOptions cost_options(const GraphModule& module) {
  CostOptions options;
  options.modules = [&module](const Node& call) -> std::optional<ModuleCall> {
    const auto leaf = module.leaf(call.target().str());
    if (!leaf) return std::nullopt;
    // Its forward branches on data, so that it has no body.
    if (!leaf->body() && leaf->type_name() == "MultiheadAttention")
      return ModuleCall{"torch.nn.functional.multi_head_attention_forward", parameter_infos(*leaf)};
    if (!leaf->body()) return std::nullopt;
    // The operator that takes the leaf's parameters, else the last: what comes before it are checks and views.
    const Node* main = nullptr;
    for (const Node& node : leaf->body()->nodes()) {
      if (!node.is(Op::call_function) || node.target().view().find("::") == std::string_view::npos) continue;
      bool reads_parameter = false;
      node.for_each_input([&](const Node& input) { reads_parameter |= input.is(Op::get_attr); });
      if (reads_parameter || !main) main = &node;
    }
    if (!main) return std::nullopt;
    return ModuleCall{Symbol(packet_of(main->target().view())), parameter_infos(*leaf)};
  };
  return options;
}

Measures measure(const GraphModule& module, const Shapes& shapes) {
  const Cost cost(module.graph(), shapes, cost_options(module));
  const Liveness live(module.graph(), shapes);
  return {cost.total().macs, static_cast<double>(live.peak().bytes)};
}

}  // namespace fx::cli
