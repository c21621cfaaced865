// Normalisations as means, differences and products.
#include <fxgraph/rewriter/rules/rules.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include <fxgraph/ir/number_list.h>
#include <fxgraph/rewriter/rules/free_sizes.h>

namespace fx::rules::decomposition_norms {

namespace {

using Sizes = std::vector<std::int64_t>;

/// Nodes that normalise `x`, whose mean and variance are given, and then scale and shift it.
class Formula {
 public:
  explicit Formula(Rewriter& rewriter) : rewriter_(rewriter) {}

  Node& call(std::string_view target, std::vector<Argument> args) { return rewriter_.call_function(target, args); }
  Node& sub(Node& a, Node& b) { return call("aten::sub.Tensor", {a, b}); }
  Node& mul(Node& a, Node& b) { return call("aten::mul.Tensor", {a, b}); }
  Node& inverse_deviation(Node& variance, const Argument& eps) {
    return call("aten::rsqrt", {call("aten::add.Scalar", {variance, eps})});
  }
  /// `value` reshaped to stand along one dimension of `rank`, if there is one.
  Node& along(Node& value, std::int64_t dim, std::size_t rank) {
    Sizes shape(rank, 1);
    shape[static_cast<std::size_t>(dim)] = -1;
    return call("aten::reshape", {value, list_of(shape)});
  }
  Node& scaled(Node& value, Node* weight, Node* bias) {
    Node* result = &value;
    if (weight) result = &mul(*result, *weight);
    if (bias) result = &call("aten::add.Tensor", {*result, *bias});
    return *result;
  }
  /// (x - mean) / sqrt(variance + eps) over `dims` of x itself.
  Node& normalised(Node& x, const Sizes& dims, const Argument& eps) {
    Node& centred = sub(x, call("aten::mean.dim", {x, list_of(dims), true}));
    Node& variance = call("aten::mean.dim", {mul(centred, centred), list_of(dims), true});
    return mul(centred, inverse_deviation(variance, eps));
  }

 private:
  Rewriter& rewriter_;
};

Node* tensor_or_null(const Match& match, std::string_view name) { return match.argument(name).node_or_null(); }

// Half precision is normalised in float inside the kernels.
Decision is_wide(const Match& match) {
  if (!match.info("x")) return refuse("the type and rank of its input are not known; give --input");
  if (!match.info("x").is_of({DType::float32, DType::float64}))
    return refuse("it works on half precision in float inside");
  return true;
}

Decision may_decompose_batch_norm(const Match& match) {
  if (const Decision wide = is_wide(match); !wide) return wide;
  for (const char* statistic : {"mean", "variance"}) {
    if (!match.info(statistic) || match.info(statistic).rank() != 1) return false;
  }
  const Sizes& sizes = match.info("x").sizes();
  return sizes.size() >= 2 && std::ranges::find(sizes, 0) == sizes.end();
}

std::vector<Rewrite> batch_norm() {
  return {
      {.pattern =
           "aten::batch_norm(x: node, maybe(weight: node), maybe(bias: node), mean: node, variance: node, False, _, "
           "eps: float, _)",
       .when = may_decompose_batch_norm,
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         Formula formula(r);
         const std::size_t rank = m.info("x").rank();
         const auto channels = [&](Node* value) { return value ? &formula.along(*value, 1, rank) : nullptr; };
         Node& centred = formula.sub(m["x"], *channels(&m["mean"]));
         Node& scale = formula.inverse_deviation(*channels(&m["variance"]), m.argument("eps"));
         return formula.scaled(formula.mul(centred, scale), channels(tensor_or_null(m, "weight")),
                               channels(tensor_or_null(m, "bias")));
       },
       .needs = {.finite_inputs = true},
       .examples = {"aten::batch_norm(x, w, b, m, aten::abs(v), False, 0.1, 0.01, True)",
                    "aten::batch_norm(x, None, b, m, aten::abs(v), False, 0.1, 0.5, False)",
                    "aten::batch_norm(x, w, None, m, aten::abs(v), False, 0.1, 0.01, True)"}},
  };
}

/// Of one value LibTorch's kernel makes x · r - x · r, rounded in between, where the formula makes 0.
Decision refuse_one_value() { return refuse("it normalises one value at a time"); }

Decision may_decompose_layer_norm(const Match& match) {
  const auto is_one = [](const Argument& size) { return size == Argument(1); };
  if (std::ranges::all_of(elements_of(match.argument("shape")), is_one)) return refuse_one_value();
  return is_wide(match);
}

std::vector<Rewrite> layer_norm() {
  return {
      {.pattern = "aten::layer_norm(x: node, shape: literal, maybe(weight: node), maybe(bias: node), eps: float, _)",
       .when = may_decompose_layer_norm,
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         Formula formula(r);
         Sizes dims;
         for (auto i = static_cast<std::int64_t>(elements_of(m.argument("shape")).size()); i > 0; --i)
           dims.push_back(-i);
         return formula.scaled(formula.normalised(m["x"], dims, m.argument("eps")), tensor_or_null(m, "weight"),
                               tensor_or_null(m, "bias"));
       },
       .needs = {.finite_inputs = true},
       .examples = {"aten::layer_norm(x, [2], w, b, 0.01)", "aten::layer_norm(x, [3, 3], None, b, 0.01)",
                    "aten::layer_norm(x, [2], w, None, 0.5)", "aten::layer_norm(x, [1])"}},
  };
}

Decision may_decompose_group_norm(const Match& match) {
  if (const Decision wide = is_wide(match); !wide) return wide;
  // The groups are found by reshapes to literal sizes: one may differ from call to call.
  const Sizes& sizes = match.info("x").sizes();
  if (sizes.size() < 2 || std::ranges::find(sizes, 0) != sizes.end()) return false;
  const auto free = std::ranges::count_if(sizes, is_free);
  if (free > 1 || (free == 1 && !is_free(sizes[0])))
    return refuse("more than its first size differs from call to call");
  const std::int64_t each = std::accumulate(sizes.begin() + 1, sizes.end(), std::int64_t{1}, std::multiplies<>());
  if (match.argument("groups") == Argument(each)) return refuse_one_value();
  return true;
}

std::vector<Rewrite> group_norm() {
  return {
      {.pattern = "aten::group_norm(x: node, groups: int, maybe(weight: node), maybe(bias: node), eps: float, _)",
       .when = may_decompose_group_norm,
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         Formula formula(r);
         Sizes sizes = m.info("x").sizes();
         sizes[0] = reshape_size(sizes[0]);
         std::int64_t each = 1;  // elements of a group
         for (std::size_t i = 1; i < sizes.size(); ++i) each *= sizes[i];
         each /= m.argument("groups").as_int();
         Node& grouped =
             formula.call("aten::reshape", {m["x"], Argument::list({sizes[0], m.argument("groups"), each})});
         Node& result =
             formula.call("aten::reshape", {formula.normalised(grouped, {-1}, m.argument("eps")), list_of(sizes)});
         const auto channels = [&](Node* value) { return value ? &formula.along(*value, 1, sizes.size()) : nullptr; };
         return formula.scaled(result, channels(tensor_or_null(m, "weight")), channels(tensor_or_null(m, "bias")));
       },
       .needs = {.finite_inputs = true},
       .examples = {"aten::group_norm(x, 1, w, b, 0.01)", "aten::group_norm(x, 2, None, None, 0.01)",
                    "aten::group_norm(x, 2, w, None, 0.5)"}},
  };
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "decompose-batch-norm",
          .summary = "batch_norm becomes (x - mean) / sqrt(var + eps) weight + bias",
          .preconditions = "evaluation mode; rank and type of x known (--input), float32 or float64",
          .order = 80,
          .group = Group::decomposition,
          .promise = Promise::approximate,
          .rewrites = batch_norm,
      },
      {
          .name = "decompose-layer-norm",
          .summary = "layer_norm becomes means over the last dimensions, a difference and products",
          .preconditions = "type of x known (--input), float32 or float64; more than one value is normalised",
          .order = 90,
          .group = Group::decomposition,
          .promise = Promise::approximate,
          .rewrites = layer_norm,
      },
      {
          .name = "decompose-group-norm",
          .summary = "group_norm becomes a reshape to groups, means, a difference and products",
          .preconditions = "shape and type of x known (--input), float32 or float64; more than one value is normalised",
          .order = 100,
          .group = Group::decomposition,
          .promise = Promise::approximate,
          .rewrites = group_norm,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::decomposition_norms
