#include <fxgraph/rewriter/partition/stage_costs.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/rewriter/partition/stopwatch.h>
#include <fxgraph/run/machine.h>
#include <fxgraph/run/value.h>

namespace fx {
namespace {

// Stands for any machine: only the ratio of the two matters to where a program is cut.
const Machine kMachine{"a core", 5e10, 1e10};
constexpr double kCallSeconds = 2e-6;
constexpr int kRuns = 6;

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

NodeMap<double> modelled_seconds(const GraphModule& module, const Shapes& shapes) {
  const Cost cost(module, shapes);
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
