// Real numbers that are functions of one size: `c / (n + 1)`, `1 - 1 / n`, `std::log(n) / std::log(512.)`. Up to two
// constants are found from the values that are furthest apart, and must fit all others.
#include <algorithm>
#include <cmath>
#include <set>

#include <fxgraph/trace/real_rules.h>
#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

struct Function {
  enum class Kind : std::uint8_t { reciprocal, inverse_root, root, log };
  Kind kind;
  double (*at)(double);
};
constexpr Function kFunctions[] = {
    {Function::Kind::reciprocal, [](double n) { return 1 / n; }},
    {Function::Kind::inverse_root, [](double n) { return 1 / std::sqrt(n); }},
    {Function::Kind::root, [](double n) { return std::sqrt(n); }},
    {Function::Kind::log, [](double n) { return std::log(n); }},
};

struct Line {
  double factor, offset;
};

// factor · functions + offset, which is nothing where it is not `affine`.
std::optional<Line> line_through(const std::vector<double>& functions, const std::vector<double>& values, bool affine) {
  const auto [low, high] = std::minmax_element(functions.begin(), functions.end());
  const auto a = static_cast<std::size_t>(low - functions.begin()),
             b = static_cast<std::size_t>(high - functions.begin());
  if (*low == *high) return std::nullopt;
  Line line{tidy(affine ? (values[b] - values[a]) / (*high - *low) : values[b] / *high), 0};
  if (affine) line.offset = tidy(values[b] - line.factor * *high);
  if (line.factor == 0 || (affine && line.offset == 0)) return std::nullopt;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!nearly(values[i], line.factor * functions[i] + line.offset)) return std::nullopt;
  }
  return line;
}

}  // namespace

std::optional<SizeTerms::Id> SizeTerms::function_of_one(const Reals& values) {
  constexpr std::size_t kEnough = 4;  // different sizes, for two constants
  const auto made = [&](Function::Kind kind, Id of, const Line& line) {
    using Kind = Function::Kind;
    if (kind == Kind::inverse_root || kind == Kind::root) of = make(SizeOp::sqrt, of, constant(0));
    if (kind == Kind::log) of = make(SizeOp::log, of, constant(0));
    const bool divides = kind == Kind::reciprocal || kind == Kind::inverse_root;
    const Id id =
        divides ? make(SizeOp::truediv, real(line.factor), of) : make(SizeOp::real_mul, of, real(line.factor));
    return line.offset == 0 ? id : make(SizeOp::real_add, id, real(line.offset));
  };
  for (const bool affine : {false, true}) {
    for (const std::int64_t by : {0, -1, 1, -2, 2}) {
      for (const Id id : std::vector<Id>(pool_)) {
        const Values& sizes = values_[id];
        if (*std::min_element(sizes.begin(), sizes.end()) + by < 1) continue;
        if (affine && std::set<std::int64_t>(sizes.begin(), sizes.end()).size() < kEnough) continue;
        for (const Function& function : kFunctions) {
          std::vector<double> functions;
          for (const std::int64_t size : sizes) functions.push_back(function.at(static_cast<double>(size + by)));
          if (const auto line = line_through(functions, values, affine))
            return made(function.kind, offset(id, by), *line);
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace fx::internal
