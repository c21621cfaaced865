// The parts of a SizeSearch that look at sizes which it is given, or which are no samples: all at one, beyond what
// operators refuse.
#include <algorithm>
#include <set>

#include <fxgraph/trace/size_search.h>

namespace fx::internal {

std::string SizeSearch::take(const GroupSizes& sizes) {
  const std::unique_ptr<Probe> failure = failure_as_sample({sizes});
  return failure ? in_words(*failure) : std::string();
}

bool SizeSearch::add_probe(const GroupSizes& sizes) {
  const std::unique_ptr<Probe> failure = failure_as_sample({sizes});
  if (failure && !is_said(*failure)) leave_out(sizes, reason(*failure), failure->place());
  return !failure;
}

// Of the dimensions that have other sizes than any that was seen.
void SizeSearch::leave_out(const GroupSizes& sizes, const std::string& why, const CallPlace& place) {
  for (const std::uint32_t index : groups_.free()) {
    SizeGroup& group = groups_.groups[index];
    const std::string at = "at size " + std::to_string(sizes[index]) + ": " + why;
    if (sizes[index] < group.lowest && sizes[index] > group.below) {
      group.stay_above(group.lowest - 1, at, place);
    } else if (sizes[index] > group.highest && sizes[index] < group.above) {
      group.stay_below(group.highest + 1, at, place);
    }
  }
}

void SizeSearch::check_ones(const std::function<bool(const Probe&)>& agrees, std::optional<GroupSizes>* others) {
  Some some;
  for (const std::uint32_t index : groups_.free()) {
    const SizeGroup& group = groups_.groups[index];
    if (group.below < 1 && group.step == 1 && group.size > 1) some.push_back(index);
  }
  if (some.empty()) return;
  agrees_ = &agrees;
  const auto try_ones = [&](const Some& which) {
    return failure_at(groups_.with_derived(groups_.examples_with(which, 1)));
  };
  if (const std::unique_ptr<Probe> all = try_ones(some)) {
    if (others && all->came_through()) {
      *others = groups_.with_derived(groups_.examples_with(some, 1));
    } else {
      exclude_ones(some, *all, try_ones);
    }
  }
  agrees_ = nullptr;
}

// What does not do alone is excluded; where each alone does, one bound says that all together do not.
void SizeSearch::exclude_ones(const Some& some, const Probe& all,
                              const std::function<std::unique_ptr<Probe>(const Some&)>& try_ones) {
  bool is_one_of_them = false;
  for (const std::uint32_t index : some) {
    if (groups_.groups[index].lowest <= 1) continue;  // a sample had it
    const std::unique_ptr<Probe> alone = some.size() > 1 && may_go_on() ? try_ones({index}) : nullptr;
    if (!alone && some.size() > 1 && may_go_on()) continue;
    is_one_of_them = true;
    const Probe& why = alone ? *alone : all;
    if (!is_said(why)) groups_.groups[index].stay_above(1, "at size 1: " + reason(why), why.place());
  }
  if (!is_one_of_them && !is_said(all))
    groups_.groups[some.back()].stay_above(1, "at size 1, as others: " + reason(all), all.place());
}

void SizeSearch::check_beyond() {
  for (const std::uint32_t index : groups_.free()) {
    SizeGroup& group = groups_.groups[index];
    const std::int64_t twice = 2 * group.size, half = group.size / 2;
    const auto comes_through = [&](std::int64_t size) {
      return !failure_at(groups_.with_derived(groups_.examples_with({index}, size)));
    };
    if (group.above_said && group.above <= twice && (!may_go_on() || comes_through(twice)))
      group.stay_below(group.highest + 1, "larger ones are taken in steps, or were not tried", {});
    if (group.below_said && group.below >= half && half > 0 && group.size % 2 == 0 &&
        (!may_go_on() || comes_through(half)))
      group.stay_above(group.lowest - 1, "smaller ones are taken in steps, or were not tried", {});
  }
}

void SizeSearch::check_corners(const std::function<bool(const Probe&)>& agrees, bool was_guessed) {
  agrees_ = &agrees;
  // A rule that was guessed may have a bound of a size that is fixed.
  bool has_fixed = was_guessed && std::ranges::any_of(groups_.groups, &SizeGroup::fixed);
  const auto check = [&](std::uint32_t index, const GroupSizes& sizes, const std::string& beside) {
    const std::unique_ptr<Probe> failure = failure_at(groups_.with_derived(sizes));
    if (!failure || is_said(*failure)) return;
    fix(index, reason(*failure) + beside, failure->where());
    has_fixed = true;
  };
  const auto size_at = [this](std::uint32_t index, bool is_largest) {
    return is_largest ? groups_.groups[index].highest : groups_.groups[index].lowest;
  };
  for (const std::uint32_t index : groups_.free()) {
    std::set<GroupSizes> tried = {groups_.examples()};
    for (const auto& [is_largest, others_are_largest] :
         {std::pair{false, true}, {false, false}, {true, false}, {true, true}}) {
      const SizeGroup& group = groups_.groups[index];
      if (group.fixed || (is_largest ? group.above_said : group.below_said) || !may_look_into_corners()) continue;
      GroupSizes sizes = groups_.examples();
      for (const std::uint32_t other : groups_.free()) sizes[other] = size_at(other, others_are_largest);
      sizes[index] = size_at(index, is_largest);
      if (tried.insert(sizes).second) check(index, sizes, " beside other sizes");
    }
  }
  // Where sizes are compared with one that is fixed now: what was tried beside others of its is tried beside this.
  for (const std::uint32_t index : groups_.free()) {
    const SizeGroup& group = groups_.groups[index];
    for (const std::int64_t size : {group.may_be(1) ? 1 : group.lowest, group.highest}) {
      if (has_fixed && !group.fixed && size != group.size)
        check(index, groups_.examples_with({index}, size), " at size " + std::to_string(size));
    }
  }
  agrees_ = nullptr;
}

std::vector<std::vector<std::int64_t>> SizeSearch::largest_tried() const {
  std::vector<std::vector<std::int64_t>> largest;
  for (const Taken& taken : taken_) {
    const std::vector<at::Tensor> inputs = groups_.stand_ins(taken.sizes);
    largest.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      largest[i].resize(static_cast<std::size_t>(inputs[i].dim()));
      for (std::size_t dim = 0; dim < largest[i].size(); ++dim)
        largest[i][dim] = std::max(largest[i][dim], inputs[i].size(static_cast<std::int64_t>(dim)));
    }
  }
  return largest;
}

}  // namespace fx::internal
