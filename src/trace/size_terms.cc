#include <fxgraph/trace/size_terms.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>

namespace fx::internal {
namespace {

using Values = SizeTerms::Values;

constexpr std::size_t kLargestPool = 96;

bool all_equal(const Values& values) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == values.front(); });
}

template <typename Combine>
Values combined(const Values& a, const Values& b, Combine&& combine) {
  Values result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = combine(a[i], b[i]);
  return result;
}

// The quotients when all divide evenly.
std::optional<Values> divided(const Values& values, const Values& by) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (by[i] == 0 || values[i] % by[i] != 0) return std::nullopt;
  }
  return combined(values, by, [](std::int64_t a, std::int64_t b) { return a / b; });
}

}  // namespace

// ── Making terms ──────────────────────────────────────────────────────────────────────────────────────────────────

SizeTerms::Id SizeTerms::constant(std::int64_t value) {
  const auto [place, is_new] = made_.try_emplace({SizeOp::constant, 0, 0, value}, static_cast<Id>(terms_.size()));
  if (is_new) {
    terms_.push_back({SizeOp::constant, 0, 0, 0, value});
    values_.emplace_back();
  }
  return place->second;
}

SizeTerms::Id SizeTerms::real(double value) {
  const auto [place, is_new] = reals_.try_emplace(value, static_cast<Id>(terms_.size()));
  if (is_new) {
    SizeTerm term{SizeOp::real};
    term.real = value;
    terms_.push_back(term);
    values_.emplace_back();
  }
  return place->second;
}

SizeTerms::Id SizeTerms::make(SizeOp op, Id a, Id b) {
  const auto [place, is_new] = made_.try_emplace({op, a, b, 0}, static_cast<Id>(terms_.size()));
  if (!is_new) return place->second;
  terms_.push_back({op, a, b});
  const auto operand = [&](Id id, std::size_t i) {
    return terms_[id].op == SizeOp::constant ? terms_[id].number : values_[id][i];
  };
  Values values;
  const std::size_t count = std::max(values_[a].size(), values_[b].size());
  for (std::size_t i = 0; i < count && op < SizeOp::real; ++i) {
    const std::int64_t x = operand(a, i), y = operand(b, i);
    switch (op) {
      case SizeOp::add: values.push_back(x + y); break;
      case SizeOp::sub: values.push_back(x - y); break;
      case SizeOp::mul: values.push_back(x * y); break;
      case SizeOp::floordiv: values.push_back(y == 0 ? 0 : floor_divide(x, y)); break;
      case SizeOp::min: values.push_back(std::min(x, y)); break;
      case SizeOp::max: values.push_back(std::max(x, y)); break;
      default: values.push_back(y == 0 ? 0 : floor_remainder(x, y));
    }
  }
  values_.push_back(std::move(values));
  return place->second;
}

SizeTerms::Id SizeTerms::offset(Id term, std::int64_t by) {
  if (by == 0) return term;
  return by > 0 ? make(SizeOp::add, term, constant(by)) : make(SizeOp::sub, term, constant(-by));
}

SizeTerms::Id SizeTerms::scaled(Id term, std::int64_t by) {
  return by == 1 ? term : make(SizeOp::mul, term, constant(by));
}

SizeTerms::Id SizeTerms::floor_of(Id term, std::int64_t by) {
  return by == 1 ? term : make(SizeOp::floordiv, term, constant(by));
}

void SizeTerms::know(Id id) {
  if (!by_values_.try_emplace(values_[id], id).second) return;
  if (pool_.size() < kLargestPool) pool_.push_back(id);
}

void SizeTerms::add_size(std::uint32_t call, std::int64_t dim, const Values& values) {
  if (all_equal(values) || by_values_.contains(values)) return;
  SizeTerm term{SizeOp::size};
  term.call = call;
  term.number = dim;
  terms_.push_back(term);
  values_.push_back(values);
  know(static_cast<Id>(terms_.size() - 1));
}

// ── Explaining ────────────────────────────────────────────────────────────────────────────────────────────────────

std::optional<SizeTerms::Id> SizeTerms::known(const Values& values) const {
  const auto place = by_values_.find(values);
  return place == by_values_.end() ? std::nullopt : std::optional(place->second);
}

std::vector<SizeTerms::Id> SizeTerms::first_of_pool(std::size_t most) const {
  return {pool_.begin(), pool_.begin() + static_cast<std::ptrdiff_t>(std::min(pool_.size(), most))};
}

std::optional<SizeTerms::Id> SizeTerms::explain(const Values& values) {
  if (const std::optional<Id> id = known(values)) return id;
  const auto failed = failed_.find(values);
  if (failed != failed_.end() && failed->second == pool_.size()) return std::nullopt;
  const std::optional<Id> id = search(values);
  // Numbers that hardly change, or are as far from a size in all samples, may be many things.
  const bool has_offset = id && (terms_[*id].op == SizeOp::add || terms_[*id].op == SizeOp::sub);
  if (has_offset || (id && std::set<std::int64_t>(values.begin(), values.end()).size() < 3)) {
    guessed_ = true;
    guesses_.insert(*id);
  }
  if (id) {
    know(*id);
  } else {
    failed_[values] = pool_.size();
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const auto is_reached_again = [&](std::int64_t bound) {
      return std::count(values.begin(), values.end(), bound) > 1;
    };
    reaches_bound_ = is_reached_again(*least) || is_reached_again(*most);
  }
  return id;
}

std::optional<SizeTerms::Id> SizeTerms::search(const Values& values) {
  if (const auto id = linear(values)) return id;
  if (const auto id = product(values, 1)) return id;
  if (const auto id = sum(values, /*with_offset=*/false)) return id;
  std::optional<Id> id = rounded(values, /*any_offset=*/false);
  if (!id) id = product(values, 2);
  if (!id) id = quotient(values);
  if (!id) id = sum(values, /*with_offset=*/true);
  if (!id) id = halves(values);
  if (!id) id = rounded(values, /*any_offset=*/true);
  if (!id) id = bounded(values);
  if (!id) id = affine_in_product(values);
  if (!id) id = affine_in_grid(values);
  if (!id) id = affine_in_two(values);
  if (!id) id = product(values, 3);
  guessed_ = guessed_ || id;
  if (id) guesses_.insert(*id);
  return id;
}

std::string SizeTerms::str(Id id) const {
  const SizeTerm& term = terms_[id];
  switch (term.op) {
    case SizeOp::size: return "s" + std::to_string(term.call) + "[" + std::to_string(term.number) + "]";
    case SizeOp::constant: return std::to_string(term.number);
    case SizeOp::real: return std::to_string(term.real);
    default: return std::to_string(static_cast<int>(term.op)) + "(" + str(term.a) + "," + str(term.b) + ")";
  }
}

// scale · term + offset
std::optional<SizeTerms::Id> SizeTerms::linear(const Values& values) {
  std::optional<Id> best;
  std::int64_t least = 0;
  for (const Id id : pool_) {
    // Of several, the one with the smallest numbers: two terms may be a linear function of each other.
    const std::optional<Affine> line = affine_of(values_[id], values);
    if (!line || (best && line->weight() >= least)) continue;
    least = line->weight();
    best = make_affine(id, *line);
  }
  return best;
}

std::optional<SizeTerms::Affine> SizeTerms::affine_of(const Values& term, const Values& values) {
  std::size_t j = 1;
  while (j < term.size() && term[j] == term[0]) ++j;
  if (j == term.size() || (values[j] - values[0]) % (term[j] - term[0]) != 0) return std::nullopt;
  Affine line;
  line.scale = (values[j] - values[0]) / (term[j] - term[0]);
  line.offset = values[0] - line.scale * term[0];
  if (line.scale == 0) return std::nullopt;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (values[i] != line.scale * term[i] + line.offset) return std::nullopt;
  }
  return line;
}

SizeTerms::Id SizeTerms::make_affine(Id term, const Affine& line) {
  if (line.scale < 0 && line.offset > 0) return make(SizeOp::sub, constant(line.offset), scaled(term, -line.scale));
  return offset(scaled(term, line.scale), line.offset);
}

// term · (something simpler)
std::optional<SizeTerms::Id> SizeTerms::product(const Values& values, int depth) {
  const std::vector<Id> pool = pool_;
  for (const Id id : pool) {
    const std::optional<Values> rest = divided(values, values_[id]);
    if (!rest || all_equal(*rest)) continue;
    std::optional<Id> other = known(*rest);
    if (!other && depth > 1) other = linear(*rest);
    if (!other && depth > 1) other = rounded(*rest, /*any_offset=*/false);
    if (!other && depth > 1) other = sum(*rest, /*with_offset=*/true);
    if (!other && depth > 1) other = product(*rest, depth - 1);
    if (!other)
      other = [&]() -> std::optional<Id> {
        // A constant factor: 3·b·t
        for (const Id factor : pool) {
          const std::optional<Values> constant_rest = divided(*rest, values_[factor]);
          if (constant_rest && all_equal(*constant_rest)) return scaled(factor, constant_rest->front());
        }
        return std::nullopt;
      }();
    if (other) return make(SizeOp::mul, id, *other);
  }
  return std::nullopt;
}

std::optional<SizeTerms::Id> SizeTerms::sum(const Values& values, bool with_offset) {
  for (const Id a : pool_) {
    const Values rest = combined(values, values_[a], std::minus<>());
    if (const auto other = known(rest)) return make(SizeOp::add, a, *other);
    const Values missing = combined(values_[a], values, std::minus<>());
    if (const auto other = known(missing)) return make(SizeOp::sub, a, *other);
  }
  if (!with_offset) return std::nullopt;
  const std::vector<Id> pool = pool_;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    for (std::size_t j = 0; j < pool.size(); ++j) {
      const Values &a = values_[pool[i]], &b = values_[pool[j]];
      const Values less = combined(values, combined(a, b, std::minus<>()), std::minus<>());
      if (i != j && all_equal(less)) return offset(make(SizeOp::sub, pool[i], pool[j]), less.front());
      const Values more = combined(values, combined(a, b, std::plus<>()), std::minus<>());
      if (i < j && all_equal(more)) return offset(make(SizeOp::add, pool[i], pool[j]), more.front());
    }
  }
  return std::nullopt;
}

// a // b, and a·b // constant
std::optional<SizeTerms::Id> SizeTerms::quotient(const Values& values) {
  const std::vector<Id> pool = pool_;
  for (const Id a : pool) {
    for (const Id b : pool) {
      bool floors = true, ceils = true;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t x = values_[a][i], y = values_[b][i];
        floors = floors && y != 0 && floor_divide(x, y) == values[i];
        ceils = ceils && y != 0 && -floor_divide(-x, y) == values[i];
      }
      if (a != b && floors) return make(SizeOp::floordiv, a, b);
      if (a != b && ceils) return make(SizeOp::floordiv, offset(make(SizeOp::add, a, b), -1), b);
      if (a > b) continue;
      const Values both = combined(values_[a], values_[b], std::multiplies<>());
      const std::optional<Values> by = divided(both, values);
      if (by && all_equal(*by) && by->front() > 0) return floor_of(make(SizeOp::mul, a, b), by->front());
    }
  }
  return std::nullopt;
}

// Divisions, remainders, and multiples of divisions.
std::optional<SizeTerms::Id> SizeTerms::rounded(const Values& values, bool any_offset) {
  std::int64_t common = 0;
  for (const std::int64_t value : values) common = std::gcd(common, value);
  const std::vector<Id> pool = pool_;
  for (const Id term : pool) {
    std::optional<std::pair<std::int64_t, std::int64_t>> found;  // unit, what is added before
    for (std::int64_t unit = 2; unit <= std::min(common, kLargestDivisor); ++unit) {
      if (common % unit != 0) continue;
      bool down = true, up = true;
      for (std::size_t i = 0; i < values.size(); ++i) {
        down = down && values[i] == floor_divide(values_[term][i], unit) * unit;
        up = up && values[i] == floor_divide(values_[term][i] + unit - 1, unit) * unit;
      }
      ambiguous_ = ambiguous_ || (found && (down || up));
      if (!found && (down || up)) found = {unit, down ? 0 : unit - 1};
    }
    if (found) return scaled(floor_of(offset(term, found->second), found->first), found->first);
    if (const auto id = division(values, term, any_offset)) return id;
    if (const auto id = remainder(values, term)) return id;
  }
  if (common > 1) {
    Values rest = values;
    for (std::int64_t& value : rest) value /= common;
    for (const Id term : pool) {
      if (const auto id = division(rest, term, any_offset)) return scaled(*id, common);
    }
  }
  return std::nullopt;
}

// The quotient, or what is left of it; a floor division where no sample tells them apart.
std::optional<SizeTerms::Id> SizeTerms::truncated(const Values& values, Id whole, std::int64_t divisor) {
  const Values& of = values_[whole];
  bool is_quotient = true, is_rest = true, any_below = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    is_quotient = is_quotient && values[i] == of[i] / divisor;
    is_rest = is_rest && values[i] == of[i] - of[i] / divisor;
    any_below = any_below || (of[i] < 0 && of[i] % divisor != 0);
  }
  if (!any_below || (!is_quotient && !is_rest)) return std::nullopt;
  const Id zero = constant(0);
  const Id above = make(SizeOp::max, floor_of(whole, divisor), zero);
  const Id below = make(SizeOp::max, floor_of(make(SizeOp::sub, zero, whole), divisor), zero);
  const Id quotient = make(SizeOp::sub, above, below);
  return is_quotient ? quotient : make(SizeOp::sub, whole, quotient);
}

// Half of a difference, also where there is none, or of what is missing to a multiple, and the other half: how padding
// is shared out.
std::optional<SizeTerms::Id> SizeTerms::halves(const Values& values) {
  const auto half_of = [&](Id whole) -> std::optional<Id> {
    const Values& of = values_[whole];
    bool lower = true, upper = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
      lower = lower && values[i] == floor_divide(of[i], 2);
      upper = upper && values[i] == of[i] - floor_divide(of[i], 2);
    }
    if (lower) return floor_of(whole, 2);
    if (upper) return make(SizeOp::sub, whole, floor_of(whole, 2));
    return truncated(values, whole, 2);
  };
  const std::vector<Id> pool = pool_;
  for (const Id a : pool) {
    for (const Id b : pool) {
      if (a == b) continue;
      const Id difference = make(SizeOp::sub, a, b);
      if (const auto id = half_of(difference)) return id;
      if (const auto id = half_of(make(SizeOp::max, difference, constant(0)))) return id;
    }
    const bool varies = std::set<std::int64_t>(values.begin(), values.end()).size() > 2;
    for (std::int64_t unit = 2; unit <= kLargestDivisor && varies; ++unit) {
      if (const auto id = half_of(make(SizeOp::mod, make(SizeOp::sub, constant(0), a), constant(unit)))) return id;
    }
  }
  return std::nullopt;
}

}  // namespace fx::internal
