// Interpreter: runs a graph node by node, each kind of node through a function that a derived class may replace.
//
//   struct CountCalls : fx::Interpreter {
//     using Interpreter::Interpreter;
//     fx::Value call_function(const fx::Target& target, const fx::Args& args, const fx::Kwargs& kwargs) override {
//       ++calls;
//       return Interpreter::call_function(target, args, kwargs);
//     }
//     int calls = 0;
//   };
//   CountCalls counter(*gm);
//   fx::Value y = counter.run({x});
//
// FX's torch.fx.Interpreter. Values are dropped after their last use, unless keep_values() asks for them. For speed
// alone, run the GraphModule itself: it goes through a plan.
//
// Errors are Error(execution) that show the node. Thread-safety: one run at a time per interpreter.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <utility>
#include <vector>

#include "ir/node_map.h"
#include "module/graph_module.h"

namespace fx {

using Value = c10::IValue;
using Target = Symbol;
using Args = std::vector<Value>;
using Kwargs = std::vector<std::pair<Symbol, Value>>;

class Interpreter {
 public:
  explicit Interpreter(GraphModule& module) : Interpreter(module, module.graph()) {}
  /// Runs another graph over the module's attributes. Both must outlive the interpreter.
  Interpreter(GraphModule& module, const Graph& graph) : module_(module), graph_(graph) {}
  virtual ~Interpreter() = default;

  /// Nodes with the values that they have already: they are not run (FX's initial_env).
  using Environment = std::vector<std::pair<const Node*, Value>>;

  /// Runs the graph and returns its output; None when it has none. Missing inputs take their defaults.
  Value run(Args inputs, const Environment& initial = {});
  /// The same, emptying `inputs`, so that they may die as soon as they were used. Throws before touching them when
  /// their number is wrong.
  Value boxed_run(Args& inputs);

  /// Keeps all values of the next runs, for value_of(). Off at first.
  void keep_values(bool keep) { keep_values_ = keep; }
  /// What `node` gave in the last run, if it was kept.
  std::optional<Value> value_of(const Node& node) const;

  // ── To be replaced ───────────────────────────────────────────────────────────────────────────────────────────────
  /// Runs one node: fetches its arguments and calls the function of its opcode.
  virtual Value run_node(const Node& node);
  /// The next input; `args[0]`, if there is one, is the default.
  virtual Value placeholder(const Target& target, const Args& args, const Kwargs& kwargs);
  virtual Value get_attr(const Target& target, const Args& args, const Kwargs& kwargs);
  virtual Value call_function(const Target& target, const Args& args, const Kwargs& kwargs);
  /// `args[0]` is the object.
  virtual Value call_method(const Target& target, const Args& args, const Kwargs& kwargs);
  virtual Value call_module(const Target& target, const Args& args, const Kwargs& kwargs);
  virtual Value output(const Target& target, const Args& args, const Kwargs& kwargs);

 protected:
  GraphModule& module() { return module_; }
  const Graph& graph() const { return graph_; }

  // ── Helpers ──────────────────────────────────────────────────────────────────────────────────────────────────────
  /// The tensor at a path.
  Value fetch_attr(const Target& target) const;
  /// The node's arguments with its inputs' values.
  std::pair<Args, Kwargs> fetch_args_kwargs_from_env(const Node& node) const;
  /// `argument` with the values of the nodes in it.
  Value map_nodes_to_values(const Argument& argument) const;

 private:
  void find_last_uses();

  GraphModule& module_;
  const Graph& graph_;
  bool keep_values_ = false;
  NodeMap<std::optional<Value>> environment_;
  NodeMap<std::vector<const Node*>> last_used_by_;
  std::optional<std::uint64_t> last_uses_of_;  // the revision of the graph that last_used_by_ is about
  Args inputs_;
  std::size_t next_input_ = 0;
};

}  // namespace fx
