// The part of OddInputs that tries whatever there is time for.
#include <algorithm>
#include <array>
#include <set>

#include <fxgraph/trace/odd_inputs.h>

namespace fx::internal {

void OddInputs::add_spare() {
  constexpr std::array<std::int64_t, 12> kUsual = {32, 64, 128, 224, 256, 512, 768, 384, 1024, 100, 10, 12};
  constexpr std::int64_t kMost = 320, kMostOfTwo = 9;
  constexpr std::size_t kMostGroups = 3;  // of which two are tried together
  std::set<std::pair<std::uint32_t, std::int64_t>> tried;
  for (const Size& each : sizes_) {
    const ChildTrial& trial = trials_[each.trial];
    if (each.groups.size() == 1 && trial.only_after.empty() && !trial.unless)
      tried.emplace(each.groups.front(), each.size);
  }
  std::vector<std::uint32_t> some = groups_.independent();
  const auto add_size = [&](std::int64_t size) {
    for (const std::uint32_t index : some) {
      const SizeGroup& group = groups_.groups[index];
      if (size == group.size || !group.may_be(size) || !tried.emplace(index, size).second) continue;
      sizes_.push_back({add_trial({index}, size, /*is_large=*/true), {index}, size});
      trials_.back().is_spare = true;
    }
  };
  for (const std::int64_t size : kUsual) add_size(size);
  for (std::int64_t size = 1; size <= kMostOfTwo; ++size) add_size(size);
  const std::size_t count = std::min(some.size(), kMostGroups);
  for (std::int64_t size = 1; size <= kMostOfTwo; ++size) {
    for (std::int64_t other = 1; other <= kMostOfTwo; ++other) {
      for (std::size_t b = 1; b < count; ++b) {
        for (std::size_t a = 0; a < b; ++a) {
          GroupSizes sizes = groups_.examples();
          if (!groups_.groups[some[a]].may_be(size) || !groups_.groups[some[b]].may_be(other)) continue;
          if (sizes[some[a]] == size || sizes[some[b]] == other) continue;
          sizes[some[a]] = size;
          sizes[some[b]] = other;
          sizes = groups_.with_broadcast(std::move(sizes));
          const std::size_t trial = add_trial_at(sizes, /*is_large=*/true);
          trials_.back().is_spare = true;
          pairs_.push_back({trial, some[a], some[b], std::move(sizes)});
        }
      }
    }
  }
  for (std::int64_t size = kMostOfTwo + 1; size <= kMost; ++size) add_size(size);
}

// What does not do with two sizes, though both do alone: the second stays on its side of that. To be called when what
// is known of one size alone is in the groups.
void OddInputs::judge_pairs() {
  for (const Corner& each : pairs_) {
    const ChildTrial& trial = trials_[each.trial];
    SizeGroup &a = groups_.groups[each.a], &b = groups_.groups[each.b];
    if (!goes_another_way(trial) || a.fixed || b.fixed) continue;
    const std::int64_t size = each.sizes[each.b];
    if (!a.may_be(each.sizes[each.a]) || !b.may_be(size)) continue;
    const std::string with = "with sizes " + std::to_string(each.sizes[each.a]) + " and " + std::to_string(size);
    const std::string why = with + ": " + trial.why;
    if (size < b.size) {
      b.stay_above(size, why, trial.place);
    } else {
      b.stay_below(size, why, trial.place);
    }
  }
}

}  // namespace fx::internal
