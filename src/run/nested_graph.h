// Graphs as values, and the higher-order operators that call them.
//
// A get_attr whose path is a module with a graph gives that graph as a value, which `torch.ops.higher_order.cond` and
// its kind take as an argument:
//
//   %true_graph_0 = get_attr[target=true_graph_0]
//   %cond = call_function[target=torch.ops.higher_order.cond](args = (%gt, %true_graph_0, %false_graph_0, (%x,)))
//
// A nested graph runs by a plan of its own, made at the first call and again after edits. Thread-safety: as plans.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/custom_class.h>

#include <memory>
#include <mutex>
#include <vector>

#include <fxgraph/nn/owning_module.h>
#include <fxgraph/run/plan.h>
#include <fxgraph/run/python_calls.h>

namespace fx {

class NestedGraph : public torch::CustomClassHolder {
 public:
  explicit NestedGraph(std::shared_ptr<const OwningModule> module) : module_(std::move(module)) {}

  /// Runs the graph, or asks the thread's NestedGraphRunner to. Throws what running a plan throws.
  c10::IValue call(std::vector<c10::IValue> inputs);
  const OwningModule& module() const { return *module_; }

 private:
  std::shared_ptr<const OwningModule> module_;
  std::mutex mutex_;
  std::shared_ptr<const Plan> plan_;
};

/// Runs nested graphs in place of their plans, on the thread that made it and while it lives: for those who look at
/// what the nodes in them compute.
class NestedGraphRunner {
 public:
  NestedGraphRunner();
  virtual ~NestedGraphRunner();
  NestedGraphRunner(const NestedGraphRunner&) = delete;
  NestedGraphRunner& operator=(const NestedGraphRunner&) = delete;
  virtual c10::IValue run(const OwningModule& module, std::vector<c10::IValue> inputs) = 0;

 private:
  NestedGraphRunner* outer_;
};

/// The graph in a value of nested_graph_value. Throws Error(execution) for another value.
NestedGraph& nested_graph(const c10::IValue& value);

/// The module's graph as a value; None when `module` has no graph.
c10::IValue nested_graph_value(const std::shared_ptr<torch::nn::Module>& module);

/// The higher-order operators that are known (those without parameter names take any number of values by position):
/// `higher_order::cond`, `higher_order::while_loop`, …
const std::vector<PythonFunction>& higher_order_functions();

}  // namespace fx
