#include <fxgraph/analysis/memory_plan.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace fx {

namespace {

constexpr std::int64_t kInfinite = std::numeric_limits<std::int64_t>::max();

/// The free gaps below the top of the memory in use, found by size and by offset.
class FreeGaps {
 public:
  /// Takes the tightest gap of at least `bytes`, or makes room at the top.
  std::int64_t allocate(std::int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      const auto [size, offset] = *fit;
      remove(offset, size);
      if (size > bytes) add(offset + bytes, size - bytes);
      return offset;
    }
    std::int64_t offset = top_;
    // The last gap reaches the top: grow it.
    if (!by_offset_.empty() && by_offset_.rbegin()->first + by_offset_.rbegin()->second == top_) {
      offset = by_offset_.rbegin()->first;
      remove(offset, by_offset_.rbegin()->second);
    }
    top_ = offset + bytes;
    return offset;
  }

  void release(std::int64_t offset, std::int64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      bytes += next->second;
      remove(next->first, next->second);
      next = by_offset_.lower_bound(offset);
    }
    if (next != by_offset_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == offset) {
        remove(before, size);
        offset = before;
        bytes += size;
      }
    }
    add(offset, bytes);
  }

  std::int64_t top() const { return top_; }

 private:
  void add(std::int64_t offset, std::int64_t size) {
    by_offset_[offset] = size;
    by_size_.insert({size, offset});
  }
  void remove(std::int64_t offset, std::int64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
  std::int64_t top_ = 0;
};

/// Indices of the blocks that have bytes, sorted by `less`.
template <typename Less>
std::vector<std::size_t> sorted_blocks(std::span<const MemoryBlock> blocks, Less less) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return less(blocks[a], blocks[b]); });
  return order;
}

MemoryPlan plan_in_order(std::span<const MemoryBlock> blocks) {
  MemoryPlan plan;
  plan.offsets.assign(blocks.size(), 0);
  FreeGaps gaps;
  using Ending = std::pair<std::uint32_t, std::size_t>;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> alive;
  std::int64_t live = 0;
  for (const std::size_t i : sorted_blocks(blocks, [](const MemoryBlock&a, const MemoryBlock&b) {
         return a.interval.begin < b.interval.begin || (a.interval.begin == b.interval.begin && a.bytes > b.bytes);
       })) {
    while (!alive.empty() && alive.top().first < blocks[i].interval.begin) {
      const std::size_t dead = alive.top().second;
      alive.pop();
      gaps.release(plan.offsets[dead], blocks[dead].bytes);
      live -= blocks[dead].bytes;
    }
    plan.offsets[i] = gaps.allocate(blocks[i].bytes);
    alive.push({blocks[i].interval.end, i});
    live += blocks[i].bytes;
    plan.lower_bound = std::max(plan.lower_bound, live);
  }
  plan.bytes = gaps.top();
  return plan;
}

/// The start of the tightest gap of `bytes` between blocks placed before, or the top of them. `placed` is by offset.
std::int64_t find_gap(std::span<const MemoryBlock> blocks, const std::vector<std::int64_t>& offsets,
                      const std::vector<std::size_t>& placed, const MemoryBlock& block) {
  std::int64_t top = 0, best = -1, best_size = kInfinite;
  for (const std::size_t other : placed) {
    if (!blocks[other].interval.overlaps(block.interval)) continue;
    const std::int64_t gap = offsets[other] - top;
    if (gap >= block.bytes && gap < best_size) {
      best = top;
      best_size = gap;
    }
    top = std::max(top, offsets[other] + blocks[other].bytes);
  }
  return best >= 0 ? best : top;
}

MemoryPlan plan_by_size(std::span<const MemoryBlock> blocks) {
  MemoryPlan plan;
  plan.offsets.assign(blocks.size(), 0);
  std::vector<std::size_t> placed;
  for (const std::size_t i :
       sorted_blocks(blocks, [](const MemoryBlock&a, const MemoryBlock&b) { return a.bytes > b.bytes; })) {
    const std::int64_t offset = plan.offsets[i] = find_gap(blocks, plan.offsets, placed, blocks[i]);
    plan.bytes = std::max(plan.bytes, offset + blocks[i].bytes);
    const auto place = std::upper_bound(placed.begin(), placed.end(), offset,
                                        [&](std::int64_t o, std::size_t other) { return o < plan.offsets[other]; });
    placed.insert(place, i);
  }
  return plan;
}

}  // namespace

MemoryPlan plan_memory(std::span<const MemoryBlock> blocks) {
  MemoryPlan plan = plan_in_order(blocks);
  if (plan.bytes == plan.lower_bound || blocks.size() > kMaxBySize) return plan;
  MemoryPlan other = plan_by_size(blocks);
  other.lower_bound = plan.lower_bound;
  return other.bytes < plan.bytes ? other : plan;
}

MemoryPlan plan_memory(const Liveness& live) {
  std::vector<MemoryBlock> blocks;
  for (const Storage& storage : live.storages())
    blocks.push_back({storage.interval, storage.counted ? storage.bytes : 0});
  MemoryPlan plan = plan_memory(blocks);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!live.storages()[i].counted) plan.offsets[i] = -1;
  }
  return plan;
}

}  // namespace fx
