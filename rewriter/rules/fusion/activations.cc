// Activation functions written out are found and called by their names: gelu, silu, hardswish, hardsigmoid, leaky_relu.
// Sources: the formulas of LibTorch's own kernels; spellings as front ends and ONNX exporters write them.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/rewriter/rules/kernels.h>
#include <fxgraph/rewriter/rules/type_conditions.h>

namespace fx::rules::fusion_activations {

namespace {

/// A condition: LibTorch has the operator for the type of x.
auto takes(std::string_view packet) {
  return [packet](const Match& match) { return has_kernel(match, "x", packet); };
}

// x/2 (1 + e), wherever the half stands.
constexpr std::string_view kGelu =
    "let half_product(x, s) = times(half(x), s) | times(x, half(s)) | half(times(x, s))\n"
    "let gelu(x, e) = half_product(x, plus(e, near(1, 1e-6)))\n";

std::vector<Rewrite> gelu() {
  return {
      {.name = "erf",
       .pattern = std::string(kGelu) + R"(
let over_root_of_two(x) = times(x, near(0.70710678, 1e-4)) | over(x, near(1.41421356, 1e-4))
return gelu(x, aten::erf(over_root_of_two(x: node))))",
       .when = takes("aten::gelu"),
       .replacement = "aten::gelu(x)",
       .needs = {.finite_inputs = !gelu_takes_infinities()}},
      {.name = "tanh",
       .pattern = std::string(kGelu) + R"(
squared = square(x: node)
cubed = aten::pow.Tensor_Scalar(x, near(3, 0)) | commutative(aten::mul.Tensor(squared, x))
sum = plus(times(cubed, near(0.044715, 1e-4)), x) | times(x, plus(times(squared, near(0.044715, 1e-4)), near(1, 1e-6)))
return gelu(x, aten::tanh(times(sum, near(0.79788456, 1e-4)))))",
       .when = takes("aten::gelu"),
       .replacement = "aten::gelu(x, approximate='tanh')"},
  };
}

std::vector<Rewrite> silu() {
  return {
      {.pattern = "commutative(aten::mul.Tensor(x: node, aten::sigmoid(x)))",
       .when = takes("aten::silu"),
       .replacement = "aten::silu(x)"},
  };
}

// min(max(x + 3, 0), 6).
constexpr std::string_view kClampedAtSix =
    "let clamped(t) = aten::clamp(t, near(0, 0), near(6, 1e-6)) | aten::hardtanh(t, near(0, 0), near(6, 1e-6)) | "
    "aten::relu6(t)\n"
    "let sixth(t) = over(t, near(6, 1e-6))\n"
    "c = clamped(plus(x: node, near(3, 1e-6)))\n";

std::vector<Rewrite> hardswish() {
  return {
      {.pattern = std::string(kClampedAtSix) + "return times(x, sixth(c)) | sixth(times(x, c))",
       .when = takes("aten::hardswish"),
       .replacement = "aten::hardswish(x)"},
      {.name = "sigmoid",
       .pattern = std::string(kClampedAtSix) + "return sixth(c)",
       .when = takes("aten::hardsigmoid"),
       .replacement = "aten::hardsigmoid(x)"},
      {.name = "product",
       .pattern = "commutative(aten::mul.Tensor(x: node, aten::hardsigmoid(x)))",
       .when = takes("aten::hardswish"),
       .replacement = "aten::hardswish(x)"},
  };
}

std::vector<Rewrite> leaky_relu() {
  return {
      {.pattern = "aten::where.self(aten::gt.Scalar(x: node, near(0, 0)), x, times(x, a: float))",
       .when = takes("aten::leaky_relu"),
       .replacement = "aten::leaky_relu(x, a)"},
  };
}

}  // namespace

std::span<const OptimizeRule> family() {
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

}  // namespace fx::rules::fusion_activations
