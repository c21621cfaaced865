#include <fxgraph/rewriter/revisit.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace fx::internal {

/// Walks a pattern from its anchor outward and notes the ways back.
///
/// A way climbs where it can from inner values alone, which have few users: of what thousands share, such as a weight,
/// they would all be looked at for each edit. Such values join what nothing else joins, as two results that are
/// returned.
class RevisitPaths::Walk {
 public:
  Walk(const PatternFacts& facts, RevisitPaths& paths)
      : facts_(facts),
        paths_(paths),
        parents_(facts.size()),
        seen_(facts.size()),
        held_(facts.size()),
        inner_(facts.size()) {
    for (std::uint32_t i = 0; i < facts.size(); ++i)
      for_each_operand(i, [&](std::uint32_t child) { parents_[child].push_back(i); });
    for (const std::vector<std::uint32_t>& users : parents_)
      paths.most_users_ = std::max(paths.most_users_, users.size());
    find_calls();
    joins_by_shared_ = !roots_hang_together();
  }

  /// One way to each place: without alternatives any way will do.
  void breadth_first(std::uint32_t anchor) {
    std::vector<Place> open = {{anchor, "", false}};
    seen_[anchor] = true;
    for (std::size_t next = 0; next < open.size(); ++next) {
      const Place place = open[next];
      note(place.back);
      for_each_neighbour(place, [&](Place neighbour) {
        if (seen_[neighbour.index]) return;
        seen_[neighbour.index] = true;
        open.push_back(std::move(neighbour));
      });
    }
  }

  /// Every way: which one holds depends on the alternatives that fit. False when there are too many.
  bool every_way(const Place& place) {
    if (++ways_ > kMostWays) return false;
    note(place.back);
    seen_[place.index] = true;
    bool all = true;
    for_each_neighbour(place, [&](const Place& neighbour) {
      if (!seen_[neighbour.index] && all) all = every_way(neighbour);
    });
    seen_[place.index] = false;
    return all;
  }

 private:
  static constexpr int kMostWays = 2000;

  const PatternNode& node(std::uint32_t index) const { return facts_.node(index); }
  bool is_call(std::uint32_t index) const { return node(index).kind == PatternKind::call; }

  /// Operands, and alternatives: lists are no places of their own.
  template <typename Visit>
  void for_each_operand(std::uint32_t index, Visit&& visit) const {
    if (node(index).kind != PatternKind::sequence) for_each_below(index, visit);
  }
  template <typename Visit>
  void for_each_below(std::uint32_t index, Visit& visit) const {
    node(index).for_each_child([&](std::uint32_t child) {
      if (node(child).kind == PatternKind::sequence) return for_each_below(child, visit);
      if (node(child).kind != PatternKind::literal) visit(child);
    });
  }

  /// Calls that a match holds, which of several results may be one that is returned.
  void find_calls() {
    std::vector<bool> negated(facts_.size());
    for (std::uint32_t i = static_cast<std::uint32_t>(facts_.size()); i-- > 0;) {
      const bool from = negated[i] || node(i).kind == PatternKind::negation;
      for_each_operand(i, [&](std::uint32_t child) { negated[child] = negated[child] || from; });
    }
    for (std::uint32_t i = 0; i < facts_.size(); ++i) {
      held_[i] = !negated[i] && ((is_call(i) && node(i).op != Op::placeholder) || node(i).kind == PatternKind::one_of);
      if (node(i).kind == PatternKind::one_of)
        for_each_operand(i, [&](std::uint32_t child) { held_[i] = held_[i] && held_[child]; });
    }
    const std::vector<std::uint32_t>& outputs = facts_.pattern->outputs;
    if (std::ranges::all_of(outputs, [&](std::uint32_t output) { return output == outputs[0]; })) inner_ = held_;
    for (const std::uint32_t output : outputs) inner_[output] = false;
  }

  /// True when all that is returned is joined, in every match, by calls.
  bool roots_hang_together() const {
    std::vector<std::uint32_t> set(facts_.size());
    std::iota(set.begin(), set.end(), 0U);
    const auto find = [&](std::uint32_t i) {
      while (set[i] != i) i = set[i];
      return i;
    };
    for (std::uint32_t i = 0; i < facts_.size(); ++i) {
      if (!is_call(i) || !facts_.direct[i]) continue;
      for_each_operand(i, [&](std::uint32_t child) {
        if (is_call(child) && facts_.direct[child]) set[find(child)] = find(i);
      });
    }
    const std::vector<std::uint32_t>& roots = facts_.pattern->roots;
    return std::ranges::all_of(roots, [&](std::uint32_t root) { return find(root) == find(roots[0]); });
  }

  /// From a call to an operand is one use of it; through an alternative is none.
  template <typename Visit>
  void for_each_neighbour(const Place& place, Visit&& visit) {
    const std::uint32_t index = place.index;
    for_each_operand(index, [&](std::uint32_t child) {
      visit(Place{child, is_call(index) ? (inner_[child] ? 'i' : 'u') + place.back : place.back, true});
    });
    if (place.is_from_above && !held_[index] && !joins_by_shared_) return;
    for (const std::uint32_t parent : parents_[index])
      visit(Place{parent, is_call(parent) ? 'd' + place.back : place.back, false});
  }

  void note(const std::string& back) {
    std::uint32_t at = 0;
    for (const char step : back) {
      const auto next = [&]() -> std::uint32_t& {
        Step& from = paths_.steps_[at];
        return step == 'u' ? from.up : step == 'i' ? from.up_inner : from.down;
      };
      if (next() == 0) {
        const auto fresh = static_cast<std::uint32_t>(paths_.steps_.size());
        paths_.steps_.emplace_back();
        next() = fresh;
      }
      at = next();
    }
    paths_.steps_[at].arrives = true;
  }

  const PatternFacts& facts_;
  RevisitPaths& paths_;
  std::vector<std::vector<std::uint32_t>> parents_;
  std::vector<bool> seen_, held_;
  std::vector<bool> inner_;  // have no users outside of a match
  bool joins_by_shared_ = false;
  int ways_ = 0;
};

bool RevisitPaths::add(const PatternFacts& facts, const SearchPlan& plan) {
  Walk walk(facts, *this);
  const auto anywhere = [](const PlanStep& step) { return step.via == kNoPattern; };
  if (!facts.is_local() || std::ranges::any_of(plan.steps, anywhere)) return false;
  if (facts.has_alternatives || facts.has_negations) return walk.every_way({plan.anchor, "", false});
  walk.breadth_first(plan.anchor);
  return true;
}

// Paths are added as a tree, in which a step stands before those that it leads to.
void RevisitPaths::merge() {
  std::map<Step, std::uint32_t> known;
  std::vector<std::uint32_t> merged(steps_.size());
  std::vector<Step> steps(1);
  const auto of = [&](const Step& step) {
    return Step{merged[step.up], merged[step.up_inner], merged[step.down], step.arrives};
  };
  for (std::size_t i = steps_.size() - 1; i > 0; --i) {
    const auto [same, is_new] = known.try_emplace(of(steps_[i]), static_cast<std::uint32_t>(steps.size()));
    if (is_new) steps.push_back(same->first);
    merged[i] = same->second;
  }
  steps[0] = of(steps_[0]);
  steps_ = std::move(steps);
}

bool RevisitPaths::Visited::insert(std::uint32_t step, std::size_t num_steps, const Node& node) {
  const std::size_t words = 1 + (num_steps + 63) / 64, at = node.id() * words;
  if (at + words > notes_.size()) notes_.resize(at + words + notes_.size() / 2);
  std::uint64_t* notes = &notes_[at];
  if (notes[0] != edit_) {
    std::fill_n(notes, words, 0);
    notes[0] = edit_;
  }
  std::uint64_t& word = notes[1 + step / 64];
  const std::uint64_t bit = std::uint64_t(1) << (step % 64);
  const bool is_new = (word & bit) == 0;
  word |= bit;
  return is_new;
}

}  // namespace fx::internal
