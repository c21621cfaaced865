// Values that a call may change after they were made. Thread-safety: pure functions.
#pragma once

#include <fxgraph/ir/graph.h>

namespace fx::pt2 {

/// Whether `user` writes to `tensor`, which it takes.
bool writes_to(const Node& user, const Node& tensor);

/// Whether somebody sees another value in `node`'s result than it was made with: a write comes before another use, or
/// the memory has another name.
bool is_overwritten(const Node& node);

}  // namespace fx::pt2
