// SizeExplainer: explains numbers that change with the sizes of a program's inputs as expressions of sizes.
//
// A number is known by its values: one in the first trace, one in each probe. What it is made of are sizes of tensors
// for which the program has asked by then, those of the inputs before all. Sizes with equal values are one, that of the
// earliest tensor, and so is what has been explained before.
//
// Candidates are made of one size, of two or of three (Bases), and each is brought to the number by a form of one
// (size_forms.h); the table in size_explainer.cc has them from the plainest on.
//
// Cost: sizes squared for each number that is not a size itself, sizes cubed for those without explanation.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fxgraph/symbolic/size_expr.h>
#include <fxgraph/trace/size_forms.h>

namespace fx::internal {

class SizeExplainer {
 public:
  /// Makes a size known by this symbol. False where its values are known or all equal.
  bool add_size(const std::string& symbol, const RunValues& values);
  /// An expression with these values, which are not all equal.
  std::optional<SizeExpr> explain(const RunValues& values);
  std::optional<SizeExpr> explain(const Reals& values);

  /// Whether something has been explained by more than sizes, multiples and products.
  bool guessed() const { return guessed_; }
  bool is_guess(const SizeExpr& size) const { return guesses_.contains(size); }
  /// Whether another divisor would have done as well: more values would tell.
  bool ambiguous() const { return ambiguous_; }
  /// Whether what was not explained may be kept between numbers, which it has reached: more values would tell.
  bool reaches_bound() const { return reaches_bound_; }

 private:
  struct Known {
    SizeExpr size;
    RunValues values;
  };
  enum class Bases : std::uint8_t;
  struct Pairing;
  struct Row;
  static const Pairing kPairings[];
  static const Row kRows[];

  template <typename Visit>
  bool for_each_base(Bases bases, const Visit& visit) const;
  template <typename Visit>
  bool for_each_pair(const Pairing& pairing, const Visit& visit) const;
  template <typename Visit>
  bool for_each_product(const Visit& visit) const;
  std::optional<SizeExpr> known(const RunValues& values) const;
  std::optional<SizeExpr> by(const Row& row, const RunValues& values);
  std::optional<SizeExpr> without_factor(const RunValues& values);
  std::optional<SizeExpr> without_product(const RunValues& values);
  std::optional<SizeExpr> search(const RunValues& values);
  std::optional<SizeExpr> search_real(const Reals& values) const;
  bool know(const SizeExpr& size, const RunValues& values);
  void note_guess(const SizeExpr& size);

  std::vector<Known> sizes_;  // that explanations are made of, in order
  std::map<RunValues, SizeExpr> by_values_;
  std::map<RunValues, std::size_t> failed_;  // with how many sizes
  std::set<SizeExpr> guesses_;
  bool guessed_ = false;
  bool ambiguous_ = false;
  bool reaches_bound_ = false;
};

}  // namespace fx::internal
