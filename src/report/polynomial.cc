// Interpolation, one variable after the other: along each line of the grid the values become the factors of the powers.
#include <fxgraph/report/polynomial.h>

#include <algorithm>
#include <numeric>

namespace fx {
namespace {

using Wide = Fraction::Wide;

Wide divisor(Wide a, Wide b) {
  if (a < 0) a = -a;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a == 0 ? 1 : a;
}

std::string text(Wide number) {
  if (number < 0) return "-" + text(-number);
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(number % 10)));
    number /= 10;
  } while (number != 0);
  return digits;
}

// Row k: what value k gives to the factor of each power, x being first + k * step. Lagrange's polynomials, multiplied
// out.
std::vector<std::vector<Fraction>> powers_of_values(std::int64_t first, std::int64_t step, int degree) {
  std::vector<std::vector<Fraction>> rows;
  for (int k = 0; k <= degree; ++k) {
    std::vector<Fraction> row = {{1, 1}};
    for (int other = 0; other <= degree; ++other) {
      if (other == k) continue;
      const Fraction scale = Fraction::of(1, Wide{step} * (k - other));
      const Fraction root = Fraction::of(-(Wide{first} + Wide{step} * other), 1);
      std::vector<Fraction> next(row.size() + 1);
      for (std::size_t i = 0; i < row.size(); ++i) {
        next[i] = next[i] + row[i] * root * scale;
        next[i + 1] = next[i + 1] + row[i] * scale;
      }
      row = std::move(next);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string superscript(int power) {
  static constexpr const char* kDigits[] = {"", "", "²", "³"};
  return power < 4 ? kDigits[power] : "^" + std::to_string(power);
}

}  // namespace

Fraction Fraction::of(Wide numerator, Wide denominator) {
  if (denominator < 0) numerator = -numerator, denominator = -denominator;
  const Wide common = divisor(numerator, denominator);
  return {numerator / common, denominator / common};
}

Fraction operator+(const Fraction& a, const Fraction& b) {
  return Fraction::of(a.above * b.below + b.above * a.below, a.below * b.below);
}

Fraction operator*(const Fraction& a, const Fraction& b) { return Fraction::of(a.above * b.above, a.below * b.below); }

Polynomial Polynomial::through(std::span<const std::int64_t> first, std::span<const std::int64_t> step,
                               std::span<const int> degrees, std::span<const std::int64_t> values) {
  std::vector<Fraction> factors;
  for (const std::int64_t value : values) factors.push_back({value, 1});
  std::size_t inner = 1;
  for (std::size_t variable = degrees.size(); variable-- > 0;) {
    const auto rows = powers_of_values(first[variable], step[variable], degrees[variable]);
    const std::size_t count = rows.size();
    for (std::size_t begin = 0; begin < factors.size(); begin += inner * count) {
      for (std::size_t i = begin; i < begin + inner; ++i) {
        std::vector<Fraction> line(count);
        for (std::size_t k = 0; k < count; ++k) {
          for (std::size_t power = 0; power < count; ++power)
            line[power] = line[power] + factors[i + k * inner] * rows[k][power];
        }
        for (std::size_t power = 0; power < count; ++power) factors[i + power * inner] = line[power];
      }
    }
    inner *= count;
  }
  Polynomial result;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (factors[i].above == 0) continue;
    Term term{std::vector<int>(degrees.size()), factors[i]};
    std::size_t rest = i;
    for (std::size_t variable = degrees.size(); variable-- > 0;) {
      const auto count = static_cast<std::size_t>(degrees[variable]) + 1;
      term.powers[variable] = static_cast<int>(rest % count);
      rest /= count;
    }
    result.terms_.push_back(std::move(term));
  }
  const auto degree = [](const Term& term) { return std::accumulate(term.powers.begin(), term.powers.end(), 0); };
  std::stable_sort(result.terms_.begin(), result.terms_.end(), [&](const Term& a, const Term& b) {
    return degree(a) != degree(b) ? degree(a) > degree(b) : a.powers > b.powers;
  });
  return result;
}

Fraction Polynomial::at(std::span<const std::int64_t> variables) const {
  Fraction sum;
  for (const Term& term : terms_) {
    Fraction product = term.factor;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      for (int power = 0; power < term.powers[i]; ++power) product = product * Fraction{variables[i], 1};
    }
    sum = sum + product;
  }
  return sum;
}

bool Polynomial::is_constant() const {
  return std::all_of(terms_.begin(), terms_.end(), [](const Term& term) {
    return std::all_of(term.powers.begin(), term.powers.end(), [](int power) { return power == 0; });
  });
}

bool Polynomial::is_in(std::int64_t unit) const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [&](const Term& term) { return term.factor.below == 1 && term.factor.above % unit == 0; });
}

std::string Polynomial::str(std::span<const std::string> names, std::int64_t unit) const {
  std::string result;
  for (const Term& term : terms_) {
    Fraction factor = term.factor * Fraction::of(1, unit);
    result += result.empty() ? (factor.above < 0 ? "-" : "") : factor.above < 0 ? " - " : " + ";
    if (factor.above < 0) factor.above = -factor.above;
    std::string product;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (term.powers[i] > 0) product += (product.empty() ? "" : "·") + names[i] + superscript(term.powers[i]);
    }
    if (factor.above != 1 || product.empty()) product = text(factor.above) + (product.empty() ? "" : "·") + product;
    if (factor.below != 1) product += "/" + text(factor.below);
    result += product;
  }
  return result.empty() ? "0" : result;
}

}  // namespace fx
