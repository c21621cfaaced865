// symbolic_trace: a C++ function or module as a GraphModule.
//
//   auto gm = fx::symbolic_trace(net);                                  // shape-free
//   auto gm = fx::symbolic_trace(net, {torch::rand({1, 3, 32, 32})});   // with shapes
//   auto gm = fx::symbolic_trace([](torch::Tensor x, torch::Tensor y) { return torch::relu(x + y); });
//
// What is recorded, and what is refused: trace/tracer.h.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/trace/tracer.h>

namespace fx {

/// The traced program with the tensors that it uses, which it shares with the module it came from.
std::shared_ptr<GraphModule> to_graph_module(Trace trace);

template <typename Program>
std::shared_ptr<GraphModule> symbolic_trace(Program&& program, std::vector<c10::IValue> examples = {},
                                            TraceOptions options = {}) {
  Tracer tracer(std::move(options));
  return to_graph_module(tracer.trace(std::forward<Program>(program), std::move(examples)));
}

}  // namespace fx
