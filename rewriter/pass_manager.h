// PassManager: passes over a graph, in order, each timed and checked.
//
//   fx::PassManager passes;
//   passes.add("simplify", [&](fx::Graph& g) { fx::rewrite_to_fixed_point(g, rules); });
//   passes.add("dead-code", [](fx::Graph& g) { fx::eliminate_dead_code(g); }, {.after = {"simplify"}});
//   std::cout << passes.run(graph);
//
// A pass changed the graph when the graph says so (Graph::revision), whatever the pass says. After each that did, lint
// runs. Thread-safety: one run at a time on one graph; the manager itself is not changed by running.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx {

using PassFunction = std::function<void(Graph&)>;  ///< may edit the graph in any way that leaves it whole

/// Where a pass may stand among the others.
struct PassConstraints {
  std::vector<std::string> after{};   ///< passes that, if present, must have run
  std::vector<std::string> before{};  ///< passes that, if present, must not have run yet
};

/// What one run of one pass did.
struct PassReport {
  std::string pass;                  ///< the name that it was added under
  bool changed = false;              ///< by Graph::revision
  std::size_t nodes_before = 0;      ///< counted with placeholders and output
  std::size_t nodes_after = 0;       ///< counted with placeholders and output
  std::chrono::nanoseconds time{0};  ///< without the lint behind it
};

/// What a PassManager did, pass by pass.
struct PipelineReport {
  std::vector<PassReport> passes;  ///< in the order in which they ran; a repeated pass is there each time
  /// True when any pass changed the graph.
  bool changed() const;
};

/// One line a pass: `simplify   175 -> 122 nodes   1.2 ms`.
std::ostream& operator<<(std::ostream& out, const PipelineReport& report);

/// What is done around each pass.
struct PassManagerOptions {
  bool lint = true;                                                     ///< after each pass that changed something
  std::function<void(const std::string& pass, const Graph&)> before{};  ///< told before each pass, for dumps
  std::function<void(const PassReport&, const Graph&)> after{};         ///< told after each pass
};

/// Runs passes in order, each timed and checked; see the top of this file.
class PassManager {
 public:
  /// Begins without passes.
  explicit PassManager(PassManagerOptions options = {}) : options_(std::move(options)) {}

  /// Adds a pass. Throws when the name is taken.
  void add(std::string name, PassFunction run, PassConstraints constraints = {});
  /// Adds passes that are repeated together until none changes the graph, at most `max_rounds` times.
  void add_until_stable(std::string name, std::vector<std::pair<std::string, PassFunction>> passes,
                        std::size_t max_rounds = 10, PassConstraints constraints = {});

  /// The names in the order in which they will run: that of adding, as far as the constraints allow. Throws
  /// Error(invalid_argument) naming the passes when they cannot be met.
  std::vector<std::string> order() const;

  /// Runs all passes. An Error leaves with the pass's name before its message, any other exception as it is; the graph
  /// is as that pass left it.
  PipelineReport run(Graph& graph) const;

 private:
  struct Pass {
    std::string name;
    std::vector<std::pair<std::string, PassFunction>> steps;
    std::size_t max_rounds;
    PassConstraints constraints;
  };

  std::vector<const Pass*> sorted() const;
  bool run_step(const std::string& name, const PassFunction& run, Graph& graph, PipelineReport& report) const;

  PassManagerOptions options_;
  std::vector<Pass> passes_;
};

}  // namespace fx
