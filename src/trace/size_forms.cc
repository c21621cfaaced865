#include <fxgraph/trace/size_forms.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>

#include <fxgraph/symbolic/floor_divide.h>

namespace fx::internal {
namespace {

constexpr std::int64_t kLargestDivisor = 64;                     // but for round ones
constexpr std::int64_t kLargestStride = 8, kLargestKernel = 16;  // of windows: else at most the divisor is added before

// What people divide by: all small numbers, and round ones. Round ones first, where several would do.
const std::vector<std::int64_t>& divisors() {
  static const auto& all = *new std::vector<std::int64_t>([] {
    std::vector<std::int64_t> made = {80,  96,  100, 128, 160, 192, 200,  256, 320,
                                      384, 400, 500, 512, 640, 768, 1000, 1024};
    for (std::int64_t each = 2; each <= kLargestDivisor; ++each) made.push_back(each);
    const auto rank = [](std::int64_t each) { return (each & (each - 1)) == 0 ? 0 : each % 10 == 0 ? 1 : 2; };
    std::sort(made.begin(), made.end(), [&](auto a, auto b) { return std::pair(rank(a), a) < std::pair(rank(b), b); });
    return made;
  }());
  return all;
}

template <typename Expected>
bool fits(const RunValues& of, const RunValues& values, Expected&& expected) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (expected(of[i]) != values[i]) return false;
  }
  return true;
}

FormOfOne form(std::function<SizeExpr(const SizeExpr&)> of) { return {.of = std::move(of)}; }

std::int64_t common_factor(const RunValues& values) {
  std::int64_t common = 0;
  for (const std::int64_t value : values) common = std::gcd(common, value);
  return common;
}

// n // unit · unit, and rounded up.
std::optional<FormOfOne> multiple_form(const RunValues& of, const RunValues& values, std::int64_t common) {
  std::optional<FormOfOne> found;
  for (std::int64_t unit = 2; unit <= std::min(common, kLargestDivisor); ++unit) {
    if (common % unit != 0) continue;
    for (const std::int64_t more : {std::int64_t{0}, unit - 1}) {
      if (!fits(of, values, [&](std::int64_t n) { return floor_divide(n + more, unit) * unit; })) continue;
      if (found) return found->is_ambiguous = true, found;
      found = form([=](const SizeExpr& n) { return floor_div(n + more, unit) * unit; });
      break;
    }
  }
  return found;
}

// (n + offset) // divisor: of those that do, the plainest.
std::optional<FormOfOne> division_form(const RunValues& of, const RunValues& values, bool any_offset) {
  struct Division {
    std::int64_t divisor, offset;
  };
  std::optional<Division> found;
  bool is_ambiguous = false;
  for (const std::int64_t divisor : divisors()) {
    std::int64_t low = std::numeric_limits<std::int64_t>::min(), high = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < values.size() && low <= high; ++i) {
      low = std::max(low, divisor * values[i] - of[i]);
      high = std::min(high, divisor * values[i] - of[i] + divisor - 1);
    }
    if (low > high) continue;
    const auto does = [&](std::int64_t offset) { return low <= offset && offset <= high; };
    // Of multiples nobody can tell, and nobody has to.
    const bool is_exact = std::ranges::all_of(of, [&](std::int64_t value) { return value % divisor == 0; });
    if (is_exact && does(0)) return form([=](const SizeExpr& n) { return floor_div(n, divisor); });
    std::optional<std::int64_t> best;
    if (does(divisor - 1)) best = divisor - 1;
    if (does(0)) best = 0;
    bool several = does(0) && does(divisor - 1);
    const std::int64_t nearest = std::abs(low) < std::abs(high) ? low : high;
    const bool is_usual = divisor <= kLargestStride || divisor % 10 == 0 || (divisor & (divisor - 1)) == 0;
    const bool is_near =
        is_usual && divisor <= kLargestDivisor && std::abs(nearest) <= std::max(divisor, kLargestKernel);
    if (!best && any_offset && is_near) best = nearest, several = low != high;
    if (!best) continue;
    is_ambiguous = is_ambiguous || found || several;
    if (!found) found = {divisor, *best};
  }
  if (!found) return std::nullopt;
  FormOfOne made = form([at = *found](const SizeExpr& n) { return floor_div(n + at.offset, at.divisor); });
  made.is_ambiguous = is_ambiguous;
  return made;
}

// n % divisor, and what is missing to a multiple.
std::optional<FormOfOne> remainder_form(const RunValues& of, const RunValues& values) {
  constexpr std::int64_t kLargest = 128;
  std::int64_t down = 0, up = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) return std::nullopt;
    down = std::gcd(down, of[i] - values[i]);
    up = std::gcd(up, of[i] + values[i]);
  }
  // Two numbers alone are taken for what is odd or even.
  const std::int64_t least = *std::ranges::max_element(values) + 1, most = has_few_values(values) ? 2 : kLargest;
  for (const bool is_down : {true, false}) {
    const std::int64_t multiple = is_down ? down : up;
    std::vector<std::int64_t> found;
    for (std::int64_t divisor = least; divisor <= std::min(multiple, most); ++divisor) {
      if (multiple % divisor == 0) found.push_back(divisor);
    }
    if (found.empty()) continue;
    FormOfOne made =
        form([=, by = found[0]](const SizeExpr& n) { return floor_mod(is_down ? n : SizeExpr(0) - n, by); });
    made.is_ambiguous = found.size() > 1;
    return made;
  }
  return std::nullopt;
}

std::optional<FormOfOne> division_or_multiple(const RunValues& of, const RunValues& values, bool any_offset) {
  const std::int64_t common = common_factor(values);
  if (auto found = multiple_form(of, values, common)) return found;
  if (auto found = division_form(of, values, any_offset)) return found;
  if (auto found = remainder_form(of, values)) return found;
  if (common < 2) return std::nullopt;
  RunValues rest = values;
  for (std::int64_t& value : rest) value /= common;
  std::optional<FormOfOne> found = division_form(of, rest, any_offset);
  if (found) found->of = [=, of = found->of](const SizeExpr& n) { return of(n) * common; };
  return found;
}

}  // namespace

bool all_equal(const RunValues& values) {
  return std::ranges::all_of(values, [&](std::int64_t value) { return value == values.front(); });
}

bool has_few_values(const RunValues& values) { return std::set(values.begin(), values.end()).size() < 3; }

std::optional<FormOfOne> same_form(const RunValues& of, const RunValues& values) {
  if (of != values) return std::nullopt;
  return FormOfOne{.of = [](const SizeExpr& n) { return n; }, .is_plain = true};
}

std::optional<FormOfOne> affine_form(const RunValues& of, const RunValues& values) {
  std::size_t j = 1;
  while (j < of.size() && of[j] == of[0]) ++j;
  if (j == of.size() || (values[j] - values[0]) % (of[j] - of[0]) != 0) return std::nullopt;
  const std::int64_t scale = (values[j] - values[0]) / (of[j] - of[0]), offset = values[0] - scale * of[0];
  if (scale == 0 || !fits(of, values, [&](std::int64_t n) { return scale * n + offset; })) return std::nullopt;
  return FormOfOne{.of = [=](const SizeExpr& n) { return n * scale + offset; },
                   .weight = std::abs(scale) + std::abs(offset),
                   .is_plain = offset == 0};
}

std::optional<FormOfOne> scaled_form(const RunValues& of, const RunValues& values) {
  if (of[0] == 0 || values[0] % of[0] != 0) return std::nullopt;
  std::optional<FormOfOne> found = affine_form(of, values);
  return found && found->is_plain ? found : std::nullopt;
}

std::optional<FormOfOne> shifted_form(const RunValues& of, const RunValues& values) {
  const std::int64_t by = values[0] - of[0];
  if (!fits(of, values, [&](std::int64_t n) { return n + by; })) return std::nullopt;
  return form([=](const SizeExpr& n) { return n + by; });
}

std::optional<FormOfOne> part_form(const RunValues& of, const RunValues& values) {
  if (values[0] == 0 || of[0] % values[0] != 0) return std::nullopt;
  const std::int64_t by = of[0] / values[0];
  if (by < 1 || !fits(values, of, [&](std::int64_t part) { return part * by; })) return std::nullopt;
  return form([=](const SizeExpr& n) { return floor_div(n, by); });
}

std::optional<FormOfOne> rounded_form(const RunValues& of, const RunValues& values) {
  return division_or_multiple(of, values, /*any_offset=*/false);
}

std::optional<FormOfOne> windowed_form(const RunValues& of, const RunValues& values) {
  return division_or_multiple(of, values, /*any_offset=*/true);
}

std::optional<FormOfOne> half_form(const RunValues& of, const RunValues& values) {
  if (fits(of, values, [](std::int64_t n) { return floor_divide(n, 2); }))
    return form([](const SizeExpr& n) { return floor_div(n, 2); });
  if (fits(of, values, [](std::int64_t n) { return n - floor_divide(n, 2); }))
    return form([](const SizeExpr& n) { return n - floor_div(n, 2); });
  // As C++ halves what is below zero.
  const auto halved = [](const SizeExpr& n) { return max(floor_div(n, 2), 0) - max(floor_div(SizeExpr(0) - n, 2), 0); };
  if (fits(of, values, [](std::int64_t n) { return n / 2; })) return form(halved);
  if (fits(of, values, [](std::int64_t n) { return n - n / 2; }))
    return form([=](const SizeExpr& n) { return n - halved(n); });
  return std::nullopt;
}

std::optional<FormOfOne> bounded_form(const RunValues& of, const RunValues& values) {
  const auto [least, most] = std::ranges::minmax(values);
  bool is_reached = false, is_between = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    is_reached = is_reached || of[i] == values[i];
    is_between = is_between || (least < of[i] && of[i] < most);
  }
  const auto bounds = [&](auto&& bounded) { return fits(of, values, bounded); };
  if (is_reached && bounds([most = most](std::int64_t n) { return std::min(n, most); }))
    return form([most = most](const SizeExpr& n) { return min(n, most); });
  if (is_reached && bounds([least = least](std::int64_t n) { return std::max(n, least); }))
    return form([least = least](const SizeExpr& n) { return max(n, least); });
  if (is_between && bounds([least = least, most = most](std::int64_t n) { return std::clamp(n, least, most); }))
    return form([least = least, most = most](const SizeExpr& n) { return min(max(n, least), most); });
  return std::nullopt;
}

// ── Real numbers ──────────────────────────────────────────────────────────────────────────────────────────────────

SizeExpr product_of_reals(const SizeExpr& a, const SizeExpr& b) {
  if (a.is_real() && b == SizeExpr::real(1.0)) return a;
  return SizeExpr::call("Mul", {a, b});
}
SizeExpr quotient_of_reals(const SizeExpr& a, const SizeExpr& b) { return SizeExpr::call("FloatTrueDiv", {a, b}); }

// A real number made of another one and a constant.
struct RealForm {
  double (*constant)(double value, double of);
  double (*at)(double constant, double of);
  SizeExpr (*size)(const SizeExpr& constant, const SizeExpr& of);
  bool is_of_whole = false;  ///< constants of 2 and more
};

namespace {

constexpr double kOfFloat = 3e-7, kOfDouble = 1e-11;  // what they do not keep

constexpr RealForm kForms[] = {
    {[](double value, double of) { return value * of; }, [](double constant, double of) { return constant / of; },
     [](const SizeExpr& constant, const SizeExpr& of) { return quotient_of_reals(constant, of); }},
    {[](double value, double of) { return value / of; }, [](double constant, double of) { return constant * of; },
     [](const SizeExpr& constant, const SizeExpr& of) { return product_of_reals(of, constant); }},
    {[](double value, double of) { return of / value; }, [](double constant, double of) { return of / constant; },
     [](const SizeExpr& constant, const SizeExpr& of) { return quotient_of_reals(of, constant); }},
    {[](double value, double of) { return 1 / (value * of); },
     [](double constant, double of) { return 1 / (constant * of); },
     [](const SizeExpr& constant, const SizeExpr& of) {
       return quotient_of_reals(SizeExpr::real(1.0), product_of_reals(of, constant));
     },
     true}};

bool nearly(double a, double b) { return a == b || std::abs(a - b) <= kOfFloat * std::max(std::abs(a), std::abs(b)); }

double tidy(double value) {
  constexpr int kMostDigits = 9, kFewDigits = 4;
  const double part = std::round(value * 64) / 64;
  if (part != 0 && std::abs(value - part) <= kOfFloat * std::abs(part)) return part;
  for (int digits = 1; digits <= kMostDigits; ++digits) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.*g", digits, value);
    const double rounded = std::strtod(text.data(), nullptr);
    if (std::abs(value - rounded) <= (digits <= kFewDigits ? kOfFloat : kOfDouble) * std::abs(value)) return rounded;
  }
  return value;
}

bool is_float(double value) { return static_cast<double>(static_cast<float>(value)) == value; }

// Of constants that do, people write the shortest.
std::size_t length_of(double constant) {
  std::array<char, 32> text{};
  return static_cast<std::size_t>(std::to_chars(text.data(), text.data() + text.size(), constant).ptr - text.data());
}

}  // namespace

RealFit::RealFit(const Reals& values) : values_(values), in_float_(std::ranges::all_of(values, is_float)) {}

void RealFit::try_forms(const Reals& of, const Make& make) {
  for (const RealForm& form : kForms) {
    const double constant = tidy(form.constant(values_[0], of[0]));
    if (!std::isfinite(constant)) continue;
    if (form.is_of_whole && (constant < 2 || constant != std::floor(constant))) continue;
    if (in_float_) try_form(form, static_cast<float>(constant), of, make);
    try_form(form, constant, of, make);
  }
}

void RealFit::try_form(const RealForm& form, double constant, const Reals& of, const Make& make) {
  bool fits_exactly = true;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const double value = values_[i], made = form.at(constant, of[i]);
    if (!nearly(value, made)) return;
    fits_exactly =
        fits_exactly && (made == value || (in_float_ && static_cast<float>(value) == static_cast<float>(made)));
  }
  const std::size_t length = length_of(constant);
  if (fits_exactly ? exact_ && length_ <= length : near_.has_value()) return;
  (fits_exactly ? exact_ : near_) = form.size(SizeExpr::real(constant), make());
  if (fits_exactly) length_ = length;
}

}  // namespace fx::internal
