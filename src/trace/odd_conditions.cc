// The parts of OddInputs that look for conditions which are no bounds of one size: `if (n % 32 != 0)`, `if (n > 2 *
// b)`.
#include <algorithm>
#include <array>

#include <fxgraph/trace/odd_inputs.h>

namespace fx::internal {
namespace {

// Sizes of many divisors, powers of two, and what lies between these: the largest that is at most so much is tried.
constexpr std::array kComposite = {960, 840, 720, 480, 360, 240, 180, 120, 60, 30, 12, 6};
constexpr std::array kPowers = {512, 256, 128, 64, 32, 16, 8, 4, 2};
constexpr std::array kThrice = {768, 384, 192, 96, 48, 24, 12, 6, 3};
constexpr std::array kOfWindows = {1386, 126, 63, 42, 21, 14, 7};  // of 7 and 9, the first of 11, too

}  // namespace

// ── Divisibility ─────────────────────────────────────────────────────────────────────────────────────────────────────

// All dimensions at once; where that does not do, each alone.
void OddInputs::add_multiples() {
  const std::vector<std::uint32_t> open = groups_.independent();
  const auto add_largest = [&](const auto& tried) {
    GroupSizes sizes = groups_.examples();
    std::vector<std::uint32_t> some;
    for (const std::uint32_t index : open) {
      const SizeGroup& group = groups_.groups[index];
      const auto found = std::ranges::find_if(tried, [&](int size) { return group.may_be(size); });
      if (found == tried.end() || *found == group.size) continue;
      sizes[index] = *found;
      some.push_back(index);
    }
    std::optional<std::size_t> all;
    if (some.size() > 1) all = add_trial_at(groups_.with_broadcast(sizes), tried.front() > kLarge);
    for (const std::uint32_t index : some) {
      const std::int64_t size = sizes[index];
      const SizeGroup& group = groups_.groups[index];
      const std::size_t trial = add_trial({index}, size, size > kLarge);
      trials_.back().unless = all;
      multiples_.push_back({trial, index, size, {}});
      const std::int64_t beyond = size + (size > group.size ? group.step : -group.step);
      if (!group.may_be(beyond)) continue;
      multiples_.back().beyond = add_trial({index}, beyond, beyond > kLarge);
      trials_.back().only_after = {trial};
    }
  };
  add_largest(kComposite);
  add_largest(kPowers);
  add_largest(kThrice);
  add_largest(kOfWindows);
}

// What does not do at a size and does beyond it has no bound there: the program asks what the size is divisible by. Up
// to where everything does is for the search to say.
void OddInputs::judge_multiples() {
  for (const Multiple& each : multiples_) {
    SizeGroup& group = groups_.groups[each.group];
    const ChildTrial& trial = trials_[each.trial];
    if (group.fixed || !goes_another_way(trial)) continue;
    if (each.beyond && trials_[*each.beyond].result == TrialResult::agrees)
      group.fix("at size " + std::to_string(each.size) + ", and not at the next: " + trial.why, words_for(trial.place));
  }
}

// ── Several sizes together ───────────────────────────────────────────────────────────────────────────────────────────

// Different ones at once, for programs compare sizes. Where that does not do, each alone; and all but one of them, to
// learn which it takes.
void OddInputs::add_small() {
  constexpr std::int64_t kSmallest = 2, kHowMany = 4;
  const std::vector<std::uint32_t> open = groups_.independent();
  const auto add_small_trial = [&](const SmallSizes& some) {
    GroupSizes sizes = groups_.examples();
    for (const auto& [group, size] : some) sizes[group] = size;
    return add_trial_at(groups_.with_broadcast(std::move(sizes)), /*is_large=*/false);
  };
  for (std::int64_t round = 0; round < kHowMany; ++round) {
    SmallSizes some;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const SizeGroup& group = groups_.groups[open[i]];
      const std::int64_t size = kSmallest + (round + static_cast<std::int64_t>(i)) % kHowMany;
      if (group.may_be(size) && size != group.size) some.emplace_back(open[i], size);
    }
    if (some.empty()) continue;
    Small small{add_small_trial(some), some, {}, {}};
    for (const auto& [group, size] : some) {
      small.alone.push_back(add_trial({group}, size));
      trials_.back().unless = small.trial;
      sizes_.push_back({small.alone.back(), {group}, size});
    }
    for (std::size_t i = 0; some.size() > 2 && i < some.size(); ++i) {
      SmallSizes others = some;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      small.without.push_back(add_small_trial(others));
      trials_.back().unless = small.trial;
    }
    small_.push_back(std::move(small));
  }
}

// What does not do with several small sizes, though nothing is against one of them alone: `x.numel() < 8`. Those that
// it takes stay above.
void OddInputs::judge_small() {
  const auto goes_well = [&](std::size_t trial) {
    return trials_[trial].result == TrialResult::agrees || trials_[trial].result == TrialResult::refused;
  };
  for (const Small& each : small_) {
    const ChildTrial& trial = trials_[each.trial];
    if (!goes_another_way(trial) || !std::ranges::all_of(each.alone, goes_well)) continue;
    const bool is_known = std::ranges::any_of(each.without, goes_well);
    std::string with;
    for (const auto& [group, size] : each.sizes) with += (with.empty() ? "" : " and ") + std::to_string(size);
    for (std::size_t i = 0; i < each.sizes.size(); ++i) {
      const auto& [index, size] = each.sizes[i];
      SizeGroup& group = groups_.groups[index];
      if (is_known && !goes_well(each.without[i])) continue;
      if (group.fixed || size > group.size || group.below >= size) continue;
      group.stay_above(size, "with sizes " + with + ": " + trial.why, trial.place);
    }
  }
}

void OddInputs::add_corners() {
  constexpr std::size_t kMostGroups = 4;
  constexpr std::array kHigh = {1203, 604, 305, 157, 79, 40, 20, 10, 5};
  std::vector<std::uint32_t> some = groups_.independent();
  if (some.size() > kMostGroups) some.resize(kMostGroups);
  const auto low = [&](std::uint32_t index) { return groups_.groups[index].smallest(); };
  const auto high = [&](std::uint32_t index) {
    const SizeGroup& group = groups_.groups[index];
    for (const std::int64_t tried : kHigh) {
      const std::int64_t size = tried / group.step * group.step;
      if (size > group.size && group.may_be(size)) return size;
    }
    return group.above < kHigh.front() ? *group.largest() : group.size;
  };
  const auto add = [&](std::uint32_t a, std::int64_t size_of_a, std::uint32_t b, std::int64_t size_of_b) {
    GroupSizes sizes = groups_.examples();
    sizes[a] = size_of_a;
    sizes[b] = size_of_b;
    sizes = groups_.with_broadcast(std::move(sizes));
    const std::size_t trial = add_trial_at(sizes, std::max(size_of_a, size_of_b) > kLarge);
    corners_.push_back({trial, a, b, std::move(sizes)});
  };
  for (const std::uint32_t a : some) {
    for (const std::uint32_t b : some) {
      if (a != b) add(a, high(a), b, low(b));
      if (a < b) add(a, high(a), b, high(b));
    }
  }
}

// What does not do with two sizes far apart, or both large, though nothing is against either: it is both that the
// program asks for. True when a corner is outside of what is known of the groups by now.
bool OddInputs::judge_corners() {
  bool is_open = false;
  for (const Corner& each : corners_) {
    const ChildTrial& trial = trials_[each.trial];
    if (!goes_another_way(trial)) continue;
    SizeGroup &a = groups_.groups[each.a], &b = groups_.groups[each.b];
    if (a.fixed || b.fixed) continue;
    if (!a.may_be(each.sizes[each.a]) || !b.may_be(each.sizes[each.b])) {
      is_open = true;
      continue;
    }
    for (SizeGroup* group : {&a, &b}) {
      const auto in = [&](std::uint32_t index) { return std::to_string(each.sizes[index]); };
      group->fix("with sizes " + in(each.a) + " and " + in(each.b) + ": " + trial.why, words_for(trial.place));
    }
  }
  return is_open;
}

}  // namespace fx::internal
