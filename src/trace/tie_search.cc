#include <fxgraph/trace/tie_search.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace fx::internal {
namespace {

constexpr std::size_t kWays = 3;          // choices of sizes at which a tie has to hold
constexpr std::int64_t kLarge = 1 << 16;  // elements of an input that are not made many times as many

bool has(const std::vector<std::uint32_t>& some, std::uint32_t group) {
  return std::find(some.begin(), some.end(), group) != some.end();
}

}  // namespace

TieSearch::TieSearch(SizeGroups& groups, Some stuck, Some active, Works works, int& tries)
    : groups_(groups),
      stuck_([&] {
        // Products and sums are larger than what they are made of.
        std::stable_sort(stuck.begin(), stuck.end(),
                         [&](auto a, auto b) { return groups.groups[a].size > groups.groups[b].size; });
        return std::move(stuck);
      }()),
      active_(std::move(active)),
      works_(std::move(works)),
      tries_left_(tries) {
  std::vector<std::int64_t> elements;
  for (const SizeDimension& dimension : groups.dimensions) {
    elements.resize(dimension.input + 1, 1);
    elements[dimension.input] *= dimension.size;
  }
  is_large_ = std::any_of(elements.begin(), elements.end(), [](std::int64_t each) { return each > kLarge; });
}

// ── Which questions there are
// ─────────────────────────────────────────────────────────────────────────────────────────

bool TieSearch::is_of_another_input(std::uint32_t group, const Some& of) const {
  return std::any_of(of.begin(), of.end(), [&](std::uint32_t each) { return place(each).input != place(group).input; });
}

// Of groups of the same size that one in the same place of its input.
TieSearch::Companions TieSearch::companions_of(std::uint32_t group, const Some& of) const {
  Companions companions;
  Some leaders = of;
  leaders.push_back(group);
  for (const std::uint32_t each : stuck_) {
    if (has(leaders, each)) continue;
    std::optional<std::uint32_t> leader;
    for (const std::uint32_t other : leaders) {
      if (groups_.groups[other].size != groups_.groups[each].size) continue;
      if (!leader || place(other).dim == place(each).dim) leader = other;
    }
    if (leader) companions.emplace_back(each, *leader);
  }
  return companions;
}

TieSearch::Some TieSearch::tie_to_pairs_with_one() { return tie_to_pairs(true); }

TieSearch::Some TieSearch::tie_to_pairs(bool with_one) {
  for (const std::uint32_t group : stuck_) {
    if (groups_.groups[group].step != 1 || groups_.groups[group].size < 2) continue;
    for (std::size_t i = 0; i < stuck_.size(); ++i) {
      for (std::size_t j = i; j < stuck_.size(); ++j) {
        // In the order of the inputs.
        const auto [a, b] = std::minmax(stuck_[i], stuck_[j]);
        const bool is_with_one = std::min(groups_.groups[a].size, groups_.groups[b].size) == 1;
        if (a == group || b == group || is_with_one != with_one || !is_of_another_input(group, {a, b})) continue;
        std::vector<SizeTie> ties = pair_ties(groups_.groups[group].size, sized(a), sized(b));
        if (a == b) std::erase_if(ties, [](const SizeTie& each) { return !each.is_product; });
        if (Some tied = tie(group, {a, b}, ties); !tied.empty()) return tied;
      }
    }
  }
  return {};
}

TieSearch::Some TieSearch::tie_to_area(std::uint32_t group) {
  for (std::size_t i = 0; i + 1 < groups_.dimensions.size(); ++i) {
    const SizeDimension &height = groups_.dimensions[i], &width = groups_.dimensions[i + 1];
    if (height.input != width.input || height.group == width.group || !has(active_, height.group) ||
        !has(active_, width.group) || !is_of_another_input(group, {height.group}))
      continue;
    const std::vector<SizeTie> ties = area_ties(groups_.groups[group].size, sized(height.group), sized(width.group));
    if (Some tied = tie(group, {height.group, width.group}, ties); !tied.empty()) return tied;
  }
  return {};
}

// Dimensions in the same place of their inputs first.
TieSearch::Some TieSearch::tie_to_one(std::uint32_t group) {
  Some others = active_;
  std::stable_partition(others.begin(), others.end(),
                        [&](std::uint32_t other) { return place(other).dim == place(group).dim; });
  for (const std::uint32_t of : others) {
    if (of == group || !is_of_another_input(group, {of})) continue;
    std::vector<SizeTie> ties = quotient_ties(groups_.groups[group].size, sized(of));
    if (has(stuck_, of)) {
      for (SizeTie& each : affine_ties(groups_.groups[group].size, sized(of))) ties.push_back(std::move(each));
    }
    if (Some tied = tie(group, {of}, ties); !tied.empty()) return tied;
  }
  return {};
}

TieSearch::Some TieSearch::tie_to_any() {
  if (Some tied = tie_to_pairs(false); !tied.empty()) return tied;
  for (auto group = stuck_.rbegin(); group != stuck_.rend(); ++group) {
    if (groups_.groups[*group].step != 1 || groups_.groups[*group].size < 2) continue;
    if (Some tied = tie_to_area(*group); !tied.empty()) return tied;
    if (Some tied = tie_to_one(*group); !tied.empty()) return tied;
  }
  return {};
}

// ── Answering one
// ─────────────────────────────────────────────────────────────────────────────────────────────────────

// Other sizes for what the tie is made of: odd and even ones, and far enough for quotients to be told apart. False when
// one of them cannot be.
bool TieSearch::moves(const Question& question, GroupSizes& sizes, std::size_t way) const {
  sizes = groups_.examples();
  for (std::size_t i = 0; i < question.of.size(); ++i) {
    const SizeGroup& group = groups_.groups[question.of[i]];
    const std::int64_t units = group.size / group.step, half = is_large_ ? units / 2 : 2 * units;
    const std::int64_t other[kWays] = {is_large_ ? units + units / 4 + 1 : 2 * units + 1, units + 1, units + half + 2};
    std::int64_t size = other[(way + 2 * i) % kWays] * group.step;
    if (!group.may_be(size)) size = (units - 1 - static_cast<std::int64_t>(way)) * group.step;
    if (!group.may_be(size)) return false;
    sizes[question.of[i]] = size;
  }
  return true;
}

bool TieSearch::tries(const Question& question, GroupSizes sizes, std::int64_t size) {
  if (tries_left_ == 0) return false;
  --tries_left_;
  sizes[question.group] = size;
  for (const auto& [group, with] : question.companions) sizes[group] = sizes[with];
  return works_(sizes);
}

// Leaves the ties that have the value which does at these sizes; none when no value does.
bool TieSearch::is_one_of(const Question& question, const GroupSizes& sizes, std::vector<SizeTie>& ties) {
  std::vector<SizeTie> open = std::move(ties);
  ties.clear();
  while (!open.empty() && ties.empty()) {
    const std::int64_t value = open.front().value(sizes);
    const auto others =
        std::stable_partition(open.begin(), open.end(), [&](const SizeTie& tie) { return tie.value(sizes) == value; });
    if (value >= 0 && tries(question, sizes, value)) ties.assign(open.begin(), others);
    open.erase(open.begin(), others);
  }
  return !ties.empty();
}

std::optional<GroupSizes> TieSearch::where_they_differ(const Question& question,
                                                       const std::vector<SizeTie>& ties) const {
  constexpr std::int64_t kFarthest = 4096, kTimes = 3;
  for (std::int64_t by = 1; by <= kFarthest; ++by) {
    GroupSizes sizes = groups_.examples();
    bool may_be = true;
    for (std::size_t i = 0; i < question.of.size(); ++i) {
      const SizeGroup& group = groups_.groups[question.of[i]];
      std::int64_t& size = sizes[question.of[i]];
      if (by > kTimes * size + 64) return std::nullopt;
      size += group.step * (i == 0 ? by : 2 * by + 1);
      may_be = may_be && group.may_be(size);
    }
    const auto differs = [&](const SizeTie& tie) { return tie.value(sizes) != ties.front().value(sizes); };
    if (may_be && std::any_of(ties.begin(), ties.end(), differs)) return sizes;
  }
  return std::nullopt;
}

// Whether the size does not do when it is another, and all else is as in the examples: one more or less, twice as much,
// or more by the unit of all differences that were seen.
bool TieSearch::is_determined(const Question& question, std::int64_t unit) {
  const std::int64_t size = groups_.groups[question.group].size;
  const std::set<std::int64_t> others = {size + 1, size + unit, 2 * size, size < 3 ? size + 1 : size - 1};
  const bool any = std::any_of(others.begin(), others.end(),
                               [&](std::int64_t other) { return tries(question, groups_.examples(), other); });
  return !any && tries_left_ > 0;
}

std::optional<SizeTie> TieSearch::find(const Question& question, std::vector<SizeTie> ties) {
  const std::int64_t size = groups_.groups[question.group].size;
  std::int64_t unit = 0;  // of the differences from the example's
  GroupSizes sizes;
  const auto is_seen_at = [&](const GroupSizes& at) {
    if (!is_one_of(question, at, ties)) return false;
    unit = std::gcd(unit, ties.front().value(at) - size);
    return true;
  };
  for (std::size_t way = 0; way < kWays; ++way) {
    if (!moves(question, sizes, way) || !is_seen_at(sizes)) return std::nullopt;
  }
  for (;;) {
    const std::optional<GroupSizes> other = ties.size() > 1 ? where_they_differ(question, ties) : std::nullopt;
    if (!other) break;
    if (!is_seen_at(*other)) return std::nullopt;
  }
  return unit != 0 && is_determined(question, unit) ? std::optional(ties.front()) : std::nullopt;
}

// What has the same size need not go with the others: first none does, then as many as there are, then fewer.
TieSearch::Some TieSearch::tie(std::uint32_t group, Some of, const std::vector<SizeTie>& ties) {
  constexpr std::size_t kMostCompanions = 3;
  if (ties.empty()) return {};
  Question question{group, std::move(of), {}};
  if (const auto found = find(question, ties)) return apply(question, *found);
  const Companions all = companions_of(group, question.of);
  if (all.empty()) return {};
  const bool is_few = all.size() <= kMostCompanions;
  for (std::size_t left_out = 0; left_out < (is_few ? (std::size_t{1} << all.size()) - 1 : 1); ++left_out) {
    question.companions.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!is_few || (left_out >> i & 1) == 0) question.companions.push_back(all[i]);
    }
    const auto found = find(question, ties);
    if (!found) continue;
    drop_needless(question, *found);
    return apply(question, *found);
  }
  return {};
}

// What need not go with the others goes alone.
void TieSearch::drop_needless(Question& question, const SizeTie& tie) {
  GroupSizes sizes;
  moves(question, sizes, 0);
  for (const auto& each : Companions(question.companions)) {
    Question less = question;
    std::erase(less.companions, each);
    if (tries(less, sizes, tie.value(sizes))) question = std::move(less);
  }
}

// Groups become one under the number of the first of them: until then they are known by a dimension.
TieSearch::Some TieSearch::apply(const Question& question, SizeTie tie) {
  const auto dimension_of = [this](std::uint32_t group) { return groups_.groups[group].dimensions.front(); };
  const auto group_of = [this](std::uint32_t dimension) { return groups_.dimensions[dimension].group; };
  const std::uint32_t followed_by = dimension_of(question.group);
  Companions equal;
  Some tied = {question.group};
  for (const auto& [group, with] : question.companions) {
    equal.emplace_back(dimension_of(group), dimension_of(with));
    tied.insert(tied.end(), {group, with});
  }
  for (std::uint32_t& each : tie.of) each = dimension_of(each);
  for (const auto& [dimension, with] : equal) groups_.tie(group_of(with), group_of(dimension));
  for (std::uint32_t& each : tie.of) each = group_of(each);
  groups_.follow(group_of(followed_by), std::move(tie));
  return tied;
}

}  // namespace fx::internal
