// Real numbers that follow from sizes: quotients, products and roots with a constant, what `1 / sqrt(n)` and the scales
// of resized images are. A constant is found from the first values and must fit the others within what `float` keeps.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <fxgraph/symbolic/size_expr.h>

namespace fx::internal {

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
