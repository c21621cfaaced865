#include <fxgraph/rewriter/partition/stage_costs.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fxgraph/ir/target.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/partition/stopwatch.h>
#include <fxgraph/run/machine.h>
#include <fxgraph/run/value.h>

namespace fx {
namespace {

// Stands for any machine: only the ratio of the two matters to where a program is cut.
const Machine kMachine{"a core", 5e10, 1e10};
constexpr double kCallSeconds = 2e-6;
constexpr int kRuns = 6;

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

/// With one thread the processor's time, which leaves out what else the machine does; with more that of the clock.
class Timing : public Interpreter {
 public:
  Timing(GraphModule& module, NodeMap<std::vector<double>>& times) : Interpreter(module), times_(times) {}
  Value run_node(const Node& node) override {
    double processor = 0, clock = 0;
    Value value = timed(node, processor, clock);
    times_[node].push_back(threads() == 1 ? processor : clock);
    return value;
  }

 private:
  Value timed(const Node& node, double& processor, double& clock) {
    const ProcessorClock on_processor(processor);
    const Stopwatch by_clock(clock);
    return Interpreter::run_node(node);
  }

  NodeMap<std::vector<double>>& times_;
};

}  // namespace

CostOptions module_costs(const GraphModule& module) {
  CostOptions options;
  options.modules = [&module](const Node& call) -> std::optional<ModuleCall> {
    const auto leaf = module.leaf(call.target().str());
    if (!leaf) return std::nullopt;
    if (!leaf->body()) return by_type(*leaf);
    if (const Node* main = main_operator(*leaf->body()))
      return ModuleCall{Symbol(packet_of(main->target().view())), parameter_infos(*leaf)};
    std::optional<ModuleCall> known = by_type(*leaf);
    // A trace gives attention each tensor once, so that what it takes cannot be told from the parameters behind.
    if (known && known->packet.view() == python::kMultiHeadAttention) known.reset();
    return known.value_or(ModuleCall{{}, parameter_infos(*leaf)});
  };
  return options;
}

NodeMap<double> modelled_seconds(const GraphModule& module, const Shapes& shapes) {
  const Cost cost(module.graph(), shapes, module_costs(module));
  NodeMap<double> seconds(module.graph(), 0);
  for (const Node& node : module.graph().nodes()) {
    if (node.is(Op::placeholder) || node.is(Op::get_attr) || node.is(Op::output)) continue;
    seconds[node] = kCallSeconds + roofline_seconds(cost.of(node), kMachine);
  }
  return seconds;
}

NodeMap<double> measured_seconds(GraphModule& module, const std::vector<c10::IValue>& examples) {
  at::NoGradGuard inference;
  // Running may write to buffers.
  const auto copy = module.clone_graph_module();
  NodeMap<std::vector<double>> times(copy->graph());
  for (int run = 0; run < kRuns; ++run) Timing(*copy, times).run(examples);
  NodeMap<double> seconds(module.graph(), 0);
  auto theirs = copy->graph().nodes().begin();
  for (const Node& node : module.graph().nodes()) {
    std::vector<double> all(times[*theirs].begin() + 1, times[*theirs].end());
    ++theirs;
    std::ranges::nth_element(all, all.begin() + all.size() / 2);
    seconds[node] = all[all.size() / 2];
  }
  return seconds;
}

}  // namespace fx
