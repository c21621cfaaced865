// Arithmetic that does nothing, twice the same, or can be done at once.
#include <fxgraph/rewriter/rules/rules.h>

#include <algorithm>
#include <cmath>

#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/type_conditions.h>

namespace fx::rules::simplify_identities {

namespace {

/// The number must not change the type: a bool becomes an int by `+ 0`, an int a float by `* 1.0`.
Decision keeps_type(const Match& match) {
  const TensorFacts x = match.info("x");
  if (!x) return refuse("the type of its input is not known; give --input");
  if (is_floating(match, "x")) return true;
  return match.argument("c").is_int() && !x.is_of({DType::complex64, DType::complex128, DType::boolean});
}

Decision keeps_whole_numbers(const Match& match) {
  if (is_floating(match, "x")) return refuse("-0.0 + 0 is 0.0");
  return keeps_type(match);
}

Decision keeps_floating(const Match& match) {
  if (!match.info("x")) return refuse("the type of its input is not known; give --input");
  return is_floating(match, "x");
}

std::vector<Rewrite> arithmetic() {
  return {
      // Of -0.0, + 0 makes 0.0, and one divided by it is another infinity.
      {.name = "add", .pattern = "plus(x: node, c: (0 | 0.0))", .when = keeps_whole_numbers, .replacement = "x"},
      {.name = "sub", .pattern = "minus(x: node, c: (0 | 0.0))", .when = keeps_type, .replacement = "x"},
      {.name = "mul", .pattern = "times(x: node, c: (1 | 1.0))", .when = keeps_type, .replacement = "x"},
      {.name = "div", .pattern = "over(x: node, (1 | 1.0))", .when = keeps_floating, .replacement = "x"},
      {.name = "pow",
       .pattern = "aten::pow.Tensor_Scalar(x: node, (1 | 1.0))",
       .when = keeps_floating,
       .replacement = "x"},
  };
}

/// Of the smallest whole number abs is negative; softplus is when its slope is, and hands on what is above its
/// threshold.
Decision is_never_negative(const Match& match) {
  const Symbol called = operator_of(match["v"]);
  if (called == "aten::abs") return is_floating(match, "x");
  if (called != "aten::softplus") return true;
  const Call call = call_of(match["v"]);
  const auto at_least = [&](const char* name, bool strictly) {
    const Argument& given = *call.argument(name);
    const double value = given.is_int() || given.is_float() ? given.as_float() : -1;
    return strictly ? value > 0 : value >= 0;
  };
  return at_least("beta", true) && at_least("threshold", false);
}

std::vector<Rewrite> pairs() {
  return {
      {.name = "neg", .pattern = "aten::neg(aten::neg(x))", .replacement = "x"},
      {.name = "bitwise-not", .pattern = "aten::bitwise_not(aten::bitwise_not(x))", .replacement = "x"},
      {.name = "abs", .pattern = "aten::abs(a: aten::abs(x))", .replacement = "aten::abs(x)"},
      {.name = "relu",
       .pattern = "aten::relu(v: {aten::relu, aten::relu6, aten::sigmoid, aten::abs, aten::exp, aten::hardsigmoid, "
                  "aten::softplus, aten::softmax.int}(x, ...))",
       .when = is_never_negative,
       .replacement = "v",
       .examples = {"aten::relu(aten::relu(x))", "aten::relu(aten::sigmoid(x))", "aten::relu(aten::softmax.int(x, -1))",
                    "aten::relu(aten::softplus(x))", "aten::relu(aten::softplus(x, -1.0))",
                    "aten::relu(aten::softplus(x, 1.0, -20.0))", "aten::relu(aten::softplus(x, 2.0, 3.0))"}},
  };
}

/// Its reciprocal is as exact as the number itself: in half precision only where that has a number for it.
Decision has_reciprocal(const Match& match) {
  const double c = std::abs(match.literal("c"));
  if (c > 1e-4 && c < 1e4) return true;
  return c > 1e-30 && c < 1e30 && match.info("x") && !match.info("x").is_of({DType::float16});
}

std::vector<Rewrite> division() {
  return {
      {.pattern = "over(x: node, c: (float | int))",
       .when = has_reciprocal,
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         return r.call_function("aten::mul.Scalar", {m["x"], 1 / m.literal("c")});
       },
       .examples = {"aten::div.Scalar(x, 3)", "aten::div.Scalar(x, 0.125)", "aten::div.Tensor(x, -7.0)"}},
  };
}

/// Literals of ordinary size, where all is floating-point; not in half precision, which might overflow on the way.
Decision may_merge(const Match& match) {
  if (const Decision floating = keeps_floating(match); !floating) return floating;
  if (match.info("x").is_of({DType::float16})) return refuse("half precision might overflow on the way");
  const double a = std::abs(match.literal("a")), b = std::abs(match.literal("b"));
  return (a == 0 || (a > 1e-6 && a < 1e6)) && (b == 0 || (b > 1e-6 && b < 1e6));
}

/// Products unless one literal makes larger and the other smaller: 2e38 * 1e5 is infinity, also where 1e-5 follows.
Decision may_merge_product(const Match& match) {
  const double a = std::abs(match.literal("a")), b = std::abs(match.literal("b"));
  if (std::min(a, b) < 1 && std::max(a, b) > 1)
    return refuse("what is between might overflow or vanish where the whole does not");
  return may_merge(match);
}

/// Sums of literals too, unless they cancel, or x the larger of them, so that the smaller is all there is: what x loses
/// beside the first is lost.
Decision may_merge_sum(const Match& match) {
  constexpr double kMost = 128;
  const double a = std::abs(match.literal("a")), b = std::abs(match.literal("b"));
  if ((match.literal("a") < 0) != (match.literal("b") < 0) || std::max(a, b) > kMost * std::min(a, b)) return false;
  return may_merge(match);
}

std::vector<Rewrite> constants() {
  return {
      {.name = "add",
       .pattern = "plus(plus(x: node, a: (float | int)), b: (float | int))",
       .when = may_merge_sum,
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         return r.call_function("aten::add.Scalar", {m["x"], m.literal("a") + m.literal("b")});
       },
       .examples = {"aten::add.Scalar(aten::add.Scalar(x, 2), 3.5)", "aten::add.Scalar(aten::add.Tensor(x, 1.5), 2)"}},
      {.name = "mul",
       .pattern = "times(times(x: node, a: (float | int)), b: (float | int))",
       .when = may_merge_product,
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         return r.call_function("aten::mul.Scalar", {m["x"], m.literal("a") * m.literal("b")});
       },
       .examples = {"aten::mul.Scalar(aten::mul.Scalar(x, 2), 3.5)", "aten::mul.Scalar(aten::mul.Tensor(x, 1.5), 2)",
                    "aten::mul.Scalar(aten::mul.Scalar(x, 0.25), 0.5)",
                    "aten::mul.Scalar(aten::mul.Scalar(x, 1e5), 1e-5)"}},
  };
}

std::vector<Rewrite> casts() {
  return {
      {.name = "same",
       .pattern = "aten::to.dtype(x: node, t: literal)",
       .when = [](const Match& m) -> Decision {
         if (!m.info("x")) return refuse("the type of its input is not known; give --input");
         return m.argument("t").kind() == ArgumentKind::dtype && m.argument("t").as_dtype() == m.info("x").dtype();
       },
       .replacement = "x",
       .examples = {"aten::to.dtype(x, lit(torch.float32))", "aten::to.dtype(x, lit(torch.float64))"}},
  };
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "identity-arithmetic",
          .summary = "Drops x + 0, x - 0, x * 1, x / 1 and x ** 1",
          .preconditions = "the type of x is known (--input) and stays the same; for x + 0 it is of whole numbers, as "
                           "-0.0 + 0 is 0.0",
          .order = 160,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .rewrites = arithmetic,
      },
      {
          .name = "inverse-pairs",
          .summary = "Drops neg of neg, not of not, abs of abs, and relu of what is never negative",
          .preconditions = "none",
          .order = 170,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .rewrites = pairs,
      },
      {
          .name = "division-by-constant",
          .summary = "x / c becomes x * (1 / c)",
          .preconditions = "c is a literal of ordinary size; true division",
          .order = 190,
          .group = Group::simplify,
          .promise = Promise::approximate,
          .rewrites = division,
      },
      {
          .name = "constant-arithmetic",
          .summary = "(x + a) + b becomes x + (a + b), (x * a) * b the same",
          .preconditions =
              "a and b are literals of ordinary size, of a product both at least 1 or at most 1; x is known to be "
              "floating-point (--input)",
          .order = 180,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::approximate,
          .rewrites = constants,
      },
      {
          .name = "casts",
          .summary = "Drops a cast to the type that the tensor has",
          .preconditions = "the type is known (--input)",
          .order = 200,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .rewrites = casts,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::simplify_identities
