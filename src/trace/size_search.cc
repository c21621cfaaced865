#include <fxgraph/trace/size_search.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace fx::internal {
namespace {

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
  *came_through = ran && (!agrees_ || last != Probe::kToTheEnd || (*agrees_)(*sample));
  if (*came_through && last == Probe::kToTheEnd) note_probed(sizes);
  if (sample->slices_more()) note_slice(sizes);
  return sample;
}

std::unique_ptr<Probe> SizeSearch::failure_at(const GroupSizes& sizes, std::uint32_t last) {
  bool came_through = false;
  std::unique_ptr<Probe> run = attempt(sizes, last, &came_through);
  return came_through ? nullptr : std::move(run);
}

std::unique_ptr<Probe> SizeSearch::failure_as_sample(Taken taken) {
  bool came_through = false;
  std::unique_ptr<Probe> run = attempt(taken.sizes, Probe::kToTheEnd, &came_through);
  if (!came_through) return run;
  samples_.push_back(std::move(run));
  taken_.push_back(std::move(taken));
  return nullptr;
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

void SizeSearch::forget(std::size_t sample) {
  samples_.erase(samples_.begin() + static_cast<std::ptrdiff_t>(sample));
  taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(sample));
}

// What keeps no more to what is known of the groups.
void SizeSearch::forget_others() {
  for (std::size_t i = samples_.size(); i-- > 0;) {
    if (!groups_.allow(taken_[i].sizes)) forget(i);
  }
}

void SizeSearch::forget_all() {
  samples_.clear();
  taken_.clear();
}

bool SizeSearch::drop_far() {
  const auto far = std::ranges::find(taken_, true, &Taken::is_far);
  if (far == taken_.end()) return false;
  may_be_far_ = false;
  forget(static_cast<std::size_t>(far - taken_.begin()));
  return true;
}

bool SizeSearch::works(const GroupSizes& sizes, std::uint32_t last) {
  return may_explore() && !failure_at(sizes, last);
}

// The next of the choices of sizes.
int SizeSearch::round() const {
  int next = 0;
  while (std::ranges::find(taken_, next, &Taken::round) != taken_.end()) ++next;
  return next;
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
    const int round = this->round();
    const GroupSizes sizes = groups_.choose(active, choice_of(round));
    if (const std::unique_ptr<Probe> failure = failure_as_sample({.sizes = sizes, .round = round})) {
      settle(active, sizes, *failure);
      forget_others();
      continue;
    }
    for (const std::uint32_t group : active) {
      groups_.groups[group].lowest = std::min(groups_.groups[group].lowest, sizes[group]);
      groups_.groups[group].highest = std::max(groups_.groups[group].highest, sizes[group]);
    }
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
  return std::ranges::any_of(taken_, [&](const Taken& each) { return each.sizes[group] == size; });
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

// ── What fails ───────────────────────────────────────────────────────────────────────────────────────────────────

void SizeSearch::settle(const Some& active, const GroupSizes& sizes, const Probe& failure) {
  if (settle_as_demanded(sizes, failure)) return;
  const std::uint32_t last = last_of(failure);
  Some culprits;
  std::map<std::uint32_t, std::unique_ptr<Probe>> failures;
  for (const std::uint32_t group : active) {
    std::unique_ptr<Probe> failure_alone = failure_at(groups_.examples_with({group}, sizes[group]), last);
    if (!failure_alone) continue;
    culprits.push_back(group);
    failures.emplace(group, std::move(failure_alone));
  }
  if (culprits.empty()) return settle_together(active, sizes, failure);
  // What came through before is tied to nothing.
  Some left = samples_.empty() ? tie(culprits, active, sizes, last) : culprits;
  for (const std::uint32_t each : culprits) {
    if (std::ranges::find(left, each) == left.end())
      groups_.groups[each].explain_by(reason(*failures[each]), failures[each]->place());
  }
  while (!left.empty()) {
    const std::uint32_t first = left.front();
    Some alike;  // as height and width are
    std::ranges::copy_if(left, std::back_inserter(alike), [&](std::uint32_t each) {
      const SizeGroup &a = groups_.groups[first], &b = groups_.groups[each];
      return a.size == b.size && a.step == b.step && (sizes[first] > a.size) == (sizes[each] > b.size);
    });
    if (alike.size() < 2 || !find_steps(alike, groups_.examples(), sizes[first], *failures[first])) {
      limit(first, sizes[first], *failures[first]);
      alike = {first};
    }
    for (const std::uint32_t each : alike) {
      std::erase(left, each);
    }
  }
}

// Whether a graph of what has failed fails by itself, too: by the operator that has refused, or inside of a leaf
// module.
bool SizeSearch::is_said(const Probe& failure) const {
  if (!failure.threw()) return false;
  return failure.operator_refused() || program_.log.is_inside_leaf(failure.failed_at());
}

// Takes one group after the other; one that does not fit those before is tied to one of them, goes in steps, or is
// fixed: no bound describes how dimensions compare.
void SizeSearch::settle_together(const Some& active, const GroupSizes& sizes, const Probe& failure) {
  const std::uint32_t last = last_of(failure);
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
    bool tied = false;
    for (std::size_t j = 0; j < i && !tied; ++j) {
      if (groups_.groups[active[j]].size != group.size || grown[active[j]] == group.size) continue;
      GroupSizes alike = more;
      alike[active[i]] = grown[active[j]];
      if (!works(alike, last)) continue;
      tied = true;
      grown = alike;
      groups_.tie(active[j], active[i]);
    }
    // Each alone went as far before: it is this corner that does not do, and the program says so by itself.
    const bool is_corner = !samples_.empty() && failure.threw() && !tied;
    const std::int64_t bad = sizes[active[i]];
    if (is_corner && bad < group.size) group.below = std::max(group.below, bad);
    if (is_corner && bad > group.size) group.above = std::min(group.above, bad);
    if (is_corner || tied || find_steps({active[i]}, more, bad, failure)) continue;
    fix(active[i], reason(failure), failure.where());
    for (std::size_t j = 0; j < i && !samples_.empty(); ++j) {
      GroupSizes two = groups_.examples_with({active[i]}, sizes[active[i]]);
      two[active[j]] = grown[active[j]];
      if (two[active[j]] != groups_.groups[active[j]].size && !works(two, last))
        fix(active[j], reason(failure), failure.where());
    }
  }
  if (settled) return;
  // Nothing of it fails again: the program decides by something else than sizes.
  for (const std::uint32_t group : active) fix(group, reason(failure), failure.where());
}

}  // namespace fx::internal
