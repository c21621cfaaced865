// SizeFitter: finds the expression of sizes that vary behind a number seen in several runs of a program.
//
// Tried in order: a constant; a sum of multiples; one symbol up to a bound; a floor division of one symbol; a
// square of it; sums and
// products of what was found for other numbers before, such as strides and flattened sizes are made of; the lesser or
// greater of two of them. An expression
// must explain every run.
//
// Costs: numbers seen before are looked up; a new one is compared with some thousand candidates. Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fxgraph/symbolic/size_expr.h>

namespace fx::pt2 {

/// The values of the symbols in one run.
using Symbols = std::map<std::string, std::int64_t>;

class SizeFitter {
 public:
  using Numbers = std::vector<std::int64_t>;

  /// The first run is the example; in most others one symbol has another value.
  explicit SizeFitter(std::vector<Symbols> runs);

  /// The expression; nothing when none is found. `seen` has a number for each run.
  std::optional<SizeExpr> fit(const Numbers& seen);
  /// Says that these numbers are `expr`, which explains them.
  void learn(const Numbers& seen, const SizeExpr& expr);
  /// True when the expression is the number in every run.
  bool explains(const SizeExpr& expr, const Numbers& seen) const;
  /// The symbols on which the number depends.
  std::vector<std::string> symbols_behind(const Numbers& seen) const;
  /// The symbols of which floor divisions were found: few runs do not tell those apart.
  const std::set<std::string>& guessed() const { return guessed_; }

 private:
  /// An expression of one symbol and what it was in each run.
  struct Atom {
    SizeExpr expr;
    Numbers values;
  };

  std::optional<SizeExpr> find(const Numbers& seen);
  std::optional<SizeExpr> fit_sum(const Numbers& seen) const;
  std::optional<SizeExpr> fit_bound(const Numbers& seen, const std::string& symbol) const;
  std::optional<SizeExpr> fit_division(const Numbers& seen, const std::string& symbol) const;
  std::optional<SizeExpr> fit_quotient(const Numbers& seen, const std::string& symbol, const Atom& dividend) const;
  std::optional<SizeExpr> fit_square(const Numbers& seen, const std::string& symbol) const;
  std::optional<SizeExpr> fit_known_bound(const Numbers& seen, const std::vector<std::string>& symbols) const;
  std::optional<SizeExpr> fit_known_sum(const Numbers& seen, const std::vector<std::string>& symbols) const;
  std::optional<SizeExpr> fit_known_product(const Numbers& seen, const std::vector<std::string>& symbols) const;
  std::optional<Atom> factor_of(const Numbers& seen, const std::string& symbol) const;
  bool is_factor(const Numbers& seen, const Numbers& factor, const std::string& symbol) const;
  void remember(const SizeExpr& expr, const std::string& symbol);

  std::vector<Symbols> runs_;
  std::map<std::string, std::vector<std::size_t>> alone_;  ///< the runs in which this symbol alone is another
  std::map<std::string, std::vector<Atom>> atoms_;
  std::map<Numbers, std::optional<SizeExpr>> found_;
  std::set<std::string> guessed_;
};

}  // namespace fx::pt2
