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
      const Number &a = values[term.a], &b = term.op == SizeOp::sqrt ? a : values[term.b];
      values.push_back(a.is_known && b.is_known ? number_of(term.op, a, b) : Number());
    }
  }
  return values;
}

}  // namespace fx::internal
