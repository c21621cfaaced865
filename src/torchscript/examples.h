// What the values of a graph are at example inputs, while the graph is being made: control flow of the file is decided
// by them.
//
// Every node is run once, when it is made, on the examples: memory and time are those of a forward that keeps all
// values. Buffers are copies, so that a program that writes to its own leaves the file's alone. Thread-safety: none.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <exception>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/run/keep_random_state.h>

namespace fx::torchscript {

/// See the top of this file.
class Examples {
 public:
  /// What asks whether gradients are wanted has no value: that is the caller's to say. Unless it is said here.
  explicit Examples(const Graph& graph, bool wants_gradients = false)
      : known_(graph), wants_gradients_(wants_gradients) {}

  /// The value of an input, to which the file may write.
  void set_input(const Node& node, const c10::IValue& value);
  /// That of a tensor or object of the file.
  void set_attribute(const Node& node, const c10::IValue& value, bool is_parameter);
  /// Runs a call of a function. What cannot be run has no value, nor has what is computed of it.
  void run(const Node& node);
  /// Runs a leaf.
  void run_leaf(const Node& node, const torch::jit::Module& leaf, const std::string& method);

  /// What the node is at the examples; null where it could not be run.
  const c10::IValue* value(const Node& node) const { return at(node).value ? &*at(node).value : nullptr; }
  /// A number that two calls of equal arguments share only when nothing was written between them that the calls would
  /// see: elements, lists and dicts, or, for what asks for the form of a tensor, its sizes.
  std::size_t moment(const Node& node) const { return at(node).moment; }
  /// True when the value hangs on what tensors hold, not on their sizes, types, and the inputs that are numbers.
  bool hangs_on_data(const Node& node) const { return at(node).of_data; }
  /// True when it is computed of an input in any way.
  bool hangs_on_inputs(const Node& node) const { return at(node).of_inputs; }
  /// Why the first node that could not be run could not.
  const std::string& failure() const { return failure_; }

 private:
  struct Known {
    std::optional<c10::IValue> value;
    bool of_data = false;
    bool of_inputs = false;
    bool in_input = false;  // a container that is an input, or in one: what is no tensor in it is no data
    std::size_t moment = 0;
  };
  const Known& at(const Node& node) const { return std::as_const(known_)[node]; }
  bool writes_parameters(const Node& node) const;
  template <typename Run>
  void keep(const Node& node, Run&& run);

  NodeMap<Known> known_;
  const bool wants_gradients_;
  std::unordered_set<const void*> parameters_;  // storages
  std::string failure_;
  std::size_t writes_ = 0, reshapes_ = 0;  // so far
  internal::KeepRandomState random_;
};

/// An int, a float or a bool.
bool is_number(const c10::IValue& value);

/// True when a second call of the method at these inputs gives what the first gave, and leaves every attribute as the
/// first left it: then so does every later one. Runs both, on copies of the model.
bool is_settled_by_one_call(const torch::jit::Module& model, const std::string& method,
                            const std::vector<c10::IValue>& inputs);

}  // namespace fx::torchscript
