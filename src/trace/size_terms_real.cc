// Real numbers that follow from sizes: quotients, products and roots with a constant, what `1 / sqrt(n)` and the scales
// of resized images are. A constant is found from the first values and must fit the others within what `float` keeps.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

// A real number made of a term, or of its root, and a constant.
struct RealForm {
  enum class Shape : std::uint8_t { over, times, divided, over_multiple };
  Shape shape;
  bool of_root;
  double (*constant)(double value, double term);
  double (*at)(double constant, double term);
};
using Shape = RealForm::Shape;
constexpr RealForm form(Shape shape, bool of_root) {
  switch (shape) {
    case Shape::over:
      return {shape, of_root, [](double value, double term) { return value * term; },
              [](double constant, double term) { return constant / term; }};
    case Shape::times:
      return {shape, of_root, [](double value, double term) { return value / term; },
              [](double constant, double term) { return constant * term; }};
    case Shape::divided:
      return {shape, of_root, [](double value, double term) { return term / value; },
              [](double constant, double term) { return term / constant; }};
    case Shape::over_multiple: break;
  }
  return {shape, of_root, [](double value, double term) { return 1 / (value * term); },
          [](double constant, double term) { return 1 / (constant * term); }};
}
constexpr RealForm kForms[] = {form(Shape::over, false),          form(Shape::times, false),
                               form(Shape::over, true),           form(Shape::times, true),
                               form(Shape::divided, false),       form(Shape::divided, true),
                               form(Shape::over_multiple, false), form(Shape::over_multiple, true)};

constexpr double kOfFloat = 3e-7, kOfDouble = 1e-11;  // what they do not keep

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

// Whether `made`, as what is multiplied with it rounds it, is the number that was computed in float.
bool is_float_of(double value, double made) { return static_cast<float>(value) == static_cast<float>(made); }

// Of constants that do, people write the shortest.
std::size_t length_of(double constant) {
  std::array<char, 32> text{};
  return static_cast<std::size_t>(std::to_chars(text.data(), text.data() + text.size(), constant).ptr - text.data());
}

}  // namespace

std::optional<SizeTerms::Id> SizeTerms::explain(const Reals& values) {
  const auto whole = [](double value) { return std::abs(value) < 1e15 && value == std::floor(value); };
  if (std::all_of(values.begin(), values.end(), whole)) {
    const Values integers(values.begin(), values.end());
    if (const auto id = explain(integers)) {
      const Id as_real = make(SizeOp::real_mul, *id, real(1));
      if (is_guess(*id)) guesses_.insert(as_real);
      return as_real;
    }
  }
  if (std::any_of(values.begin(), values.end(), [](double value) { return !std::isfinite(value); }))
    return std::nullopt;
  const std::optional<Id> id = real_of(values);
  if (!id) return std::nullopt;
  guessed_ = true;
  guesses_.insert(*id);
  return id;
}

// One term less some whole number, as align_corners has it: (n - 1). Of several ways to write a number, one that makes
// it to the last bit: `n / 10.` is not `n * 0.1`.
std::optional<SizeTerms::Id> SizeTerms::of_one_term(const Reals& values) {
  const bool in_float = std::ranges::all_of(values, is_float);
  const auto fits_exactly = [&](double value, double made) {
    return made == value || (in_float && is_float_of(value, made));
  };
  const auto make_real = [&](const RealForm& form, Id of, double constant) {
    if (form.of_root) of = make(SizeOp::sqrt, of, this->constant(0));
    switch (form.shape) {
      case Shape::times: return make(SizeOp::real_mul, of, real(constant));
      case Shape::divided: return make(SizeOp::truediv, of, real(constant));
      case Shape::over_multiple: return make(SizeOp::truediv, real(1), make(SizeOp::real_mul, of, real(constant)));
      case Shape::over: break;
    }
    return make(SizeOp::truediv, real(constant), of);
  };
  std::optional<Id> near_enough;
  for (const std::int64_t less : {0, 1}) {
    for (const Id term : std::vector<Id>(pool_)) {
      const auto term_at = [&](const RealForm& form, std::size_t i) {
        const auto of = static_cast<double>(values_[term][i] - less);
        return form.of_root ? std::sqrt(of) : of;
      };
      if (values_[term][0] <= less) continue;
      const RealForm* exact = nullptr;
      double its_constant = 0;
      const auto try_form = [&](const RealForm& form, double constant) {
        bool is_near = true, is_exact = true;
        for (std::size_t i = 0; i < values.size() && is_near; ++i) {
          const double made = form.at(constant, term_at(form, i));
          is_near = nearly(values[i], made);
          is_exact = is_exact && fits_exactly(values[i], made);
        }
        if (is_near && is_exact && (!exact || length_of(constant) < length_of(its_constant))) {
          exact = &form;
          its_constant = constant;
        } else if (is_near && !near_enough) {
          near_enough = make_real(form, offset(term, -less), constant);
        }
      };
      for (const RealForm& form : kForms) {
        const double constant = tidy(form.constant(values[0], term_at(form, 0)));
        if (form.shape == Shape::over_multiple && (constant < 2 || constant != std::floor(constant))) continue;
        if (in_float) try_form(form, static_cast<float>(constant));
        try_form(form, constant);
      }
      if (exact) return make_real(*exact, offset(term, -less), its_constant);
    }
  }
  return near_enough;
}

std::optional<SizeTerms::Id> SizeTerms::real_of(const Reals& values) {
  const auto all = [&](auto&& expected) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!nearly(values[i], expected(i))) return false;
    }
    return true;
  };
  if (const auto id = of_one_term(values)) return id;
  const std::vector<Id> pool = pool_;
  // scale · term + offset
  for (const Id id : pool) {
    std::size_t j = 1;
    while (j < values.size() && values_[id][j] == values_[id][0]) ++j;
    if (j == values.size()) continue;
    const double scale = tidy((values[j] - values[0]) / static_cast<double>(values_[id][j] - values_[id][0]));
    const double by = tidy(values[0] - scale * static_cast<double>(values_[id][0]));
    if (scale == 0 || !all([&](std::size_t i) { return scale * static_cast<double>(values_[id][i]) + by; })) continue;
    return make(SizeOp::real_add, make(SizeOp::real_mul, id, real(scale)), real(by));
  }
  if (const auto id = scaled_product(values)) return id;
  for (const std::int64_t less : {0, 1}) {
    for (const Id a : pool) {
      for (const Id b : pool) {
        const auto ratio = [&](std::size_t i) {
          return static_cast<double>(values_[a][i] - less) / static_cast<double>(values_[b][i] - less);
        };
        if (a == b || values_[b][0] <= less || values_[a][0] <= less) continue;
        const double scale = tidy(values[0] / ratio(0));
        if (!all([&](std::size_t i) { return scale * ratio(i); })) continue;
        const Id top = scale == 1 ? offset(a, -less) : make(SizeOp::real_mul, offset(a, -less), real(scale));
        return make(SizeOp::truediv, top, offset(b, -less));
      }
    }
  }
  return std::nullopt;
}

// A constant times, or over, the product of two or three terms: the elements of a tensor.
std::optional<SizeTerms::Id> SizeTerms::scaled_product(const Reals& values) {
  const std::vector<Id> pool = first_of_pool();
  const auto try_product = [&](const std::vector<Id>& factors) -> std::optional<Id> {
    const auto product = [&](std::size_t i) {
      double result = 1;
      for (const Id factor : factors) result *= static_cast<double>(values_[factor][i]);
      return result;
    };
    if (product(0) == 0) return std::nullopt;
    const double times = tidy(values[0] / product(0)), over = tidy(values[0] * product(0));
    bool multiplies = true, divides = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
      multiplies = multiplies && nearly(values[i], times * product(i));
      divides = divides && product(i) != 0 && nearly(values[i], over / product(i));
    }
    if (!multiplies && !divides) return std::nullopt;
    Id term = factors[0];
    for (std::size_t i = 1; i < factors.size(); ++i) term = make(SizeOp::mul, term, factors[i]);
    return multiplies ? make(SizeOp::real_mul, term, real(times)) : make(SizeOp::truediv, real(over), term);
  };
  for (std::size_t a = 0; a < pool.size(); ++a) {
    for (std::size_t b = a; b < pool.size(); ++b) {
      if (const auto id = try_product({pool[a], pool[b]})) return id;
    }
  }
  for (std::size_t a = 0; a < pool.size(); ++a) {
    for (std::size_t b = a; b < pool.size(); ++b) {
      for (std::size_t c = b; c < pool.size(); ++c) {
        if (const auto id = try_product({pool[a], pool[b], pool[c]})) return id;
      }
    }
  }
  return std::nullopt;
}

}  // namespace fx::internal
