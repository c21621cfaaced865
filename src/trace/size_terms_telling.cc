// Sizes that tell rules apart: `int(h * 0.7)` is 7 h / 10 up to 89 and one less at 90, `lround(h * 0.09)` looks like a
// division by 11 for long. What rounds a real multiple of a size is listed, as far as it explains what was seen, and
// the sizes at which most of it gives other numbers than the rule that was found are named; and those at which that one
// steps up, which another divisor does elsewhere.
#include <algorithm>
#include <bitset>
#include <cmath>

#include <fxgraph/trace/real_rules.h>
#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

constexpr std::size_t kFarthest = 1024;
constexpr std::int64_t kBeyond = 1 << 18;                     // where float parts from double at last
constexpr std::size_t kMostSizes = 4, kMostSizesOfReal = 12;  // of one rule

// Of the sizes that are allowed, those at which most of the rules are seen not to be `found`, until all are.
template <typename Found, typename Allows>
std::vector<std::int64_t> sizes_that_tell(const std::vector<RealRule>& rules, Found&& found, Allows&& allows,
                                          std::size_t most) {
  std::vector<std::bitset<kFarthest + 1>> differs(rules.size());
  for (std::size_t size = 1; size <= kFarthest; ++size) {
    const auto at = static_cast<std::int64_t>(size);
    if (!allows(at)) continue;
    const std::int64_t expected = found(at);
    for (std::size_t i = 0; i < rules.size(); ++i) differs[i][size] = rules[i].at(at) != expected;
  }
  std::erase_if(differs, [](const auto& each) { return each.none(); });
  std::vector<std::int64_t> sizes;
  while (!differs.empty() && sizes.size() < most) {
    std::vector<std::size_t> count(kFarthest + 1, 0);
    for (const auto& each : differs) {
      for (std::size_t size = 1; size <= kFarthest; ++size) count[size] += each[size];
    }
    const auto best = static_cast<std::size_t>(std::max_element(count.begin(), count.end()) - count.begin());
    sizes.push_back(static_cast<std::int64_t>(best));
    std::erase_if(differs, [&](const auto& each) { return each[best]; });
  }
  return sizes;
}

// Of the rules that are the same as `found` up to there, the first sizes beyond at which they are not.
template <typename Found, typename Allows>
std::vector<std::int64_t> sizes_beyond_that_tell(const std::vector<RealRule>& rules, Found&& found, Allows&& allows) {
  std::vector<const RealRule*> open;
  const auto is_same = [&](const RealRule& rule) {
    for (std::int64_t at = 1; at <= static_cast<std::int64_t>(kFarthest); ++at) {
      if (rule.at(at) != found(at) && allows(at)) return false;
    }
    return true;
  };
  for (const RealRule& rule : rules) {
    if (is_same(rule)) open.push_back(&rule);
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = kFarthest + 1; at <= kBeyond && !open.empty(); ++at) {
    if (!allows(at)) continue;
    const std::int64_t expected = found(at);
    if (std::erase_if(open, [&](const RealRule* rule) { return rule->at(at) != expected; }) > 0) sizes.push_back(at);
  }
  return sizes;
}

// The first two sizes at which it steps up, and the last.
template <typename Found>
std::vector<std::int64_t> steps_of(Found&& found) {
  std::vector<std::int64_t> steps;
  for (std::int64_t at = 2; at <= static_cast<std::int64_t>(kFarthest); ++at) {
    if (found(at) == found(at - 1)) continue;
    if (steps.size() == 3) steps.pop_back();
    steps.push_back(at);
  }
  return steps;
}

// The first two sizes at which a remainder does not go on as before, and the last.
template <typename Found>
std::vector<std::int64_t> wraps_of(Found&& found) {
  return steps_of([&](std::int64_t at) { return std::abs(found(at + 1) - found(at)); });
}

}  // namespace

// (factor · size + offset) // divisor
bool SizeTerms::is_division(const SizeTerm& term) const {
  if (term.op != SizeOp::floordiv || terms_[term.b].op != SizeOp::constant) return false;
  const SizeTerm* of = &terms_[term.a];
  for (const auto& ops : {std::pair(SizeOp::add, SizeOp::sub), std::pair(SizeOp::mul, SizeOp::mul)}) {
    if ((of->op == ops.first || of->op == ops.second) && terms_[of->b].op == SizeOp::constant) of = &terms_[of->a];
  }
  return of->op == SizeOp::size;
}

std::vector<SizeTerms::Telling> SizeTerms::telling_sizes(
    const std::vector<Id>& explained,
    const std::function<bool(std::uint32_t, std::int64_t, std::int64_t)>& allows) const {
  // What bounds it hides it: it is seen only where each bound gives what it takes.
  using Bounds = std::vector<std::pair<Id, Id>>;  // a minimum or maximum, and what of it is looked at
  std::set<Telling> telling;
  std::set<std::pair<Id, Bounds>> seen;
  std::vector<std::pair<Id, Bounds>> open;
  for (const Id id : explained) open.emplace_back(id, Bounds());
  while (!open.empty()) {
    const auto [id, bounds] = open.back();
    open.pop_back();
    const SizeTerm& term = terms_[id];
    if (term.op == SizeOp::size || term.op == SizeOp::constant || term.op == SizeOp::real) continue;
    if (!seen.emplace(id, bounds).second) continue;
    const SizeTerm* const size = only_size(id);
    for (const Id of : {term.a, term.b}) {
      Bounds around = bounds;
      if (size && (term.op == SizeOp::min || term.op == SizeOp::max)) around.emplace_back(id, of);
      open.emplace_back(of, std::move(around));
    }
    if (!size) continue;
    const auto found = [&, id = id](std::int64_t at) { return at_size(id, at).whole; };
    const auto may_be = [&, &bounds = bounds](std::int64_t at) {
      return allows(size->call, size->number, at) && std::all_of(bounds.begin(), bounds.end(), [&](const auto& each) {
               return at_size(each.first, at).whole == at_size(each.second, at).whole;
             });
    };
    std::vector<std::int64_t> tell;
    const auto add_steps = [&](const std::vector<std::int64_t>& steps) {
      for (const std::int64_t step : steps) {
        for (const std::int64_t at : {step - 1, step}) {
          if (may_be(at)) tell.push_back(at);
        }
      }
    };
    Values sizes, values;
    for (std::size_t i = 0; i < values_[id].size(); ++i) {
      const bool is_seen = std::all_of(bounds.begin(), bounds.end(), [&](const auto& each) {
        return values_[each.first][i] == values_[each.second][i];
      });
      if (!is_seen) continue;
      sizes.push_back(values_[static_cast<std::size_t>(size - terms_.data())][i]);
      values.push_back(values_[id][i]);
    }
    if (values.empty()) continue;
    if (is_division(term)) {
      tell = sizes_that_tell(real_rules(sizes, values), found, may_be, kMostSizes);
      add_steps(steps_of(found));
    } else if (term.op > SizeOp::sqrt) {
      const SizeTerm& product = terms_[term.a];
      std::vector<RealRule> rules = real_rules(sizes, values);
      for (const RealRule& rule : near_rules(terms_[product.b].real, product.op == SizeOp::truediv, sizes, values))
        rules.push_back(rule);
      tell = sizes_that_tell(rules, found, may_be, kMostSizesOfReal);
      for (const std::int64_t at : sizes_beyond_that_tell(rules, found, may_be)) tell.push_back(at);
      add_steps(steps_of(found));
    } else if (term.op == SizeOp::mod) {
      add_steps(wraps_of(found));
    } else if (term.op == SizeOp::min || term.op == SizeOp::max) {
      add_steps(steps_of([&](std::int64_t at) { return found(at) == at_size(term.a, at).whole; }));
    }
    for (const std::int64_t each : tell) telling.insert({size->call, size->number, each, term.op > SizeOp::sqrt});
  }
  return {telling.begin(), telling.end()};
}

}  // namespace fx::internal
