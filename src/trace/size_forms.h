// Forms of one number: how one that changes from run to run follows from another: `3*n + 1`, `(n + 1)//2`, `-n % 8`.
// Real numbers are quotients, products and roots with a constant, what `1 / sqrt(n)` and the scales of resized images
// are: it is found from the first values and must fit the others within what `float` keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <fxgraph/symbolic/size_expr.h>

namespace fx::internal {

/// What a number is in each run: in the first trace, then in each probe.
using RunValues = std::vector<std::int64_t>;

/// How a number follows from another one.
struct FormOfOne {
  std::function<SizeExpr(const SizeExpr&)> of;
  std::int64_t weight = 0;    ///< of several the least is the plainest
  bool is_plain = false;      ///< the number itself, or a multiple
  bool is_ambiguous = false;  ///< another divisor would do as well
};
using FitForm = std::optional<FormOfOne> (*)(const RunValues& of, const RunValues& values);

std::optional<FormOfOne> same_form(const RunValues& of, const RunValues& values);
/// k·n
std::optional<FormOfOne> scaled_form(const RunValues& of, const RunValues& values);
/// n + c
std::optional<FormOfOne> shifted_form(const RunValues& of, const RunValues& values);
/// k·n + c
std::optional<FormOfOne> affine_form(const RunValues& of, const RunValues& values);
/// n // d, which leaves nothing
std::optional<FormOfOne> part_form(const RunValues& of, const RunValues& values);
/// n // d and n rounded up to a multiple, multiples of these, remainders, and what is missing to a multiple.
std::optional<FormOfOne> rounded_form(const RunValues& of, const RunValues& values);
/// The same, with some number added before: (n + c) // d
std::optional<FormOfOne> windowed_form(const RunValues& of, const RunValues& values);
/// Half of it, rounded down or towards zero, and the other half: how padding is shared out.
std::optional<FormOfOne> half_form(const RunValues& of, const RunValues& values);
/// Kept below, above or between numbers that it has reached.
std::optional<FormOfOne> bounded_form(const RunValues& of, const RunValues& values);

bool all_equal(const RunValues& values);
/// Three numbers say more than two, which may be many things.
bool has_few_values(const RunValues& values);

// ── Real numbers ──────────────────────────────────────────────────────────────────────────────────────────────────

using Reals = std::vector<double>;
struct RealForm;

SizeExpr product_of_reals(const SizeExpr& a, const SizeExpr& b);
SizeExpr quotient_of_reals(const SizeExpr& a, const SizeExpr& b);

/// How `values` follow from another number. Of several ways to write it, one that makes it to the last bit, or to the
/// last of a float where that is all that it is: `n / 10.` is not `n * 0.1`. Of those the constant that is shortest.
class RealFit {
 public:
  using Make = std::function<SizeExpr()>;  ///< the number's expression

  explicit RealFit(const Reals& values);
  /// Tries multiples and quotients of `of`.
  void try_forms(const Reals& of, const Make& make);
  /// What makes it to the last bit, and what else has been found.
  const std::optional<SizeExpr>& exact() const { return exact_; }
  const std::optional<SizeExpr>& best() const { return exact_ ? exact_ : near_; }

 private:
  void try_form(const RealForm& form, double constant, const Reals& of, const Make& make);

  const Reals& values_;
  const bool in_float_;
  std::optional<SizeExpr> exact_, near_;
  std::size_t length_ = 0;
};

}  // namespace fx::internal
