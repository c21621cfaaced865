// Activation functions as simpler operators.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/matchers/definitions.h>
#include <fxgraph/rewriter/rules/kernels.h>
#include <fxgraph/rewriter/rules/type_conditions.h>

namespace fx::rules::decomposition_activations {

namespace {

/// Writes out what the definition of an operator says.
Rewrite written_out(std::string_view name, std::string_view part = {}) {
  const Definition& row = definition(name);
  return {.name = std::string(part), .pattern = row.call, .replacement = row.bodies.front()};
}

// Not (x > 0) * x: of -inf that is NaN.
std::vector<Rewrite> relu() { return {written_out("relu")}; }

std::vector<Rewrite> silu() { return {written_out("silu")}; }

/// 1 + erf of what is below -2.2 rounds to 0 there, and gelu is not 0.
Decision is_no_half_precision(const Match& match) {
  const TensorFacts x = match.info("x");
  if (x && x.is_of({DType::float16, DType::bfloat16}))
    return refuse("in half precision it would vanish where gelu does not");
  return true;
}

std::vector<Rewrite> gelu() {
  Rewrite by_erf = written_out("gelu", "erf"), by_tanh = written_out("gelu-tanh", "tanh");
  by_erf.when = by_tanh.when = is_no_half_precision;
  by_erf.needs = {.finite_inputs = !gelu_takes_infinities()};
  return {by_erf, by_tanh};
}

std::vector<Rewrite> hardswish() { return {written_out("hardswish"), written_out("hardsigmoid", "sigmoid")}; }

/// There is no largest of none; where the size may become 0, logsumexp is near enough to it.
Decision has_a_largest(const Match& match) {
  if (!match.info("x")) return refuse("the shape of its input is not known; give --input");
  const auto& sizes = match.info("x").sizes();
  if (sizes.empty() || !has_kernel(match, "x", "aten::softmax")) return false;
  const auto rank = static_cast<std::int64_t>(sizes.size());
  const auto dim = static_cast<std::int64_t>(match.literal("d"));
  return sizes[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)] > 0;
}

std::vector<Rewrite> softmax() {
  // The largest is taken off first: exp would overflow.
  return {
      {.pattern = "aten::softmax.int(x, d: int)",
       .when = has_a_largest,
       .replacement = "e = aten::exp(aten::sub.Tensor(x, aten::amax(x, [d], True)))\n"
                      "return aten::div.Tensor(e, aten::sum.dim_IntList(e, [d], True))",
       .examples = {"aten::softmax.int(x, -1)", "aten::softmax.int(x, 0)"}},
      {.name = "any-size",
       .pattern = "aten::softmax.int(x, d: int)",
       .when = [](const Match& m) -> Decision { return m.info("x") && has_kernel(m, "x", "aten::softmax"); },
       .replacement = "e = aten::exp(aten::sub.Tensor(x, aten::logsumexp(x, [d], True)))\n"
                      "return aten::div.Tensor(e, aten::sum.dim_IntList(e, [d], True))",
       .examples = {"aten::softmax.int(x, -1)", "aten::softmax.int(x, 0)"}},
  };
}

constexpr std::string_view kNoConditions = "none";

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "decompose-relu",
          .summary = "relu(x) becomes clamp_min(x, 0)",
          .preconditions = "none; where x is 0, clamp_min lets a gradient through and relu does not",
          .order = 30,
          .group = Group::decomposition,
          .promise = Promise::bit_exact,
          .rewrites = relu,
      },
      {
          .name = "decompose-silu",
          .summary = "silu(x) becomes x sigmoid(x)",
          .preconditions = kNoConditions,
          .order = 40,
          .group = Group::decomposition,
          .promise = Promise::approximate,
          .rewrites = silu,
      },
      {
          .name = "decompose-gelu",
          .summary = "gelu(x) becomes x/2 (1 + erf(x/√2)), its tanh form the same with tanh",
          .preconditions = "x is not known to be of half precision",
          .order = 50,
          .group = Group::decomposition,
          .promise = Promise::approximate,
          .rewrites = gelu,
      },
      {
          .name = "decompose-hardswish",
          .summary = "hardswish(x) becomes x min(max(x + 3, 0), 6) / 6, hardsigmoid the same without x",
          .preconditions = kNoConditions,
          .order = 60,
          .group = Group::decomposition,
          .promise = Promise::approximate,
          .rewrites = hardswish,
      },
      {
          .name = "decompose-softmax",
          .summary = "softmax(x) becomes exp(x - max) over its sum, or, where its size may be 0, logsumexp for max",
          .preconditions = "the shape of x is known (--input); no dtype argument",
          .order = 70,
          .group = Group::decomposition,
          .promise = Promise::approximate,
          .rewrites = softmax,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::decomposition_activations
