// A leaf module traced by itself, on tensors like those that a call of it was given.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/trace_log.h>

namespace fx::internal {

/// The inputs of a call: nodes, or tuples of nodes.
using CallInputs = std::vector<Argument>;

struct LeafAlone final : NodeMaker {
  Graph graph;
  TraceLog log;
  std::shared_ptr<Session> session;
  Argument result;
  std::vector<Node*> inputs;  ///< what the placeholders stand for in the traced graph
  std::vector<at::Tensor> proxies;

  /// The log's calls of operators.
  std::vector<std::uint32_t> operators() const;
  /// Whether what it does may be of other numbers for other sizes.
  bool asks_for_sizes() const { return !log.questions().empty(); }

  Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) override {
    return graph.create_node(op, target, args, kwargs, name);
  }
  bool is_free_attribute(const std::string&) const override { return true; }
  ~LeafAlone() override {
    if (session) session->close();
  }
};

/// What a node of the traced graph is, without data; undefined when that is not known.
using ValueOfNode = std::function<at::Tensor(const Node&)>;

/// Calls `leaf` with `inputs`, nodes of what `program` has traced. Null when it cannot be called with these.
std::unique_ptr<LeafAlone> trace_leaf_alone(torch::nn::Module& leaf, const ModuleType& type, const CallInputs& inputs,
                                            const Session& program, const ValueOfNode& value_of);

}  // namespace fx::internal
