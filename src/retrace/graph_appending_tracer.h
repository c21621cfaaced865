// GraphAppendingTracer: builds into an existing graph by calling C++ functions on proxies of its nodes.
//
//   fx::GraphAppendingTracer tracer(*gm);
//   auto at = gm->graph().inserting_after(node);
//   fx::Node& scaled = tracer.append([](torch::Tensor x) { return x * 2; }, node);
//
// or step by step, with any code that takes tensors:
//   torch::Tensor x = tracer.proxy(node);
//   torch::Tensor y = torch::relu(x) + 1;      // two nodes at the insertion point of the graph
//   node.replace_all_uses_with(tracer.node(y), …);
//
// Proxies have no shapes unless `shapes` knows them. Proxies live as long as the tracer. Operators without a proxy
// among their arguments (factories) are recorded inside append() and record(), and computed outside. Thread-safety: as
// the graph's.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/trace/callable.h>
#include <fxgraph/trace/dispatch.h>
#include <fxgraph/trace/session.h>

namespace fx {

namespace internal {
struct AppendedCallable;
}

/// Appends what C++ functions compute to a graph that is there; see the top of this file.
class GraphAppendingTracer : private internal::NodeMaker {
 public:
  /// Tensors captured from outside become `_tensor_constantN`, listed by attributes().
  explicit GraphAppendingTracer(Graph& graph, const Shapes* shapes = nullptr);
  /// The same; captured tensors become attributes of `module`, and its own are known by their names.
  explicit GraphAppendingTracer(GraphModule& module, const Shapes* shapes = nullptr);
  ~GraphAppendingTracer() override;
  GraphAppendingTracer(const GraphAppendingTracer&) = delete;
  GraphAppendingTracer& operator=(const GraphAppendingTracer&) = delete;

  /// The graph that is appended to.
  Graph& graph() { return graph_; }
  /// A tensor that stands for `node`.
  torch::Tensor proxy(Node& node);
  /// The node that `tensor` stands for; makes a get_attr for an ordinary tensor. Throws Error(invalid_argument) for an
  /// undefined tensor.
  Node& node(const torch::Tensor& tensor);
  /// The argument for any result of a traced function.
  Argument argument(const torch::Tensor& tensor) { return session_->argument_for(tensor); }
  /// The same for tensors, numbers and strings in lists, tuples and dicts. Throws Error(unsupported) for an object.
  Argument argument(const c10::IValue& value);

  /// Calls `function` on `inputs` and returns what it returned as an argument: a node, or a tuple or list of nodes. The
  /// function's number parameters take literal inputs.
  template <typename Function>
  Argument append(Function&& function, std::vector<Argument> inputs) {
    internal::Callable callable = internal::make_callable(std::forward<Function>(function));
    return append_callable(callable, std::move(inputs));
  }
  /// The same for a function of tensors that returns one tensor.
  template <typename Function, typename... Nodes>
  requires(std::is_same_v<std::remove_const_t<Nodes>, Node>&&...) Node& append(Function&& function, Nodes&... inputs) {
    return append(std::forward<Function>(function), std::vector<Argument>{Argument(inputs)...}).node();
  }

  /// Made by record().
  class Recording {
   public:
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    friend class GraphAppendingTracer;
    explicit Recording(internal::Session& session) : scope_(session) {}
    internal::RecordingScope scope_;
  };
  /// While it lives, everything this thread computes is recorded, factories too.
  Recording record() { return Recording(*session_); }

  /// The tensors captured so far, by the paths that get_attr nodes name.
  const GraphModule::Attributes& attributes() const { return attributes_; }

 private:
  friend struct internal::AppendedCallable;
  Argument append_callable(const internal::Callable& callable, std::vector<Argument> inputs);
  Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) override;
  bool is_free_attribute(const std::string& path) const override;
  void captured(const std::string& path, const torch::Tensor& tensor) override;
  bool one_get_attr_each() const override { return false; }

  Graph& graph_;
  GraphModule* module_ = nullptr;
  const Shapes* shapes_ = nullptr;
  GraphModule::Attributes attributes_;
  std::shared_ptr<internal::Session> session_;
};

}  // namespace fx
