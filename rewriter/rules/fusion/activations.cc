// Activation functions written out are found and called by their names: gelu, silu, hardswish, hardsigmoid, leaky_relu.
// The table of definitions says what they are.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/matchers/definitions.h>
#include <fxgraph/rewriter/rules/kernels.h>
#include <fxgraph/rewriter/rules/type_conditions.h>

namespace fx::rules::fusion_activations {

namespace {

/// A condition: LibTorch has the operator for the type of x.
auto takes(std::string_view packet) {
  return [packet](const Match& match) { return has_kernel(match, "x", packet); };
}

/// Finds what the definition of an operator says, and calls the operator.
Rewrite recognised(std::string_view name, std::string_view packet, std::string_view part = {}, std::size_t text = 0) {
  const Definition& row = definition(name);
  return {.name = std::string(part), .pattern = row.found.at(text), .when = takes(packet), .replacement = row.call};
}

std::vector<Rewrite> gelu() {
  Rewrite by_erf = recognised("gelu", "aten::gelu", "erf");
  by_erf.needs = {.finite_inputs = !gelu_takes_infinities()};
  return {by_erf, recognised("gelu-tanh", "aten::gelu", "tanh")};
}

std::vector<Rewrite> silu() { return {recognised("silu", "aten::silu")}; }

std::vector<Rewrite> hardswish() {
  return {recognised("hardswish", "aten::hardswish"), recognised("hardsigmoid", "aten::hardsigmoid", "sigmoid"),
          recognised("hardswish", "aten::hardswish", "product", 1)};
}

std::vector<Rewrite> leaky_relu() { return {recognised("leaky_relu", "aten::leaky_relu")}; }

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
