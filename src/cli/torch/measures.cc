#include "cli/torch/measures.h"

#include "analysis/liveness.h"
#include "ir/target.h"
#include "module/value.h"

namespace fx::cli {

CostOptions cost_options(const GraphModule& module) {
  CostOptions options;
  options.modules = [&module](const Node& call) -> std::optional<ModuleCall> {
    const auto leaf = module.leaf(call.target().str());
    if (!leaf || !leaf->body()) return std::nullopt;
    // The operator that takes the leaf's parameters, else the last: what comes before it are checks and views.
    const Node* main = nullptr;
    for (const Node& node : leaf->body()->nodes()) {
      if (!node.is(Op::call_function) || node.target().view().find("::") == std::string_view::npos) continue;
      bool reads_parameter = false;
      node.for_each_input([&](const Node& input) { reads_parameter |= input.is(Op::get_attr); });
      if (reads_parameter || !main) main = &node;
    }
    if (!main) return std::nullopt;
    ModuleCall found{Symbol(packet_of(main->target().view())), {}};
    for (const NamedTensor& tensor : leaf->tensors()) found.parameters.push_back(tensor_info(tensor.tensor));
    return found;
  };
  return options;
}

Measures measure(const GraphModule& module, const Shapes& shapes) {
  const Cost cost(module.graph(), shapes, cost_options(module));
  const Liveness live(module.graph(), shapes);
  return {cost.total().macs, static_cast<double>(live.peak().bytes)};
}

}  // namespace fx::cli
