#include <fxgraph/rewriter/revisit.h>

#include <algorithm>
#include <map>

namespace fx::internal {

/// Walks a pattern from its anchor outward and notes the ways back.
class RevisitPaths::Walk {
 public:
  Walk(const PatternFacts& facts, RevisitPaths& paths)
      : facts_(facts), paths_(paths), parents_(facts.size()), seen_(facts.size()) {
    for (std::uint32_t i = 0; i < facts.size(); ++i) {
      facts.node(i).for_each_child([&](std::uint32_t child) { parents_[child].push_back(i); });
    }
    for (const std::vector<std::uint32_t>& users : parents_)
      paths.most_users_ = std::max(paths.most_users_, users.size());
  }

  /// One way to each place: without alternatives any way will do.
  void breadth_first(std::uint32_t anchor) {
    std::vector<std::pair<std::uint32_t, std::string>> open = {{anchor, ""}};
    seen_[anchor] = true;
    for (std::size_t next = 0; next < open.size(); ++next) {
      const auto [index, back] = open[next];
      note(index, back);
      for_each_neighbour(index, [&](std::uint32_t neighbour, char step) {
        if (seen_[neighbour]) return;
        seen_[neighbour] = true;
        open.emplace_back(neighbour, step ? back + step : back);
      });
    }
  }

  /// Every way: which one holds depends on the alternatives that fit. False when there are too many.
  bool every_way(std::uint32_t index, const std::string& back) {
    if (++ways_ > kMostWays) return false;
    note(index, back);
    seen_[index] = true;
    bool all = true;
    for_each_neighbour(index, [&](std::uint32_t neighbour, char step) {
      if (!seen_[neighbour] && all) all = every_way(neighbour, step ? back + step : back);
    });
    seen_[index] = false;
    return all;
  }

 private:
  static constexpr int kMostWays = 2000;

  /// From a call to an operand is one use of it; through a list or an alternative is none.
  template <typename Visit>
  void for_each_neighbour(std::uint32_t index, Visit&& visit) {
    const bool call = facts_.node(index).kind == PatternKind::call;
    facts_.node(index).for_each_child([&](std::uint32_t child) {
      if (facts_.node(child).kind != PatternKind::literal) visit(child, call ? 'u' : '\0');
    });
    for (const std::uint32_t parent : parents_[index])
      visit(parent, facts_.node(parent).kind == PatternKind::call ? 'd' : '\0');
  }

  /// `back` leads to the anchor when it is read from its end.
  void note(std::uint32_t index, const std::string& back) {
    if (facts_.node(index).kind == PatternKind::sequence) return;
    std::uint32_t at = 0;
    for (std::size_t i = back.size(); i-- > 0;) {
      const auto next = [&]() -> std::uint32_t& {
        return back[i] == 'u' ? paths_.steps_[at].up : paths_.steps_[at].down;
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
  std::vector<bool> seen_;
  int ways_ = 0;
};

bool RevisitPaths::add(const PatternFacts& facts, const SearchPlan& plan) {
  Walk walk(facts, *this);
  const auto anywhere = [](const PlanStep& step) { return step.via == kNoPattern; };
  if (!facts.is_local() || std::ranges::any_of(plan.steps, anywhere)) return false;
  if (facts.has_alternatives || facts.has_negations) return walk.every_way(plan.anchor, "");
  walk.breadth_first(plan.anchor);
  return true;
}

// Paths are added as a tree, in which a step stands before those that it leads to.
void RevisitPaths::merge() {
  std::map<Step, std::uint32_t> known;
  std::vector<std::uint32_t> merged(steps_.size());
  std::vector<Step> steps(1);
  const auto of = [&](const Step& step) { return Step{merged[step.up], merged[step.down], step.arrives}; };
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
