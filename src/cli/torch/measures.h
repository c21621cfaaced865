// The two numbers that optimize shows of a program: what it computes and how much memory that needs at once.
#pragma once

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/module/graph_module.h>

namespace fx::cli {

struct Measures {
  double macs = 0;        ///< multiply-adds, the unit of published model tables
  double peak_bytes = 0;  ///< activations alive at once at the worst moment
};

/// The parameters of a program; what shares storage, as tied weights do, counts once.
struct ParameterCount {
  double elements = 0, bytes = 0;
};

ParameterCount count_parameters(const GraphModule& module);

Measures measure(const GraphModule& module, const Shapes& shapes);

}  // namespace fx::cli
