#include <fxgraph/cli/torch/measures.h>

#include <utility>

#include <fxgraph/analysis/liveness.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/run/value.h>

namespace fx::cli {

namespace {

std::vector<TensorInfo> parameter_infos(const LeafModule& leaf) {
  std::vector<TensorInfo> infos;
  for (const NamedTensor& tensor : leaf.tensors()) infos.push_back(tensor_info(tensor.tensor));
  return infos;
}

/// Modules whose forward branches on data, and so are only known by their names.
std::optional<ModuleCall> without_body(const LeafModule& leaf) {
  constexpr std::pair<std::string_view, const char*> kPackets[] = {
      {"MultiheadAttention", "torch.nn.functional.multi_head_attention_forward"},
      {"LSTM", "aten::lstm"},
      {"GRU", "aten::gru"},
      {"RNN", "aten::rnn_tanh"},
  };
  for (const auto& [type, packet] : kPackets) {
    if (leaf.type_name() == type) return ModuleCall{packet, parameter_infos(leaf)};
  }
  return std::nullopt;
}

}  // namespace

CostOptions cost_options(const GraphModule& module) {
  CostOptions options;
  options.modules = [&module](const Node& call) -> std::optional<ModuleCall> {
    const auto leaf = module.leaf(call.target().str());
    if (!leaf) return std::nullopt;
    if (!leaf->body()) return without_body(*leaf);
    // The operator that takes the leaf's parameters, else the last: what comes before it are checks and views.
    const Node *reader = nullptr, *last = nullptr;
    for (const Node& node : leaf->body()->nodes()) {
      if (!node.is(Op::call_function) || node.target().view().find("::") == std::string_view::npos) continue;
      node.for_each_input([&](const Node& input) { reader = input.is(Op::get_attr) ? &node : reader; });
      last = &node;
    }
    const Node* main = reader ? reader : last;
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
