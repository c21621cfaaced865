// The parts of a SizeSearch that look at sizes which are no samples: all at one, beyond what operators refuse; and the
// steps that numbers of the program suggest.
#include <algorithm>
#include <set>

#include <fxgraph/trace/size_search.h>

namespace fx::internal {

void SizeSearch::check_ones(const std::function<bool(const Sample&)>& agrees, std::optional<GroupSizes>* others) {
  Some some;
  for (const std::uint32_t index : groups_.independent()) {
    const SizeGroup& group = groups_.groups[index];
    if (group.below < 1 && group.step == 1 && group.size > 1) some.push_back(index);
  }
  if (some.empty()) return;
  agrees_ = &agrees;
  const auto try_ones = [&](const Some& which) -> std::unique_ptr<Sample> {
    bool is_fine = false;
    auto sample = attempt(groups_.with_broadcast(groups_.examples_with(which, 1)), Sample::kToTheEnd, &is_fine);
    return is_fine ? nullptr : std::move(sample);
  };
  if (const std::unique_ptr<Sample> all = try_ones(some)) {
    if (others && all->came_through()) {
      *others = groups_.with_broadcast(groups_.examples_with(some, 1));
    } else {
      exclude_ones(some, *all, try_ones);
    }
  }
  agrees_ = nullptr;
}

// What does not do alone is excluded; where each alone does, one bound says that all together do not.
void SizeSearch::exclude_ones(const Some& some, const Sample& all,
                              const std::function<std::unique_ptr<Sample>(const Some&)>& try_ones) {
  bool is_one_of_them = false;
  for (const std::uint32_t index : some) {
    if (groups_.groups[index].lowest <= 1) continue;  // a sample had it
    const std::unique_ptr<Sample> alone = some.size() > 1 && may_go_on() ? try_ones({index}) : nullptr;
    if (!alone && some.size() > 1 && may_go_on()) continue;
    is_one_of_them = true;
    const Sample& why = alone ? *alone : all;
    if (!is_said(why)) groups_.groups[index].stay_above(1, "at size 1: " + reason(why), why.place());
  }
  if (!is_one_of_them && !is_said(all))
    groups_.groups[some.back()].stay_above(1, "at size 1, as others: " + reason(all), all.place());
}

void SizeSearch::check_beyond() {
  for (const std::uint32_t index : groups_.independent()) {
    SizeGroup& group = groups_.groups[index];
    const std::int64_t twice = 2 * group.size, half = group.size / 2;
    const auto comes_through = [&](std::int64_t size) {
      bool is_fine = false;
      attempt(groups_.with_broadcast(groups_.examples_with({index}, size)), Sample::kToTheEnd, &is_fine);
      return is_fine;
    };
    if (group.above_said && group.above <= twice && (!may_go_on() || comes_through(twice)))
      group.stay_below(group.highest + 1, "larger ones are taken in steps, or were not tried", {});
    if (group.below_said && group.below >= half && half > 0 && group.size % 2 == 0 &&
        (!may_go_on() || comes_through(half)))
      group.stay_above(group.lowest - 1, "smaller ones are taken in steps, or were not tried", {});
  }
}

std::vector<std::vector<std::int64_t>> SizeSearch::largest_tried() const {
  std::vector<std::vector<std::int64_t>> largest;
  for (const GroupSizes& sizes : sizes_) {
    const std::vector<at::Tensor> inputs = groups_.stand_ins(sizes);
    largest.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      largest[i].resize(static_cast<std::size_t>(inputs[i].dim()));
      for (std::size_t dim = 0; dim < largest[i].size(); ++dim)
        largest[i][dim] = std::max(largest[i][dim], inputs[i].size(static_cast<std::int64_t>(dim)));
    }
  }
  return largest;
}

// A number that the operator was given, where it divides the size: `view({b, h / 7, 7, c})`.
bool SizeSearch::take_suggested_step(std::uint32_t index, const Sample& failure, std::int64_t bad) {
  SizeGroup& group = groups_.groups[index];
  const std::uint32_t last = failure.failed_at();
  if (!failure.operator_refused() || last >= program_.log.size() || group.step != 1) return false;
  std::set<std::int64_t> steps;
  for (std::uint32_t leaf = 0; leaf < program_.log.num_leaves(last); ++leaf) {
    const Argument number = program_.log.leaf(last, leaf);
    if (number.is_int() && number.as_int() > 1 && number.as_int() <= group.size && group.size % number.as_int() == 0)
      steps.insert(number.as_int());
  }
  for (const std::int64_t step : steps) {
    if (bad % step == 0 || works_at({index}, group.size + 1, last) || !works_at({index}, group.size + step, last))
      continue;
    group.vary_in(step);
    group.add_reason(reason(failure), failure.place());
    return true;
  }
  return false;
}

}  // namespace fx::internal
