// The canonical form of SizeExpr: a sum of monomials, each a whole factor and sorted atoms.
//
// Sums and products multiply out. A floor division by a whole number leaves nothing in the numerator that it divides:
// floor((b*q + r) / b) is q + floor(r / b), and floor(floor(x / m) / n) is floor(x / (m*n)).
#include <algorithm>
#include <numeric>
#include <utility>

#include <fxgraph/symbolic/canonical_form.h>
#include <fxgraph/symbolic/floor_divide.h>

namespace fx {

namespace {

constexpr std::size_t kMostMonomials = 64;  // of a product that is multiplied out
constexpr std::int64_t kHighestPower = 8;

using Kind = SizeExpr::Kind;

struct Monomial {
  std::vector<SizeExpr> atoms;  // sorted; none: the constant
  std::int64_t factor = 1;
};
// Sorted, each product of atoms once; no factor is 0.
using Sum = std::vector<Monomial>;

// Products of many atoms first, the constant last.
bool stands_before(const Monomial& a, const Monomial& b) {
  if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size();
  return a.atoms < b.atoms;
}

/// False where a factor does not fit.
bool collect(Sum& sum) {
  std::ranges::sort(sum, stands_before);
  Sum result;
  for (Monomial& each : sum) {
    if (!result.empty() && result.back().atoms == each.atoms) {
      if (__builtin_add_overflow(result.back().factor, each.factor, &result.back().factor)) return false;
    } else {
      result.push_back(std::move(each));
    }
  }
  std::erase_if(result, [](const Monomial& each) { return each.factor == 0; });
  sum = std::move(result);
  return true;
}

std::optional<Sum> times(const Sum& a, const Sum& b) {
  if (a.size() * b.size() > kMostMonomials) return std::nullopt;
  Sum product;
  for (const Monomial& x : a) {
    for (const Monomial& y : b) {
      Monomial both;
      if (__builtin_mul_overflow(x.factor, y.factor, &both.factor)) return std::nullopt;
      std::ranges::merge(x.atoms, y.atoms, std::back_inserter(both.atoms));
      product.push_back(std::move(both));
    }
  }
  return collect(product) ? std::optional(std::move(product)) : std::nullopt;
}

std::optional<Sum> sum_of(const SizeExpr& expr);

std::optional<Sum> power_of(const SizeExpr& expr) {
  if (expr.operands().size() != 2 || !expr.operands()[1].is_integer()) return std::nullopt;
  const std::int64_t exponent = expr.operands()[1].value();
  if (exponent < 1 || exponent > kHighestPower) return std::nullopt;
  const std::optional<Sum> base = sum_of(expr.operands()[0]);
  std::optional<Sum> result = base;
  for (std::int64_t i = 1; i < exponent && result; ++i) result = times(*result, *base);
  return result;
}

/// Nothing where it does not fit; what is no sum or product is an atom.
std::optional<Sum> sum_of(const SizeExpr& expr) {
  if (expr.is_integer()) return expr.value() == 0 ? Sum{} : Sum{{{}, expr.value()}};
  if (expr.is_call("Add") && !expr.is_real()) {
    Sum sum;
    for (const SizeExpr& operand : expr.operands()) {
      std::optional<Sum> each = sum_of(operand);
      if (!each) return std::nullopt;
      std::ranges::move(*each, std::back_inserter(sum));
    }
    return collect(sum) ? std::optional(std::move(sum)) : std::nullopt;
  }
  if (expr.is_call("Mul") && !expr.is_real()) {
    std::optional<Sum> product = Sum{{{}, 1}};
    for (const SizeExpr& operand : expr.operands()) {
      const std::optional<Sum> each = sum_of(operand);
      product = product && each ? times(*product, *each) : std::nullopt;
    }
    return product;
  }
  if (expr.is_call("Pow") || expr.is_call("PowByNatural")) {
    if (std::optional<Sum> power = power_of(expr)) return power;
  }
  return Sum{{{expr}, 1}};
}

SizeExpr written(const Monomial& monomial) {
  if (monomial.atoms.empty()) return monomial.factor;
  if (monomial.factor == 1 && monomial.atoms.size() == 1) return monomial.atoms[0];
  std::vector<SizeExpr> operands;
  if (monomial.factor != 1) operands.emplace_back(monomial.factor);
  operands.insert(operands.end(), monomial.atoms.begin(), monomial.atoms.end());
  return CanonicalForm::call("Mul", std::move(operands));
}

SizeExpr written(const Sum& sum) {
  if (sum.empty()) return 0;
  if (sum.size() == 1) return written(sum[0]);
  std::vector<SizeExpr> operands;
  for (const Monomial& each : sum) operands.push_back(written(each));
  return CanonicalForm::call("Add", std::move(operands));
}

Sum scaled(Sum sum, std::int64_t by) {
  for (Monomial& each : sum) each.factor *= by;
  return sum;
}

// A number by which the factors of a sum may be scaled, negated and summed up without a check.
bool is_small(const Sum& sum) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  return std::ranges::all_of(sum, [](const Monomial& each) { return std::abs(each.factor) < kMost; });
}

/// Splits off what `divisor` divides: the quotient, and what is left in `sum`, whose factors lie in [0, divisor) and
/// whose constant in (-divisor, 0], as `(h - 1)//2 + 1` has it.
Sum split(Sum& sum, std::int64_t divisor) {
  Sum quotient, rest;
  for (const Monomial& each : sum) {
    const std::int64_t whole = each.atoms.empty() ? -internal::floor_divide(-each.factor, divisor)
                                                  : internal::floor_divide(each.factor, divisor);
    if (whole != 0) quotient.push_back({each.atoms, whole});
    if (each.factor != whole * divisor) rest.push_back({each.atoms, each.factor - whole * divisor});
  }
  sum = std::move(rest);
  return quotient;
}

std::int64_t common_factor(const Sum& sum) {
  std::int64_t common = 0;
  for (const Monomial& each : sum) {
    if (!each.atoms.empty()) common = std::gcd(common, each.factor);
  }
  return common;
}

SizeExpr plus(const Sum& a, const SizeExpr& b) { return a.empty() ? b : written(a) + b; }

/// Of a numerator that nothing can be split off, by a divisor of 2 and more.
SizeExpr divided(Sum sum, std::int64_t divisor) {
  if (sum.empty()) return 0;
  if (sum.size() == 1 && sum[0].atoms.empty()) return internal::floor_divide(sum[0].factor, divisor);
  // Of one division and a constant, the divisors multiply.
  const Monomial& first = sum[0];
  if (sum.size() <= 2 && first.factor == 1 && first.atoms.size() == 1 && first.atoms[0].is_call("FloorDiv") &&
      (sum.size() == 1 || sum[1].atoms.empty())) {
    const SizeExpr &inner = first.atoms[0].operands()[0], &by = first.atoms[0].operands()[1];
    std::int64_t product = 0, constant = 0;
    if (by.is_integer() && by.value() > 0 && !__builtin_mul_overflow(by.value(), divisor, &product) &&
        !__builtin_mul_overflow(by.value(), sum.size() == 2 ? sum[1].factor : 0, &constant))
      return floor_div(inner + constant, product);
  }
  const std::int64_t common = std::gcd(common_factor(sum), divisor);
  if (common > 1) {
    for (Monomial& each : sum) each.factor = internal::floor_divide(each.factor, common);
    std::erase_if(sum, [](const Monomial& each) { return each.factor == 0; });
    return floor_div(written(sum), divisor / common);
  }
  return CanonicalForm::call("FloorDiv", {written(sum), divisor});
}

/// `a` without the atoms and the factor of `b`; nothing where they are not all in it.
std::optional<Monomial> without(const Monomial& a, const Monomial& b) {
  if (a.factor % b.factor != 0 || !std::ranges::includes(a.atoms, b.atoms)) return std::nullopt;
  Monomial rest;
  rest.factor = a.factor / b.factor;
  std::ranges::set_difference(a.atoms, b.atoms, std::back_inserter(rest.atoms));
  return rest;
}

/// What makes `a` of `b`, where it is a sum of products: `n` of `n*m + n` and `m + 1`. A product comes before others
/// exactly where it does times a third.
std::optional<Sum> exact_quotient(Sum a, const Sum& b) {
  Sum quotient;
  while (!a.empty() && quotient.size() < kMostMonomials) {
    const std::optional<Monomial> first = without(a[0], b[0]);
    const std::optional<Sum> part = first ? times(b, {{first->atoms, -first->factor}}) : std::nullopt;
    if (!part || !is_small(*part)) return std::nullopt;
    a.insert(a.end(), part->begin(), part->end());
    if (!collect(a) || !is_small(a)) return std::nullopt;
    quotient.push_back(*first);
  }
  return a.empty() ? std::optional(std::move(quotient)) : std::nullopt;
}

SizeExpr divided_by_terms(Sum above, Sum below) {
  if (const std::optional<Sum> times = exact_quotient(above, below)) return written(*times);
  Sum quotient;
  if (below.size() == 1) {
    Sum rest;
    for (const Monomial& each : above) {
      std::optional<Monomial> whole = without(each, below[0]);
      (whole ? quotient : rest).push_back(whole ? *std::move(whole) : each);
    }
    above = std::move(rest);
    if (above.empty()) return written(quotient);
    // What all of it and the divisor have in common.
    Monomial common = below[0];
    for (const Monomial& each : above) {
      std::vector<SizeExpr> both;
      std::ranges::set_intersection(common.atoms, each.atoms, std::back_inserter(both));
      common = {std::move(both), std::gcd(common.factor, each.factor)};
    }
    if (!common.atoms.empty() || common.factor > 1) {
      for (Monomial& each : above) each = *without(each, common);
      below[0] = *without(below[0], common);
      return plus(quotient, floor_div(written(above), written(below)));
    }
  }
  return plus(quotient, CanonicalForm::call("FloorDiv", {written(above), written(below)}));
}

/// Max or Min: flat, each once, numbers folded.
SizeExpr extreme(const char* name, const SizeExpr& a, const SizeExpr& b, bool larger) {
  std::vector<SizeExpr> operands;
  std::optional<std::int64_t> number;
  const auto add = [&](const SizeExpr& each) {
    if (!each.is_integer()) return operands.push_back(each);
    number = !number ? each.value() : larger ? std::max(*number, each.value()) : std::min(*number, each.value());
  };
  for (const SizeExpr* each : {&a, &b}) {
    if (each->is_call(name)) {
      std::ranges::for_each(each->operands(), add);
    } else {
      add(*each);
    }
  }
  std::ranges::sort(operands);
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  // Of those that differ by a number only one counts.
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t j = i + 1; j < operands.size();) {
      const SizeExpr difference = operands[i] - operands[j];
      if (!difference.is_integer()) {
        ++j;
        continue;
      }
      if ((difference.value() < 0) == larger) operands[i] = operands[j];
      operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
  std::ranges::sort(operands);
  if (number) operands.emplace_back(*number);
  return operands.size() == 1 ? operands[0] : CanonicalForm::call(name, std::move(operands));
}

/// All but one.
Sum others(const Sum& sum, const Monomial& one) {
  Sum rest;
  std::ranges::copy_if(sum, std::back_inserter(rest), [&](const Monomial& each) { return &each != &one; });
  return rest;
}

/// True for a remainder by a multiple of the divisor: what it is of has the same.
bool is_remainder(const Monomial& each, std::int64_t divisor) {
  if (each.atoms.size() != 1 || !each.atoms[0].is_call("Mod")) return false;
  const SizeExpr& by = each.atoms[0].operands()[1];
  return by.is_integer() && by.value() > 0 && by.value() % divisor == 0;
}

/// What is padded to a multiple, or cut to one, as that: `x + -x%8` is `8*((x + 7)//8)`.
SizeExpr written_as_multiple(const Sum& sum) {
  for (const Monomial& each : sum) {
    if (std::abs(each.factor) != 1 || !is_remainder(each, 1)) continue;
    const std::int64_t by = each.atoms[0].operands()[1].value();
    const std::optional<Sum> of = sum_of(each.atoms[0].operands()[0]);
    if (!of) continue;
    Sum rest = others(sum, each), padded;
    std::int64_t constant = 0;
    bool is_multiple = true;
    for (const Monomial& part : *of) {
      const auto same = std::ranges::find(rest, part.atoms, &Monomial::atoms);
      if (part.atoms.empty()) {
        constant = part.factor;
      } else if (same == rest.end() || (same->factor % by + part.factor * each.factor) % by != 0) {
        is_multiple = false;
      } else {
        padded.push_back(*same);
        rest.erase(same);
      }
    }
    if (!is_multiple) continue;
    const SizeExpr from = written(padded) - constant * each.factor;
    return written(rest) + by * (each.factor == 1 ? ceil_div(from, by) : floor_div(from, by)) + constant * each.factor;
  }
  return written(sum);
}

bool is_whole(const SizeExpr& a, const SizeExpr& b) { return !a.is_real() && !b.is_real(); }

}  // namespace

SizeExpr operator+(const SizeExpr& a, const SizeExpr& b) {
  std::int64_t number = 0;
  if (a.is_integer() && b.is_integer() && !__builtin_add_overflow(a.value(), b.value(), &number)) return number;
  if (a == SizeExpr(0)) return b;
  if (b == SizeExpr(0)) return a;
  if (is_whole(a, b)) {
    if (std::optional<Sum> x = sum_of(a), y = sum_of(b); x && y) {
      std::ranges::move(*y, std::back_inserter(*x));
      if (collect(*x)) return written_as_multiple(*x);
    }
  }
  return SizeExpr::call("Add", {a, b});
}

SizeExpr operator-(const SizeExpr& a, const SizeExpr& b) {
  if (b.is_integer() && b.value() != INT64_MIN) return a + SizeExpr(-b.value());
  return a + b * SizeExpr(-1);
}

SizeExpr operator*(const SizeExpr& a, const SizeExpr& b) {
  std::int64_t number = 0;
  if (a.is_integer() && b.is_integer() && !__builtin_mul_overflow(a.value(), b.value(), &number)) return number;
  if (a == SizeExpr(1)) return b;
  if (b == SizeExpr(1)) return a;
  if (is_whole(a, b)) {
    if (const std::optional<Sum> x = sum_of(a), y = sum_of(b); x && y) {
      if (const std::optional<Sum> product = times(*x, *y)) return written(*product);
    }
  }
  return SizeExpr::call("Mul", {a, b});
}

SizeExpr floor_div(const SizeExpr& a, const SizeExpr& b) {
  if (b == SizeExpr(1)) return a;
  const bool is_number = b.is_integer() && b.value() != 0 && b.value() != INT64_MIN;
  if (is_number && a.is_integer() && a.value() != INT64_MIN) return internal::floor_divide(a.value(), b.value());
  if (!is_whole(a, b) || b == SizeExpr(0)) return SizeExpr::call("FloorDiv", {a, b});
  if (is_number && b.value() < 0) return floor_div(a * SizeExpr(-1), -b.value());
  std::optional<Sum> above = sum_of(a);
  const std::optional<Sum> below = sum_of(b);
  if (!above || !below || !is_small(*above) || !is_small(*below)) return SizeExpr::call("FloorDiv", {a, b});
  if (!is_number) return above->empty() ? SizeExpr(0) : divided_by_terms(*std::move(above), *below);
  // floor(-x / b) is -floor((x + b - 1) / b).
  if (!above->empty() && !above->front().atoms.empty() && above->front().factor < 0 &&
      above->front().factor % b.value() != 0)
    return floor_div(written(scaled(*above, -1)) + (b - 1), b) * SizeExpr(-1);
  const Sum quotient = split(*above, b.value());
  return plus(quotient, divided(*std::move(above), b.value()));
}

SizeExpr ceil_div(const SizeExpr& a, const SizeExpr& b) {
  return b.is_integer() ? floor_div(a + (b - 1), b) : floor_div(a * SizeExpr(-1), b) * SizeExpr(-1);
}

SizeExpr floor_mod(const SizeExpr& a, const SizeExpr& b) {
  if (a.is_integer() && b.is_integer() && b.value() > 0)
    return a.value() - internal::floor_divide(a.value(), b.value()) * b.value();
  if (is_whole(a, b) && b.is_integer() && b.value() > 0) {
    std::optional<Sum> above = sum_of(a);
    if (above && is_small(*above)) {
      for (const Monomial& each : *above) {
        if (is_remainder(each, b.value()))
          return floor_mod(written(others(*above, each)) + each.atoms[0].operands()[0] * each.factor, b);
      }
      for (Monomial& each : *above) each.factor -= internal::floor_divide(each.factor, b.value()) * b.value();
      std::erase_if(*above, [](const Monomial& each) { return each.factor == 0; });
      const SizeExpr rest = written(*above);
      return rest.is_integer() ? rest : CanonicalForm::call("Mod", {rest, b});
    }
  }
  if (is_whole(a, b) && !b.is_integer() && !floor_div(a, b).is_call("FloorDiv")) {
    const SizeExpr rest = a - b * floor_div(a, b);
    if (rest.is_integer() && rest.value() == 0) return rest;
  }
  return SizeExpr::call("Mod", {a, b});
}

SizeExpr max(const SizeExpr& a, const SizeExpr& b) { return extreme("Max", a, b, true); }
SizeExpr min(const SizeExpr& a, const SizeExpr& b) { return extreme("Min", a, b, false); }

std::optional<SizeExpr> CanonicalForm::power(const SizeExpr& power) {
  const std::optional<Sum> sum = power_of(power);
  return sum ? std::optional(written(*sum)) : std::nullopt;
}

}  // namespace fx
