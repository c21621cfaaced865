#include <fxgraph/trace/size_tie.h>

#include <algorithm>
#include <cstdlib>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

constexpr std::int64_t kLargestFactor = 64;
constexpr std::int64_t kLargestFactorOfTwo = 16;  // of a product
constexpr std::int64_t kLargestOffset = 8;        // of a size itself
constexpr std::int64_t kLargestOffsetOfMore = 2;  // of multiples, sums and products
constexpr std::int64_t kMostOffsets = 8;          // for a divisor up to this all offsets are tried

}  // namespace

std::int64_t SizeTie::value(const std::vector<std::int64_t>& sizes) const {
  return build<std::int64_t>([&](std::uint32_t group) { return sizes[group]; },
                             [](std::int64_t number) { return number; },
                             [](Op op, std::int64_t a, std::int64_t b) {
                               return op == Op::add ? a + b : op == Op::mul ? a * b : floor_divide(a, b);
                             });
}

namespace {

// A text and how tightly it binds, by the place of its operator among these.
struct Words {
  std::string text;
  int binds;
};
constexpr int kSum = 0, kQuotient = 1, kProduct = 2, kAtom = 3;

std::string in_brackets_below(int binds, const Words& words) {
  return words.binds < binds ? "(" + words.text + ")" : words.text;
}

Words joined_words(SizeTie::Op op, const Words& a, const Words& b) {
  if (op == SizeTie::Op::floordiv) return {in_brackets_below(kAtom, a) + " // " + b.text, kQuotient};
  if (op == SizeTie::Op::mul) {
    const bool is_number = b.binds == kAtom && std::isdigit(static_cast<unsigned char>(b.text.front()));
    const Words &first = is_number ? b : a, &second = is_number ? a : b;
    return {in_brackets_below(kProduct, first) + " * " + in_brackets_below(kProduct, second), kProduct};
  }
  const bool is_negative = b.text.front() == '-';
  return {in_brackets_below(kSum, a) + (is_negative ? " - " + b.text.substr(1) : " + " + in_brackets_below(kSum, b)),
          kSum};
}

}  // namespace

std::string SizeTie::str(const std::function<std::string(std::uint32_t)>& name) const {
  return build<Words>(
             [&](std::uint32_t group) {
               return Words{name(group), kAtom};
             },
             [](std::int64_t number) {
               return Words{std::to_string(number), kAtom};
             },
             joined_words)
      .text;
}

// ── What a size may be ────────────────────────────────────────────────────────────────────────────────────────────

std::vector<SizeTie> pair_ties(std::int64_t size, SizedGroup a, SizedGroup b) {
  std::vector<SizeTie> ties;
  const std::int64_t product = a.size * b.size;
  for (std::int64_t offset = 0; offset <= kLargestOffsetOfMore && product > 1; ++offset) {
    const std::int64_t factor = (size - offset) / product;
    const bool is_plain = offset == 0 || factor == 1;
    if (factor >= 1 && factor <= kLargestFactorOfTwo && factor * product == size - offset && is_plain)
      ties.push_back({.of = {a.group, b.group}, .is_product = true, .factor = factor, .offset = offset});
  }
  const std::int64_t offset = size - a.size - b.size;
  if (offset >= 0 && offset <= kLargestOffsetOfMore) ties.push_back({.of = {a.group, b.group}, .offset = offset});
  return ties;
}

std::vector<SizeTie> area_ties(std::int64_t size, SizedGroup height, SizedGroup width) {
  std::vector<SizeTie> ties;
  for (const std::int64_t part : {1, 2, 4, 8, 16, 32, 14, 7, 3}) {
    for (const std::int64_t up : {std::int64_t{0}, part - 1}) {
      SizeTie tie{.of = {height.group, width.group}, .is_product = true, .part = part, .part_offset = up};
      const std::int64_t area = ((height.size + up) / part) * ((width.size + up) / part);
      for (std::int64_t factor = 1; factor <= kLargestFactorOfTwo && area > 1; ++factor) {
        for (const std::int64_t offset : {0, 1}) {
          if (factor * area + offset != size) continue;
          tie.factor = factor;
          tie.offset = offset;
          ties.push_back(tie);
        }
      }
      if (part == 1) break;
    }
  }
  return ties;
}

std::vector<SizeTie> affine_ties(std::int64_t size, SizedGroup of) {
  std::vector<SizeTie> ties;
  for (std::int64_t factor = 1; factor <= kLargestFactor; ++factor) {
    const std::int64_t offset = size - factor * of.size;
    // What is less is said of the other: n - 1 of m is m + 1 of n.
    const std::int64_t most = factor == 1 ? kLargestOffset : offset == 0 || factor <= 4 ? kLargestOffsetOfMore : 0;
    if (offset <= most && offset >= (factor == 1 ? 1 : -1))
      ties.push_back({.of = {of.group}, .factor = factor, .offset = offset});
  }
  std::stable_sort(ties.begin(), ties.end(), [](const SizeTie& a, const SizeTie& b) {
    return std::abs(a.offset) * kLargestFactor + a.factor < std::abs(b.offset) * kLargestFactor + b.factor;
  });
  return ties;
}

std::vector<SizeTie> quotient_ties(std::int64_t size, SizedGroup of) {
  std::vector<SizeTie> ties;
  if (of.size <= size) return ties;
  std::vector<std::int64_t> divisors = {80, 96, 100, 128, 160, 200, 240, 256, 300, 320, 400, 480, 512, 640, 1024};
  for (std::int64_t each = 2; each <= kLargestFactor; ++each) divisors.push_back(each);
  const auto add = [&](std::int64_t divisor, std::int64_t offset) {
    if (floor_divide(of.size + offset, divisor) == size)
      ties.push_back({.of = {of.group}, .offset = offset, .divisor = divisor});
  };
  for (const std::int64_t divisor : divisors) {
    for (const std::int64_t offset : {std::int64_t{0}, divisor - 1, divisor}) add(divisor, offset);
    for (std::int64_t offset = -divisor; offset < divisor - 1 && divisor <= kMostOffsets; ++offset) {
      if (offset != 0) add(divisor, offset);
    }
  }
  const auto rank = [](const SizeTie& tie) {
    const bool is_power = (tie.divisor & (tie.divisor - 1)) == 0;
    const int kind = tie.offset == 0 ? 0 : tie.offset == tie.divisor - 1 ? 1 : tie.offset == tie.divisor ? 2 : 3;
    return std::tuple(kind, is_power ? 0 : tie.divisor % 10 == 0 ? 1 : 2, tie.divisor, std::abs(tie.offset));
  };
  std::stable_sort(ties.begin(), ties.end(), [&](const SizeTie& a, const SizeTie& b) { return rank(a) < rank(b); });
  return ties;
}

}  // namespace fx::internal
