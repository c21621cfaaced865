#include <fxgraph/trace/real_rules.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace fx::internal {
namespace {

constexpr std::int64_t kLargestShift = 4;

// What people write: hundredths, thousandths, fractions of small numbers, and divisions by round ones.
const std::vector<double>& factors() {
  static const auto& all = *new std::vector<double>([] {
    std::vector<double> made;
    for (int hundredths = 1; hundredths <= 400; ++hundredths) made.push_back(hundredths / 100.0);
    for (int thousandths = 1; thousandths < 1000; ++thousandths) made.push_back(thousandths / 1000.0);
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

}  // namespace

std::int64_t RealRule::rounded(std::int64_t size) const {
  const auto product = [this](auto a, auto b) { return static_cast<double>(divides ? a / b : a * b); };
  double value = in == In::as_float ? product(static_cast<float>(size), static_cast<float>(factor))
                                    : product(static_cast<double>(size), factor);
  if (in == In::to_float) value = static_cast<double>(static_cast<float>(value));
  switch (rounding) {
    case Rounding::down: return static_cast<std::int64_t>(std::floor(value));
    case Rounding::up: return static_cast<std::int64_t>(std::ceil(value));
    case Rounding::nearest: return std::llround(value);
    default: return std::llrint(value);
  }
}

bool RealRule::explains(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& numbers) {
  shift = numbers[0] - rounded(sizes[0]);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (at(sizes[i]) != numbers[i]) return false;
  }
  return std::abs(shift) <= kLargestShift;
}

namespace {

void add_rules(double factor, bool divides, const std::vector<std::int64_t>& sizes,
               const std::vector<std::int64_t>& numbers, std::vector<RealRule>& rules) {
  using Rounding = RealRule::Rounding;
  using In = RealRule::In;
  for (const In in : {In::as_double, In::as_float, In::to_float}) {
    for (const Rounding rounding : {Rounding::down, Rounding::up, Rounding::nearest, Rounding::to_even}) {
      RealRule rule{factor, divides, in, rounding};
      if (rule.explains(sizes, numbers)) rules.push_back(rule);
    }
  }
}

}  // namespace

std::vector<RealRule> real_rules(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& numbers) {
  // The largest size says most of what the factor is.
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  const auto size = static_cast<double>(*largest), number = static_cast<double>(numbers[largest - sizes.begin()]);
  constexpr double kMargin = kLargestShift + 2;
  std::vector<RealRule> rules;
  for (const bool divides : {false, true}) {
    for (const double factor : factors()) {
      const double product = divides ? size / factor : size * factor;
      if (std::abs(product - number) <= kMargin) add_rules(factor, divides, sizes, numbers, rules);
    }
  }
  return rules;
}

std::vector<RealRule> near_rules(double factor, bool divides, const std::vector<std::int64_t>& sizes,
                                 const std::vector<std::int64_t>& numbers) {
  constexpr double kNearest = 1.0 / (1 << 17);
  std::vector<RealRule> rules;
  for (const double end : {0.0, 2 * factor}) add_rules(std::nextafter(factor, end), divides, sizes, numbers, rules);
  for (double by = 1.0 / 16; by >= kNearest; by /= 2) {
    add_rules(factor * (1 + by), divides, sizes, numbers, rules);
    add_rules(factor * (1 - by), divides, sizes, numbers, rules);
  }
  return rules;
}

namespace {

constexpr double kOfFloat = 3e-7, kOfDouble = 1e-11;  // what they do not keep

}  // namespace

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

}  // namespace fx::internal
