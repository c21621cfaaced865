// Searches and passes of graphs, with what is known of a program's modules: which are in training, which tensors are
// tied. See those for a Graph.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/common_subexpression.h>

namespace fx {

/// Finds the matches; what `options` leave out about modules, the program says. Matches live in `module`'s graph.
std::vector<Match> find(const GraphModule& module, const Pattern& pattern, const FindOptions& options = {});

/// True when the pattern's first result can be `node`.
bool matches(const GraphModule& module, const Pattern& pattern, const Node& node, const FindOptions& options = {});

/// Returns how many nodes were removed. Calls that `banned` accepts stay, each for itself.
std::size_t eliminate_common_subexpressions(GraphModule& module, const std::function<bool(const Node&)>& banned = {});

}  // namespace fx
