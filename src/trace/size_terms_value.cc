// What expressions of sizes are at other sizes, as the graph computes them.
#include <algorithm>
#include <cmath>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

using Number = SizeTerms::Number;

Number whole_number(std::int64_t value) { return {value, static_cast<double>(value), true}; }
Number real_number(double value) { return {0, value, true}; }

Number number_of(SizeOp op, const Number& a, const Number& b) {
  switch (op) {
    case SizeOp::add: return whole_number(a.whole + b.whole);
    case SizeOp::sub: return whole_number(a.whole - b.whole);
    case SizeOp::mul: return whole_number(a.whole * b.whole);
    case SizeOp::floordiv: return b.whole == 0 ? Number() : whole_number(floor_divide(a.whole, b.whole));
    case SizeOp::mod: return b.whole == 0 ? Number() : whole_number(floor_remainder(a.whole, b.whole));
    case SizeOp::min: return whole_number(std::min(a.whole, b.whole));
    case SizeOp::max: return whole_number(std::max(a.whole, b.whole));
    case SizeOp::real_add: return real_number(a.real + b.real);
    case SizeOp::real_mul: return real_number(a.real * b.real);
    case SizeOp::truediv: return b.real == 0 ? Number() : real_number(a.real / b.real);
    case SizeOp::sqrt: return a.real < 0 ? Number() : real_number(std::sqrt(a.real));
    default: return {};
  }
}

}  // namespace

std::vector<Number> SizeTerms::evaluate(const std::function<std::int64_t(std::uint32_t, std::int64_t)>& size_of) const {
  std::vector<Number> values;
  for (const SizeTerm& term : terms_) {
    if (term.op == SizeOp::size) {
      values.push_back(whole_number(size_of(term.call, term.number)));
    } else if (term.op == SizeOp::constant) {
      values.push_back(whole_number(term.number));
    } else if (term.op == SizeOp::real) {
      values.push_back(real_number(term.real));
    } else {
      const Number &a = values[term.a], &b = is_of_one(term.op) ? a : values[term.b];
      values.push_back(a.is_known && b.is_known ? number_of(term.op, a, b) : Number());
    }
  }
  return values;
}

// Of what has no other size: what it is where that one is `size`.
Number SizeTerms::at_size(Id id, std::int64_t size) const {
  const SizeTerm& term = terms_[id];
  switch (term.op) {
    case SizeOp::size: return whole_number(size);
    case SizeOp::constant: return whole_number(term.number);
    case SizeOp::real: return real_number(term.real);
    default: break;
  }
  const Number a = at_size(term.a, size), b = is_of_one(term.op) ? a : at_size(term.b, size);
  return a.is_known && b.is_known ? number_of(term.op, a, b) : Number();
}

// The size of which it is made, if that is one.
const SizeTerm* SizeTerms::only_size(Id id) const {
  const SizeTerm& term = terms_[id];
  if (term.op == SizeOp::size) return &term;
  if (term.op == SizeOp::constant || term.op == SizeOp::real) return nullptr;
  const SizeTerm* const a = only_size(term.a);
  const SizeTerm* const b = is_of_one(term.op) ? a : only_size(term.b);
  const auto has_none = [&](Id operand) {
    return terms_[operand].op == SizeOp::constant || terms_[operand].op == SizeOp::real;
  };
  if (!a) return has_none(term.a) ? b : nullptr;
  return a == b || (!b && has_none(term.b)) ? a : nullptr;
}

}  // namespace fx::internal
