// Plan: a graph made ready to run.
//
// Every node becomes a step: its operator resolved to LibTorch's, literals converted once, values in numbered slots
// that are reused, each value moved out at its last use. Bodies of leaf modules are inlined. Per call, a plan does the
// stack pushes that the operators need and nothing else.
//
// Making a plan is linear in the graph. A plan is immutable; several threads may run it.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

class OwningModule;

class Plan {
 public:
  struct Options {
    /// Called after each node of the graph (not of leaf bodies) with its value; keeps no value alive.
    bool observe = false;
  };
  /// Sees a node and its value, in order of execution.
  using Observer = std::function<void(const Node& node, const c10::IValue& value)>;

  /// Throws Error(lint) for a value that is used before it is defined, Error(not_found) for an attribute, module or
  /// operator that does not exist, Error(unsupported) for a module whose forward cannot be called from C++; all name
  /// the node.
  static std::shared_ptr<const Plan> compile(const OwningModule& module, Options options);
  static std::shared_ptr<const Plan> compile(const OwningModule& module) { return compile(module, Options()); }
  ~Plan();

  /// Runs; `observer` needs Options::observe. Throws Error(execution) naming the node.
  c10::IValue run(const OwningModule& module, std::vector<c10::IValue> inputs, const Observer& observer = {}) const;

  /// True when the plan was made for this state of the module: its graph and those of nested modules, the modules and
  /// tensors that they name, the mode, body and options of each.
  bool is_current(const OwningModule& module) const;

  /// Number of steps (operator calls after inlining) and of slots.
  std::size_t num_steps() const;
  std::size_t num_slots() const;

 private:
  struct Code;
  friend class PlanCompiler;
  friend class PlanRunner;
  explicit Plan(std::unique_ptr<const Code> program);
  std::unique_ptr<const Code> program_;
};

}  // namespace fx
