// The parts of a SizeSearch that tie what does not vary alone to dimensions of the same size.
#include <fxgraph/trace/size_search.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fxgraph/symbolic/relations.h>
#include <fxgraph/trace/size_demands.h>

namespace fx::internal {
namespace {

bool holds_at(const SizeCondition& condition, const std::map<std::string, std::int64_t>& sizes) {
  const std::optional<std::int64_t> left = condition.left.evaluate(sizes), right = condition.right.evaluate(sizes);
  if (!left || !right) return false;
  if (condition.relation == SizeRelation::holds) return *left != 0;
  if (condition.relation == SizeRelation::multiple) return *right != 0 && *left % *right == 0;
  const auto row = std::ranges::find(kRelations, condition.relation, &RelationRow::relation);
  return row->holds(static_cast<double>(*left), static_cast<double>(*right));
}

}  // namespace

// What the call that should have come asks of sizes is in its record: nothing has to be tried. False where that says
// nothing, or more than this. Of a call that was not made nobody knows its numbers: only what is equal counts.
bool SizeSearch::settle_as_demanded(const GroupSizes& sizes, const Probe& failure) {
  const std::uint32_t at = program_.log.operator_at(failure.failed_at());
  if (failure.came_through() || at >= program_.log.size() || failure.slices_more()) return false;
  std::map<std::string, std::int64_t> tried;
  for (std::uint32_t i = 0; i < sizes.size(); ++i) tried.emplace(group_symbol(i), sizes[i]);
  bool is_settled = false;
  for (const SizeCondition& demand : demands_of(at, program_, failure, groups_)) {
    std::set<std::string> asked;
    const auto note = [&](const std::string& symbol) { asked.insert(symbol); };
    demand.left.for_each_symbol(note);
    demand.right.for_each_symbol(note);
    const bool is_of_groups =
        std::ranges::all_of(asked, [&](const std::string& symbol) { return tried.contains(symbol); });
    if (asked.empty() || !is_of_groups || holds_at(demand, tried)) continue;
    const std::uint32_t first = group_of_symbol(*asked.begin()), last = group_of_symbol(*asked.rbegin());
    if (groups_.groups[first].dimensions.empty() || groups_.groups[last].dimensions.empty()) continue;  // tied by now
    const bool is_tie = demand.relation == SizeRelation::equal && demand.left.is_symbol() && demand.right.is_symbol();
    if (is_tie && groups_.groups[first].size == groups_.groups[last].size) {
      groups_.tie(first, last);
    } else if (asked.size() > 1 || !failure.operator_refused() || !keep_to(first, sizes[first], demand, failure)) {
      continue;
    }
    is_settled = true;
    SizeGroup& group = groups_.groups[std::min(first, last)];
    group.explain_by(reason(failure), failure.place());
  }
  return is_settled;
}

// Sizes from some on or up to some; else multiples; else those around the example's, or it alone.
bool SizeSearch::keep_to(std::uint32_t index, std::int64_t tried, const SizeCondition& demand, const Probe& failure) {
  SizeGroup& group = groups_.groups[index];
  const std::string symbol = group_symbol(index);
  constexpr std::int64_t kMostSize = 2048;
  const std::int64_t size = group.size, most = 4 * size + 16;
  if (!holds_at(demand, {{symbol, size}})) return false;
  if (demand.relation == SizeRelation::equal && demand.left.is_symbol() && demand.right.is_integer())
    return fix_unless_near(index, tried, failure);
  if (size > kMostSize) return false;
  const auto does = [&](std::int64_t each) { return each > 0 && holds_at(demand, {{symbol, each}}); };
  std::int64_t below = size - 1, above = size + 1, all = 0;
  while (does(below)) --below;
  while (above <= most && does(above)) ++above;
  for (std::int64_t each = 1; each <= most; ++each) all += does(each) ? 1 : 0;
  const bool is_range = all == above - below - 1;
  for (std::int64_t step = 2; step <= size && !is_range; ++step) {
    bool is_step = size % step == 0 && step % group.step == 0;
    for (std::int64_t each = step; each <= most && is_step; each += step) is_step = does(each);
    if (is_step && tried % step != 0) return group.vary_in(step), true;
  }
  if (tried > below && (tried < above || above > most)) return false;
  if (above - below == 2) return is_range && fix_unless_near(index, tried, failure);
  // Further on it may do again: there nobody has looked.
  if (below > 0) group.below = std::max(group.below, below), group.below_said = group.below_said && is_range;
  if (above <= most) group.above = std::min(group.above, above), group.above_said = group.above_said && is_range;
  return true;
}

// A weight has the sizes that it has. Else what is one broadcasts, and a program may slice a table for smaller ones.
bool SizeSearch::fix_unless_near(std::uint32_t index, std::int64_t tried, const Probe& failure) {
  SizeGroup& group = groups_.groups[index];
  const std::uint32_t last = failure.failed_at();
  const bool is_larger = tried > group.size;
  if (is_held_by_parameter(failure) || !works_at({index}, group.size + (is_larger ? -1 : 1), last)) {
    group.fix(reason(failure), failure.where());
    return true;
  }
  if (!is_larger || works_at({index}, tried, last)) return false;
  group.above = group.size + 1;
  return true;
}

bool SizeSearch::works_at(const Some& some, std::int64_t size, std::uint32_t last) {
  return size >= 1 && works(groups_.examples_with(some, size), last);
}

// Any two of one size, for they may be so by chance; else all that fail. Returns those left over.
SizeSearch::Some SizeSearch::tie(Some culprits, const Some& active, const GroupSizes& sizes, std::uint32_t last) {
  Some left;
  while (!culprits.empty()) {
    const std::uint32_t first = culprits.front();
    const auto is_alike = [&](std::uint32_t other) {
      const SizeGroup& group = groups_.groups[other];
      return group.size == groups_.groups[first].size && !group.fixed && !group.dimensions.empty();
    };
    Some alike;
    std::ranges::copy_if(culprits, std::back_inserter(alike), is_alike);
    Some others = alike;
    std::ranges::copy_if(active, std::back_inserter(others), [&](std::uint32_t each) {
      return is_alike(each) && std::ranges::find(alike, each) == alike.end();
    });
    const auto partner = std::ranges::find_if(others, [&](std::uint32_t other) {
      return other != first && works_at({first, other}, sizes[first], last);
    });
    Some tied = {first};
    if (partner != others.end()) {
      tied.push_back(*partner);
    } else if (alike.size() > 2 && works_at(alike, sizes[first], last)) {
      tied = alike;
    } else {
      left.push_back(first);
    }
    for (const std::uint32_t each : tied) {
      if (each != first) groups_.tie(first, each);
      std::erase(culprits, each);
    }
  }
  return left;
}

}  // namespace fx::internal
