#include <fxgraph/export/free_sizes.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fxgraph/effects/effects_of.h>

namespace fx::pt2 {
namespace {

constexpr std::array<std::int64_t, 9> kSteps = {2, 3, 4, 6, 8, 16, 32, 64, 128};
constexpr int kNearby = 40;                  // so many numbers around the example are asked one by one
constexpr std::int64_t kFarthest = 1 << 20;  // a bound past this is none

class Search {
 public:
  Search(const SizePlaces& places, const SizeTies& ties, const SizeQuestion& allowed, const SizeQuestion& runs)
      : places_(places), ties_(ties), allowed_(allowed), runs_(runs), taken_(places.size()) {
    for (const auto& [place, size] : places) example_[place] = size;
    for (std::size_t i = 0; i < places.size(); ++i) taken_[i] = ties.contains(places[i].first);
  }

  std::vector<FreeSize> find() {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (!taken_[i]) try_alone(i);
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (!taken_[i]) try_tied(i);
    }
    settle();
    for (FreeSize& each : found_) find_range(each);
    return std::move(found_);
  }

 private:
  Symbols with(const FreeSize& free, std::int64_t number) const {
    Symbols sizes = example_;
    set(sizes, free, number);
    return with_ties(std::move(sizes));
  }
  Symbols with_ties(Symbols sizes) const {
    for (const auto& [place, expr] : ties_) sizes[place] = expr.evaluate(sizes).value_or(-1);
    return sizes;
  }
  static void set(Symbols& sizes, const FreeSize& free, std::int64_t number) {
    for (const std::string& place : free.places) sizes[place] = number * free.step;
  }

  // The next numbers are allowed, and the program runs at the first of them.
  bool goes(const FreeSize& free) const {
    if (!allowed_(with(free, free.example + 1))) return false;
    return runs_(with(free, free.example + 1));
  }

  bool add(FreeSize free, const std::vector<std::size_t>& members) {
    const std::int64_t size = free.example;
    if (!goes(free)) {
      const auto works = [&](std::int64_t step) {
        if (size % step != 0) return false;
        free.step = step;
        free.example = size / step;
        return goes(free);
      };
      // The step that is asserted, when one is; else what runs.
      if (!std::ranges::any_of(kSteps, works)) return false;
    }
    for (const std::size_t member : members) taken_[member] = true;
    found_.push_back(std::move(free));
    return true;
  }

  void try_alone(std::size_t at) { add({{places_[at].first}, 1, places_[at].second}, {at}); }

  void try_tied(std::size_t at) {
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (i != at && !taken_[i] && places_[i].second == places_[at].second) others.push_back(i);
    }
    for (const std::size_t other : others) {
      if (add({{places_[at].first, places_[other].first}, 1, places_[at].second}, {at, other})) {
        join_all(others);
        return;
      }
    }
    if (others.size() < 2) return;
    FreeSize all{{places_[at].first}, 1, places_[at].second};
    for (const std::size_t other : others) all.places.push_back(places_[other].first);
    others.push_back(at);
    add(std::move(all), others);
  }

  // More of the same size may have to come along: those that do not go alone do.
  void join_all(const std::vector<std::size_t>& others) {
    for (const std::size_t other : others) {
      if (taken_[other]) continue;
      FreeSize joined = found_.back();
      joined.places.push_back(places_[other].first);
      if (!goes(joined)) continue;
      found_.back() = std::move(joined);
      taken_[other] = true;
    }
  }

  bool all_go(const std::vector<FreeSize>& free) const {
    Symbols sizes = example_;
    std::int64_t offset = 1;
    for (const FreeSize& each : free) set(sizes, each, each.example + offset++);
    sizes = with_ties(std::move(sizes));
    return allowed_(sizes) && runs_(sizes);
  }

  // What goes one by one need not go together: inputs that broadcast against each other have one size, or the last
  // found stays as it is.
  void settle() {
    if (found_.size() < 2 || all_go(found_)) return;
    std::vector<FreeSize> kept;
    for (FreeSize& each : found_) {
      kept.push_back(each);
      if (all_go(kept)) continue;
      kept.pop_back();
      for (FreeSize& other : kept) {
        if (other.example != each.example || other.step != each.step) continue;
        FreeSize before = other;
        other.places.insert(other.places.end(), each.places.begin(), each.places.end());
        if (all_go(kept)) break;
        other = std::move(before);
      }
    }
    found_ = std::move(kept);
  }

  // The numbers around the example that the assertions allow.
  void find_range(FreeSize& free) const {
    const std::int64_t low = farthest(free, free.example, -1), high = farthest(free, free.example + 1, 1);
    if (low > 0) free.range.min = low;
    if (high < kFarthest) free.range.max = high;
  }

  // From `number` on one by one, then in doublings, then back to the last that is allowed.
  std::int64_t farthest(const FreeSize& free, std::int64_t number, std::int64_t direction) const {
    const auto reaches = [&](std::int64_t step) {
      const std::int64_t next = number + direction * step;
      return next >= 0 && next <= kFarthest && allowed_(with(free, next));
    };
    for (int i = 0; i < kNearby; ++i) {
      if (!reaches(1)) return number;
      number += direction;
    }
    std::int64_t step = 1;
    for (; reaches(step); step *= 2) number += direction * step;
    if (direction > 0 && number + step > kFarthest) return kFarthest;
    for (; step > 0; step /= 2) {
      if (reaches(step)) number += direction * step;
    }
    return number;
  }

  const SizePlaces& places_;
  const SizeTies& ties_;
  const SizeQuestion& allowed_;
  const SizeQuestion& runs_;
  Symbols example_;
  std::vector<bool> taken_;
  std::vector<FreeSize> found_;
};

// Calls that look at sizes and numbers alone.
bool reads_no_data(const Node& node) {
  if (!node.is(Op::call_function)) return false;
  constexpr std::array<std::string_view, 8> kQuestions = {"aten::size.int",   "aten::size",   "aten::dim",
                                                          "aten::stride.int", "aten::len",    "aten::numel",
                                                          "builtins.len",     "torch._assert"};
  const std::string_view target = node.target().view();
  if (std::ranges::find(kQuestions, target) != kQuestions.end()) return true;
  return target.starts_with("operator.") || target.starts_with("math.") || target.starts_with("builtins.") ||
         target.starts_with("prim::") ||
         (target.starts_with("aten::") && (target.ends_with(".int") || target.ends_with(".bool")));
}

}  // namespace

Graph checks_of(const Graph& graph) {
  Graph checks = graph.clone();
  NodeMap<bool> kept(checks);
  std::vector<Node*> others;
  for (Node& node : checks.nodes()) {
    kept[node] = node.is(Op::placeholder);
    if (!reads_no_data(node)) {
      if (!node.is(Op::placeholder)) others.push_back(&node);
      continue;
    }
    bool known = true;
    for (const Node* input : node.all_input_nodes()) known &= kept[*input];
    kept[node] = known;
    if (!known) others.push_back(&node);
  }
  for (auto node = others.rbegin(); node != others.rend(); ++node) checks.erase_node(**node);
  checks.output(Argument());
  eliminate_dead_code(checks);
  return checks;
}

std::vector<FreeSize> find_free_sizes(const SizePlaces& places, const SizeQuestion& allowed, const SizeQuestion& runs,
                                      const SizeTies& ties) {
  return Search(places, ties, allowed, runs).find();
}

}  // namespace fx::pt2
