// How far dimensions go that fail somewhere: in steps, multiples of a divisor of the example's size; up to a bound; or
// not at all. And sizes that are far.
#include <fxgraph/trace/size_search.h>

#include <algorithm>
#include <set>

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

void SizeSearch::limit(std::uint32_t index, std::int64_t bad, const Probe& failure) {
  if (find_steps({index}, groups_.examples(), bad, failure)) return;
  if (!find_bound(index, bad, failure)) return fix(index, reason(failure), failure.where());
  groups_.groups[index].explain_by(reason(failure), failure.place());
}

// Of the numbers that the call was given, a power of two and the size itself the first of which a multiple does further
// on than what has failed.
bool SizeSearch::find_steps(const Some& some, GroupSizes beside, std::int64_t bad, const Probe& failure) {
  const std::uint32_t last = last_of(failure);
  const auto does = [&](std::int64_t size) {
    for (const std::uint32_t each : some) beside[each] = size;
    return size >= 1 && works(beside, last);
  };
  const SizeGroup& group = groups_.groups[some.front()];
  if (is_held_by_parameter(failure)) return false;
  std::set<std::int64_t> given;
  for (std::uint32_t leaf = 0; failure.operator_refused() && leaf < program_.log.num_leaves(last); ++leaf) {
    if (const Argument number = program_.log.leaf(last, leaf); number.is_int()) given.insert(number.as_int());
  }
  std::vector<std::int64_t> steps(given.begin(), given.end());
  if (const std::int64_t power = group.size & -group.size; power != group.size) steps.push_back(power);
  steps.push_back(group.size);
  for (std::int64_t step : steps) {
    const bool may_be = step > group.step && step % group.step == 0 && group.size % step == 0 && bad % step != 0;
    if (!may_be) continue;
    const std::int64_t beyond = (bad < group.size ? bad : bad + step - 1) / step * step;
    const bool goes_on = beyond == 0 ? !does(group.size + 1) && does(group.size + step) : does(beyond);
    if (beyond == group.size || !goes_on) continue;
    step = smallest_step(step, [&](std::int64_t less) { return less % group.step == 0 && does(group.size + less); });
    for (const std::uint32_t each : some) {
      groups_.groups[each].vary_in(step);
      groups_.groups[each].explain_by(reason(failure), failure.place());
    }
    return true;
  }
  return false;
}

// From the example on outward, and then between what does and what does not. False when no other size does.
bool SizeSearch::find_bound(std::uint32_t index, std::int64_t bad, const Probe& failure) {
  constexpr int kTries = 5, kTriesFar = 32;
  SizeGroup& group = groups_.groups[index];
  const auto does = [&](std::int64_t size) { return works_at({index}, size, last_of(failure)); };
  const bool is_larger = bad > group.size;
  const std::int64_t next = is_larger ? group.step : -group.step;
  std::int64_t good = is_larger ? group.highest : group.lowest;
  if (failure.came_through() && good != group.size && !does(good)) good = group.size;  // of other numbers, perhaps
  const bool is_near = good == group.size;
  if (is_near && is_larger && is_held_by_parameter(failure)) return false;
  if (is_near && bad != group.size + next && does(group.size + next)) {
    good = group.size + next;
  } else if (is_near) {
    bad = group.size + next;
    if (!does(group.size - next)) return false;
  }
  // An operator that refuses says it by itself, but for a bound that is near: from where on need not be known.
  for (int tries = agrees_ ? kTriesFar : kTries; (is_near || !is_said(failure)) && tries > 0 && may_explore();
       --tries) {
    const std::int64_t half = (bad - good) / 2, by = is_larger ? std::min(half, good) : half;
    if (by / group.step == 0) break;
    const std::int64_t between = good + by / group.step * group.step;
    (does(between) ? good : bad) = between;
  }
  const bool is_asserted = is_near || !is_said(failure);
  if (is_larger) {
    group.above = std::min(group.above, bad), group.highest = good;
    group.above_said = group.above_said && !is_asserted;
  } else {
    group.below = std::max(group.below, bad), group.lowest = good;
    group.below_said = group.below_said && !is_asserted;
  }
  return group.above > group.size + group.step || group.below + group.step < group.size;
}

// ── Far ───────────────────────────────────────────────────────────────────────────────────────────────────────────

bool SizeSearch::may_go_far() {
  has_computed_ |= program_.session.engine()->has_run_on_data();
  return !has_computed_ && std::all_of(samples_.begin(), samples_.end(), [](const auto& sample) {
    return sample->changed_constants().empty() && !sample->has_left();
  });
}

bool SizeSearch::check_far(const std::function<bool(const Probe&)>& agrees) {
  constexpr int kMostBounds = 4;
  if (!may_go_far()) return false;
  groups_.may_go_far = true;
  bool is_fine = false, has_others = false;
  for (int tries = 0; tries < kMostBounds && !is_fine && may_explore(); ++tries) {
    const Some active = groups_.free();
    const GroupSizes sizes = groups_.choose(active, 2);
    agrees_ = &agrees;
    std::unique_ptr<Probe> sample = attempt(sizes, Probe::kToTheEnd, &is_fine);
    has_others = !is_fine && sample->came_through() && may_be_far_ && !has_far();
    if (has_others) {
      samples_.push_back(std::move(sample));
      taken_.push_back({.sizes = sizes, .is_far = true});
      break;
    }
    if (!is_fine) settle(active, sizes, *sample);
  }
  agrees_ = nullptr;
  groups_.may_go_far = false;
  return has_others;
}

}  // namespace fx::internal
