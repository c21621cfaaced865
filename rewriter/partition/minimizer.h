// Minimizer: which nodes make two ways of running a program differ, FX's net_min.
//
//   fx::Minimizer minimizer(*gm, {x}, {.run_b = [&](fx::GraphModule& part, std::vector<c10::IValue> inputs) {
//     return fx::lower(part, backend, {.examples = inputs}).module()->run(inputs);
//   }});
//   for (const fx::Node* node : minimizer.minimize({.traverse = fx::MinimizeOptions::Traverse::binary})) …
//   std::cout << minimizer.report();
//
// Parts of the program are cut out as programs of their own and run both ways on what the whole program has there:
// values, weights as they stand, random numbers drawn alike. What they return is compared, and what they leave in
// inputs and weights that they write to. Nodes that share storage that is written go together. The module, and the
// generator of random numbers, are as they were afterwards. Thread-safety: none.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

class Course;
class Written;

/// The two ways to run a part, and what counts as a difference.
struct MinimizerFunctions {
  /// Returns what the part returns; writes to inputs and weights where the part does.
  using Run = std::function<c10::IValue(GraphModule& part, std::vector<c10::IValue> inputs)>;
  /// What is compared: how much `a` and `b` differ. Without it the largest relative difference.
  using Compare = std::function<double(const c10::IValue& a, const c10::IValue& b)>;
  Run run_a{};              ///< without it the part itself runs; what it throws ends the search
  Run run_b;                ///< the way under suspicion
  Compare compare{};        ///< never called for what threw
  double tolerance = 1e-3;  ///< what is above it is a mismatch; a second way that throws is one, too
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
  /// Nodes that are left out of the search, with those that go together with them: both ways they run the first way.
  std::function<bool(const Node&)> skip{};
};

/// Finds the nodes that make two ways of running a program differ; see the top of this file.
class Minimizer {
 public:
  /// Runs a copy of `module` once on `inputs`, to have the values that parts start from. `module` must outlive this.
  /// Throws Error(invalid_argument) without a `run_b`.
  Minimizer(GraphModule& module, std::vector<c10::IValue> inputs, MinimizerFunctions functions);
  ~Minimizer();

  /// Returns the nodes at fault in graph order; none when nothing differs. Throws Error(execution) when the first way
  /// fails.
  std::vector<Node*> minimize(const MinimizeOptions& options = {});
  /// Runs these nodes alone, both ways; returns how much the results differ. Throws Error(invalid_argument) when they
  /// cannot be cut out, and what the ways to run them throw.
  double compare(const std::vector<Node*>& nodes);
  /// What was run and how much it differed, a line each.
  const std::string& report() const { return report_; }

 private:
  using Unit = std::vector<Node*>;        // goes together
  using Part = std::vector<std::size_t>;  // units, in order
  struct Trial;

  void find_units();
  std::vector<Node*> nodes_of(const Part& part) const;
  Part units_from(std::size_t from, std::size_t to) const;
  Trial first_way(const std::vector<Node*>& nodes, Course& second) const;
  c10::IValue second_way(const Trial& trial, const MinimizerFunctions::Run& run, Course& second) const;
  double difference(const Trial& trial, const c10::IValue& result) const;
  bool differs(const Part& part, const char* what);
  bool differs_here(const std::vector<Node*>& nodes, Course& second);
  std::vector<Node*> sequential();
  std::vector<Node*> binary();
  std::vector<Node*> accumulate();
  std::vector<Node*> block();
  std::vector<Node*> graph();
  Part all_before(std::size_t unit) const;

  GraphModule& module_;
  MinimizerFunctions functions_;
  MinimizeOptions options_;
  ModuleInfo modules_;
  Effects effects_;
  std::unique_ptr<Written> written_;
  std::vector<Unit> units_;
  NodeMap<std::size_t> unit_of_;
  std::vector<Part> before_;   // by unit: those that it uses, or that effects keep before it
  std::vector<bool> skipped_;  // by unit
  std::unique_ptr<Course> first_, second_;
  std::string report_;
};

}  // namespace fx
