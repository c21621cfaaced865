// GraphReader: one graph of an exported program's JSON, node by node, into a Graph of ours.
//
// Operators keep the names and arguments that Python printed, but for three things: symbolic sizes become
// `aten::size.int` and arithmetic; calls that core ATen spells out where ATen has one operator become that operator
// (lift()); a graph among the arguments becomes a get_attr of a GraphModule of its own. What cannot be run here is
// collected, so that it is told all at once.
//
// Costs: linear in the JSON. Thread-safety: none.
#pragma once

#include <ATen/core/function_schema.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fxgraph/export/json.h>
#include <fxgraph/export/tensors.h>
#include <fxgraph/module/graph_module.h>

namespace fx::pt2 {

/// What is collected over a program and the graphs in it.
struct Refusals {
  std::map<std::string, std::string> calls;  ///< operators that are not known here, with the node that calls it first
};

/// An argument under the name that the operator's schema gives it.
struct NamedValue {
  std::string name;
  Argument value;
  bool keyword = false;
};

/// The name in a union that refers to a tensor or a number; empty where it refers to none.
std::string name_in(const Json& reference);

class GraphReader {
 public:
  /// Nodes go to the end of `module`'s graph, nested graphs become submodules of it.
  GraphReader(const Json& graph, GraphModule& module, Refusals& refusals, int depth = 0);

  /// Reads a nested graph whole: inputs, nodes, output.
  void read_all();
  /// Reads the nodes. The inputs must have been bound.
  void read_nodes();
  /// What the JSON's outputs stand for, in order.
  std::vector<Argument> outputs();

  /// Makes `value` what the name stands for.
  void bind(const std::string& name, Argument value);
  Argument lookup(const std::string& name) const;
  /// Says that the program ends with writing the value `name` to `target`.
  void add_update(const std::string& name, const Argument& target);
  /// An argument of a call or an output.
  Argument read_argument(const Json& json);

  // ── For lifts ────────────────────────────────────────────────────────────────────────────────────────────────────
  /// How often the program reads the value of this name.
  int uses(const std::string& name) const;
  /// The names of the results of the node that is being read; empty for one that has none.
  const std::vector<std::string>& results() const { return results_; }
  bool is_used(std::size_t result) const { return result < results_.size() && uses(results_[result]) > 0; }
  /// True when the result `name` is only written to the buffer or input `target`, which nothing else reads.
  bool only_updates(const std::string& name, const Argument& target) const;
  /// The description of a tensor; null when there is none.
  const TensorMeta* meta_of(const Argument& value);
  /// The same of the value of this name.
  const TensorMeta* meta_named(const std::string& name);
  Graph& graph() { return module_.graph(); }
  /// Makes a call with the notes of the node that is being read, named after its result `name` when given.
  Node& call(Symbol target, ArgumentSpan args, KwargSpan kwargs = {}, const std::string& name = {});

 private:
  void count_uses(const Json& json);
  void read_node(const Json& json);
  void read_results(const Json& json);
  std::vector<NamedValue> read_inputs(const Json& json);
  Argument read_nested(const Json& json);
  Node& graph_get_attr(const std::string& path);
  void call_operator(const std::string& target, const std::vector<NamedValue>& inputs, const Json& json);
  void call_with_effects(std::vector<NamedValue> inputs, const Json& json);
  Argument value_for(const Argument& value, const c10::Argument& taken);
  bool power_of_size(const std::vector<NamedValue>& inputs, const Json& results);
  void note_number(const std::string& name, Node& node);
  void bind_results(Node& made, const Json& outputs, bool is_tuple);
  void refuse(const std::string& target, const std::string& why);
  void note(Node& node);

  const Json& json_;
  GraphModule& module_;
  Refusals& refusals_;
  int depth_;
  std::unordered_map<std::string, Argument> values_;
  std::unordered_map<std::string, int> uses_;
  std::unordered_map<std::string, TensorMeta> metas_;
  std::unordered_map<const Node*, std::string> names_;  // look-up only
  std::map<std::string, const Json*> nested_;
  std::unordered_map<std::string, Argument> updates_;

  // The node that is being read.
  std::string name_;
  std::string stack_trace_;
  std::string module_path_;
  std::vector<std::string> results_;
};

/// Where run_decompositions() spelled an operator of ATen out in core ATen, that operator again, so that patterns,
/// rules and reports see one spelling: `convolution` is `conv2d`, `_native_batch_norm_legit_no_training` with one
/// result in use is `batch_norm`, `addmm` with a transposed weight between two views is `linear`, `bmm` of expanded
/// views is `matmul`. A lift computes the same with the same kernels, or is not made.
///
/// Makes the lifted call for the node that `reader` is at, binds its results, and returns true; does nothing and
/// returns false when no lift fits.
bool lift(GraphReader& reader, const std::string& target, const std::vector<NamedValue>& inputs);

/// Removes the calls that lifts left without a use.
void remove_left_over(Graph& graph);

}  // namespace fx::pt2
