// SizeFacts: what is known of symbols, and what follows of expressions.
//
//   fx::SizeFacts facts;
//   facts.declare("n", {.min = 1});
//   facts.assume({.relation = fx::SizeRelation::multiple, .left = n, .right = 8});
//   facts.holds({.relation = fx::SizeRelation::equal, .left = floor_div(n, 8) * 8, .right = n});   // Answer::yes
//
// There are three answers: an expression that nothing decides is unknown, never assumed.
//
// `a == b` is decided by their difference: 0 in canonical form holds always; bounds or a common factor that exclude 0
// decide for never. So equalities are complete for "always" where a difference is linear in symbols that nothing ties.
// Divisions by whole numbers of one symbol are decided residue by residue. Order goes by the difference's bounds, and
// by one assumed inequality.
//
// Cost: linear in the expressions and what is assumed of their symbols. Thread-safety: as a container.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/symbolic/size_expr.h>

namespace fx {

/// Whether something holds for all values of the symbols, for none, or neither is known.
enum class Answer : std::uint8_t { no, unknown, yes };

/// How two numbers stand to each other. `holds`: an expression that is 1, all of it on the left.
enum class SizeRelation : std::uint8_t { equal, unequal, at_least, at_most, more, less, multiple, holds };

/// One condition.
struct SizeCondition {
  SizeRelation relation{};  ///< what must be
  SizeExpr left;            ///< `x[0]`
  SizeExpr right;           ///< `4`, `2*y[0] + 1`; of `multiple` the step

  /// `x[0] must be at least 4`.
  std::string str() const;
  /// The same of one term where it can be said so, without negative ones where not: `2*h - 7 >= 0` is `h >= 4`.
  SizeCondition simplified() const;
  /// Calls `visit` for every symbol, once per occurrence.
  void for_each_symbol(const std::function<void(const std::string&)>& visit) const;
  /// Same relation, same sides.
  friend bool operator==(const SizeCondition&, const SizeCondition&) = default;
};

/// The condition that an expression is which holds where it is 1: `x[0] >= 4`.
SizeCondition condition_of(const SizeExpr& expression);
/// SymPy's name for a relation of two numbers: `GreaterThan`; empty where it has none.
std::string_view function_of(SizeRelation relation);

/// Prints str().
std::ostream& operator<<(std::ostream& out, const SizeCondition& condition);

/// See the top of this file.
class SizeFacts {
 public:
  /// What `symbol` may be; what was known of its range before is forgotten.
  void declare(const std::string& symbol, SizeRange range);
  bool knows(const std::string& symbol) const { return symbols_.contains(symbol); }  ///< true for one that is declared
  /// Takes what a condition says for given. An equality of a symbol replaces it from then on.
  void assume(const SizeCondition& condition);

  /// Whether the condition holds.
  Answer holds(const SizeCondition& condition) const;
  /// Between what the expression lies.
  SizeRange range(const SizeExpr& expr) const;
  /// In canonical form, with what is assumed put in.
  SizeExpr simplified(const SizeExpr& expr) const;

 private:
  struct Symbol {
    SizeRange range;
    std::int64_t divisor = 1;
  };

  Answer is_zero(const SizeExpr& difference) const;
  Answer is_at_least_zero(const SizeExpr& difference) const;
  Answer by_residues(const SizeExpr& difference) const;
  void replace(const std::string& symbol, const SizeExpr& value);
  void narrow(const SizeExpr& difference);

  std::map<std::string, Symbol> symbols_;
  std::map<std::string, SizeExpr> values_;  // of symbols that an equality replaces; none is in another's value
  std::vector<SizeExpr> at_least_zero_;
};

}  // namespace fx
