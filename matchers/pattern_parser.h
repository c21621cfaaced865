// The parser of pattern texts: recursive descent over the grammar in docs/matching.md. Internal to matchers/.
#pragma once

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/matchers/pattern_lexer.h>

namespace fx::internal {

/// `let name(parameters) = body`: a part of patterns that has a name. It is read anew wherever it is used.
struct Formula {
  std::string_view name;
  std::vector<std::string_view> parameters;
  std::string_view text;  ///< in which it is written
  std::size_t body;       ///< where that begins
};

class PatternParser {
 public:
  PatternParser(std::string_view text, const Predicates& predicates);

  /// Reads the whole text; returns what the pattern returns.
  std::vector<match::Expr> parse();

  /// True when the word reads as the function of that name, with arguments behind it or without.
  static bool reads_as_target(std::string_view word, bool has_arguments);

 private:
  using Expr = match::Expr;
  using Kind = PatternToken::Kind;

  // Statements and expressions: pattern_text.cc.
  void skip_newlines();
  void statement();
  void check_statements();
  std::vector<Expr> list_until_line_ends();
  Expr expression();
  Expr primary();
  Expr word();
  Expr tagged();
  Expr described();
  Expr construct(std::string_view word);
  Expr dominates();
  Expr repeat();
  Expr commutative();
  Expr near();
  Expr literal(std::string_view text);
  std::vector<Expr> elements(std::string_view close);
  Expr tail();
  std::string_view value_name(const PatternToken& token) const;

  // Formulas: pattern_formulas.cc.
  PatternParser(const PatternParser& caller, const Formula& formula, std::unordered_map<std::string_view, Expr> values);
  void let();
  const Formula* find_formula(std::string_view name) const;
  Expr use(const Formula& formula, std::size_t at);
  std::vector<Formula> read_formulas();
  static const std::vector<Formula>& standard_formulas();

  // What follows an expression: pattern_text_calls.cc.
  Expr modified(Expr expr);
  Expr modify(const Expr& expr, std::string_view modifier);
  Expr with_condition(const Expr& expr);
  Expr with_type(const Expr& expr);
  std::uint32_t count();

  // Calls and what they call: pattern_text_calls.cc.
  Expr call(Op op, TargetSet targets);
  Expr call_with(Op op, TargetSet targets);
  Expr spelled_call(std::string_view word);
  Tag tag(std::string_view word);
  TargetSet regex();
  TargetSet target_set();
  TargetSet spelling();
  TargetSet bracketed(char open, char close);

  PatternLexer lexer_;
  const Predicates& predicates_;
  std::unordered_map<std::string_view, Expr> bound_;  ///< values; in the body of a formula its parameters
  std::unordered_set<std::string_view> named_;        ///< what expressions so far have named
  std::vector<PatternToken> statements_;              ///< their names
  std::vector<Formula> formulas_;                     ///< later ones go before earlier ones
  bool in_formula_ = false;
  int depth_ = 0;
  std::size_t* uses_;  ///< of formulas, in the whole pattern
  std::size_t own_uses_ = 0;
};

}  // namespace fx::internal
