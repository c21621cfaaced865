// An operator call wherever it stands, however it is spelt: in the graph itself, or alone in the body of the leaf
// module that a node calls.
//
// Rules about convolutions and norms read arguments and tensors through it, and so need not know which of the two it
// is. It must not outlive edits of the call.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/ops/call.h>

namespace fx::rules {

class OperationSite {
 public:
  /// The call that `node` makes if its operator is one that `wanted` accepts: directly, or as the one call of that kind
  /// in the body of its leaf, whose result the leaf returns and whose other calls are pure (padding) or assertions.
  /// Nothing otherwise.
  static std::optional<OperationSite> find(const GraphModule& module, Node& node,
                                           const std::function<bool(std::string_view packet)>& wanted);

  /// The node of the program's graph.
  Node& node() const { return *node_; }
  /// The node that makes the call: `node()`, or one of the leaf's body.
  const Node& caller() const { return *caller_; }
  std::string_view packet() const;
  /// The leaf, or null when the operator stands in the graph.
  const LeafModule* leaf() const { return leaf_.get(); }

  /// The program's value that enters the call as its first argument, or null when that is computed inside the leaf.
  Node* input() const;
  /// See Call::argument.
  const Argument* argument(std::string_view name) const { return call_.argument(name); }
  /// True when the argument is absent or None.
  bool is_none(std::string_view name) const;
  /// The argument when it is a literal bool, else nothing.
  std::optional<bool> literal_bool(std::string_view name) const;
  /// The attribute that the argument names; undefined when it is none or something computed.
  at::Tensor tensor(std::string_view name) const;
  /// The path of that attribute from the program's root; empty when there is none.
  std::string tensor_path(std::string_view name) const;

 private:
  const GraphModule* module_ = nullptr;
  Node* node_ = nullptr;
  const Node* caller_ = nullptr;
  Call call_;
  std::shared_ptr<const LeafModule> leaf_;
};

}  // namespace fx::rules
