// Normalisations written out are found and called by their names: layer_norm, and rms_norm where LibTorch has it.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/ir/number_list.h>
#include <fxgraph/rewriter/rules/type_conditions.h>
#include <fxgraph/run/missing_operators.h>
#include <fxgraph/run/operators.h>

namespace fx::rules::fusion_norms {

namespace {

/// The sizes of x along the dimensions `d`, when these are its last ones in order; nothing when they are not, or when x
/// is not known.
std::vector<Argument> trailing_sizes(const Match& match) {
  const TensorFacts info = match.info("x");
  if (!info) return {};
  const std::vector<std::int64_t>& all = info.sizes();
  const std::vector<Argument> list = elements_of(match.argument("d"));
  const auto rank = static_cast<std::int64_t>(all.size());
  const auto count = static_cast<std::int64_t>(list.size());
  std::vector<Argument> sizes;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!list[static_cast<std::size_t>(i)].is_int()) return {};
    const std::int64_t dim = list[static_cast<std::size_t>(i)].as_int();
    const std::int64_t wanted = rank - count + i;
    if (wanted < 0 || (dim < 0 ? dim + rank : dim) != wanted) return {};
    if (all[static_cast<std::size_t>(wanted)] < 0) return {};  // differs from call to call
    sizes.emplace_back(all[static_cast<std::size_t>(wanted)]);
  }
  return sizes;
}

Decision normalises_the_end(const Match& match) {
  if (!match.info("x")) return refuse("the shape of its input is not known; give --input");
  if (const Decision known = has_kernel(match, "x", "aten::layer_norm"); !known) return known;
  const std::vector<Argument> sizes = trailing_sizes(match);
  if (sizes.empty()) return refuse("it does not normalise the last dimensions, in order");
  // Of one value LibTorch's kernel makes x · r - x · r, rounded in between, where x - x is written.
  if (std::ranges::all_of(sizes, [](const Argument& size) { return size.as_int() == 1; }))
    return refuse("it normalises one value at a time");
  return true;
}

Node& normalise(std::string_view target, const Match& match, Rewriter& rewriter, const std::vector<Argument>& more) {
  std::vector<Argument> args = {match["x"], Argument::list(trailing_sizes(match))};
  args.insert(args.end(), more.begin(), more.end());
  return rewriter.call_function(target, args);
}

/// gamma and beta have exactly the normalised shape, or the product would be larger.
Decision scales_elementwise(const Match& match) {
  const Argument& shape = match.argument("shape");
  if (!shape.is_sequence()) return false;
  for (const char* name : {"gamma", "beta"}) {
    const TensorFacts info = match.info(name);
    if (!info) return refuse("the shape of its weight is not known; give --input");
    const std::vector<std::int64_t>& sizes = info.sizes();
    if (sizes.size() != shape.elements().size()) return false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!(shape.elements()[i] == Argument(sizes[i]))) return false;
    }
  }
  return same_type(match, "x", "gamma") && same_type(match, "x", "beta");
}

std::vector<Rewrite> layer_norm() {
  return {
      {.pattern = R"(
let variance(x, c, d) = aten::mean.dim(square(c), d, True) | aten::var.dim(x, d, False, True)
                      | aten::var.correction(x, d, correction=0, keepdim=True)
m = aten::mean.dim(x: node, d: literal, True)
c = aten::sub.Tensor(x, m)
return over_root(c, plus(variance(x, c, d), eps: literal)))",
       .when = normalises_the_end,
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         return normalise("aten::layer_norm", m, r, {{}, {}, Argument(m.literal("eps"))});
       },
       .needs = {.finite_inputs = true},
       .examples = {R"(
m = aten::mean.dim(x, [-1], True)
c = aten::sub.Tensor(x, m)
return aten::div.Tensor(c, aten::sqrt(aten::add.Scalar(aten::mean.dim(aten::mul.Tensor(c, c), [-1], True), 0.01))))",
                    R"(
c = aten::sub.Tensor(x, aten::mean.dim(x, [-2, -1], True))
return aten::mul.Tensor(c, aten::rsqrt(aten::add.Scalar(aten::var.dim(x, [-2, -1], False, True), 0.01))))"}},
      {.name = "affine",
       .pattern = "n = aten::layer_norm(x: node, shape: literal, None, None, eps: float, ...)\n"
                  "return commutative(aten::add.Tensor(commutative(aten::mul.Tensor(n, gamma: node)), beta: node))",
       .when = scales_elementwise,
       .replacement = "aten::layer_norm(x, shape, gamma, beta, eps)",
       .needs = {.finite_inputs = true},
       .examples = {"aten::add.Tensor(aten::mul.Tensor(aten::layer_norm(x, [2], None, None, 0.1), gamma), beta)",
                    "aten::add.Tensor(beta, aten::mul.Tensor(gamma, aten::layer_norm(x, [3], None, None, 0.1)))"}},
  };
}

std::vector<Rewrite> rms_norm() {
  // Asked of LibTorch itself: where it lacks the operator, what stands in for it is no faster than what is written out.
  if (!find_torch_operator("aten::rms_norm") || missing_operator_body(Symbol("aten::rms_norm"))) return {};
  return {
      {.pattern = "return over_root(x, plus(aten::mean.dim(square(x: node), d: literal, True), eps: literal))",
       .when = normalises_the_end,
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         return normalise("aten::rms_norm", m, r, {{}, Argument(m.literal("eps"))});
       },
       .examples = {"aten::mul.Tensor(x, aten::rsqrt(aten::add.Scalar(aten::mean.dim(aten::pow.Tensor_Scalar(x, 2), "
                    "[-1], True), 0.01)))"}}};
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "recognise-layer-norm",
          .summary =
              "Calls layer_norm where (x - mean) / sqrt(var + eps) is written out, then takes weight and bias in",
          .preconditions = "mean and variance over the same last dimensions of more than one value, keepdim, not "
                           "unbiased; shapes known (--input); weight "
                           "and bias of the normalised shape",
          .order = 310,
          .group = Group::fusion,
          .inference = true,
          .promise = Promise::approximate,
          .rewrites = layer_norm,
      },
      {
          .name = "recognise-rms-norm",
          .summary = "Calls rms_norm where x rsqrt(mean(x²) + eps) is written out",
          .preconditions = "the mean over the last dimensions, keepdim; shapes known (--input); LibTorch has rms_norm "
                           "(2.4 and newer)",
          .order = 320,
          .group = Group::fusion,
          .inference = true,
          .promise = Promise::approximate,
          .rewrites = rms_norm,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::fusion_norms
