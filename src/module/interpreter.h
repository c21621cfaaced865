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
// alone, run the GraphModule itself: it goes through a plan. fx::Transformer (retrace/transformer.h) makes a new graph
// through the same functions.
//
// Errors are Error(execution) that show the node and, where its stack trace was noted, the place it was made at. What
// an override throws is shown the same way. The graph must not change while it runs. Thread-safety: one run at a time
// per interpreter.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

using Value = c10::IValue;                             ///< what flows along the edges of a graph
using Target = Symbol;                                 ///< what a node names: operator, method or path
using Args = std::vector<Value>;                       ///< what a node is given by position
using Kwargs = std::vector<std::pair<Symbol, Value>>;  ///< what a node is given by name

/// Runs a graph node by node; see the top of this file.
class Interpreter {
 public:
  /// Runs the module's own graph; `module` must outlive the interpreter.
  explicit Interpreter(GraphModule& module) : Interpreter(module, module.graph()) {}
  /// Runs another graph over the module's attributes. Both must outlive the interpreter.
  Interpreter(GraphModule& module, const Graph& graph) : module_(module), graph_(graph) {}
  virtual ~Interpreter() = default;

  /// Nodes with the values that they have already: they are not run (FX's initial_env).
  using Environment = std::vector<std::pair<const Node*, Value>>;

  /// Runs the graph and returns its output; None when it has none. Missing inputs take their defaults. Throws
  /// Error(invalid_argument) when there are more inputs than placeholders without a value, and for values of nodes that
  /// are not in the graph.
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
  /// Returns the next input; a target `*rest` takes those that are left, as a list. `args[0]`, if there is one, is the
  /// default. Throws Error(invalid_argument) naming the input when there is neither.
  virtual Value placeholder(const Target& target, const Args& args, const Kwargs& kwargs);
  /// Returns the tensor at the path `target`.
  virtual Value get_attr(const Target& target, const Args& args, const Kwargs& kwargs);
  /// Calls an operator or Python-level function; the values pick the overload where the target names none.
  virtual Value call_function(const Target& target, const Args& args, const Kwargs& kwargs);
  /// Calls the method `target` of `args[0]`.
  virtual Value call_method(const Target& target, const Args& args, const Kwargs& kwargs);
  /// Calls the submodule at the path `target`.
  virtual Value call_module(const Target& target, const Args& args, const Kwargs& kwargs);
  /// Returns what run() returns: `args[0]`.
  virtual Value output(const Target& target, const Args& args, const Kwargs& kwargs);

 protected:
  /// What is run, and over whose attributes.
  /// @{
  GraphModule& module() { return module_; }
  const Graph& graph() const { return graph_; }
  /// @}
  /// The node that is running; null outside of run().
  const Node* current_node() const { return current_; }

  // ── Helpers ──────────────────────────────────────────────────────────────────────────────────────────────────────
  /// Returns the parameter or buffer at a path. Throws Error(not_found).
  virtual Value fetch_attr(const Target& target);
  /// Returns the node's arguments with its inputs' values.
  virtual std::pair<Args, Kwargs> fetch_args_kwargs_from_env(const Node& node);
  /// Returns `argument` with the values of the nodes in it. Throws Error(execution) naming a node that has no value
  /// (any more).
  virtual Value map_nodes_to_values(const Argument& argument);

 private:
  /// A call of a submodule, compiled.
  struct ModuleCall {
    std::shared_ptr<torch::nn::Module> called;
    std::shared_ptr<GraphModule> program;
  };

  Graph graph_of_call(const Target& target, std::size_t num_args, const Kwargs& kwargs) const;
  void check_number_of_inputs(std::size_t given) const;
  void find_last_uses();
  void drop_dead_values(const Node& node);
  Value run_nodes();
  [[noreturn]] void fail(const Node& node, const std::string& cause) const;

  GraphModule& module_;
  const Graph& graph_;
  bool keep_values_ = false;
  NodeMap<std::optional<Value>> environment_;
  NodeMap<const Node*> last_user_;  // null: no user, or the value was given
  const Node* current_ = nullptr;
  std::unordered_map<std::string, ModuleCall> module_calls_;  // by target, form of the call and node; look-up only
  Args inputs_;
  std::vector<std::string> none_inputs_;  // see internal::add_none_inputs
  std::size_t next_input_ = 0;
};

}  // namespace fx
