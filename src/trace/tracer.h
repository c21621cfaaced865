// Tracer: runs a program on proxies and keeps the graph of what it did.
//
//   fx::Tracer tracer;
//   fx::Trace trace = tracer.trace(net, {torch::rand({1, 3, 32, 32})});    // module, example inputs
//   fx::Trace trace = tracer.trace([](torch::Tensor x) { return x.relu(); });
//
// symbolic_trace (trace/symbolic_trace.h) is this with a GraphModule around the result; derive from Tracer for FX's
// extension points. What is recorded: every operator that the traced thread runs, as one call_function of its ATen
// overload, composite operators whole. Operators on parameters alone and factories (`torch::zeros`) are recorded too,
// not computed.
//
// Sizes are plain numbers to the program: they come from the example inputs. A trace with examples therefore runs the
// program again at other sizes and writes what follows from sizes as expressions of them (trace/generalise.h); what
// cannot be written so is asserted. SizeReport(trace.graph) says which dimensions are free. `TraceOptions::sizes` turns
// that off or names the dimensions that vary.
//
// Parameters and buffers of the root become get_attr nodes of their qualified names; other tensors from outside become
// `_tensor_constantN`, one attribute per tensor.
//
// Errors: Error(trace) naming the node, the C++ call and the cure when the program asks for data, or for shapes that
// are not known; Error(invalid_argument) when the example inputs do not fit; what the program itself throws passes
// through. After any of these the tracer may be used again and nothing of the trace is left. Complexity: linear in the
// operators run; nothing recurses over them. Thread-safety: any number of tracers may run in different threads.
// What other threads of a program do with traced tensors is recorded, too (docs/tracing.md).
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/trace/callable.h>
#include <fxgraph/trace/placeholder_inputs.h>
#include <fxgraph/trace/proxy.h>
#include <fxgraph/trace/second_call.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/sizes.h>
#include <fxgraph/trace/state_member.h>

namespace fx {

/// A tensor that a graph names in a get_attr node.
struct TracedAttribute {
  std::string path;      ///< `layer1.0.weight`, `_tensor_constant0`
  torch::Tensor tensor;  ///< shared with the module, or with who made it
};

/// The result of a trace.
struct Trace {
  Graph graph;  ///< what the program did
  /// Null when a function was traced.
  std::shared_ptr<torch::nn::Module> root;
  /// The tensors that get_attr nodes name, in the order of first use.
  std::vector<TracedAttribute> attributes;
  /// The modules that call_module nodes name.
  std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> modules;
  /// Why the graph does not hold in the other mode, train() or eval(); empty when it does.
  std::string holds_for_mode;
  /// The mode that it holds for then, where it is not that of the root: that of a GraphModule which a function runs.
  std::optional<bool> mode;
  /// Shapes as far as the trace knew them: everything with example inputs, little without.
  Shapes shapes;
};

/// What is traced, how closely, and what is refused.
struct TraceOptions {
  /// Names of the inputs; those that are missing are called x, y, z, or arg_0, arg_1, … when there are more than three.
  std::vector<std::string> names = {};
  /// Makes calls of leaf modules call_module nodes again, see trace/leaf_modules.h.
  bool raise_leaf_modules = true;
  /// Notes on each node the C++ calls that led to it (meta "stack_trace"), most recent call last. Slow.
  bool record_stack_traces = false;
  /// Refuses operators that write an argument (`add_`, `out=`): Error(trace) naming the operator.
  bool check_mutable_operations = false;
  /// Calls the program a second time, to see that it does the same; see trace/second_call.h.
  bool second_call = true;
  /// Traces a module once more in its other mode, so that dropout follows train() and eval(), and what cannot follow is
  /// refused when it is switched; see trace/mode_switch.h.
  bool follow_mode = true;
  /// Members that are registered nowhere and that forward changes. They are put back after each run of the program.
  /// Tensors that are defined become buffers of the GraphModule of these names, which the graph writes at its end; they
  /// keep their shapes.
  std::vector<std::pair<std::string, StateMember>> state{};
  /// For which sizes of the inputs the trace is to hold, when there are examples.
  Sizes sizes = {};
  /// Further examples, each a value for every input, of other sizes: what generalises holds for these, too. Their data
  /// says nothing; their types, numbers of dimensions and numbers are those of the examples. Throws Error(trace) in the
  /// trace when the program does something else there, and Error(invalid_argument) when they do not fit.
  std::vector<std::vector<c10::IValue>> more_examples = {};
};

/// Records what a program does as a graph; see the top of this file.
class Tracer : private internal::NodeMaker {
 public:
  /// The options hold for every trace.
  explicit Tracer(TraceOptions options = {}) : options_(std::move(options)) {}
  ~Tracer() override = default;

  /// Traces a function of tensors, or a module (`std::shared_ptr<M>`, `M&` or a holder such as torch::nn::Linear)
  /// through its forward. `examples` gives one value per input: a tensor stands for its shape and dtype; a number, bool
  /// or string for a parameter of that type is used as it is; lists, tuples and dicts of tensors stand for their
  /// structure. Missing trailing examples are allowed for std::optional parameters and those with defaults.
  template <typename Program>
  Trace trace(Program&& program, std::vector<c10::IValue> examples = {}) {
    return trace_callable(internal::make_callable(std::forward<Program>(program)), std::move(examples));
  }
  /// Traces `function`, which uses the parameters and modules of `root`.
  template <typename Function>
  Trace trace_with_root(std::shared_ptr<torch::nn::Module> root, Function&& function,
                        std::vector<c10::IValue> examples = {}) {
    internal::Callable callable = internal::make_callable(std::forward<Function>(function));
    callable.root = std::move(root);
    return trace_callable(callable, std::move(examples));
  }

  /// FX's is_leaf_module: whether calls of `module` become one call_module node. True for modules of torch::nn but
  /// containers.
  virtual bool is_leaf_module(const torch::nn::Module& module, const std::string& path) const;
  /// The path of `module` below the root; the first one of a module that has several. Throws Error(not_found).
  virtual std::string path_of_module(const torch::nn::Module& module) const;
  /// Makes each node of the trace. Override to refuse, rename or annotate nodes; an exception ends the trace.
  Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) override;

  /// Only while tracing.
  Graph& graph() { return *graph_; }
  /// As they were given.
  const TraceOptions& options() const { return options_; }

 private:
  friend class PatternFunction;
  Trace trace_callable(
      const internal::Callable& callable, std::vector<c10::IValue> examples,
      internal::PlaceholderInputs::Literals literals = internal::PlaceholderInputs::Literals::specialise);
  class Attempt;  // trace/attempt.h
  struct Repeats;
  void write_buffers(internal::Session& session, const std::vector<internal::BufferUpdate>& updates);
  bool is_free_attribute(const std::string& path) const override;

  TraceOptions options_;
  Graph* graph_ = nullptr;
  std::shared_ptr<torch::nn::Module> root_;
  std::unordered_set<const Node*> named_;  // nodes of the running trace that were given their names; look-up only
};

}  // namespace fx
