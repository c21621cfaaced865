// The text of patterns: formulas, which are parts with a name and parameters, and those that every pattern may use.
#include <algorithm>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/matchers/pattern_parser.h>

namespace fx::internal {

namespace {

using match::Expr;

constexpr std::size_t kMostUses = 10000;

// Arithmetic in all its spellings, numbers as models round them. docs/matching.md lists them.
constexpr std::string_view kStandard = R"(
let plus(a, b) = commutative({aten::add.Tensor, aten::add.Scalar}(a, b))
let minus(a, b) = {aten::sub.Tensor, aten::sub.Scalar}(a, b)
let times(a, b) = commutative({aten::mul.Tensor, aten::mul.Scalar}(a, b))
let over(a, b) = {aten::div.Tensor, aten::div.Scalar}(a, b)
let half(a) = times(a, near(0.5, 1e-6)) | over(a, near(2, 1e-6))
let square(a) = aten::pow.Tensor_Scalar(a, near(2, 0)) | aten::mul.Tensor(a, a)
let cube(a) = aten::pow.Tensor_Scalar(a, near(3, 0)) | commutative(aten::mul.Tensor(square(a), a))
let over_root(a, b) = over(a, aten::sqrt(b)) | times(a, aten::rsqrt(b))
let matrix_product(a, b) = {aten::matmul, aten::bmm}(a, b)
let scaled(a, factor) = {aten::mul.Tensor, aten::mul.Scalar, aten::div.Tensor, aten::div.Scalar}(a, factor: float) | a
let cast(a, type) = aten::to.dtype(a, type: literal, ...) | aten::_to_copy(a, dtype=type: literal, ...) | a
)";

}  // namespace

PatternParser::PatternParser(std::string_view text, const Predicates& predicates)
    : lexer_(text), predicates_(predicates), uses_(&own_uses_) {
  // The standard ones are read by the same parser.
  if (text.data() != kStandard.data()) formulas_ = standard_formulas();
}

PatternParser::PatternParser(const PatternParser& caller, const Formula& formula,
                             std::unordered_map<std::string_view, Expr> values)
    : lexer_(formula.text, formula.body),
      predicates_(caller.predicates_),
      bound_(std::move(values)),
      in_formula_(true),
      depth_(caller.depth_),
      uses_(caller.uses_) {
  // A body sees what was defined before it, so that none can use itself.
  for (const Formula& each : caller.formulas_) {
    if (&each == &formula) break;
    formulas_.push_back(each);
  }
}

const std::vector<Formula>& PatternParser::standard_formulas() {
  static const std::vector<Formula>& formulas = *new std::vector<Formula>(PatternParser(kStandard, {}).read_formulas());
  return formulas;
}

std::vector<Formula> PatternParser::read_formulas() {
  for (skip_newlines(); lexer_.peek().kind != Kind::end; skip_newlines()) let();
  return std::move(formulas_);
}

/// Later definitions of a name go before earlier ones, so that a pattern may have its own `plus`.
const Formula* PatternParser::find_formula(std::string_view name) const {
  const auto found =
      std::find_if(formulas_.rbegin(), formulas_.rend(), [&](const Formula& f) { return f.name == name; });
  return found == formulas_.rend() ? nullptr : &*found;
}

void PatternParser::let() {
  lexer_.take();
  const PatternToken name = lexer_.take();
  Formula formula{value_name(name), {}, lexer_.text(), 0};
  lexer_.expect("(");
  std::unordered_map<std::string_view, Expr> values;
  do {
    if (lexer_.peek().kind != Kind::word) lexer_.fail("the name of a parameter");
    const PatternToken parameter = lexer_.take();
    formula.parameters.push_back(value_name(parameter));
    if (!values.emplace(formula.parameters.back(), match::any(formula.parameters.back())).second)
      lexer_.fail_at(parameter.at, "two parameters have the name " + std::string(parameter.text));
  } while (lexer_.accept(","));
  lexer_.expect(")");
  if (!lexer_.is("=")) lexer_.fail("'=' and what " + std::string(formula.name) + " stands for");
  formula.body = lexer_.peek().at + 1;
  // Read once with its parameters as they are, so that mistakes show where they are made, and for its end.
  formulas_.push_back(formula);
  PatternParser body(*this, formulas_.back(), std::move(values));
  body.expression();
  const PatternToken& end = body.lexer_.peek();
  if (end.kind != Kind::newline && end.kind != Kind::end) body.lexer_.fail("the end of the line");
  lexer_ = PatternLexer(lexer_.text(), end.at);
}

PatternParser::Expr PatternParser::use(const Formula& formula, std::size_t at) {
  lexer_.expect("(");
  const std::vector<Expr> args = elements(")");
  if (!args.empty() && PatternAccess::of(args.back()).kind == PatternKind::rest)
    lexer_.fail_at(at, std::string(formula.name) + " takes values: '...' belongs into what it stands for");
  if (args.size() != formula.parameters.size())
    lexer_.fail_at(at, std::string(formula.name) + " takes " + std::to_string(formula.parameters.size()) +
                           " arguments, not " + std::to_string(args.size()));
  if (++*uses_ > kMostUses) lexer_.fail_at(at, "the pattern becomes too large: its formulas use each other too often");
  std::unordered_map<std::string_view, Expr> values;
  for (std::size_t i = 0; i < args.size(); ++i) values.emplace(formula.parameters[i], args[i]);
  return PatternParser(*this, formula, std::move(values)).expression();
}

}  // namespace fx::internal
