// observe: what the values of a program were when it ran on its example.
//
// Costs: as running the program, and a few times more where data decide sizes. Thread-safety: as running the module.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <map>
#include <vector>

#include <fxgraph/export/data_sizes.h>
#include <fxgraph/export/value_shapes.h>
#include <fxgraph/ir/node_map.h>

namespace fx::pt2 {

/// The value of a node, numbers and shapes only.
struct Observed {
  ValueShape::Kind kind = ValueShape::Kind::none;
  DType dtype = DType::float32;
  Device device{};
  bool requires_grad = false;
  std::vector<std::int64_t> numbers;  ///< sizes, then strides; of an int itself
  double floating = 0;
  std::vector<Observed> elements;
};
Observed observe(const c10::IValue& value);

/// What was seen of the nodes of a program and of the graphs that it calls.
struct ObservedRun {
  explicit ObservedRun(const Graph& graph) : values(graph) {}
  NodeMap<Observed> values;
  std::map<const Graph*, NodeMap<Observed>> nested;
  DataSizes data;  ///< the sources of sizes that data decide
};

/// Runs the program at `example`, to which symbols of data are added, with their ranges to `ranges`.
ObservedRun observe(GraphModule& module, const Graph& graph, const SizedInputs& inputs, Symbols& example,
                    SizeRanges& ranges);

}  // namespace fx::pt2
