// Activation functions written out are found and called by their names: gelu, silu, hardswish, hardsigmoid, leaky_relu.
// Sources: the formulas of LibTorch's own kernels; spellings as front ends and ONNX exporters write them.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/rewriter/rules/spelling.h>

namespace fx::rules {

namespace {

/// A condition: LibTorch has the operator for the type of x.
auto takes(std::string_view packet) {
  return [packet](const Match& match) { return has_kernel(match, "x", packet); };
}

/// `0.5 * x * (1 + inner)`, wherever the half stands; `inner` is a line that binds e.
std::string half_of_one_plus(std::string_view inner) {
  return std::string(inner) + spelled(R"(
s = commutative($add(e, near(1, 1e-6)))
return commutative($mul((commutative($mul(x: node, near(0.5, 1e-6))) | $div(x, near(2, 1e-6))), s)) | commutative($mul(x, (commutative($mul(s, near(0.5, 1e-6))) | $div(s, near(2, 1e-6))))) | commutative($mul(commutative($mul(x, s)), near(0.5, 1e-6))) | $div(commutative($mul(x, s)), near(2, 1e-6)))");
}

const std::vector<Rule>& gelu() {
  static const std::vector<Rule> kRules = {
      {.name = "recognise-gelu/erf",
       .pattern = half_of_one_plus(spelled(
           "e = aten::erf((commutative($mul(x: node, near(0.70710678, 1e-4))) | $div(x, near(1.41421356, 1e-4))))")),
       .when = takes("aten::gelu"),
       .replacement = "aten::gelu(x)",
       .promise = Promise::approximate},
      {.name = "recognise-gelu/tanh",
       .pattern = half_of_one_plus(spelled(R"(
square = aten::pow.Tensor_Scalar(x: node, near(2, 1e-6)) | aten::mul.Tensor(x, x)
cube = aten::pow.Tensor_Scalar(x, near(3, 1e-6)) | commutative(aten::mul.Tensor(square, x))
sum = commutative($add(commutative($mul(cube, near(0.044715, 1e-4))), x)) | commutative($mul(commutative($add(commutative($mul(square, near(0.044715, 1e-4))), near(1, 1e-6))), x))
e = aten::tanh(commutative($mul(sum, near(0.79788456, 1e-4)))))")),
       .when = takes("aten::gelu"),
       .replacement = "aten::gelu(x, approximate='tanh')",
       .promise = Promise::approximate},
  };
  return kRules;
}

const std::vector<Rule>& silu() {
  static const std::vector<Rule> kRules = {
      {.name = "recognise-silu",
       .pattern = "commutative(aten::mul.Tensor(x: node, aten::sigmoid(x)))",
       .when = takes("aten::silu"),
       .replacement = "aten::silu(x)",
       .promise = Promise::approximate},
  };
  return kRules;
}

/// `min(max(x + 3, 0), 6)`.
constexpr std::string_view kClampedAtSix =
    "t = commutative($add(x: node, near(3, 1e-6)))\n"
    "c = aten::clamp(t, near(0, 0), near(6, 1e-6)) | aten::hardtanh(t, near(0, 0), near(6, 1e-6)) | aten::relu6(t)\n";

const std::vector<Rule>& hardswish() {
  static const std::vector<Rule> kRules = {
      {.name = "recognise-hardswish",
       .pattern =
           spelled(std::string(kClampedAtSix) + "return commutative(aten::mul.Tensor(x, $div(c, near(6, 1e-6)))) | "
                                                "$div(commutative(aten::mul.Tensor(x, c)), near(6, 1e-6))"),
       .when = takes("aten::hardswish"),
       .replacement = "aten::hardswish(x)",
       .promise = Promise::approximate},
      {.name = "recognise-hardswish/sigmoid",
       .pattern = spelled(std::string(kClampedAtSix) + "return $div(c, near(6, 1e-6))"),
       .when = takes("aten::hardsigmoid"),
       .replacement = "aten::hardsigmoid(x)",
       .promise = Promise::approximate},
      {.name = "recognise-hardswish/product",
       .pattern = "commutative(aten::mul.Tensor(x: node, aten::hardsigmoid(x)))",
       .when = takes("aten::hardswish"),
       .replacement = "aten::hardswish(x)",
       .promise = Promise::approximate},
  };
  return kRules;
}

const std::vector<Rule>& leaky_relu() {
  static const std::vector<Rule> kRules = {
      {.name = "recognise-leaky-relu",
       .pattern = spelled("aten::where.self(aten::gt.Scalar(x: node, near(0, 0)), x, "
                          "commutative($mul(x, a: float)))"),
       .when = takes("aten::leaky_relu"),
       .replacement = "aten::leaky_relu(x, a)",
       .promise = Promise::approximate},
  };
  return kRules;
}

}  // namespace

std::span<const OptimizeRule> fusion_activations() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "recognise-gelu",
          .summary = "Calls gelu where x/2 (1 + erf(x/√2)), or its tanh form, is written out",
          .preconditions = "the same floating-point x everywhere; constants within 1e-4; the half may stand anywhere",
          .order = 270,
          .group = Group::fusion,
          .inference = true,
          .promise = Promise::approximate,
          .rewrites = gelu,
      },
      {
          .name = "recognise-silu",
          .summary = "Calls silu where x sigmoid(x) is written out",
          .preconditions = "the same floating-point x in both places",
          .order = 280,
          .group = Group::fusion,
          .inference = true,
          .promise = Promise::approximate,
          .rewrites = silu,
      },
      {
          .name = "recognise-hardswish",
          .summary = "Calls hardswish and hardsigmoid where min(max(x + 3, 0), 6) / 6 is written out",
          .preconditions = "the same floating-point x; constants 0, 3 and 6; clamp, hardtanh or relu6",
          .order = 290,
          .group = Group::fusion,
          .inference = true,
          .promise = Promise::approximate,
          .rewrites = hardswish,
      },
      {
          .name = "recognise-leaky-relu",
          .summary = "Calls leaky_relu where where(x > 0, x, a x) is written out",
          .preconditions = "a is a literal; x is floating-point",
          .order = 300,
          .group = Group::fusion,
          .inference = true,
          .promise = Promise::approximate,
          .rewrites = leaky_relu,
      },
  };
  return kFamily;
}

}  // namespace fx::rules
