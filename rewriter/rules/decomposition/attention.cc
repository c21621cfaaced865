// Scaled dot-product attention as products and a softmax.
#include <fxgraph/rewriter/rules/rules.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fxgraph/rewriter/rules/free_sizes.h>
#include <fxgraph/rewriter/rules/kernels.h>
#include <fxgraph/rewriter/rules/type_conditions.h>
#include <fxgraph/run/operators.h>

namespace fx::rules::decomposition_attention {

namespace {

/// A mask of bools says which scores there are.
bool chooses(const Match& match) {
  const TensorFacts mask = match.info("mask");
  return mask && mask.is_of({DType::boolean});
}

/// The products are of sizes that agree, and the mask is as large as the scores, or one.
bool multiplies(const Match& match) {
  const auto size = [&](const char* name, std::size_t from_end) {
    const std::vector<std::int64_t>& sizes = match.info(name).sizes();
    return from_end <= sizes.size() ? sizes[sizes.size() - from_end] : 1;
  };
  const auto hides = [&](std::int64_t masked, std::int64_t score) {
    return masked == 1 || may_be_equal(masked, score);
  };
  return may_be_equal(size("k", 1), size("q", 1)) && may_be_equal(size("v", 2), size("k", 2)) &&
         (!match.has("mask") || (hides(size("mask", 1), size("k", 2)) && hides(size("mask", 2), size("q", 2))));
}

/// Nothing in it is empty, or nothing is made larger than the query's batch.
bool has_shape_of_products(const Match& match) {
  const std::vector<std::int64_t>& query = match.info("q").sizes();
  bool empty = false, broadcasts = false;
  for (const char* name : {"q", "k", "v", "mask"}) {
    if (!match.has(name)) continue;
    const TensorFacts info = match.info(name);
    if (!info) return false;
    const std::vector<std::int64_t>& sizes = info.sizes();
    empty |= std::ranges::any_of(sizes, [](std::int64_t size) { return size <= 0; });
    const std::size_t rank = sizes.size();
    const bool is_mask = std::string_view(name) == "mask";
    broadcasts |= is_mask ? rank > query.size() : rank != query.size();
    for (std::size_t i = 3; i <= std::min(rank, query.size()); ++i) {
      const std::int64_t size = sizes[rank - i];
      broadcasts |= !may_be_equal(size, query[query.size() - i]) && !(is_mask && size == 1);
    }
  }
  return !empty || (!broadcasts && multiplies(match));
}

Decision may_decompose(const Match& match) {
  if (!match.info("q")) return refuse("the shape of its query is not known; give --input");
  if (match.info("q").example().sizes.empty() || match.info("q").last_size() == 0) return false;
  if (match.info("q").last_size() < 0 && !match.has("scale"))
    return refuse("the size of a head differs from call to call");
  if (!same_type(match, "q", "k") || !same_type(match, "q", "v")) return refuse("key and value are of other types");
  if (match.has("mask") && !same_type(match, "mask", "q") && !chooses(match))
    return refuse("its mask is neither of the query's type nor of bools");
  if (!broadcasts_empty_attention() && !has_shape_of_products(match))
    return refuse("this LibTorch's attention to nothing is not as large as key and value make it");
  // Newer LibTorch gives zeros for it.
  if (match.has("mask") && chooses(match) && find_torch_operator("aten::_safe_softmax"))
    return refuse("a row that is masked altogether would become NaN");
  return is_floating(match, "q");
}

Node& formula(const Match& match, Rewriter& rewriter) {
  const auto call = [&](std::string_view target, std::vector<Argument> args) -> Node& {
    return rewriter.call_function(target, args);
  };
  const bool given = match.has("scale");
  const double scale = given ? match.literal("scale") : 1 / std::sqrt(static_cast<double>(match.info("q").last_size()));
  Node& turned = call("aten::transpose.int", {match["k"], -2, -1});
  Node* scores = &call("aten::mul.Scalar", {call("aten::matmul", {match["q"], turned}), scale});
  if (match.has("mask") && chooses(match)) {
    constexpr double kNothing = -std::numeric_limits<double>::infinity();
    scores = &call("aten::masked_fill.Scalar", {*scores, call("aten::logical_not", {match["mask"]}), kNothing});
  } else if (match.has("mask")) {
    scores = &call("aten::add.Tensor", {*scores, match["mask"]});
  }
  return call("aten::matmul", {call("aten::softmax.int", {*scores, -1}), match["v"]});
}

std::vector<Rewrite> attention() {
  std::vector<Rewrite> rewrites;
  if (find_torch_operator("aten::_scaled_dot_product_attention")) {
    rewrites.push_back(
        {.name = "pair",
         .pattern = "operator.getitem(aten::_scaled_dot_product_attention(q: node, k: node, v: node, maybe(mask: "
                    "node), 0.0, False, False), 0)",
         .when = may_decompose,
         .replacement = formula,
         .needs = {.finite_inputs = true},
         .examples = {"operator.getitem(aten::_scaled_dot_product_attention(q, k, v), 0)",
                      "operator.getitem(aten::_scaled_dot_product_attention(q, k, v, mask), 0)",
                      "operator.getitem(aten::_scaled_dot_product_attention(q, k, v, aten::gt.Scalar(m, "
                      "0.0)), 0)"}});
  }
  if (find_torch_operator("aten::scaled_dot_product_attention")) {
    rewrites.push_back(
        {.pattern = "aten::scaled_dot_product_attention(q: node, k: node, v: node, maybe(mask: node), 0.0, False, "
                    "scale=maybe(scale: float))",
         .when = may_decompose,
         .replacement = formula,
         .needs = {.finite_inputs = true},
         .examples = {"aten::scaled_dot_product_attention(q, k, v)",
                      "aten::scaled_dot_product_attention(q, k, v, mask, scale=0.3)"}});
  }
  return rewrites;
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "decompose-attention",
          .summary = "Scaled dot-product attention becomes two products and a softmax",
          .preconditions =
              "not causal, no dropout; a mask is added or of bools; the shape of the query is known (--input)",
          .order = 20,
          .group = Group::decomposition,
          .promise = Promise::approximate,
          .rewrites = attention,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::decomposition_attention
