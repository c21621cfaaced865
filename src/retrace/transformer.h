// Transformer: rebuilds a GraphModule node by node, each kind of node through a function that a derived class may
// replace.
//
//   struct SigmoidToNeg : fx::Transformer {
//     using Transformer::Transformer;
//     fx::Value call_function(const fx::Target& target, const fx::Args& args, const fx::Kwargs& kwargs) override {
//       if (target == "aten::sigmoid") return torch::neg(args[0].toTensor());
//       return Transformer::call_function(target, args, kwargs);
//     }
//   };
//   std::shared_ptr<fx::GraphModule> changed = SigmoidToNeg(*gm).transform();
//
// FX's torch.fx.Transformer: an Interpreter whose values are proxies. What an override computes with them becomes nodes
// of the new graph; the functions here make the node that the old graph has, so that a Transformer with no override
// copies it: names, literals and notes (meta) stay. New nodes inherit the notes of the node that they came from. The
// result shares parameters, buffers and submodules with the old module, which stays as it is; what no node names is not
// in it.
//
// A value that is no tensor (a size, a tuple of results) is a proxy, too; it may be passed on, not looked into.
// Cost: linear in the graph. Thread-safety: one transform() at a time.
#pragma once

#include <memory>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/retrace/graph_appending_tracer.h>

namespace fx {

/// Makes a changed copy of a program node by node; see the top of this file.
class Transformer : public Interpreter {
 public:
  /// With `shapes` (of `module`'s graph) overrides may ask proxies for their sizes.
  explicit Transformer(GraphModule& module, const Shapes* shapes = nullptr);
  ~Transformer() override;

  /// Returns the new module. Throws what overrides throw, as Error(execution) that shows the node; nothing is changed
  /// then.
  std::shared_ptr<GraphModule> transform();

  Value run_node(const Node& node) override;
  Value placeholder(const Target& target, const Args& args, const Kwargs& kwargs) override;
  Value get_attr(const Target& target, const Args& args, const Kwargs& kwargs) override;
  Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override;
  Value call_method(const Target& target, const Args& args, const Kwargs& kwargs) override;
  Value call_module(const Target& target, const Args& args, const Kwargs& kwargs) override;
  Value output(const Target& target, const Args& args, const Kwargs& kwargs) override;

 protected:
  /// The module in the making, while transform() runs: overrides may add submodules and attributes to it.
  GraphModule& new_module() { return *result_; }
  /// The node that a value stands for. Throws Error(invalid_argument) for an undefined tensor.
  Node& node(const Value& value) { return tracer_->node(value.toTensor()); }
  /// The proxy that stands for a node of the new graph.
  Value proxy(Node& node) { return tracer_->proxy(node); }
  std::pair<Args, Kwargs> fetch_args_kwargs_from_env(const Node& node) override;

 private:
  Node& emit(Op op, const Target& target, const Args& args, const Kwargs& kwargs);
  Argument argument_for(const Value& value, const Argument* original, const Value* fetched);

  const Shapes* shapes_;
  Shapes result_shapes_;
  std::shared_ptr<GraphModule> result_;
  std::unique_ptr<GraphAppendingTracer> tracer_;
  std::pair<Args, Kwargs> fetched_;
};

}  // namespace fx
