// The part of OddInputs that looks at several sizes at their bounds together. Nothing is against one of them alone, but
// a program may ask for what they make together: `if (x.numel() < 50)`.
#include <algorithm>
#include <limits>
#include <span>

#include <fxgraph/trace/odd_inputs.h>

namespace fx::internal {
namespace {

constexpr std::int64_t kRungs = 24;

/// Sizes from one at a bound, left out, to that of the example, closer to each other near the bound.
std::vector<std::int64_t> rungs(std::int64_t bound, const SizeGroup& group) {
  std::vector<std::int64_t> sizes;
  const std::int64_t steps = (group.size - bound) / group.step;
  for (std::int64_t i = 1; i <= kRungs; ++i) {
    const std::int64_t size = bound + steps * i * i / (kRungs * kRungs) * group.step;
    if (size != bound && (sizes.empty() || size != sizes.back())) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

// The size of `group` next to its bound on that side; nothing where there is no bound above.
std::optional<std::int64_t> OddInputs::next_to_bound(const SizeGroup& group, Side side) {
  if (side == Side::low) return std::max(group.below / group.step * group.step + group.step, group.step);
  if (group.above == std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return (group.above - 1) / group.step * group.step;
}

void OddInputs::bound_together(const std::function<bool(const Sample&)>& agrees) {
  for (const Side side : {Side::low, Side::high}) {
    // What does not do is left out by one of the groups, so that there may be another corner.
    for (int round = 0; round < 4 && bound_corner(side, agrees); ++round) {
    }
  }
}

// All groups at their bounds of one side. Where that does not do, one of them stays as far from its bound as the others
// at theirs take, the one that loses least by that, or, where there is none, all go back towards the example. True when
// a bound has moved.
bool OddInputs::bound_corner(Side side, const std::function<bool(const Sample&)>& agrees) {
  std::vector<std::uint32_t> some;
  GroupSizes corner = groups_.examples();
  bool any_bound = false;
  for (const std::uint32_t index : groups_.independent()) {
    const SizeGroup& group = groups_.groups[index];
    const std::optional<std::int64_t> size = next_to_bound(group, side);
    if (!size || *size == group.size) continue;
    any_bound |= side == Side::high || group.below > 0;
    corner[index] = *size;
    some.push_back(index);
  }
  if (some.size() < 2 || !any_bound) return false;

  OddInputs tried(program_, inputs_, groups_);
  const auto add = [&](const GroupSizes& sizes) {
    const std::size_t trial =
        tried.add_trial_at(groups_.with_broadcast(sizes), *std::ranges::max_element(sizes) > kLarge);
    if (trial > 0) tried.trials_.back().only_after = {0};
    return trial;
  };
  struct Way {
    std::vector<std::uint32_t> groups;
    std::vector<GroupSizes> rungs;
    std::size_t first_trial;
  };
  add(corner);
  std::vector<Way> ways;
  for (const std::uint32_t index : some) {
    ways.push_back({{index}, {}, tried.trials_.size()});
    for (const std::int64_t size : rungs(corner[index], groups_.groups[index])) {
      ways.back().rungs.push_back(corner);
      ways.back().rungs.back()[index] = size;
      add(ways.back().rungs.back());
    }
  }
  ways.push_back({some, {}, tried.trials_.size()});
  for (std::int64_t i = 1; i <= kRungs; ++i) {
    GroupSizes sizes = corner;
    for (const std::uint32_t index : some) {
      const SizeGroup& group = groups_.groups[index];
      sizes[index] += (group.size - corner[index]) / group.step * i / kRungs * group.step;
    }
    ways.back().rungs.push_back(sizes);
    add(sizes);
  }
  try_in_children(program_, tried.trials_, agrees);
  const ChildTrial& against = tried.trials_.front();
  if (!goes_another_way(against)) return false;

  // From the example on towards the corner, the last that does.
  const auto last_that_does = [&](const Way& way) {
    std::size_t rung = way.rungs.size();
    while (rung > 0 && !goes_another_way(tried.trials_[way.first_trial + rung - 1])) --rung;
    return rung;
  };
  const Way* best = &ways.back();
  for (const Way& way : std::span(ways).first(some.size())) {
    const auto lost = [&](const Way& each) {
      return static_cast<double>(last_that_does(each)) / static_cast<double>(each.rungs.size());
    };
    if (last_that_does(way) < way.rungs.size() && (best == &ways.back() || lost(way) < lost(*best))) best = &way;
  }
  const std::size_t rung = last_that_does(*best);
  const GroupSizes& sizes = rung < best->rungs.size() ? best->rungs[rung] : groups_.examples();
  std::string with;
  for (const std::uint32_t index : some) with += (with.empty() ? "" : " and ") + std::to_string(corner[index]);
  for (const std::uint32_t index : best->groups) {
    SizeGroup& group = groups_.groups[index];
    const std::string why = "with sizes " + with + ": " + against.why;
    if (sizes[index] == corner[index]) continue;
    if (side == Side::low) {
      group.stay_above(sizes[index] - 1, why, against.place);
    } else {
      group.stay_below(sizes[index] + 1, why, against.place);
    }
  }
  return true;
}

}  // namespace fx::internal
