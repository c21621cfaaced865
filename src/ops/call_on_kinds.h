// What fx::Call says of one call when the kinds of its inputs are known: of values, while a program runs, or of the
// types of another language, while it is written in that.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/call.h>

namespace fx::internal {

/// A call over inputs that stand for others.
class CallOnKinds {
 public:
  CallOnKinds() = default;
  /// The call of `node`; `kind_of` says the kinds of its all_input_nodes(), in their order.
  CallOnKinds(const Node& node, const std::function<std::string(const Node&)>& kind_of);
  CallOnKinds(const CallOnKinds&) = delete;
  CallOnKinds& operator=(const CallOnKinds&) = delete;

  /// Adds an input of a kind, which is an annotation, `None`, or empty where it is not known. Returns what stands for
  /// it.
  Argument add_input(std::string kind);
  /// What this input of the call is by number.
  std::size_t input_number(const Node& input) const { return numbers_[input]; }
  /// Sets what is called, and how it is written.
  void set_call(Op op, Symbol target, const std::vector<Argument>& args, const std::vector<NamedArgument>& kwargs);
  /// Sets another operator for the same arguments.
  void set_target(Symbol target) { node_->set_target(Op::call_function, target); }
  /// The call as it is written.
  const Node& written() const { return *node_; }

  /// What is called. Nothing when no overload takes these kinds, or several do.
  const Call& resolve();
  /// Where resolve() says nothing, what LibTorch takes: a number for a tensor, strings and lists that Python's
  /// operators compare.
  const Call& resolve_forced();
  /// What resolve() or resolve_forced() said last. It refers to written() and the inputs.
  const Call& call() const { return call_; }
  /// `no overload of torch.add takes these arguments: (Tensor, String)`, and what is given twice.
  std::string refusal() const;

 private:
  Graph graph_;
  Node* node_ = nullptr;
  NodeMap<std::size_t> numbers_;
  std::size_t num_inputs_ = 0;
  Call call_;
};

}  // namespace fx::internal
