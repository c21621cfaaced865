#include <fxgraph/trace/size_search.h>

#include <algorithm>
#include <set>

namespace fx::internal {
namespace {

constexpr int kTriesForABound = 5;
constexpr std::uint64_t kForSamples = 3;  // recordings that runs which look for what fails leave over
constexpr std::uint64_t kForCorners = 3;  // and that there are beyond them, for what bounds hide

}  // namespace

// So that the cost of a trace is a multiple of the program's.
bool SizeSearch::may_explore() const {
  return spent_ < (program_.most_recordings - kForSamples) * (program_.log.size() + 1);
}
bool SizeSearch::may_look_into_corners() const {
  return spent_ < (program_.most_recordings + kForCorners) * (program_.log.size() + 1);
}
bool SizeSearch::may_go_on() const { return spent_ < program_.most_recordings * (program_.log.size() + 1); }

std::unique_ptr<Probe> SizeSearch::attempt(const GroupSizes& sizes, std::uint32_t last, bool* came_through) {
  auto sample = std::make_unique<Probe>(program_);
  const bool ran = sample->run(groups_.stand_ins(sizes), last);
  spent_ += sample->num_calls() + 1;
  *came_through = ran && (!agrees_ || (*agrees_)(*sample));
  if (*came_through && last == Probe::kToTheEnd) note_probed(sizes);
  if (sample->slices_more()) note_slice(sizes);
  return sample;
}

void SizeSearch::note_probed(const GroupSizes& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != groups_.groups[i].size) groups_.groups[i].probed.insert(sizes[i]);
  }
}

void SizeSearch::note_slice(const GroupSizes& sizes) {
  const GroupSizes examples = groups_.examples();
  const auto [ours, theirs] = std::mismatch(sizes.begin(), sizes.end(), examples.begin());
  if (ours == sizes.end() || !std::equal(ours + 1, sizes.end(), theirs + 1)) return;
  const auto index = static_cast<std::uint32_t>(ours - sizes.begin());
  if (slices_more_at_.contains(index)) return;
  slices_more_at_[index] = *ours;
  if (*ours < *theirs || *theirs < 2) return;
  // Beyond the end of a table there is nothing that could be traced.
  GroupSizes smaller = examples;
  --smaller[index];
  if (!groups_.allow(smaller)) return;
  Probe sample(program_);
  sample.run(groups_.stand_ins(smaller), Probe::kToTheEnd);
  spent_ += sample.num_calls() + 1;
  if (sample.slices_more()) slices_more_at_[index] = smaller[index];
}

std::optional<GroupSizes> SizeSearch::where_it_slices_more() const {
  GroupSizes sizes = groups_.examples();
  bool any = false;
  for (const auto& [index, size] : slices_more_at_) {
    const SizeGroup& group = groups_.groups[index];
    if (group.dimensions.empty()) continue;  // it has become a part of another
    sizes[index] = size;
    any |= !group.may_be_any();
  }
  return any ? std::optional(std::move(sizes)) : std::nullopt;
}

// Null when the program then does something else than before: what it takes from types or layouts is found elsewhere
// (trace/type_dependence.h).
std::unique_ptr<Probe> SizeSearch::attempt_disguised(const GroupSizes& sizes) {
  if (!may_disguise_ || disguise_.is_empty() || is_disguised() || samples_.size() + 1 != enough_samples())
    return nullptr;
  auto sample = std::make_unique<Probe>(program_);
  may_disguise_ = sample->run(Disguise::of(groups_.stand_ins(sizes), disguise_.types(), Laid::otherwise),
                              Probe::kToTheEnd, disguise_.types()) &&
                  changes_as_before(*sample);
  spent_ += sample->num_calls() + 1;
  if (!may_disguise_) return nullptr;
  note_probed(sizes);
  return sample;
}

// Whether all that is other than in the first trace was so in an earlier sample: then sizes have changed it. What lies
// inside of leaf modules is their own business.
bool SizeSearch::changes_as_before(const Probe& sample) const {
  std::set<std::pair<std::uint32_t, std::uint32_t>> numbers;
  std::set<std::uint32_t> constants;
  for (const auto& before : samples_) {
    for (const Probe::Change& change : before->changes()) numbers.emplace(change.call, change.leaf);
    for (const Probe::ChangedConstant& constant : before->changed_constants()) constants.insert(constant.call);
  }
  const auto is_gone = [&](std::uint32_t call) { return program_.log[call].node->is_erased(); };
  return std::all_of(sample.changes().begin(), sample.changes().end(),
                     [&](const Probe::Change& change) {
                       return is_gone(change.call) || (change.value.kind() != ArgumentKind::dtype &&
                                                       numbers.contains({change.call, change.leaf}));
                     }) &&
         std::all_of(sample.changed_constants().begin(), sample.changed_constants().end(),
                     [&](const Probe::ChangedConstant& constant) {
                       return is_gone(constant.call) || constants.contains(constant.call);
                     });
}

void SizeSearch::forget(std::size_t sample) {
  samples_.erase(samples_.begin() + static_cast<std::ptrdiff_t>(sample));
  sizes_.erase(sizes_.begin() + static_cast<std::ptrdiff_t>(sample));
  if (disguised_ != kNone && sample <= disguised_) disguised_ = sample == disguised_ ? kNone : disguised_ - 1;
  round_ = 0;
}

void SizeSearch::forget_all() {
  samples_.clear();
  sizes_.clear();
  disguised_ = kNone;
  round_ = 0;
}

void SizeSearch::drop_disguised() {
  may_disguise_ = false;
  const int round = round_;
  forget(disguised_);
  round_ = std::max(round - 1, 0);
}

bool SizeSearch::works(const GroupSizes& sizes, std::uint32_t last) {
  if (!may_explore()) return false;
  bool came_through = false;
  attempt(sizes, last, &came_through);
  return came_through;
}

int SizeSearch::choice_of(int round) const {
  constexpr int kSmaller = 1, kMuchLarger = 2;
  if (program_.log.asks_rank() || (round != kSmaller && round != kMuchLarger)) return round;
  return kSmaller + kMuchLarger - round;
}

void SizeSearch::find(std::size_t count) {
  while (samples_.size() < count) {
    const Some active = groups_.free();
    if (active.empty()) return;
    if (!may_go_on()) return fix_rest(active);
    const GroupSizes sizes = groups_.choose(active, choice_of(round_));
    const bool may_disguise = may_disguise_;
    std::unique_ptr<Probe> sample = attempt_disguised(sizes);
    if (sample) {
      disguised_ = samples_.size();
    } else {
      bool came_through = false;
      sample = attempt(sizes, Probe::kToTheEnd, &came_through);
      if (!came_through) {
        may_disguise_ = may_disguise;  // it is not for types and layouts
        settle(active, sizes, *sample);
        for (std::size_t i = samples_.size(); i-- > 0;) {
          if (!groups_.allow(sizes_[i])) forget(i);
        }
        continue;
      }
    }
    for (const std::uint32_t group : active) {
      groups_.groups[group].lowest = std::min(groups_.groups[group].lowest, sizes[group]);
      groups_.groups[group].highest = std::max(groups_.groups[group].highest, sizes[group]);
    }
    samples_.push_back(std::move(sample));
    sizes_.push_back(sizes);
    ++round_;
  }
}

// Two samples with the recording tell what numbers follow; one does where there are none, as far as it went.
void SizeSearch::fix_rest(const Some& active) {
  if (samples_.size() >= 2) return;
  const bool is_seen = samples_.size() == 1 && samples_.front()->changes().empty();
  for (const std::uint32_t index : active) {
    SizeGroup& group = groups_.groups[index];
    if (!is_seen) {
      fix(index, "it was not tried at other sizes: that would have taken too many calls of the program", "");
      continue;
    }
    if (group.lowest > 1) group.stay_above(group.lowest - 1, "smaller ones were not tried", {});
    group.stay_below(group.highest + 1, "larger ones were not tried", {});
  }
  if (!is_seen) forget_all();
}

bool SizeSearch::has_seen(std::uint32_t group, std::int64_t size) const {
  return std::any_of(sizes_.begin(), sizes_.end(), [&](const GroupSizes& sizes) { return sizes[group] == size; });
}

void SizeSearch::drop_behind(std::size_t count) {
  samples_.resize(count);
  sizes_.resize(count);
}

std::string SizeSearch::reason(const Probe& failure) const {
  if (failure.came_through()) return "a number that the program computes of it is another one from there on";
  return program_.log.describe(failure.failed_at()) + ": " + failure.why();
}

std::string SizeSearch::in_words(const Probe& failure) const {
  const std::string where = failure.where();
  return (failure.came_through() ? "other numbers" : reason(failure)) + (where.empty() ? "" : " (" + where + ")");
}

// A weight has the sizes that it has: no other size of the input will do.
bool SizeSearch::is_held_by_parameter(const Probe& failure) const {
  if (!failure.operator_refused() || failure.failed_at() >= program_.log.size()) return false;
  for (const Argument& argument : program_.log.arguments(program_.log.operator_at(failure.failed_at()))) {
    const Node* node = argument.node_or_null();
    if (node && program_.log[program_.log.index_of(*node)].op == Op::get_attr) return true;
  }
  return false;
}

void SizeSearch::fix(std::uint32_t group, const std::string& why, const std::string& where) {
  groups_.groups[group].fix(why, where);
}

// ── What fails alone ──────────────────────────────────────────────────────────────────────────────────────────────

void SizeSearch::settle(const Some& active, const GroupSizes& sizes, const Probe& failure) {
  if (settle_as_demanded(sizes, failure)) return;
  const std::uint32_t last = failure.failed_at();
  Some culprits;
  Failures failures;
  for (const std::uint32_t group : active) {
    if (groups_.groups[group].one_or) continue;
    GroupSizes alone = groups_.examples();
    alone[group] = sizes[group];
    bool came_through = false;
    std::unique_ptr<Probe> sample = attempt(alone, last, &came_through);
    if (came_through || (round_ > 0 && narrow(group, sizes, *sample, last))) {
      if (!came_through) return;  // all again within the new bounds
      continue;
    }
    culprits.push_back(group);
    failures.push_back(std::move(sample));
  }
  if (culprits.empty()) return settle_together(active, sizes, failure);
  const Some left = tie(culprits, active, sizes, last);
  std::set<std::uint32_t> settled_steps;
  for (std::size_t i = 0; i < culprits.size(); ++i) {
    SizeGroup& group = groups_.groups[culprits[i]];
    if (std::find(left.begin(), left.end(), culprits[i]) == left.end()) {
      if (group.why.empty()) group.why = reason(*failures[i]), group.where = failures[i]->where();
      continue;
    }
    if (group.fixed) continue;
    if (group.step != 1) {
      if (settled_steps.contains(culprits[i])) continue;
      if (!widen_step(culprits[i], last)) fix(culprits[i], reason(*failures[i]), failures[i]->where());
      continue;
    }
    const bool is_held = is_held_by_parameter(*failures[i]);
    if (!is_held && take_suggested_step(culprits[i], *failures[i], sizes[culprits[i]])) continue;
    const bool is_larger = sizes[culprits[i]] > group.size;
    if (!(is_held && is_larger) && find_bound(culprits[i], sizes[culprits[i]], *failures[i], last)) continue;
    Some alike;
    for (std::size_t j = i; j < culprits.size(); ++j) {
      const bool open = std::find(left.begin(), left.end(), culprits[j]) != left.end();
      if (open && groups_.groups[culprits[j]].size == group.size && groups_.groups[culprits[j]].step == 1)
        alike.push_back(culprits[j]);
    }
    const bool steps =
        !is_held && (find_steps(alike, *failures[i]) || (alike.size() > 1 && find_steps({culprits[i]}, *failures[i])));
    if (!steps) fix(culprits[i], reason(*failures[i]), failures[i]->where());
    for (const std::uint32_t each : alike) {
      if (!steps || groups_.groups[each].step == 1) continue;
      settled_steps.insert(each);
      if (groups_.groups[each].why.empty())
        groups_.groups[each].why = reason(*failures[i]), groups_.groups[each].where = failures[i]->where();
    }
  }
}

// Whether the program goes another way at `bad`, but not at the multiple of a power of two next to it, nor at all sizes
// just before; nor on both sides of the example.
bool SizeSearch::is_about_steps(std::uint32_t index, std::int64_t bad, std::uint32_t last) {
  const SizeGroup& group = groups_.groups[index];
  std::int64_t power = group.size & -group.size;
  if (power == group.size) power /= 2;
  if (group.step != 1 || power < 2) return false;
  const std::int64_t near = std::max(power, (bad + power / 2) / power * power);
  if (near == group.size || !works_at({index}, near, last)) return false;
  const std::int64_t towards = bad < group.size ? 1 : -1;
  const auto does = [&](std::int64_t size) { return works_at({index}, size, last); };
  for (const std::int64_t by : {1, 2, 3}) {
    if (!does(bad + towards * by)) return !does(group.size - 1) || !does(group.size + 1);
  }
  return false;
}

// Whether a graph of what has failed fails by itself, too: by the operator that has refused, or inside of a leaf
// module.
bool SizeSearch::is_said(const Probe& failure) const {
  if (!failure.threw()) return false;
  return failure.operator_refused() || program_.log.is_inside_leaf(failure.failed_at());
}

// A later round fails where an earlier one came through: the sizes between do. False when there are none.
bool SizeSearch::narrow(std::uint32_t index, const GroupSizes& sizes, const Probe& failure, std::uint32_t last) {
  SizeGroup& group = groups_.groups[index];
  if (!is_held_by_parameter(failure) && take_suggested_step(index, failure, sizes[index])) return true;
  if (!failure.threw() && is_about_steps(index, sizes[index], last) && find_steps({index}, failure)) {
    if (group.why.empty()) group.why = reason(failure), group.where = failure.where();
    return true;
  }
  // An operator that refuses says it by itself: from where on need not be known.
  return narrow_to(index, sizes[index], failure, last, /*looks=*/!is_said(failure));
}

// A program that goes another way from some size on, or refuses: from which is looked for. False when no other size is
// left.
bool SizeSearch::narrow_to(std::uint32_t index, std::int64_t bad, const Probe& failure, std::uint32_t last,
                           bool looks) {
  SizeGroup& group = groups_.groups[index];
  std::int64_t good = bad < group.size ? group.lowest : group.highest;
  const auto distance = [&] { return bad < good ? good - bad : bad - good; };
  for (int tries = 0; tries < kTriesForABound && may_explore() && looks && distance() > group.step; ++tries) {
    const std::int64_t middle = good + (bad - good) / group.step / 2 * group.step;
    if (middle == good) break;
    (works_at({index}, middle, last) ? good : bad) = middle;
  }
  if (bad < group.size) {
    group.below = std::max(group.below, bad);
    group.below_said = group.below_said && is_said(failure);
    group.lowest = std::min(group.lowest, good);
  } else {
    group.above = std::min(group.above, bad);
    group.above_said = group.above_said && is_said(failure);
    group.highest = std::max(group.highest, good);
  }
  if (group.why.empty()) group.why = reason(failure), group.where = failure.where();
  return group.above > group.size + group.step || group.below + group.step < group.size;
}

// Takes one group after the other; one that does not fit those before is tied to one of them, or fixed.
void SizeSearch::settle_together(const Some& active, const GroupSizes& sizes, const Probe& failure) {
  const std::uint32_t last = failure.failed_at();
  GroupSizes grown = groups_.examples();
  bool settled = false;
  for (std::size_t i = 0; i < active.size(); ++i) {
    SizeGroup& group = groups_.groups[active[i]];
    GroupSizes more = grown;
    more[active[i]] = sizes[active[i]];
    if (works(more, last)) {
      grown = more;
      continue;
    }
    settled = true;
    // Each alone went as far before: it is this corner that does not do, and the program says so by itself.
    if (round_ > 0 && (failure.threw() || failure.operator_refused())) {
      const bool below_said = group.below_said, above_said = group.above_said;
      const bool narrowed = narrow(active[i], sizes, failure, last);
      group.below_said = below_said;
      group.above_said = above_said;
      if (narrowed) continue;
    }
    if (round_ > 0 && !is_said(failure) &&
        narrow_together({active.begin(), active.begin() + static_cast<std::ptrdiff_t>(i) + 1}, more, failure))
      return;
    bool tied = false;
    for (std::size_t j = 0; j < i && !tied; ++j) {
      if (groups_.groups[active[j]].size != group.size || grown[active[j]] == group.size) continue;
      more[active[i]] = grown[active[j]];
      if (!works(more, last)) continue;
      tied = true;
      if (group.size == 1 && !group.one_or) {
        group.one_or = active[j];
      } else {
        groups_.tie(active[j], active[i]);
      }
      grown = more;
    }
    if (tied) continue;
    if (!find_steps_beside(active[i], grown, last)) {
      fix(active[i], reason(failure), failure.where());
    } else if (group.why.empty()) {
      group.why = reason(failure), group.where = failure.where();
    }
  }
  if (settled) return;
  // Nothing of it fails again: the program decides by something else than sizes.
  for (const std::uint32_t group : active) fix(group, reason(failure), failure.where());
}

}  // namespace fx::internal
