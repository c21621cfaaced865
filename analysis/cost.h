// What a graph costs to run: operations and bytes per node and per module, and the time that a machine needs at least.
//
//   fx::Cost cost(graph, shapes);
//   cost.total().macs;                         // 4.09e9 for resnet50 at 224x224
//   fx::roofline_seconds(cost.of(node), machine);
//
// Definitions. `macs` are the multiply-accumulates of convolutions, linear layers, matrix products and attention: what
// torchvision publishes as GFLOPS. `flops` are 2 per mac, plus the other operators at a fixed number per element:
// pointwise and reductions 1, batch norm 2, softmax 5, layer and group norm 7, pooling one per element of the window,
// recurrent layers 2 per row of a weight and step.
// `bytes` are each distinct input read once and each result written once; views cost nothing; looking up rows
// (embedding, index_select, gather) reads the rows only. A kernel that takes its weights packed (oneDNN's and
// XNNPACK's, as `optimize --target cpu` calls them) counts as the operator that it computes, and the packing, which is
// done once, as nothing. A module costs what the operators behind its calls do. Shapes that are missing make a call's
// cost unknown: it is named, and the sums are lower bounds.
//
// Complexity: O(nodes + uses). The result is a snapshot. Thread-safety: const functions may run on several threads at
// once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// What one node, or several added up, does and moves; the counts are defined at the top of this file.
struct NodeCost {
  double macs = 0;   ///< multiply-accumulates
  double flops = 0;  ///< floating-point operations, macs included
  /// Inputs, each once, and results, in bytes; views move nothing.
  /// @{
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  /// @}
  std::int64_t parameter_bytes = 0;  ///< of the parameters and buffers that it reads, part of bytes_read
  bool known = true;  ///< false when a shape or the operator's cost is missing: the counts are then lower bounds

  /// All that is moved: read and written.
  std::int64_t bytes() const { return bytes_read + bytes_written; }
  /// Flops per byte; 0 when nothing is moved.
  double intensity() const { return bytes() > 0 ? flops / static_cast<double>(bytes()) : 0.0; }
  /// Adds the counts up; the sum is known when both are.
  NodeCost& operator+=(const NodeCost& other);
};

/// The cost of a module with all that lies below it.
struct ModuleCost {
  std::string path;       ///< empty for the whole graph
  int depth = 0;          ///< parts of the path
  std::size_t nodes = 0;  ///< calls, not placeholders, attributes or the output
  NodeCost cost;          ///< parameters counted once each
};

/// The cost of each node, of each module and of the whole.
class Cost {
 public:
  /// Takes the sizes of all values from `shapes`, which is read during construction only.
  Cost(const Graph& graph, const Shapes& shapes, const ModuleInfo& modules = {});
  /// The same with what is known of the program's modules.
  Cost(const Program auto& program, const Shapes& shapes) : Cost(program.graph(), shapes, module_info(program)) {}

  /// The cost of this call; zero for what calls nothing.
  const NodeCost& of(const Node& node) const { return costs_[node]; }
  /// The sum; parameters are counted once each.
  const NodeCost& total() const { return modules_.front().cost; }
  /// The calls of which something is not known, `a` or, inside of what a module computes, `encoder/a`.
  const std::vector<std::string>& unknown() const { return unknown_; }
  /// How many these are.
  std::size_t num_unknown() const { return unknown_.size(); }
  /// The whole, then every module that a node comes from (a call_module's target, or meta `nn_module_stack`), parents
  /// before children, siblings by first appearance.
  const std::vector<ModuleCost>& modules() const { return modules_; }

 private:
  NodeMap<NodeCost> costs_;
  std::vector<ModuleCost> modules_;
  std::vector<std::string> unknown_;
};

/// What a whole graph does and moves, as formulas of sizes.
struct CostFormula {
  SizeExpr macs;   ///< multiply-accumulates
  SizeExpr flops;  ///< floating-point operations, macs included
  SizeExpr bytes;  ///< read and written
};
/// That of a graph whose sizes are expressions, by the same rows as Cost; nothing where one call's is not known.
std::optional<CostFormula> cost_formula(const Graph& graph, const SymbolicShapes& shapes,
                                        const ModuleInfo& modules = {});

/// A machine, as far as a roofline sees it.
struct Machine {
  std::string name;  ///< as reports show it
  /// At best; 0 means that this bound does not count.
  /// @{
  double flops_per_second = 0;
  double bytes_per_second = 0;
  /// @}
};

/// The least time: whichever takes longer, computing or moving bytes (S. Williams, A. Waterman, D. Patterson,
/// "Roofline", 2009).
double roofline_seconds(const NodeCost& cost, const Machine& machine);
/// True when moving bytes takes longer than computing.
bool is_memory_bound(const NodeCost& cost, const Machine& machine);

/// The path of the module that `node` belongs to: a call_module's target, or meta `nn_module_stack`; empty when not
/// known.
std::string module_path(const Node& node);

}  // namespace fx
