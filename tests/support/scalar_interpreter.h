// Runs a graph on numbers: every tensor is one double in a storage that views share, so that writes, aliases and the
// order of random draws show. For "the same before and after" tests of everything that edits graphs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <fxgraph/ir/graph.h>

namespace fx::testing {

struct ScalarRun {
  std::vector<double> outputs;               ///< what the graph returns, flattened
  std::vector<double> inputs;                ///< what the inputs hold afterwards
  std::map<std::string, double> attributes;  ///< what the attributes hold afterwards

  friend bool operator==(const ScalarRun&, const ScalarRun&) = default;
};

/// Runs `graph` on `inputs`, one per placeholder (1.25, 2.25, … for those that are not given). Attributes start at a
/// number made from their path, random operators draw 0.125, 0.25, … in order. Knows elementwise ATen operators, their
/// in-place forms, and views, which keep the storage. Another operator of one fresh result is a function without a
/// meaning: equal calls give equal numbers. Throws Error(unsupported) for others.
ScalarRun run_scalars(const Graph& graph, const std::vector<double>& inputs = {});

}  // namespace fx::testing
