#include <fxgraph/export/size_fit.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace fx::pt2 {
namespace {

using Number = std::int64_t;

constexpr std::size_t kMostAtoms = 48;

SizeExpr times(Number factor, SizeExpr expr) {
  return factor == 1 ? expr : SizeExpr::call("Mul", {SizeExpr::integer(factor), std::move(expr)});
}

SizeExpr plus(std::vector<SizeExpr> terms, Number constant) {
  if (constant != 0) terms.push_back(SizeExpr::integer(constant));
  if (terms.empty()) return SizeExpr::integer(0);
  return terms.size() == 1 ? terms[0] : SizeExpr::call("Add", std::move(terms));
}

Number floor_quotient(Number a, Number b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

}  // namespace

SizeFitter::SizeFitter(std::vector<Symbols> runs) : runs_(std::move(runs)) {
  for (std::size_t i = 1; i < runs_.size(); ++i) {
    std::vector<std::string> changed;
    for (const auto& [symbol, value] : runs_[i]) {
      if (value != runs_[0].at(symbol)) changed.push_back(symbol);
    }
    if (changed.size() == 1) alone_[changed[0]].push_back(i);
  }
  for (const auto& [symbol, value] : runs_[0]) remember(SizeExpr::symbol(symbol), symbol);
}

std::optional<SizeExpr> SizeFitter::fit(const Numbers& seen) {
  const bool constant = std::ranges::all_of(seen, [&](Number each) { return each == seen[0]; });
  if (constant) return SizeExpr::integer(seen[0]);
  const auto [known, fresh] = found_.try_emplace(seen);
  if (fresh) known->second = find(seen);
  return known->second;
}

void SizeFitter::learn(const Numbers& seen, const SizeExpr& expr) {
  found_[seen] = expr;
  const std::vector<std::string> symbols = symbols_behind(seen);
  if (symbols.size() == 1) remember(expr, symbols[0]);
}

std::vector<std::string> SizeFitter::symbols_behind(const Numbers& seen) const {
  std::vector<std::string> symbols;
  for (const auto& [symbol, runs] : alone_) {
    if (std::ranges::any_of(runs, [&](std::size_t run) { return seen[run] != seen[0]; })) symbols.push_back(symbol);
  }
  return symbols;
}

std::optional<SizeExpr> SizeFitter::find(const Numbers& seen) {
  const std::vector<std::string> symbols = symbols_behind(seen);
  if (symbols.empty()) return std::nullopt;
  std::optional<SizeExpr> expr = fit_sum(seen);
  if (!expr && symbols.size() == 1) expr = fit_bound(seen, symbols[0]);
  if (!expr && symbols.size() == 1) {
    expr = fit_division(seen, symbols[0]);
    if (!expr) expr = fit_square(seen, symbols[0]);
    guessed_.insert(symbols[0]);
  }
  if (expr && symbols.size() == 1) remember(*expr, symbols[0]);
  if (!expr) expr = fit_known_sum(seen, symbols);
  if (!expr) expr = fit_known_product(seen, symbols);
  if (!expr) expr = fit_known_bound(seen, symbols);
  return expr;
}

bool SizeFitter::explains(const SizeExpr& expr, const Numbers& seen) const {
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (expr.evaluate(runs_[i]) != seen[i]) return false;
  }
  return true;
}

void SizeFitter::remember(const SizeExpr& expr, const std::string& symbol) {
  std::vector<Atom>& atoms = atoms_[symbol];
  if (atoms.size() >= kMostAtoms) return;
  Atom atom{expr, {}};
  for (const Symbols& run : runs_) atom.values.push_back(expr.evaluate(run).value_or(0));
  if (std::ranges::find(atoms, atom.values, &Atom::values) == atoms.end()) atoms.push_back(std::move(atom));
}

// c + Σ aᵢ·sᵢ: the slopes come from runs that change one symbol.
std::optional<SizeExpr> SizeFitter::fit_sum(const Numbers& seen) const {
  std::vector<SizeExpr> terms;
  Number constant = seen[0];
  for (const auto& [symbol, runs] : alone_) {
    std::optional<Number> slope;
    for (const std::size_t run : runs) {
      const Number by = runs_[run].at(symbol) - runs_[0].at(symbol);
      if ((seen[run] - seen[0]) % by != 0) return std::nullopt;
      const Number here = (seen[run] - seen[0]) / by;
      if (slope && *slope != here) return std::nullopt;
      slope = here;
    }
    if (!slope || *slope == 0) continue;
    terms.push_back(times(*slope, SizeExpr::symbol(symbol)));
    constant -= *slope * runs_[0].at(symbol);
  }
  SizeExpr sum = plus(std::move(terms), constant);
  return explains(sum, seen) ? std::optional(std::move(sum)) : std::nullopt;
}

// min(s + c, m) and max(s + c, m): c is what two runs beyond the bound agree on, or 0.
std::optional<SizeExpr> SizeFitter::fit_bound(const Numbers& seen, const std::string& symbol) const {
  for (const bool least : {true, false}) {
    const Number bound = least ? std::ranges::max(seen) : std::ranges::min(seen);
    std::optional<Number> shift;
    std::size_t runs = 0;
    for (std::size_t run = 0; run < seen.size(); ++run) {
      if (seen[run] == bound) continue;
      if (!shift) shift = seen[run] - runs_[run].at(symbol);
      ++runs;
    }
    if (!shift || (runs < 2 && *shift != 0)) continue;
    SizeExpr expr =
        SizeExpr::call(least ? "Min" : "Max", {plus({SizeExpr::symbol(symbol)}, *shift), SizeExpr::integer(bound)});
    if (explains(expr, seen)) return expr;
  }
  return std::nullopt;
}

// (a·s² + b·s + c) / 2 of one symbol, as pairs of rows and triangles of matrices are counted. Three runs say which, and
// all others must agree.
std::optional<SizeExpr> SizeFitter::fit_square(const Numbers& seen, const std::string& symbol) const {
  constexpr Number kMost = Number{1} << 20;
  std::vector<std::pair<Number, Number>> points = {{runs_[0].at(symbol), 2 * seen[0]}};
  for (const std::size_t run : alone_.at(symbol)) points.emplace_back(runs_[run].at(symbol), 2 * seen[run]);
  std::ranges::sort(points);
  if (points.size() < 5 || points.back().first > kMost || points.back().second > kMost * kMost) return std::nullopt;
  // Divided differences; a is the second of them.
  const auto slope = [&](std::size_t i) -> std::optional<Number> {
    const Number by = points[i + 1].first - points[i].first, change = points[i + 1].second - points[i].second;
    return by != 0 && change % by == 0 ? std::optional(change / by) : std::nullopt;
  };
  const std::optional<Number> low = slope(points.size() - 3), high = slope(points.size() - 2);
  if (!low || !high) return std::nullopt;
  const auto& [x0, y0] = points[points.size() - 3];
  const auto& [x1, y1] = points[points.size() - 2];
  const Number width = points.back().first - x0;
  if ((*high - *low) % width != 0 || *high == *low) return std::nullopt;
  const Number square = (*high - *low) / width, linear = *low - square * (x0 + x1);
  const Number constant = y0 - square * x0 * x0 - linear * x0;
  const SizeExpr s = SizeExpr::symbol(symbol);
  std::vector<SizeExpr> terms = {times(square, SizeExpr::call("Mul", {s, s}))};
  if (linear != 0) terms.push_back(times(linear, s));
  SizeExpr expr = SizeExpr::call("FloorDiv", {plus(std::move(terms), constant), SizeExpr::integer(2)});
  return explains(expr, seen) ? std::optional(std::move(expr)) : std::nullopt;
}

// min(f, g) and max(f, g) of expressions of two symbols that are known.
std::optional<SizeExpr> SizeFitter::fit_known_bound(const Numbers& seen,
                                                    const std::vector<std::string>& symbols) const {
  // Of numbers that data decide, those below zero were not seen: `v[:n]`.
  if (symbols.size() != 2 || std::ranges::any_of(symbols, SizeExpr::is_data_symbol)) return std::nullopt;
  for (const bool least : {true, false}) {
    for (const Atom& f : atoms_.at(symbols[0])) {
      for (const Atom& g : atoms_.at(symbols[1])) {
        bool fits = true;
        for (std::size_t run = 0; run < seen.size() && fits; ++run)
          fits = seen[run] == (least ? std::min(f.values[run], g.values[run]) : std::max(f.values[run], g.values[run]));
        if (fits) return SizeExpr::call(least ? "Min" : "Max", {f.expr, g.expr});
      }
    }
  }
  return std::nullopt;
}

// k·⌊(f(s) + c) / d⌋ + e of one symbol, where f is a multiple of it, or an expression that is known.
std::optional<SizeExpr> SizeFitter::fit_division(const Numbers& seen, const std::string& symbol) const {
  for (const Number multiple : {1, 2, 3}) {
    Atom atom{times(multiple, SizeExpr::symbol(symbol)), {}};
    for (const Symbols& run : runs_) atom.values.push_back(multiple * run.at(symbol));
    if (std::optional<SizeExpr> expr = fit_quotient(seen, symbol, atom)) return expr;
  }
  for (const Atom& atom : atoms_.at(symbol)) {
    if (std::optional<SizeExpr> expr = fit_quotient(seen, symbol, atom)) return expr;
  }
  return std::nullopt;
}

std::optional<SizeExpr> SizeFitter::fit_quotient(const Numbers& seen, const std::string& symbol,
                                                 const Atom& dividend) const {
  const std::vector<std::size_t>& runs = alone_.at(symbol);
  for (const Number divisor : {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 48, 56, 64, 112, 128, 224}) {
    for (Number shift = 0; shift < divisor; ++shift) {
      const auto part = [&](Number value) { return floor_quotient(value + shift, divisor); };
      const Number first = part(dividend.values[0]);
      std::optional<Number> factor;
      bool fits = true;
      for (const std::size_t run : runs) {
        const Number by = part(dividend.values[run]) - first, change = seen[run] - seen[0];
        if (by == 0 ? change != 0 : change % by != 0 || (factor && *factor != change / by)) {
          fits = false;
          break;
        }
        if (by != 0) factor = change / by;
      }
      if (!fits || !factor) continue;
      const SizeExpr above = shift == 0 ? dividend.expr : plus({dividend.expr}, shift);
      SizeExpr expr = plus({times(*factor, SizeExpr::call("FloorDiv", {above, SizeExpr::integer(divisor)}))},
                           seen[0] - *factor * first);
      if (explains(expr, seen)) return expr;
    }
  }
  return std::nullopt;
}

// Σ aᵢ·fᵢ(sᵢ) + c of expressions that are known.
std::optional<SizeExpr> SizeFitter::fit_known_sum(const Numbers& seen, const std::vector<std::string>& symbols) const {
  std::vector<SizeExpr> terms;
  Number constant = seen[0];
  for (const std::string& symbol : symbols) {
    const std::size_t before = terms.size();
    for (const Atom& atom : atoms_.at(symbol)) {
      std::optional<Number> factor;
      bool fits = true;
      for (const std::size_t run : alone_.at(symbol)) {
        const Number by = atom.values[run] - atom.values[0], change = seen[run] - seen[0];
        fits &= by == 0 ? change == 0 : change % by == 0 && (!factor || *factor == change / by);
        if (by != 0) factor = change / by;
      }
      if (!fits || !factor || *factor == 0) continue;
      terms.push_back(times(*factor, atom.expr));
      constant -= *factor * atom.values[0];
      break;
    }
    if (terms.size() == before) return std::nullopt;
  }
  SizeExpr sum = plus(std::move(terms), constant);
  return explains(sum, seen) ? std::optional(std::move(sum)) : std::nullopt;
}

// Changing `symbol` alone, `seen` changes in proportion to `factor`.
bool SizeFitter::is_factor(const Numbers& seen, const Numbers& factor, const std::string& symbol) const {
  return factor[0] != 0 && std::ranges::all_of(alone_.at(symbol), [&](std::size_t run) {
           Number left = 0, right = 0;
           return !__builtin_mul_overflow(seen[run], factor[0], &left) &&
                  !__builtin_mul_overflow(seen[0], factor[run], &right) && left == right;
         });
}

// An expression that is known, or a product of two.
std::optional<SizeFitter::Atom> SizeFitter::factor_of(const Numbers& seen, const std::string& symbol) const {
  const std::vector<Atom>& atoms = atoms_.at(symbol);
  // The smallest of those in proportion: the others may be multiples of what is needed.
  const Atom* least = nullptr;
  for (const Atom& atom : atoms) {
    if (is_factor(seen, atom.values, symbol) && (!least || std::abs(atom.values[0]) < std::abs(least->values[0])))
      least = &atom;
  }
  if (least) return *least;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    for (std::size_t j = i; j < atoms.size(); ++j) {
      Atom both{SizeExpr::call("Mul", {atoms[i].expr, atoms[j].expr}), {}};
      for (std::size_t run = 0; run < runs_.size(); ++run) {
        std::int64_t product = 0;
        if (__builtin_mul_overflow(atoms[i].values[run], atoms[j].values[run], &product)) break;
        both.values.push_back(product);
      }
      if (both.values.size() == runs_.size() && is_factor(seen, both.values, symbol)) return both;
    }
  }
  return std::nullopt;
}

// k·Π fᵢ(sᵢ) + c for a small c.
std::optional<SizeExpr> SizeFitter::fit_known_product(const Numbers& seen,
                                                      const std::vector<std::string>& symbols) const {
  for (const Number constant : {0, 1, -1, 2, -2}) {
    Numbers rest = seen;
    for (Number& each : rest) each -= constant;
    std::vector<SizeExpr> factors;
    Number product = 1;
    for (const std::string& symbol : symbols) {
      const std::optional<Atom> factor = factor_of(rest, symbol);
      if (!factor) break;
      factors.push_back(factor->expr);
      product *= factor->values[0];
    }
    if (factors.size() != symbols.size() || product == 0 || rest[0] % product != 0) continue;
    if (rest[0] / product != 1) factors.insert(factors.begin(), SizeExpr::integer(rest[0] / product));
    SizeExpr expr = plus({factors.size() == 1 ? factors[0] : SizeExpr::call("Mul", std::move(factors))}, constant);
    if (explains(expr, seen)) return expr;
  }
  return std::nullopt;
}

}  // namespace fx::pt2
