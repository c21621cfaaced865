// Memory plans: an offset for every storage, so that one block of memory serves the whole graph.
//
// Two heuristics are tried and the smaller result is kept: best fit in the order of execution (as an allocator that
// knows no future), and, up to kMaxBySize blocks, largest first into the tightest gap that is free for the whole life
// of the block (Y. Pisarchyk, J. Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020). The lower
// bound is the most bytes that live at once: no plan can do with less. Complexity: O(n log n), and O(n²) for the
// second.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <fxgraph/analysis/liveness.h>

namespace fx {

struct MemoryBlock {
  Interval interval;
  std::int64_t bytes = 0;
};

struct MemoryPlan {
  std::vector<std::int64_t> offsets;  ///< by block; -1 for a storage that is not planned
  std::int64_t bytes = 0;             ///< the size of the whole
  std::int64_t lower_bound = 0;
};

inline constexpr std::size_t kMaxBySize = 4096;

/// Blocks that live at the same place never overlap.
MemoryPlan plan_memory(std::span<const MemoryBlock> blocks);

/// A plan for the counted storages of `live`; offsets are by index into live.storages().
MemoryPlan plan_memory(const Liveness& live);

}  // namespace fx
