#include "tests/support/random_pattern.h"

#include <vector>

#include "tests/support/random.h"

namespace fx::testing {

namespace {

using match::Expr;

/// Draws once in an expression: in which order a call's arguments are evaluated is up to the compiler.
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
    if (options_.shapes && random_.chance(20)) return match::value().is(type());
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
    if (options_.constructs && depth > 0 && random_.chance(35)) return construct(depth);
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

  /// What a pattern says beyond calls of operators.
  Expr construct(int depth) {
    switch (random_.below(10)) {
      case 0: return match::not_(call(depth - 1));
      case 1: return match::not_(leaf());
      case 2:
      case 3: return match::transparent(operand(depth - 1));
      case 4: {
        const Expr between = path();
        return match::dominates(operand(depth - 1), between);
      }
      case 5: {
        const Expr start = operand(depth - 1);
        return match::repeat(step(), 0, 2, start);
      }
      case 6: {
        const Expr start = leaf();
        return match::repeat(step(), 1, 3, start);
      }
      case 7: return match::constant(random_.chance(50) ? "k" : "");
      case 8: return call_with_rest();
      default: return cat(depth);
    }
  }

  /// The name of the rest is a value, too, before it.
  Expr call_with_rest() {
    std::vector<Expr> args = {random_.chance(20) ? match::any("tail") : leaf()};
    args.push_back(match::rest(random_.chance(70) ? "tail" : ""));
    constexpr const char* kTargets[] = {"aten::add.Tensor", "aten::relu", "aten::cat", "aten::mul.Tensor"};
    return match::call(Op::call_function, TargetSet(kTargets[random_.below(4)]), args);
  }

  Expr path() {
    const Expr unary = match::one_of(match::op("aten::relu"), match::op("aten::sigmoid"));
    return random_.chance(30) ? unary : match::op(Tag::pointwise);
  }

  Expr step() {
    switch (random_.below(3)) {
      case 0: return match::op("aten::relu");
      case 1: return match::op("aten::add.Tensor", match::_, leaf());
      default: return match::commutative("aten::mul.Tensor", match::_, match::any());
    }
  }

  Expr cat(int depth) {
    std::vector<Expr> elements;
    const std::size_t count = 1 + random_.below(3);
    for (std::size_t i = 0; i < count; ++i) elements.push_back(random_.chance(60) ? leaf() : operand(depth - 1));
    if (random_.chance(70)) elements.push_back(match::rest(random_.chance(50) ? "tail" : ""));
    return match::op("aten::cat", random_.chance(60) ? match::unordered(elements) : match::list(elements));
  }

  std::string type() {
    constexpr const char* kTypes[] = {
        "f32",      "f16[...]", "tensor[N]", "tensor[N, M]", "floating[N, N]", "tensor[..., N]", "tensor[2, ...]",
        "f32[*, M]"};
    return kTypes[random_.below(8)];
  }

  TargetSet unary() {
    if (options_.sets && random_.chance(10)) return match::re("aten::(relu|neg)");
    if (options_.sets && random_.chance(5)) return TargetSet({"aten::relu", "aten::sigmoid"});
    if (options_.sets && random_.chance(5)) return Tag::pointwise;
    constexpr const char* kUnary[] = {"aten::relu", "aten::sigmoid", "aten::neg", "aten::relu"};
    return kUnary[random_.below(4)];
  }

  Expr call(int depth) {
    Expr made = options_.constructs && random_.chance(30) ? cat(depth)
                : random_.chance(45)                      ? unary_call(depth)
                                                          : binary_call(depth);
    if (options_.uses && random_.chance(8)) made = made.used_once();
    if (options_.shapes && random_.chance(20)) made = made.is(type());
    if (options_.conditions && random_.chance(10)) made = made.where(few_relus, "a graph with few relus");
    if (random_.chance(40)) made = made.name("n" + std::to_string(calls_.size()));
    calls_.push_back(made);
    return made;
  }

  Expr unary_call(int depth) {
    if (random_.chance(8)) {
      const Expr factor = random_.chance(50) ? match::lit(2) : match::lit_any("c");
      constexpr const char* kProducts[] = {"aten::mul.Scalar", "aten::mul.Tensor", "aten::mul", "operator.mul"};
      const char* target = kProducts[options_.names ? random_.below(4) : 0];
      return match::op(target, operand(depth - 1), factor);
    }
    const Expr from = operand(depth - 1);
    return match::op(unary(), from);
  }

  Expr binary_call(int depth) {
    constexpr const char* kSums[] = {"aten::add.Tensor", "aten::add.Tensor", "aten::add", "torch.add"};
    constexpr const char* kProducts[] = {"aten::mul.Tensor", "aten::mul.Tensor", "aten::mul", "operator.mul"};
    const char* target = (random_.chance(60) ? kSums : kProducts)[options_.names ? random_.below(4) : 0];
    const Expr first = operand(depth - 1);
    const Expr second = operand(depth - 1);
    if (options_.commutative && random_.chance(40)) return match::commutative(target, first, second);
    return match::op(target, first, second);
  }

  static bool few_relus(const Argument& value) {
    return value.node().graph().count(Op::call_function, "aten::relu") < 3;
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
