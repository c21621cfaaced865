// SizeExpr: a number that depends on sizes of the inputs.
//
//   const SizeExpr h = SizeExpr::symbol("h");
//   std::cout << floor_div(2 * h + 4, 2);     // h + 2
//   SizeExpr::parse("Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))").str()
//   // 2*s77 + 1
//
// It is read and written as torch.export has it, SymPy's text, in which it stays as it is written. Arithmetic gives a
// canonical form: a sum of products of atoms, sorted, with whole factors; atoms are symbols, floor divisions,
// remainders, maxima and minima that are no sums themselves. Numbers that do not fit into 64 bits stay unevaluated
// calls, which evaluate() gives nothing for. Whether two are equal or ordered: fxgraph/symbolic/size_facts.h.
//
// Thread-safety: values. Costs: O(1) where all is whole numbers and for a copy; else linear in the terms, of which a
// text may have kMaxTerms.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fx {

/// An immutable expression over whole numbers, in which others may stand (`TruncToInt(2.5*ToFloat(s0))`, as
/// interpolation by a factor gives); see the top of this file.
class SizeExpr {
 public:
  /// A whole number, another one, a symbol, or a function of other expressions.
  enum class Kind : std::uint8_t { integer, real, symbol, call };
  static constexpr int kMaxDepth = 100;    ///< how deep a text may nest
  static constexpr int kMaxTerms = 10000;  ///< how long a text may be, in numbers, symbols and functions

  SizeExpr() = default;  ///< the number 0
  /// A whole number.
  SizeExpr(std::int64_t value) : value_(value) {}
  /// A number, or a symbol of this name.
  /// @{
  static SizeExpr integer(std::int64_t value) { return SizeExpr(value); }
  static SizeExpr symbol(std::string name);
  /// @}
  /// A number with a point, by its digits (`2.5`, `1e-05`) or with as many as tell it from all others.
  /// @{
  static SizeExpr real(std::string digits);
  static SizeExpr real(double value);
  /// @}
  /// `function` is SymPy's: Add, Mul, Pow, FloorDiv, Mod, Max, Min, …; of conditions, which are 1 where they hold and
  /// else 0, StrictGreaterThan, Equality, And, Not, …, and Piecewise(ExprCondPair(value, condition), …).
  static SizeExpr call(std::string function, std::vector<SizeExpr> operands);

  /// Reads SymPy's srepr. Throws Error(io) for a malformed text.
  static SizeExpr parse(std::string_view text);
  /// Writes SymPy's srepr.
  std::string dump() const;
  /// As people write it: `2*s77 + 1`.
  std::string str() const;

  /// True for the name of a number that data decide: u0, u1, …, and zuf0, … of those with a point.
  /// @{
  static bool is_data_symbol(std::string_view name);
  static bool is_real_symbol(std::string_view name);
  /// @}

  /// What it is, which decides what the others mean.
  /// @{
  Kind kind() const { return kind_; }
  bool is_integer() const { return kind_ == Kind::integer; }
  bool is_symbol() const { return kind_ == Kind::symbol; }
  bool is_call(std::string_view function) const { return kind_ == Kind::call && name() == function; }
  /// @}
  std::int64_t value() const { return value_; }  ///< of a number; else 0
  /// The symbol's or the function's name, or a real number's digits.
  const std::string& name() const { return term_ ? term_->name : no_term().name; }
  /// Of a function, in order; else none.
  const std::vector<SizeExpr>& operands() const { return term_ ? term_->operands : no_term().operands; }
  int depth() const { return term_ ? term_->depth : 0; }  ///< how deep functions nest
  /// How many numbers, symbols and functions are written; a million and more are a million.
  std::uint32_t parts() const { return term_ ? term_->parts : 1; }
  /// Calls `visit` for every symbol, once per occurrence.
  void for_each_symbol(const std::function<void(const std::string&)>& visit) const;
  bool varies() const;      ///< true when a symbol stands in it
  bool is_of_data() const;  ///< true when data decide a symbol in it
  /// True for what is a number with a point: `2.5*ToFloat(s0)`.
  bool is_real() const { return term_ && term_->is_real; }
  bool is_canonical() const { return !term_ || term_->is_canonical; }  ///< true when it is known to be simplified()
  /// Its value for these symbols; nothing when a symbol is not there, the function is not known, or it overflows; and
  /// for evaluate() when it is no whole number.
  /// @{
  std::optional<std::int64_t> evaluate(const std::map<std::string, std::int64_t>& symbols) const;
  std::optional<double> evaluate_real(const std::map<std::string, std::int64_t>& symbols) const;
  /// @}
  /// Equal as they are written: `a + b` is not `b + a`, unless both are canonical.
  friend bool operator==(const SizeExpr& a, const SizeExpr& b);
  /// An order in which canonical sums and products stand.
  friend std::strong_ordering operator<=>(const SizeExpr& a, const SizeExpr& b);

  /// Exact arithmetic, in canonical form.
  /// @{
  friend SizeExpr operator+(const SizeExpr& a, const SizeExpr& b);
  friend SizeExpr operator-(const SizeExpr& a, const SizeExpr& b);
  friend SizeExpr operator*(const SizeExpr& a, const SizeExpr& b);
  /// @}
  /// The same expression in canonical form.
  SizeExpr simplified() const;
  /// With each symbol replaced by what `value_of` gives for it, in canonical form.
  SizeExpr substituted(const std::function<SizeExpr(const SizeExpr& symbol)>& value_of) const;

 private:
  struct Term {
    std::string name;
    std::vector<SizeExpr> operands;
    int depth = 0;
    std::uint32_t parts = 1;
    bool is_real = false;
    bool is_canonical = false;
  };
  friend struct CanonicalForm;
  static const Term& no_term();
  static SizeExpr make(Kind kind, std::string name, std::vector<SizeExpr> operands = {}, bool is_canonical = false);

  Kind kind_ = Kind::integer;
  std::int64_t value_ = 0;
  std::shared_ptr<const Term> term_;
};

/// Rounded down, as `//` and `%` of Python are; a divisor is taken to be other than 0.
/// @{
SizeExpr floor_div(const SizeExpr& a, const SizeExpr& b);
SizeExpr floor_mod(const SizeExpr& a, const SizeExpr& b);
/// @}
/// `floor_div`, rounded up.
SizeExpr ceil_div(const SizeExpr& a, const SizeExpr& b);
/// The larger and the smaller of two.
/// @{
SizeExpr max(const SizeExpr& a, const SizeExpr& b);
SizeExpr min(const SizeExpr& a, const SizeExpr& b);
/// @}

/// Prints str().
std::ostream& operator<<(std::ostream& out, const SizeExpr& expr);

/// What a symbol may be: both ends belong to it, a missing one is open.
struct SizeRange {
  std::optional<std::int64_t> min;  ///< the least that it may be
  std::optional<std::int64_t> max;  ///< the most that it may be
  /// Same ends.
  friend bool operator==(const SizeRange&, const SizeRange&) = default;
};

/// By symbol.
using SizeRanges = std::map<std::string, SizeRange>;

}  // namespace fx
