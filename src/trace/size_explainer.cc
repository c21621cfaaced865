#include <fxgraph/trace/size_explainer.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fxgraph/symbolic/floor_divide.h>

namespace fx::internal {
namespace {

constexpr std::size_t kMostSizes = 96;
constexpr std::size_t kMostInProducts = 12;

}  // namespace

/// What candidates are made of.
enum class SizeExplainer::Bases : std::uint8_t {
  sizes,
  paddings,  ///< what is missing to a multiple
  sums,
  differences,
  products,
  quotients,
  ceilings,
  smaller,
  larger,
  triples,       ///< products of two and of three
  factored,      ///< one size times what is explained by itself
  with_products  ///< a product and what is explained by itself
};

struct SizeExplainer::Pairing {
  Bases bases;
  bool is_symmetric;
  std::int64_t (*value)(std::int64_t, std::int64_t);
  SizeExpr (*size)(const SizeExpr&, const SizeExpr&);
};

const SizeExplainer::Pairing SizeExplainer::kPairings[] = {
    {Bases::sums, true, [](std::int64_t a, std::int64_t b) { return a + b; },
     [](const SizeExpr& a, const SizeExpr& b) { return a + b; }},
    {Bases::differences, false, [](std::int64_t a, std::int64_t b) { return a - b; },
     [](const SizeExpr& a, const SizeExpr& b) { return a - b; }},
    {Bases::products, true, [](std::int64_t a, std::int64_t b) { return a * b; },
     [](const SizeExpr& a, const SizeExpr& b) { return a * b; }},
    {Bases::quotients, false, [](std::int64_t a, std::int64_t b) { return b == 0 ? 0 : floor_divide(a, b); },
     floor_div},
    {Bases::ceilings, false, [](std::int64_t a, std::int64_t b) { return b == 0 ? 0 : -floor_divide(-a, b); },
     [](const SizeExpr& a, const SizeExpr& b) { return floor_div(a + b - 1, b); }},
    {Bases::smaller, true, [](std::int64_t a, std::int64_t b) { return std::min(a, b); }, min},
    {Bases::larger, true, [](std::int64_t a, std::int64_t b) { return std::max(a, b); }, max}};

struct SizeExplainer::Row {
  Bases bases;
  FitForm form;
  bool is_certain = false;    ///< more values would hardly tell
  bool after_factor = false;  ///< tried of what is left of a product, too
};

// From the plainest on.
const SizeExplainer::Row SizeExplainer::kRows[] = {{Bases::sizes, affine_form, true, true},
                                                   {Bases::products, scaled_form, true, true},
                                                   {Bases::sums, same_form},
                                                   {Bases::differences, same_form},
                                                   {Bases::sizes, rounded_form, false, true},
                                                   {Bases::factored, nullptr},
                                                   {Bases::quotients, same_form},
                                                   {Bases::ceilings, same_form},
                                                   {Bases::products, part_form},
                                                   {Bases::differences, shifted_form, false, true},
                                                   {Bases::sums, shifted_form, false, true},
                                                   {Bases::differences, half_form},
                                                   {Bases::paddings, half_form},
                                                   {Bases::sizes, windowed_form},
                                                   {Bases::smaller, same_form},
                                                   {Bases::larger, same_form},
                                                   {Bases::sizes, bounded_form},
                                                   {Bases::triples, affine_form},
                                                   {Bases::with_products, nullptr}};

// ── What is known ─────────────────────────────────────────────────────────────────────────────────────────────────

bool SizeExplainer::know(const SizeExpr& size, const RunValues& values) {
  if (!by_values_.try_emplace(values, size).second) return false;
  if (sizes_.size() < kMostSizes) sizes_.push_back({size, values});
  return true;
}

bool SizeExplainer::add_size(const std::string& symbol, const RunValues& values) {
  return !all_equal(values) && know(SizeExpr::symbol(symbol), values);
}

std::optional<SizeExpr> SizeExplainer::known(const RunValues& values) const {
  const auto place = by_values_.find(values);
  return place == by_values_.end() ? std::nullopt : std::optional(place->second);
}

void SizeExplainer::note_guess(const SizeExpr& size) {
  guessed_ = true;
  guesses_.insert(size);
}

std::optional<SizeExpr> SizeExplainer::explain(const RunValues& values) {
  if (std::optional<SizeExpr> size = known(values)) return size;
  const auto failed = failed_.find(values);
  if (failed != failed_.end() && failed->second == sizes_.size()) return std::nullopt;
  std::optional<SizeExpr> size = search(values);
  if (size) {
    if (has_few_values(values)) note_guess(*size);
    know(*size, values);
    return size;
  }
  failed_[values] = sizes_.size();
  const auto [least, most] = std::ranges::minmax(values);
  reaches_bound_ = std::ranges::count(values, least) > 1 || std::ranges::count(values, most) > 1;
  return std::nullopt;
}

// ── Candidates ────────────────────────────────────────────────────────────────────────────────────────────────────

// All call visit(values, make) for each candidate, until it returns true.
template <typename Visit>
bool SizeExplainer::for_each_pair(const Pairing& pairing, const Visit& visit) const {
  RunValues both;
  for (std::size_t a = 0; a < sizes_.size(); ++a) {
    for (std::size_t b = pairing.is_symmetric ? a : 0; b < sizes_.size(); ++b) {
      if (a == b && pairing.bases != Bases::products) continue;
      both.resize(sizes_[a].values.size());
      for (std::size_t i = 0; i < both.size(); ++i) both[i] = pairing.value(sizes_[a].values[i], sizes_[b].values[i]);
      if (visit(both, [&] { return pairing.size(sizes_[a].size, sizes_[b].size); })) return true;
    }
  }
  return false;
}

template <typename Visit>
bool SizeExplainer::for_each_product(const Visit& visit) const {
  const std::size_t count = std::min(sizes_.size(), kMostInProducts);
  RunValues product;
  for (const std::size_t factors : {2, 3}) {
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = a; b < count; ++b) {
        for (std::size_t c = b; c < (factors == 2 ? b + 1 : count); ++c) {
          product = sizes_[a].values;
          for (std::size_t i = 0; i < product.size(); ++i)
            product[i] *= sizes_[b].values[i] * (factors == 2 ? 1 : sizes_[c].values[i]);
          const auto make = [&] {
            const SizeExpr two = sizes_[a].size * sizes_[b].size;
            return factors == 2 ? two : two * sizes_[c].size;
          };
          if (visit(product, make)) return true;
        }
      }
    }
  }
  return false;
}

template <typename Visit>
bool SizeExplainer::for_each_base(Bases bases, const Visit& visit) const {
  constexpr std::int64_t kLargestUnit = 64;
  if (bases == Bases::triples) return for_each_product(visit);
  for (const Pairing& pairing : kPairings) {
    if (pairing.bases == bases) return for_each_pair(pairing, visit);
  }
  RunValues missing;
  for (const Known& each : sizes_) {
    if (bases == Bases::sizes && visit(each.values, [&] { return each.size; })) return true;
    for (std::int64_t unit = 2; unit <= kLargestUnit && bases == Bases::paddings; ++unit) {
      missing = each.values;
      for (std::int64_t& value : missing) value = -value - floor_divide(-value, unit) * unit;
      if (visit(missing, [&] { return floor_mod(SizeExpr(0) - each.size, unit); })) return true;
    }
  }
  return false;
}

// ── Searching ─────────────────────────────────────────────────────────────────────────────────────────────────────

std::optional<SizeExpr> SizeExplainer::by(const Row& row, const RunValues& values) {
  if (row.bases == Bases::factored) return without_factor(values);
  if (row.bases == Bases::with_products) return without_product(values);
  if (row.bases == Bases::paddings && has_few_values(values)) return std::nullopt;
  std::optional<FormOfOne> best;
  SizeExpr size;
  for_each_base(row.bases, [&](const RunValues& of, const auto& make) {
    std::optional<FormOfOne> found = row.form(of, values);
    if (!found || (best && best->weight <= found->weight)) return false;
    best = std::move(found);
    size = best->of(make());
    return best->weight == 0;
  });
  if (!best) return std::nullopt;
  ambiguous_ = ambiguous_ || best->is_ambiguous;
  if (!row.is_certain || !best->is_plain) note_guess(size);
  return size;
}

// A size times something plainer.
std::optional<SizeExpr> SizeExplainer::without_factor(const RunValues& values) {
  for (std::size_t nth = 0; nth < sizes_.size(); ++nth) {
    RunValues rest = values;
    bool divides = true;
    for (std::size_t i = 0; i < rest.size() && divides; ++i) {
      const std::int64_t by = sizes_[nth].values[i];
      divides = by != 0 && rest[i] % by == 0;
      if (divides) rest[i] /= by;
    }
    if (!divides || all_equal(rest)) continue;
    std::optional<SizeExpr> other = known(rest);
    for (const Row& row : kRows) {
      if (!other && row.after_factor) other = by(row, rest);
    }
    if (!other) continue;
    const SizeExpr size = sizes_[nth].size * *other;
    note_guess(size);
    return size;
  }
  return std::nullopt;
}

// a·b + k·c + d: the tokens of an image and one more.
std::optional<SizeExpr> SizeExplainer::without_product(const RunValues& values) {
  std::optional<SizeExpr> found;
  for_each_product([&](const RunValues& product, const auto& make) {
    RunValues rest = values;
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= product[i];
    std::optional<SizeExpr> other = all_equal(rest) ? std::nullopt : known(rest);
    if (!other && !all_equal(rest)) other = by(kRows[0], rest);
    if (other) found = make() + *other;
    return found.has_value();
  });
  if (found) note_guess(*found);
  return found;
}

std::optional<SizeExpr> SizeExplainer::search(const RunValues& values) {
  for (const Row& row : kRows) {
    if (std::optional<SizeExpr> size = by(row, values)) return size;
  }
  return std::nullopt;
}

// ── Real numbers ──────────────────────────────────────────────────────────────────────────────────────────────────

std::optional<SizeExpr> SizeExplainer::explain(const Reals& values) {
  const auto is_whole = [](double value) { return std::abs(value) < 1e15 && value == std::floor(value); };
  if (std::ranges::all_of(values, is_whole)) {
    if (const auto whole = explain(RunValues(values.begin(), values.end()))) {
      const SizeExpr size = product_of_reals(*whole, SizeExpr::real(1.0));
      if (is_guess(*whole)) guesses_.insert(size);
      return size;
    }
  }
  const bool are_finite = std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
  std::optional<SizeExpr> size = are_finite ? search_real(values) : std::nullopt;
  if (size) note_guess(*size);
  return size;
}

// Of one size, less some whole number, as align_corners has it: (n - 1); of its root; of products; of ratios.
std::optional<SizeExpr> SizeExplainer::search_real(const Reals& values) const {
  const auto of_one = [](const Known& known, std::int64_t less) {
    Reals result(known.values.begin(), known.values.end());
    for (double& each : result) each -= static_cast<double>(less);
    return result;
  };
  RealFit fit(values);
  for (const std::int64_t less : {0, 1}) {
    for (const Known& known : sizes_) {
      Reals of = of_one(known, less);
      if (of[0] <= 0) continue;
      const auto make = [&] { return known.size - less; };
      fit.try_forms(of, make);
      for (double& each : of) each = std::sqrt(each);
      fit.try_forms(of, [&] { return SizeExpr::call("FloatPow", {make(), SizeExpr::real(0.5)}); });
      if (fit.exact()) return fit.exact();
    }
  }
  if (fit.best()) return fit.best();
  for_each_product([&](const RunValues& product, const auto& make) {
    if (product[0] != 0) fit.try_forms(Reals(product.begin(), product.end()), make);
    return fit.best().has_value();
  });
  for (const std::int64_t less : {0, 1}) {
    for (const Known& above : sizes_) {
      for (const Known& below : sizes_) {
        if (fit.best()) return fit.best();
        Reals ratio = of_one(above, less);
        const Reals by = of_one(below, less);
        if (&above == &below || ratio[0] <= 0 || by[0] <= 0) continue;
        for (std::size_t i = 0; i < ratio.size(); ++i) ratio[i] /= by[i];
        fit.try_forms(ratio, [&] { return quotient_of_reals(above.size - less, below.size - less); });
      }
    }
  }
  return fit.best();
}

}  // namespace fx::internal
