// The parts of a SizeSearch that tie what does not vary alone to dimensions of the same size.
#include <fxgraph/trace/size_search.h>

#include <algorithm>
#include <bit>

namespace fx::internal {

bool SizeSearch::tie_all(const Some& some, const GroupSizes& sizes, std::uint32_t last) {
  if (!works_at(some, sizes[some.front()], last)) return false;
  // Those that are tied are known by the first of them.
  const std::uint32_t first = *std::min_element(some.begin(), some.end());
  for (const std::uint32_t group : some) {
    if (group != first) groups_.tie(first, group);
  }
  return true;
}

// Of those of one size, those that the program takes together with the first: with one that belongs to them it comes
// further before it fails, with one of another kind it does not. None when no one brings it further.
SizeSearch::Some SizeSearch::tie_one_by_one(const Some& alike, const GroupSizes& sizes, std::uint32_t last) {
  const std::uint32_t first = alike.front();
  Some tied = {first};
  const auto reached_with = [&](const Some& some) {
    bool came_through = false;
    const std::unique_ptr<Sample> sample = attempt(groups_.examples_with(some, sizes[first]), last, &came_through);
    return came_through ? Sample::kToTheEnd : sample->failed_at();
  };
  std::uint32_t reached = reached_with(tied);
  for (bool goes_on = true; goes_on && reached != Sample::kToTheEnd;) {
    goes_on = false;
    for (const std::uint32_t other : alike) {
      if (std::find(tied.begin(), tied.end(), other) != tied.end()) continue;
      tied.push_back(other);
      const std::uint32_t with_other = reached_with(tied);
      goes_on |= with_other > reached;
      if (with_other <= reached) tied.pop_back();
      reached = std::max(reached, with_other);
      if (reached == Sample::kToTheEnd) break;
    }
  }
  if (reached != Sample::kToTheEnd) return {};
  return tie_all(tied, sizes, last) ? tied : Some();
}

// All of one size, but for those without which it works as well.
SizeSearch::Some SizeSearch::tie_needed(Some alike, const GroupSizes& sizes, std::uint32_t last) {
  const std::int64_t size = sizes[alike.front()];
  if (!works_at(alike, size, last)) return {};
  for (std::size_t i = alike.size(); i-- > 1;) {
    Some less = alike;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    if (works_at(less, size, last)) alike = std::move(less);
  }
  return tie_all(alike, sizes, last) ? alike : Some();
}

// Any three or more of those of one size with the first, the fewest before others: a batch and the same of two states,
// where as many layers as that batch has are of that size, too.
SizeSearch::Some SizeSearch::tie_some(const Some& alike, const GroupSizes& sizes, std::uint32_t last) {
  constexpr std::size_t kMost = 6;
  if (alike.size() < 4 || alike.size() > kMost) return {};
  const auto num_others = static_cast<unsigned>(alike.size() - 1);
  for (unsigned count = 2; count < num_others; ++count) {
    for (unsigned others = 0; others < (1U << num_others); ++others) {
      if (static_cast<unsigned>(std::popcount(others)) != count) continue;
      Some some = {alike.front()};
      for (unsigned i = 0; i < num_others; ++i) {
        if (others >> i & 1U) some.push_back(alike[i + 1]);
      }
      if (tie_all(some, sizes, last)) return some;
    }
  }
  return {};
}

// Those that fail in the same place of several inputs first, then any two, then those that go together, then all of one
// size that need each other: two of one size may be so by chance. Returns those left over.
SizeSearch::Some SizeSearch::tie(Some culprits, const Some& active, const GroupSizes& sizes, std::uint32_t last) {
  Some left;
  const auto place = [&](std::uint32_t group) {
    const SizeDimension& first = groups_.dimensions[groups_.groups[group].dimensions.front()];
    return std::pair(first.input, first.dim);
  };
  while (!culprits.empty()) {
    const std::uint32_t first = culprits.front();
    const std::int64_t size = groups_.groups[first].size;
    Some alike = {first}, same_place = {first};
    const auto consider = [&](std::uint32_t other) {
      const SizeGroup& group = groups_.groups[other];
      if (other == first || group.size != size || group.fixed || group.dimensions.empty()) return;
      if (std::find(alike.begin(), alike.end(), other) != alike.end()) return;
      alike.push_back(other);
    };
    for (const std::uint32_t other : culprits) consider(other);
    for (const std::uint32_t other : alike) {
      if (place(other).first != place(first).first && place(other).second == place(first).second)
        same_place.push_back(other);
    }
    const std::size_t num_culprits = alike.size();
    for (const std::uint32_t other : active) consider(other);
    Some tied;
    if (same_place.size() > 1 && tie_all(same_place, sizes, last)) tied = same_place;
    for (std::size_t i = 1; i < alike.size() && tied.empty(); ++i) {
      if (tie_all({first, alike[i]}, sizes, last)) tied = {first, alike[i]};
    }
    if (tied.empty() && alike.size() > 2) tied = tie_one_by_one(alike, sizes, last);
    if (tied.empty() && alike.size() > 2) tied = tie_needed(alike, sizes, last);
    alike.resize(std::max(num_culprits, std::size_t{1}));
    if (tied.empty()) tied = tie_some(alike, sizes, last);
    if (tied.empty() && alike.size() > 2 && tie_all(alike, sizes, last)) tied = alike;
    if (tied.empty()) left.push_back(first), tied = {first};
    std::erase_if(culprits,
                  [&](std::uint32_t each) { return std::find(tied.begin(), tied.end(), each) != tied.end(); });
  }
  return left;
}

}  // namespace fx::internal
