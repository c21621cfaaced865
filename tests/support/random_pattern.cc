#include "tests/support/random_pattern.h"

#include <vector>

#include "tests/support/random.h"

namespace fx::testing {

namespace {

using match::Expr;

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomPatternOptions& options) : random_(seed), options_(options) {}

  Pattern make() {
    std::vector<Expr> results = {call(options_.depth)};
    if (options_.several_results && random_.chance(35)) results.push_back(second_result());
    return Pattern(results);
  }

 private:
  Expr leaf() {
    switch (random_.below(8)) {
      case 0: return match::any();
      case 1: return match::value("v");
      case 2: return match::any("y");
      case 3: return match::any("z");
      case 4: return calls_.empty() ? match::any("x") : random_.pick(calls_);  // a value that another part computes
      default: return match::any("x");
    }
  }

  Expr operand(int depth) {
    if (depth <= 0 || random_.chance(35)) return leaf();
    if (options_.alternatives && random_.chance(15)) return alternatives(depth);
    return call(depth);
  }

  Expr alternatives(int depth) {
    const Expr inner = leaf();
    switch (random_.below(3)) {
      case 0: return match::one_of(match::op("aten::relu"), match::op("aten::neg"))(inner);
      case 1: return match::maybe(match::op("aten::relu"))(operand(depth - 1));
      default: return match::one_of(call(depth - 1), inner);
    }
  }

  TargetSet unary() {
    if (options_.sets && random_.chance(10)) return match::re("aten::(relu|neg)");
    if (options_.sets && random_.chance(5)) return TargetSet({"aten::relu", "aten::sigmoid"});
    if (options_.sets && random_.chance(5)) return Tag::pointwise;
    constexpr const char* kUnary[] = {"aten::relu", "aten::sigmoid", "aten::neg", "aten::relu"};
    return kUnary[random_.below(4)];
  }

  Expr call(int depth) {
    Expr made = random_.chance(45) ? unary_call(depth) : binary_call(depth);
    if (options_.uses && random_.chance(8)) made = made.used_once();
    if (random_.chance(40)) made = made.name("n" + std::to_string(calls_.size()));
    calls_.push_back(made);
    return made;
  }

  Expr unary_call(int depth) {
    if (random_.chance(8))
      return match::op("aten::mul.Scalar", operand(depth - 1),
                       random_.chance(50) ? match::lit(2) : match::lit_any("c"));
    return match::op(unary(), operand(depth - 1));
  }

  Expr binary_call(int depth) {
    const char* target = random_.chance(60) ? "aten::add.Tensor" : "aten::mul.Tensor";
    const Expr first = operand(depth - 1);
    const Expr second = operand(depth - 1);
    if (options_.commutative && random_.chance(40)) return match::commutative(target, first, second);
    return match::op(target, first, second);
  }

  /// Another result: of the same computation, or joined with it by a name.
  Expr second_result() {
    if (random_.chance(40)) return random_.pick(calls_);
    return call(1);
  }

  Random random_;
  const RandomPatternOptions& options_;
  std::vector<Expr> calls_;
};

}  // namespace

Pattern random_pattern(std::uint64_t seed, const RandomPatternOptions& options) {
  return Generator(seed, options).make();
}

}  // namespace fx::testing
