// Dimensions that vary in steps, multiples of a divisor of the example's size; and how far dimensions go, alone and
// together.
#include <fxgraph/trace/size_search.h>

#include <algorithm>

namespace fx::internal {
namespace {

// A part of the step that does as well, without one prime factor after the other.
template <typename Does>
std::int64_t smallest_step(std::int64_t step, const Does& does) {
  std::int64_t rest = step;  // of which no prime before divides it
  for (std::int64_t prime = 2; prime < step; ++prime) {
    if (rest % prime != 0) continue;
    while (rest % prime == 0) rest /= prime;
    while (step % prime == 0 && step > prime && does(step / prime)) step /= prime;
  }
  return step;
}

}  // namespace

bool SizeSearch::works_at(const Some& some, std::int64_t size, std::uint32_t last) {
  return size >= 1 && works(groups_.examples_with(some, size), last);
}

// Whether a multiple of a divisor of the size does further on than what failed.
bool SizeSearch::goes_in_steps(std::uint32_t index, std::int64_t bad, std::uint32_t last) {
  const std::int64_t size = groups_.groups[index].size, power = size & -size;
  for (const std::int64_t step : {power, size}) {
    const std::int64_t beyond = (bad < size ? bad : bad + step - 1) / step * step;
    if (step > 1 && beyond != size && works_at({index}, beyond, last)) return true;
  }
  return false;
}

// A size next to the example's does, and none that is far, not in steps either: what was tried was too far
// (`x.split(8)`, a table of so many rows).
bool SizeSearch::find_bound(std::uint32_t index, std::int64_t bad, const Probe& failure, std::uint32_t last) {
  const SizeGroup before = groups_.groups[index];
  const std::int64_t towards = bad < before.size ? -1 : 1;
  const bool is_next = bad == before.size + towards || !works_at({index}, before.size + towards, last);
  if (is_next && !works_at({index}, before.size - towards, last)) return false;
  if (goes_in_steps(index, bad, last)) return false;
  SizeGroup& group = groups_.groups[index];
  if (!narrow_to(index, is_next ? before.size + towards : bad, failure, last, /*looks=*/true))
    return group = before, false;
  (towards > 0 ? group.above_said : group.below_said) = false;  // so near a bound is worth a word
  return true;
}

// Multiples of a divisor of the size where others are larger, too: what all of them make has to be a multiple
// (`x.view({-1, 2})`).
bool SizeSearch::find_steps_beside(std::uint32_t index, const GroupSizes& others, std::uint32_t last) {
  SizeGroup& group = groups_.groups[index];
  if (group.step != 1) return false;
  const auto does = [&](std::int64_t size) {
    GroupSizes sizes = others;
    sizes[index] = size;
    return works(sizes, last);
  };
  for (std::int64_t step : {group.size & -group.size, group.size}) {
    if (step == 1 || !does(group.size + step) || !does(group.size + 3 * step)) continue;
    group.vary_in(smallest_step(step, [&](std::int64_t less) { return does(group.size + less); }));
    return true;
  }
  return false;
}

// Multiples of a divisor of the size; or smaller sizes only.
bool SizeSearch::find_steps(const Some& some, const Probe& failure) {
  const std::uint32_t last = failure.failed_at();
  const std::int64_t size = groups_.groups[some.front()].size;
  std::int64_t power = 1;
  while (size % (2 * power) == 0) power *= 2;
  std::int64_t step = 0;
  if (power != 1 && power != size && works_at(some, size + power, last)) step = power;
  if (step == 0 && works_at(some, 2 * size, last)) step = size;
  if (step != 0) {
    step = smallest_step(step, [&](std::int64_t less) { return works_at(some, size + less, last); });
    for (const std::uint32_t group : some) groups_.groups[group].vary_in(step);
    return true;
  }
  if (size == 1 || !works_at(some, size - 1, last)) return false;
  for (const std::uint32_t group : some) {
    groups_.groups[group].above = size + 1;
    groups_.groups[group].above_said = is_said(failure);
  }
  return true;
}

// The steps that did so far are too small further on.
bool SizeSearch::widen_step(std::uint32_t index, std::uint32_t last) {
  SizeGroup& group = groups_.groups[index];
  for (std::int64_t factor = 2; factor * group.step <= group.size; ++factor) {
    const std::int64_t step = factor * group.step;
    if (group.size % step != 0 || !works_at({index}, group.size + step, last)) continue;
    group.step = step;
    return true;
  }
  return false;
}

// The last of `some` goes with each of the others alone as far as it went, but not with all: it is their product, or
// sum, by which the program chooses. On the way from the examples to these sizes, how far they go together. What is
// found bounds those of them that matter: two, or all. False when they do not go together at all.
bool SizeSearch::narrow_together(const Some& some, const GroupSizes& sizes, const Probe& failure) {
  constexpr std::int64_t kWay = 1 << 5;
  const std::uint32_t last = failure.failed_at();
  const auto at = [&](const Some& which, std::int64_t way) {
    GroupSizes result = groups_.examples();
    for (const std::uint32_t each : which) {
      const SizeGroup& group = groups_.groups[each];
      result[each] += (sizes[each] - group.size) * way / kWay / group.step * group.step;
    }
    return result;
  };
  Some which = some;
  for (std::size_t i = 0; i + 1 < some.size() && which.size() > 2; ++i) {
    if (!works(at({some[i], some.back()}, kWay), last)) which = {some[i], some.back()};
  }
  std::int64_t good = 0, bad = kWay;
  while (bad - good > 1 && may_explore()) {
    const std::int64_t middle = good + (bad - good) / 2;
    (works(at(which, middle), last) ? good : bad) = middle;
  }
  const GroupSizes found = at(which, good);
  const auto goes = [&](std::uint32_t each) { return found[each] != groups_.groups[each].size; };
  if (std::none_of(which.begin(), which.end(), goes)) return false;
  for (const std::uint32_t each : which) {
    SizeGroup& group = groups_.groups[each];
    if (sizes[each] < group.size) {
      group.below = std::max(group.below, found[each] - group.step);
      group.below_said = group.below_said && is_said(failure);
      group.lowest = found[each];
    } else {
      group.above = std::min(group.above, found[each] + group.step);
      group.above_said = group.above_said && is_said(failure);
      group.highest = found[each];
    }
    if (group.why.empty()) group.why = reason(failure), group.where = failure.where();
  }
  return true;
}

// ── Far ───────────────────────────────────────────────────────────────────────────────────────────────────────────

bool SizeSearch::may_go_far() {
  has_computed_ |= program_.session.engine()->has_run_on_data();
  return !has_computed_ && std::all_of(samples_.begin(), samples_.end(), [](const auto& sample) {
    return sample->changed_constants().empty() && !sample->has_left();
  });
}

bool SizeSearch::check_far(const std::function<bool(const Probe&)>& agrees, std::optional<GroupSizes>* others) {
  constexpr int kMostBounds = 4;
  if (!may_go_far()) return false;
  agrees_ = &agrees;
  groups_.may_go_far = true;
  bool is_fine = false;
  for (int tries = 0; tries < kMostBounds && !is_fine && may_explore(); ++tries) {
    const Some active = groups_.free();
    const GroupSizes sizes = groups_.choose(active, 2);
    const std::unique_ptr<Probe> failure = attempt(sizes, Probe::kToTheEnd, &is_fine);
    if (is_fine) break;
    if (others && failure->came_through()) {
      *others = sizes;
      break;
    }
    bool is_bounded = false;
    for (const std::uint32_t group : active) is_bounded |= bound(group, sizes[group]);
    if (!is_bounded && !narrow_together(active, sizes, *failure)) break;
  }
  agrees_ = nullptr;
  groups_.may_go_far = false;
  return true;
}

// Searches for the size from which on the group does not do, if `far` does not: outward first, by half as much again,
// for what is another program far away may be one again in between (`n / 100 % 10`).
bool SizeSearch::bound(std::uint32_t index, std::int64_t far) {
  SizeGroup& group = groups_.groups[index];
  if (group.one_or || far <= group.highest) return false;
  std::unique_ptr<Probe> failure;
  std::int64_t good = group.highest, bad = far;
  const auto does = [&](std::int64_t size) {
    GroupSizes alone = groups_.examples();
    alone[index] = size;
    bool is_fine = false;
    std::unique_ptr<Probe> sample = attempt(alone, Probe::kToTheEnd, &is_fine);
    (is_fine ? good : bad) = size;
    if (!is_fine) failure = std::move(sample);
    return is_fine;
  };
  if (does(far)) return false;
  if (good != group.size && !does(good)) good = group.size;  // it came through, but to what the graph has not
  const auto further = [&] { return good + std::max<std::int64_t>(good / 2 / group.step, 1) * group.step; };
  while (may_explore() && further() < bad && does(further())) {
  }
  for (std::int64_t size = good; may_explore() && (size = good + (bad - good) / group.step / 2 * group.step) > good;)
    does(size);
  group.above = std::min(group.above, bad);
  group.above_said = group.above_said && is_said(*failure);
  group.highest = good;
  if (group.why.empty()) group.why = reason(*failure), group.where = failure->where();
  return true;
}

}  // namespace fx::internal
