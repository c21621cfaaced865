// Remainders, and what is missing to a multiple: padding.
#include <algorithm>
#include <numeric>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

constexpr std::int64_t kLargestModulus = 64;

// max((offset + (sign * n + shift) % modulus) // divisor, 0), or without the bound.
struct ShiftedRemainder {
  std::int64_t sign, modulus, divisor, offset = 0, shift = 0;
  bool is_bounded = false;

  std::int64_t at(std::int64_t n) const {
    const std::int64_t value = floor_divide(offset + floor_remainder(sign * n + shift, modulus), divisor);
    return is_bounded ? std::max<std::int64_t>(value, 0) : value;
  }
};

// What was divided by two has left out one, or not, as the size is odd, or even: `parity` says which.
std::int64_t before_division(std::int64_t value, std::int64_t size, std::int64_t divisor, std::int64_t parity) {
  return divisor == 1 ? value : 2 * value + floor_remainder(size + parity, 2);
}

// Those of one sign and divisor. What is added is known but for multiples of the modulus, as long as the numbers differ
// by less than that. Where they do not differ by all that they may, it is nothing, or one, as people write it, else the
// least of them; for what is bounded the largest is taken for the end.
void add_remainders(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& values,
                    ShiftedRemainder rule, std::int64_t parity, std::vector<ShiftedRemainder>& rules) {
  constexpr std::size_t kFewest = 3;  // numbers that are not bounded
  std::vector<std::int64_t> wholes, of;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (rule.is_bounded && values[i] == 0) continue;
    wholes.push_back(before_division(values[i], sizes[i], rule.divisor, parity));
    of.push_back(sizes[i]);
  }
  if (wholes.size() < kFewest) return;
  std::int64_t common = 0;
  for (std::size_t i = 0; i < wholes.size(); ++i)
    common = std::gcd(common, wholes[i] - wholes[0] - rule.sign * (of[i] - of[0]));
  const auto [least, most] = std::minmax_element(wholes.begin(), wholes.end());
  for (rule.modulus = 2; rule.modulus <= std::min(common, kLargestModulus); ++rule.modulus) {
    if (common % rule.modulus != 0 || (rule.divisor == 2 && rule.modulus % 2 != 0)) continue;
    if (rule.modulus <= *most - *least || (rule.modulus == 2 && rule.sign < 0)) continue;
    const std::int64_t lowest = *most - rule.modulus + 1;
    rule.offset = rule.is_bounded ? lowest : *least;
    for (const std::int64_t plain : {1, 0}) {
      if (!rule.is_bounded && lowest <= plain && plain <= *least) rule.offset = plain;
    }
    rule.shift = floor_remainder(wholes[0] - rule.offset - rule.sign * of[0], rule.modulus);
    bool fits = true;
    for (std::size_t i = 0; i < values.size() && fits; ++i) fits = rule.at(sizes[i]) == values[i];
    if (fits) rules.push_back(rule);
  }
}

}  // namespace

// One more where the size is odd, or even. Of two numbers next to each other it is what people mean; divisions by large
// numbers make such, too.
std::optional<SizeTerms::Id> SizeTerms::parity(const Values& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*most - *least != 1) return std::nullopt;
  for (const Id term : std::vector<Id>(pool_)) {
    const std::int64_t shift = floor_remainder(values_[term][0] + values[0] - *least, 2);
    bool fits = true;
    for (std::size_t i = 0; i < values.size() && fits; ++i)
      fits = values[i] == *least + floor_remainder(values_[term][i] + shift, 2);
    if (fits) return offset(make(SizeOp::mod, offset(term, shift), constant(2)), *least);
  }
  return std::nullopt;
}

// term % divisor, and what is missing to a multiple.
std::optional<SizeTerms::Id> SizeTerms::remainder(const Values& values, Id term) {
  constexpr std::int64_t kLargestDivisorOfRemainders = 128;
  const Values& of = values_[term];
  std::int64_t down = 0, up = 0, largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) return std::nullopt;
    down = std::gcd(down, of[i] - values[i]);
    up = std::gcd(up, of[i] + values[i]);
    largest = std::max(largest, values[i]);
  }
  const auto divisor_above = [&](std::int64_t multiple) {
    std::int64_t found = 0;
    for (std::int64_t divisor = largest + 1; divisor <= std::min(multiple, kLargestDivisorOfRemainders); ++divisor) {
      if (multiple % divisor != 0) continue;
      ambiguous_ = ambiguous_ || found != 0;
      if (found == 0) found = divisor;
    }
    return found;
  };
  if (const std::int64_t divisor = divisor_above(down)) return make(SizeOp::mod, term, constant(divisor));
  if (const std::int64_t divisor = divisor_above(up))
    return make(SizeOp::mod, make(SizeOp::sub, constant(0), term), constant(divisor));
  return std::nullopt;
}

// `8 - (n + 3) % 8`; and what "same" padding adds, whole or one half: max((ceil(n / s) - 1) * s + k - n, 0).
std::optional<SizeTerms::Id> SizeTerms::shifted_remainder(const Values& values) {
  const bool may_be_bounded =
      std::count(values.begin(), values.end(), 0) > 1 && *std::min_element(values.begin(), values.end()) == 0;
  const std::vector<Id> pool = first_of_pool();
  for (const Id term : pool) {
    std::vector<ShiftedRemainder> rules;
    for (const bool is_bounded : {false, true}) {
      if (is_bounded && (!may_be_bounded || !rules.empty())) continue;
      for (const std::int64_t divisor : {1, 2}) {
        for (const std::int64_t sign : {1, -1}) {
          for (std::int64_t parity = 0; parity < divisor; ++parity)
            add_remainders(values_[term], values, {sign, 0, divisor, 0, 0, is_bounded}, parity, rules);
        }
      }
    }
    if (rules.empty()) continue;
    const ShiftedRemainder& rule = rules.front();
    ambiguous_ = ambiguous_ || rules.size() > 1;
    const Id shifted = rule.sign > 0 ? offset(term, rule.shift) : make(SizeOp::sub, constant(rule.shift), term);
    const Id rest = make(SizeOp::mod, shifted, constant(rule.modulus));
    const Id id = floor_of(offset(rest, rule.offset), rule.divisor);
    return rule.is_bounded ? make(SizeOp::max, id, constant(0)) : id;
  }
  return std::nullopt;
}

}  // namespace fx::internal
