// Sizes that tell rules apart: `int(h * 0.7)` is 7 h / 10 up to 89 and one less at 90, `lround(h * 0.09)` looks like a
// division by 11 for long. What rounds a real multiple of a size is listed, as far as it explains what was seen, and
// the sizes at which most of it gives other numbers than the rule that was found are named; and those at which that one
// steps up, which another divisor does elsewhere.
#include <algorithm>
#include <bitset>
#include <cmath>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

constexpr std::size_t kFarthest = 1024;
constexpr int kMostSizes = 4;  // of one rule
constexpr std::int64_t kLargestShift = 4;

enum class Rounding : std::uint8_t { down, up, nearest, to_even };

struct RealRule {
  double factor;
  bool divides, is_float;
  Rounding rounding;
  std::int64_t shift = 0;  ///< added in the end

  std::int64_t at(std::int64_t size) const { return rounded(size) + shift; }
  std::int64_t rounded(std::int64_t size) const {
    const auto product = [this](auto a, auto b) { return static_cast<double>(divides ? a / b : a * b); };
    const double value = is_float ? product(static_cast<float>(size), static_cast<float>(factor))
                                  : product(static_cast<double>(size), factor);
    switch (rounding) {
      case Rounding::down: return static_cast<std::int64_t>(std::floor(value));
      case Rounding::up: return static_cast<std::int64_t>(std::ceil(value));
      case Rounding::nearest: return std::llround(value);
      default: return std::llrint(value);
    }
  }
};

// What people write: hundredths, fractions of small numbers, and divisions by round ones.
const std::vector<double>& factors() {
  static const auto& all = *new std::vector<double>([] {
    std::vector<double> made;
    for (int hundredths = 1; hundredths <= 400; ++hundredths) made.push_back(hundredths / 100.0);
    for (int below = 3; below <= 64; ++below) {
      for (int above = 1; above <= (below <= 16 ? 32 : 1); ++above) made.push_back(static_cast<double>(above) / below);
    }
    for (const int below : {72,  80,  96,  100, 112, 120, 128, 144, 150, 160, 180, 192, 200, 224,  240, 250,
                            256, 300, 320, 384, 400, 480, 500, 512, 600, 640, 720, 768, 800, 1000, 1024})
      made.push_back(1.0 / below);
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    return made;
  }());
  return all;
}

std::vector<RealRule> real_rules(const SizeTerms::Values& sizes, const SizeTerms::Values& numbers) {
  const auto explains = [&](const RealRule& rule) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (rule.at(sizes[i]) != numbers[i]) return false;
    }
    return std::abs(rule.shift) <= kLargestShift;
  };
  std::vector<RealRule> rules;
  for (const double factor : factors()) {
    for (const bool divides : {false, true}) {
      for (const bool is_float : {false, true}) {
        for (const Rounding rounding : {Rounding::down, Rounding::up, Rounding::nearest, Rounding::to_even}) {
          RealRule rule{factor, divides, is_float, rounding};
          rule.shift = numbers[0] - rule.at(sizes[0]);
          if (explains(rule)) rules.push_back(rule);
        }
      }
    }
  }
  return rules;
}

// Of the sizes that are allowed, those at which most of the rules are seen not to be `found`, until all are.
template <typename Found, typename Allows>
std::vector<std::int64_t> sizes_that_tell(const std::vector<RealRule>& rules, Found&& found, Allows&& allows) {
  std::vector<std::bitset<kFarthest + 1>> differs(rules.size());
  for (std::size_t size = 1; size <= kFarthest; ++size) {
    const auto at = static_cast<std::int64_t>(size);
    if (!allows(at)) continue;
    const std::int64_t expected = found(at);
    for (std::size_t i = 0; i < rules.size(); ++i) differs[i][size] = rules[i].at(at) != expected;
  }
  std::erase_if(differs, [](const auto& each) { return each.none(); });
  std::vector<std::int64_t> sizes;
  while (!differs.empty() && sizes.size() < kMostSizes) {
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

}  // namespace

std::vector<SizeTerms::Telling> SizeTerms::telling_sizes(
    const std::vector<Id>& explained,
    const std::function<bool(std::uint32_t, std::int64_t, std::int64_t)>& allows) const {
  std::set<Telling> telling;
  std::set<Id> seen;
  std::vector<Id> open = explained;
  while (!open.empty()) {
    const Id id = open.back();
    open.pop_back();
    const SizeTerm& term = terms_[id];
    if (!seen.insert(id).second || term.op == SizeOp::size || term.op == SizeOp::constant || term.op == SizeOp::real)
      continue;
    open.push_back(term.a);
    open.push_back(term.b);
    if (term.op != SizeOp::floordiv || terms_[term.b].op != SizeOp::constant) continue;
    // (factor · size + offset) // divisor
    const std::int64_t divisor = terms_[term.b].number;
    std::int64_t offset = 0, factor = 1;
    Id of = term.a;
    const auto number_beside = [&](SizeOp op) -> std::optional<std::int64_t> {
      if (terms_[of].op != op || terms_[terms_[of].b].op != SizeOp::constant) return std::nullopt;
      const std::int64_t number = terms_[terms_[of].b].number;
      of = terms_[of].a;
      return number;
    };
    if (const auto more = number_beside(SizeOp::add)) offset = *more;
    if (const auto less = number_beside(SizeOp::sub)) offset = -*less;
    if (const auto times = number_beside(SizeOp::mul)) factor = *times;
    const SizeTerm& size = terms_[of];
    if (size.op != SizeOp::size) continue;
    const Values &sizes = values_[of], &numbers = values_[id];
    const auto rules = real_rules(sizes, numbers);
    const auto found = [&](std::int64_t at) {
      const std::int64_t above = factor * at + offset;
      return above / divisor - (above % divisor < 0 ? 1 : 0);
    };
    const auto may_be = [&](std::int64_t at) { return allows(size.call, size.number, at); };
    std::vector<std::int64_t> tell = sizes_that_tell(rules, found, may_be);
    for (const std::int64_t step : steps_of(found)) {
      for (const std::int64_t at : {step - 1, step}) {
        if (may_be(at)) tell.push_back(at);
      }
    }
    for (const std::int64_t each : tell) telling.insert({size.call, size.number, each});
  }
  return {telling.begin(), telling.end()};
}

}  // namespace fx::internal
