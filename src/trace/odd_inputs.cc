#include <fxgraph/trace/odd_inputs.h>

#include <c10/util/strides.h>

#include <algorithm>
#include <array>
#include <set>

#include <fxgraph/trace/disguise.h>
#include <fxgraph/trace/input_assertions.h>

namespace fx::internal {
namespace {

// What LibTorch says of a dimension that is not there: the graph asks for it, too.
bool is_about_a_missing_dimension(const ChildTrial& trial) {
  return trial.why.find("Dimension out of range") != std::string::npos ||
         trial.why.find("imension specified as") != std::string::npos;
}

}  // namespace

bool OddInputs::goes_another_way(const ChildTrial& trial) {
  return trial.result == TrialResult::differs || trial.result == TrialResult::ended ||
         (trial.result == TrialResult::threw && !is_about_a_missing_dimension(trial));
}

// ── Size zero, size one ──────────────────────────────────────────────────────────────────────────────────────────────

// This size for the groups of `some`, that of the examples for others.
GroupSizes OddInputs::sizes_with(const std::vector<std::uint32_t>& some, std::int64_t size) const {
  return groups_.with_broadcast(groups_.examples_with(some, size));
}

std::size_t OddInputs::add_trial_at(const GroupSizes& sizes, bool is_large) {
  trials_.push_back({.stand_ins = [this, sizes] { return groups_.stand_ins(sizes); }});
  trials_.back().is_large = is_large;
  return trials_.size() - 1;
}

std::size_t OddInputs::add_trial(const std::vector<std::uint32_t>& some, std::int64_t size, bool is_large) {
  return add_trial_at(sizes_with(some, size), is_large);
}

// The free groups of which nothing is known against this size, or any below.
std::vector<std::uint32_t> OddInputs::groups_above(std::int64_t size) const {
  std::vector<std::uint32_t> open;
  for (const std::uint32_t index : groups_.independent()) {
    const SizeGroup& group = groups_.groups[index];
    if (group.below < std::max<std::int64_t>(size, 1) && size % group.step == 0) open.push_back(index);
  }
  return open;
}

void OddInputs::add_empty() {
  const std::vector<std::uint32_t> open = groups_above(0);
  if (open.empty()) return;
  const std::size_t all = add_trial(open, 0);  // an operator that refuses all at once hides what comes behind
  for (const std::uint32_t group : open) {
    empty_.push_back({add_trial({group}, 0), group});
    trials_.back().unless = all;
  }
}

void OddInputs::add_ones() {
  std::vector<std::uint32_t> open = groups_above(1);
  std::erase_if(open, [&](std::uint32_t group) { return groups_.groups[group].size == 1; });
  if (open.empty()) return;
  all_ones_ = add_trial(open, 1);
  sizes_.push_back({*all_ones_, open, 1});
  for (const std::uint32_t group : open) {
    if (open.size() == 1) break;
    sizes_.push_back({add_trial({group}, 1), {group}, 1});
    trials_.back().unless = all_ones_;
  }
}

// ── Large sizes ──────────────────────────────────────────────────────────────────────────────────────────────────────

void OddInputs::add_large() {
  constexpr std::array<std::int64_t, 7> kTried = {4801, 2402, 1203, 604, 305, 157, 79};
  for (const std::uint32_t index : groups_.independent()) {
    const SizeGroup& group = groups_.groups[index];
    std::optional<std::size_t> largest;
    for (const std::int64_t tried : kTried) {
      const std::int64_t size = tried / group.step * group.step;
      if (size <= group.highest || size >= group.above) continue;
      sizes_.push_back({add_trial({index}, size, /*is_large=*/true), {index}, size});
      if (largest) trials_.back().only_after = {*largest};
      if (!largest) largest = trials_.size() - 1;
    }
  }
}

void OddInputs::add_beyond() {
  constexpr std::array<std::int64_t, 9> kTried = {4, 8, 16, 32, 48, 64, 96, 128, 256};
  for (const std::uint32_t index : groups_.independent()) {
    const SizeGroup& group = groups_.groups[index];
    std::set<std::int64_t> tried = {2 * group.size, 3 * group.size, 4 * group.size, group.size / 2, group.size / 4};
    tried.insert(kTried.begin(), kTried.end());
    for (const std::int64_t size : tried) {
      const bool is_beyond = (group.below_said && size < group.below) || (group.above_said && size > group.above);
      if (is_beyond && size > 1 && size % group.step == 0)
        sizes_.push_back({add_trial({index}, size, /*is_large=*/true), {index}, size});
    }
  }
}

// ── The sizes between ────────────────────────────────────────────────────────────────────────────────────────────────

void OddInputs::add_sizes(bool is_guess) {
  constexpr std::array<std::int64_t, 23> kTried = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 13,
                                                   15, 16, 17, 23, 31, 32, 37, 50, 64, 99, 128};
  constexpr std::int64_t kFew = 48;
  const std::vector<std::uint32_t> open = groups_.independent();
  const auto may_be = [&](std::uint32_t index, std::int64_t size) {
    const SizeGroup& group = groups_.groups[index];
    return group.may_be(size) && size != group.size && (is_guess || size < group.lowest);
  };
  const auto empty_of = [&](std::uint32_t index) -> std::vector<std::size_t> {
    std::vector<std::size_t> trials;
    for (const Empty& each : empty_) {
      if (each.group == index) trials.push_back(each.trial);
    }
    return trials;
  };
  std::set<std::int64_t> tried(kTried.begin(), kTried.end());
  // Where few are left, a rule that is guessed from some need not be that of the others.
  for (const std::uint32_t index : open) {
    const SizeGroup& group = groups_.groups[index];
    if (!is_guess || group.above > group.below + kFew) continue;
    for (std::int64_t size = group.below + 1; size < group.above; ++size) tried.insert(size);
  }
  for (const std::int64_t size : tried) {
    std::vector<std::uint32_t> some;
    for (const std::uint32_t index : open) {
      if (!may_be(index, size)) continue;
      some.push_back(index);
      std::vector<std::size_t> after = empty_of(index);
      if (all_ones_) after.push_back(*all_ones_);
      if (!is_guess && after.empty()) continue;
      sizes_.push_back({add_trial({index}, size), {index}, size});
      if (!is_guess) trials_.back().only_after = std::move(after);
    }
    // It may be the smaller of them that decides, or their product.
    if (some.size() < 2 || (!is_guess && !all_ones_)) continue;
    sizes_.push_back({add_trial(some, size), some, size});
    if (!is_guess) trials_.back().only_after = {*all_ones_};
  }
}

void OddInputs::add_up_to(std::int64_t largest) {
  constexpr std::int64_t kMost = 64;
  for (const std::uint32_t index : groups_.independent()) {
    for (std::int64_t size = 1; size <= std::min(largest, kMost); ++size) {
      if (groups_.groups[index].may_be(size)) sizes_.push_back({add_trial({index}, size), {index}, size});
    }
  }
}

void OddInputs::add_telling(const SizeTerms& terms, const std::vector<SizeTerms::Id>& explained, bool may_be_far) {
  constexpr std::int64_t kNear = 1024, kFarthest = 4801;
  const auto group_of = [this](std::uint32_t call, std::int64_t dim) -> std::optional<std::uint32_t> {
    for (const SizeDimension& dimension : groups_.dimensions) {
      if (dimension.dim == dim && program_.log.index_of(*inputs_[dimension.input].node) == call) return dimension.group;
    }
    return std::nullopt;
  };
  const auto allows = [&](std::uint32_t call, std::int64_t dim, std::int64_t size) {
    const auto group = group_of(call, dim);
    return group && !groups_.groups[*group].fixed && !groups_.groups[*group].follows &&
           groups_.groups[*group].may_be(size);
  };
  for (const SizeTerms::Telling& telling : terms.telling_sizes(explained, allows)) {
    const std::vector<std::uint32_t> some = {*group_of(telling.call, telling.dim)};
    sizes_.push_back(
        {add_trial(some, telling.size, !may_be_far && telling.size > kNear), some, telling.size, telling.is_of_real});
    trials_.back().is_beyond_us = !may_be_far && telling.size > kFarthest;
  }
}

std::string OddInputs::difference() const {
  const auto bad = std::find_if(trials_.begin(), trials_.end(), [](const ChildTrial& trial) {
    return goes_another_way(trial) || trial.result == TrialResult::threw;
  });
  if (bad == trials_.end()) {
    const bool is_untried = !trials_.empty() && trials_[0].result == TrialResult::untried && !trials_[0].is_large;
    return is_untried ? "other sizes could not be tried" : "";
  }
  const std::string where = words_for(bad->place);
  return bad->why + (where.empty() ? "" : " (" + where + ")");
}

bool OddInputs::all_do() const {
  return std::all_of(trials_.begin(), trials_.end(), [](const ChildTrial& trial) {
    return trial.result == TrialResult::agrees || trial.result == TrialResult::refused;
  });
}

// A few from all over: those next to each other say much the same.
std::vector<GroupSizes> OddInputs::other_numbers() const {
  constexpr std::size_t kMost = 4;
  std::vector<GroupSizes> all;
  for (const Size& each : sizes_) {
    if (trials_[each.trial].has_other_numbers) all.push_back(sizes_with(each.groups, each.size));
  }
  if (all.size() <= kMost) return all;
  std::vector<GroupSizes> some;
  for (std::size_t i = 0; i < kMost; ++i) some.push_back(all[i * (all.size() - 1) / (kMost - 1)]);
  return some;
}

// Tried, alone or with others.
bool OddInputs::is_seen(std::size_t trial) const {
  const std::optional<std::size_t>& unless = trials_[trial].unless;
  return trials_[trial].result != TrialResult::untried || (unless && trials_[*unless].result == TrialResult::agrees);
}

bool OddInputs::is_against(const Size& each) const {
  const ChildTrial& trial = trials_[each.trial];
  return goes_another_way(trial) || trial.result == TrialResult::threw ||
         (each.has_to_agree && trial.result == TrialResult::untried);
}

// Whether nothing is against this size of one of the groups alone: it is all of them together that do not do.
bool OddInputs::is_of_all(const Size& all) const {
  return all.groups.size() == 1 || std::none_of(sizes_.begin(), sizes_.end(), [&](const Size& each) {
           return each.groups.size() == 1 && each.size == all.size && is_against(each) &&
                  std::find(all.groups.begin(), all.groups.end(), each.groups.front()) != all.groups.end();
         });
}

// Whether a number that is another one at this size is not so further away from the example: then it is no bound that
// was found, and there may be more such sizes on this side of it.
bool OddInputs::has_right_ones_beyond(const Size& bad) const {
  if (!trials_[bad.trial].has_other_numbers || bad.groups.size() > 1) return false;
  const std::int64_t size = groups_.groups[bad.groups.front()].size;
  return std::any_of(sizes_.begin(), sizes_.end(), [&](const Size& each) {
    const bool is_beyond = bad.size < size ? each.size < bad.size : each.size > bad.size;
    return each.groups == bad.groups && is_beyond && trials_[each.trial].result == TrialResult::agrees;
  });
}

void OddInputs::bound_by_sizes() {
  for (const std::uint32_t index : groups_.free()) {
    SizeGroup& group = groups_.groups[index];
    const auto is_of_group = [&](const Size& each) {
      return std::find(each.groups.begin(), each.groups.end(), index) != each.groups.end();
    };
    // Where the program itself refuses several sizes together, one bound is enough to say so.
    const auto is_left_to_another = [&](const Size& each) {
      return trials_[each.trial].result == TrialResult::threw && index != each.groups.back();
    };
    const Size *low = nullptr, *high = nullptr;  // the nearest on either side of the example that do not do
    for (const Size& each : sizes_) {
      if (!is_of_group(each) || !is_against(each) || !is_of_all(each) || is_left_to_another(each)) continue;
      if (each.size < group.size && (!low || each.size > low->size)) low = &each;
      if (each.size > group.size && (!high || each.size < high->size)) high = &each;
    }
    if (!low && !high) continue;
    if (const Size* irregular = low && has_right_ones_beyond(*low)     ? low
                                : high && has_right_ones_beyond(*high) ? high
                                                                       : nullptr) {
      const ChildTrial& trial = trials_[irregular->trial];
      group.fix("at size " + std::to_string(irregular->size) + ", and not at all sizes beyond: " + trial.why,
                words_for(trial.place));
      continue;
    }
    std::int64_t lowest = group.size, highest = group.size;
    const auto does = [&](std::int64_t size) {
      if ((low && size <= low->size) || (high && size >= high->size)) return;
      lowest = std::min(lowest, size);
      highest = std::max(highest, size);
    };
    does(group.lowest);
    does(group.highest);
    for (const Size& each : sizes_) {
      if (is_of_group(each) && is_seen(each.trial)) does(each.size);
    }
    const auto why = [&](const Size& each) {
      const ChildTrial& trial = trials_[each.trial];
      const bool is_untried = trial.result == TrialResult::untried;
      return "at size " + std::to_string(each.size) + ": " +
             (is_untried ? "what is rounded may be another number, which was not tried" : trial.why);
    };
    if (low) group.stay_above(low->size, why(*low), trials_[low->trial].place), group.lowest = lowest;
    if (high) group.stay_below(high->size, why(*high), trials_[high->trial].place), group.highest = highest;
  }
}

// ── Other ranks ──────────────────────────────────────────────────────────────────────────────────────────────────────

void OddInputs::add_rank(bool more, const std::vector<std::uint32_t>& some) {
  static constexpr std::int64_t kMany = 2;
  ranks_.push_back({trials_.size(), some, more});
  trials_.push_back({.stand_ins = [this, some, more] {
    std::vector<at::Tensor> inputs = groups_.stand_ins(groups_.examples());
    for (const std::uint32_t i : some) {
      const at::Tensor& example = inputs_[i].example;
      std::vector<std::int64_t> sizes = example.sizes().vec();
      if (more) {
        sizes.insert(sizes.begin(), kMany);
      } else {
        sizes.erase(sizes.begin());
      }
      inputs[i] = without_contents(example, sizes, c10::contiguous_strides(sizes), example.options());
    }
    return inputs;
  }});
}

void OddInputs::add_ranks() {
  constexpr std::size_t kMostAlone = 4;
  for (const bool more : {true, false}) {
    std::vector<std::uint32_t> some;
    for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
      const at::Tensor& example = inputs_[i].example;
      if (example.layout() == at::kStrided && (more || example.dim() > 0)) some.push_back(i);
    }
    for (std::size_t i = 0; some.size() > 1 && i < some.size() && some.size() <= kMostAlone; ++i)
      add_rank(more, {some[i]});
    if (!some.empty()) add_rank(more, some);
  }
}

// What is against another rank of the input: of it alone, or of all where nothing is against one of them alone.
const OddInputs::Rank* OddInputs::against(std::uint32_t input) const {
  bool is_alone = false;  // one of those before the next all
  for (const Rank& rank : ranks_) {
    const bool is_against = goes_another_way(trials_[rank.trial]), is_of_one = rank.inputs.size() == 1;
    const bool has = std::find(rank.inputs.begin(), rank.inputs.end(), input) != rank.inputs.end();
    if (is_against && has && (is_of_one || !is_alone)) return &rank;
    is_alone = is_of_one && (is_alone || is_against);
  }
  return nullptr;
}

void OddInputs::write(Graph& graph) const {
  static const Symbol kDim("aten::dim");
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
    const BoundTensor& input = inputs_[i];
    const Rank* other = against(i);
    if (!other) continue;
    const ChildTrial& trial = trials_[other->trial];
    const std::int64_t rank = input.example.dim();
    std::string why = input.name + " must be of " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions") +
                      ", as in the example; with " + (other->more ? "one more: " : "one less: ") + trial.why;
    if (const std::string where = words_for(trial.place); !where.empty()) why += " (" + where + ")";
    assert_of_input(graph, input, kDim, rank, why);
  }
}

// ── Trying them ──────────────────────────────────────────────────────────────────────────────────────────────────────

void OddInputs::run(const std::function<bool(const Sample&)>& agrees) { try_in_children(program_, trials_, agrees); }

void OddInputs::judge(const std::function<bool(const Sample&)>& agrees) {
  for (const auto& [number, index] : empty_) {
    const ChildTrial& trial = trials_[number];
    const auto forbid_empty = [&, index = index](const std::string& why) {
      SizeGroup& group = groups_.groups[index];
      group.stay_above(std::max<std::int64_t>(group.below, 0), "at size 0: " + why, trial.place);
    };
    const bool is_needless = trial.unless && trials_[*trial.unless].result == TrialResult::agrees;
    if (trial.result == TrialResult::untried && !is_needless) {
      forbid_empty("whether the program takes it could not be tried");
    } else if (goes_another_way(trial) || trial.result == TrialResult::threw) {
      forbid_empty(trial.why);
    }
  }
  judge_multiples();
  judge_small();
  bound_by_sizes();
  judge_pairs();
  for (const std::uint32_t index : groups_.free()) {
    SizeGroup& group = groups_.groups[index];
    // That nothing fails below is seen, though no sample was made there.
    if (!group.below_said && group.below < 1) group.lowest = 1;
  }
  if (judge_corners()) {
    OddInputs others(program_, inputs_, groups_);
    others.add_corners();
    try_in_children(program_, others.trials_, agrees);
    others.judge_corners();
  }
  bound_together(agrees);
}

}  // namespace fx::internal
