// symbolic_trace: a C++ function or module as a GraphModule.
//
//   auto gm = fx::symbolic_trace(net);                                  // shape-free
//   auto gm = fx::symbolic_trace(net, {torch::rand({1, 3, 32, 32})});   // with shapes
//   auto gm = fx::symbolic_trace([](torch::Tensor x, torch::Tensor y) { return torch::relu(x + y); });
//
// What is recorded, and what is refused: trace/tracer.h.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/trace/tracer.h>

namespace fx {

/// The traced program with the tensors that it uses, which it shares with the module it came from.
std::shared_ptr<GraphModule> to_graph_module(Trace trace);

/// Traces a function of tensors or a module, see Tracer::trace, and puts a GraphModule around the result. Throws what
/// Tracer::trace throws.
template <typename Program>
std::shared_ptr<GraphModule> symbolic_trace(Program&& program, std::vector<c10::IValue> examples = {},
                                            TraceOptions options = {}) {
  Tracer tracer(std::move(options));
  return to_graph_module(tracer.trace(std::forward<Program>(program), std::move(examples)));
}

/// Traces `function`, which uses the parameters and modules of `root`: they keep their names.
template <typename Root, typename Function>
requires(std::is_base_of_v<torch::nn::Module, Root> && !std::is_convertible_v<Function, std::vector<c10::IValue>>)
    std::shared_ptr<GraphModule> symbolic_trace(std::shared_ptr<Root> root, Function&& function,
                                                std::vector<c10::IValue> examples = {}, TraceOptions options = {}) {
  Tracer tracer(std::move(options));
  return to_graph_module(
      tracer.trace_with_root(std::move(root), std::forward<Function>(function), std::move(examples)));
}
/// The same for a root in a holder, such as torch::nn::Linear.
template <typename Root, typename Function>
requires(torch::detail::is_module_holder<Root>::value && !std::is_convertible_v<Function, std::vector<c10::IValue>>)
    std::shared_ptr<GraphModule> symbolic_trace(const Root& root, Function&& function,
                                                std::vector<c10::IValue> examples = {}, TraceOptions options = {}) {
  return symbolic_trace(root.ptr(), std::forward<Function>(function), std::move(examples), std::move(options));
}

}  // namespace fx
