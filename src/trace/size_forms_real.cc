#include <fxgraph/trace/size_forms_real.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace fx::internal {

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
