// any_reached: a look along the edges that concern a check, at most so far that it stays cheap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fxgraph/ir/node.h>

namespace fx::internal {

/// True when `is(node)` holds of `from` or of what it leads to: `next(node, visit)` calls `visit` for each node that
/// one leads to. Each is asked once, nearest first. True as well when there are more than `most`: who asks takes true
/// for the answer that permits nothing. O(most²) comparisons of pointers.
template <typename Is, typename Next>
bool any_reached(const Node& from, std::size_t most, Is&& is, Next&& next) {
  std::vector<const Node*> open = {&from};
  const auto visit = [&](const Node& node) {
    if (std::find(open.begin(), open.end(), &node) == open.end()) open.push_back(&node);
  };
  for (std::size_t at = 0; at < open.size(); ++at) {
    const Node& node = *open[at];
    if (at == most || is(node)) return true;
    next(node, visit);
  }
  return false;
}

}  // namespace fx::internal
