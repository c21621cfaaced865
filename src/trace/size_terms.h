// SizeTerms: explains numbers that change with the sizes of a program's inputs as expressions of sizes.
//
// A number is known by its values: one in the first trace, one in each sample. What it is made of are sizes of tensors
// for which the program has asked by then, those of the inputs before all. Sizes with equal values are one term, that
// of the earliest tensor. Explanations are tried from the simplest on: a size, a multiple and an offset, products,
// sums and differences, floor and ceiling divisions, remainders, and what is kept between numbers; for real numbers
// multiples, quotients and roots.
//
// Cost: terms squared for each number that is not a size itself, terms cubed for those without explanation.
#pragma once

#include <compare>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace fx::internal {

enum class SizeOp : std::uint8_t {
  size,
  constant,
  add,
  sub,
  mul,
  floordiv,
  mod,
  min,
  max,
  real,
  real_add,
  real_mul,
  truediv,
  sqrt
};

/// Division and remainder as Python has them, rounded down.
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}
inline std::int64_t floor_remainder(std::int64_t a, std::int64_t b) { return a - floor_divide(a, b) * b; }
/// Whether it has one operand.
inline bool is_of_one(SizeOp op) { return op == SizeOp::sqrt; }

/// An expression: operands are terms made before it.
struct SizeTerm {
  SizeOp op;
  std::uint32_t a = 0, b = 0;
  std::uint32_t call = 0;   ///< of a size: whose
  std::int64_t number = 0;  ///< of a size: the dimension; of a constant: its value
  double real = 0;          ///< of a real constant
};

class SizeTerms {
 public:
  using Id = std::uint32_t;
  using Values = std::vector<std::int64_t>;
  using Reals = std::vector<double>;
  static constexpr std::int64_t kLargestDivisor = 64;  ///< but for round ones

  /// Makes the size of dimension `dim` of call `call` known, unless its values are known or all equal.
  void add_size(std::uint32_t call, std::int64_t dim, const Values& values);
  /// An expression with these values, which are not all equal.
  std::optional<Id> explain(const Values& values);
  std::optional<Id> explain(const Reals& values);

  const SizeTerm& operator[](Id id) const { return terms_[id]; }
  /// A number that has been worked out: whole, or real.
  struct Number {
    std::int64_t whole = 0;
    double real = 0;
    bool is_known = false;  ///< not when something was divided by zero
  };
  /// What all terms are where `size_of(call, dim)` says what sizes are.
  std::vector<Number> evaluate(const std::function<std::int64_t(std::uint32_t, std::int64_t)>& size_of) const;
  /// The expression in words that name its sizes by call and dimension.
  std::string str(Id id) const;
  /// Whether something has been explained by more than sizes, multiples, offsets and products.
  bool guessed() const { return guessed_; }
  /// Whether another divisor would have done as well: more values would tell.
  bool ambiguous() const { return ambiguous_; }
  /// Whether what was not explained may be kept between numbers, which it has reached: more values would tell.
  bool reaches_bound() const { return reaches_bound_; }
  /// A size of a dimension of `call` at which another rule gives another number.
  struct Telling {
    std::uint32_t call;
    std::int64_t dim, size;
    auto operator<=>(const Telling&) const = default;
  };
  /// Next to the steps of what is divided in `explained`. Of sizes that `allows(call, dim, size)` lets be.
  std::vector<Telling> telling_sizes(
      const std::vector<Id>& explained,
      const std::function<bool(std::uint32_t, std::int64_t, std::int64_t)>& allows) const;
  bool is_guess(Id id) const { return guesses_.contains(id); }

 private:
  Id constant(std::int64_t value);
  Id real(double value);
  Id make(SizeOp op, Id a, Id b);
  Id offset(Id term, std::int64_t by);
  Id scaled(Id term, std::int64_t by);
  Id floor_of(Id term, std::int64_t by);
  void know(Id id);

  std::optional<Id> known(const Values& values) const;
  /// scale · term + offset
  struct Affine {
    std::int64_t scale = 0, offset = 0;
    std::int64_t weight() const { return std::abs(scale) + std::abs(offset); }
  };
  static std::optional<Affine> affine_of(const Values& term, const Values& values);
  Id make_affine(Id term, const Affine& line);
  std::optional<Id> linear(const Values& values);
  std::optional<Id> product(const Values& values, int depth);
  std::optional<Id> sum(const Values& values, bool with_offset);
  std::optional<Id> quotient(const Values& values);
  std::optional<Id> rounded(const Values& values, bool any_offset);
  std::optional<Id> division(const Values& values, Id term, bool any_offset);
  std::optional<Id> remainder(const Values& values, Id term);
  static constexpr std::size_t kMostTerms = 12;  // to combine with each other
  std::vector<Id> first_of_pool(std::size_t most = kMostTerms) const;
  Values values_of_product(const std::vector<Id>& factors) const;
  std::optional<Id> affine_in_product(const Values& values);
  std::optional<Id> affine_in_grid(const Values& values);
  std::optional<Id> affine_in_two(const Values& values);
  std::optional<Id> truncated(const Values& values, Id whole, std::int64_t divisor);
  std::optional<Id> halves(const Values& values);
  std::optional<Id> bounded(const Values& values);
  std::optional<Id> bounded(const Values& values, Id term);
  Number at_size(Id id, std::int64_t size) const;
  const SizeTerm* only_size(Id id) const;
  std::optional<Id> scaled_product(const Reals& values);
  std::optional<Id> of_one_term(const Reals& values);
  std::optional<Id> real_of(const Reals& values);
  std::optional<Id> search(const Values& values);

  std::vector<SizeTerm> terms_;
  std::vector<Values> values_;  // by term; empty for constants and reals
  std::vector<Id> pool_;        // terms that explanations are made of, in order
  std::map<Values, Id> by_values_;
  std::map<std::tuple<SizeOp, Id, Id, std::int64_t>, Id> made_;
  std::map<double, Id> reals_;
  std::map<Values, std::size_t> failed_;  // with how many terms in the pool
  std::set<Id> guesses_;
  bool guessed_ = false;
  bool ambiguous_ = false;
  bool reaches_bound_ = false;
};

}  // namespace fx::internal
