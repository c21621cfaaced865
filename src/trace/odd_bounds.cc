// The part of OddInputs that looks at several sizes at their bounds together. Nothing is against one of them alone, but
// a program may ask for what they make together: `if (x.numel() < 50)`.
#include <algorithm>
#include <utility>

#include <fxgraph/trace/odd_inputs.h>

namespace fx::internal {
namespace {

constexpr std::int64_t kRungs = 24;

/// A way from a corner, left out, back towards the example: one size of these groups after the other.
struct Way {
  std::vector<std::uint32_t> groups;
  std::vector<GroupSizes> rungs;
};

/// One of the groups goes back to the size of the example, slowly at first.
Way way_of_one(const SizeGroups& groups, const GroupSizes& corner, std::uint32_t index) {
  Way way{{index}, {}};
  const SizeGroup& group = groups.groups[index];
  const std::int64_t steps = (group.size - corner[index]) / group.step;
  for (std::int64_t i = 1; i <= kRungs; ++i) {
    GroupSizes sizes = way.rungs.empty() ? corner : way.rungs.back();
    const std::int64_t size = corner[index] + steps * i * i / (kRungs * kRungs) * group.step;
    if (std::exchange(sizes[index], size) != size) way.rungs.push_back(std::move(sizes));
  }
  return way;
}

/// All of them do. The last rung is the example.
Way way_of_all(const SizeGroups& groups, const GroupSizes& corner, const std::vector<std::uint32_t>& some) {
  Way way{some, {}};
  for (std::int64_t i = 1; i <= kRungs; ++i) {
    way.rungs.push_back(corner);
    for (const std::uint32_t index : some) {
      const SizeGroup& group = groups.groups[index];
      way.rungs.back()[index] += (group.size - corner[index]) / group.step * i / kRungs * group.step;
    }
  }
  return way;
}

}  // namespace

void OddInputs::bound_together(const std::function<bool(const Sample&)>& agrees) {
  constexpr int kMostRounds = 4;
  for (const Side side : {Side::low, Side::high}) {
    // What does not do is left out by one of the groups, so that there may be another corner.
    for (int round = 0; round < kMostRounds && bound_corner(side, agrees); ++round) {
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
    const std::optional<std::int64_t> size = side == Side::low ? group.smallest() : group.largest();
    if (!size || *size == group.size) continue;
    any_bound |= side == Side::high || group.below > 0;
    corner[index] = *size;
    some.push_back(index);
  }
  if (some.size() < 2 || !any_bound) return false;

  std::vector<Way> ways;
  for (const std::uint32_t index : some) ways.push_back(way_of_one(groups_, corner, index));
  ways.push_back(way_of_all(groups_, corner, some));

  OddInputs tried(program_, inputs_, groups_);
  const auto add = [&](const GroupSizes& sizes) {
    const bool is_large = *std::ranges::max_element(sizes) > kLarge;
    if (tried.add_trial_at(groups_.with_broadcast(sizes), is_large) > 0) tried.trials_.back().only_after = {0};
  };
  add(corner);
  for (const Way& way : ways) std::ranges::for_each(way.rungs, add);
  try_in_children(program_, tried.trials_, agrees);
  const ChildTrial& against = tried.trials_.front();
  if (!goes_another_way(against)) return false;

  // Of each way the rung nearest to the corner behind which all do, if there is one.
  const Way* best = &ways.back();
  std::size_t best_rung = best->rungs.size() - 1, first_trial = 1;
  double least = 2;  // parts of the way that are lost
  for (const Way& way : ways) {
    std::size_t rung = way.rungs.size();
    while (rung > 0 && !goes_another_way(tried.trials_[first_trial + rung - 1])) --rung;
    first_trial += way.rungs.size();
    const double lost =
        static_cast<double>(rung) / static_cast<double>(way.rungs.size()) + (way.groups.size() > 1 ? 1 : 0);
    if (rung == way.rungs.size() || lost >= least) continue;
    best = &way, best_rung = rung, least = lost;
  }
  std::string why = "with sizes ";
  for (const std::uint32_t index : some) why += (index == some.front() ? "" : " and ") + std::to_string(corner[index]);
  why += ": " + against.why;
  for (const std::uint32_t index : best->groups) {
    const std::int64_t size = best->rungs[best_rung][index];
    if (size == corner[index]) continue;
    if (side == Side::low) {
      groups_.groups[index].stay_above(size - 1, why, against.place);
    } else {
      groups_.groups[index].stay_below(size + 1, why, against.place);
    }
  }
  return true;
}

}  // namespace fx::internal
