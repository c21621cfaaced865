// Minimizer: which nodes make two ways of running a program differ, FX's net_min.
//
//   fx::Minimizer minimizer(*gm, {x}, {.run_b = [&](fx::GraphModule& part, std::vector<c10::IValue> inputs) {
//     return fx::lower(part, backend, {.examples = inputs}).module()->run(inputs);
//   }});
//   for (const fx::Node* node : minimizer.minimize({.traverse = fx::MinimizeOptions::Traverse::binary})) …
//   std::cout << minimizer.report();
//
// Parts of the program are cut out as programs of their own and run both ways on the values that the whole program has
// there. Nodes that share storage that is written go together. Thread-safety: none.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// The two ways to run a part, and what counts as a difference.
struct MinimizerFunctions {
  /// Returns what the part returns.
  using Run = std::function<c10::IValue(GraphModule& part, std::vector<c10::IValue> inputs)>;
  /// What is compared: how much `a` and `b` differ. Without it the largest relative difference.
  using Compare = std::function<double(const c10::IValue& a, const c10::IValue& b)>;
  Run run_a{};              ///< without it the part itself runs
  Run run_b;                ///< the way under suspicion
  Compare compare{};        ///< never called for what threw
  double tolerance = 1e-3;  ///< what is above it is a mismatch; what throws is one, too
};

/// How the search goes.
struct MinimizeOptions {
  /// In which order parts are tried.
  enum class Traverse : std::uint8_t {
    sequential,  ///< each node by itself
    binary,      ///< halves of halves, as long as they differ
    accumulate,  ///< more and more nodes from the first: at which the difference comes
    block,       ///< the shortest run of neighbours that differs
    graph,       ///< from the results back along what differs: the first on each way, whose inputs all agree
  };
  Traverse traverse = Traverse::sequential;  ///< the order
  /// Goes on after the first that is found.
  bool find_all = false;
  /// The second way gets what it computed before itself, so that errors add up.
  bool accumulate_error = false;
  /// Nodes that are left out of the search.
  std::function<bool(const Node&)> skip{};
};

/// Finds the nodes that make two ways of running a program differ; see the top of this file.
class Minimizer {
 public:
  /// Runs a copy of `module` once on `inputs`, to have the values that parts start from. `module` must outlive this.
  /// Throws Error(invalid_argument) without a `run_b`.
  Minimizer(GraphModule& module, std::vector<c10::IValue> inputs, MinimizerFunctions functions);

  /// Returns the nodes at fault in graph order; none when nothing differs.
  std::vector<Node*> minimize(const MinimizeOptions& options = {});
  /// Runs these nodes alone, both ways; returns how much the results differ. Throws Error(invalid_argument) when they
  /// cannot be cut out.
  double compare(const std::vector<Node*>& nodes);
  /// What was run and how much it differed, a line each.
  const std::string& report() const { return report_; }

 private:
  using Unit = std::vector<Node*>;  // goes together

  void find_units();
  bool differs(const std::vector<Node*>& nodes, const char* what);
  std::vector<Node*> nodes_of(std::size_t from, std::size_t to) const;
  std::vector<Node*> sequential();
  std::vector<Node*> binary();
  std::vector<Node*> accumulate();
  std::vector<Node*> block();
  std::vector<Node*> graph();
  std::vector<std::size_t> units_before(std::size_t unit, const NodeMap<std::size_t>& unit_of) const;
  std::vector<Node*> all_before(std::size_t unit, const NodeMap<std::size_t>& unit_of) const;

  GraphModule& module_;
  std::vector<c10::IValue> inputs_;
  MinimizerFunctions functions_;
  MinimizeOptions options_;
  NodeMap<c10::IValue> values_a_, values_b_;  // what a part is given: a snapshot where storage is written later
  std::vector<Unit> units_;
  std::string report_;
};

}  // namespace fx
