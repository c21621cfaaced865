// Chains of permutations, transpositions, reshapes and squeezes.
#include <fxgraph/rewriter/rules/rules.h>

#include <algorithm>
#include <limits>
#include <optional>

#include <fxgraph/ir/number_list.h>
#include <fxgraph/rewriter/rules/free_sizes.h>

namespace fx::rules::simplify_views {

namespace {

using Sizes = std::vector<std::int64_t>;

/// The order of dimensions with negative numbers counted from the end; nothing when it is no permutation.
std::optional<Sizes> permutation(const Argument& list) {
  std::optional<Sizes> order = integers_of(list);
  if (!order) return {};
  const auto rank = static_cast<std::int64_t>(order->size());
  std::vector<bool> seen(order->size());
  for (std::int64_t& dim : *order) {
    if (dim < 0) dim += rank;
    if (dim < 0 || dim >= rank || seen[static_cast<std::size_t>(dim)]) return {};
    seen[static_cast<std::size_t>(dim)] = true;
  }
  return order;
}

std::optional<Sizes> composed(const Match& match) {
  const std::optional<Sizes> inner = permutation(match.argument("inner")), outer = permutation(match.argument("outer"));
  if (!inner || !outer || inner->size() != outer->size()) return {};
  Sizes order;
  for (const std::int64_t dim : *outer) order.push_back((*inner)[static_cast<std::size_t>(dim)]);
  return order;
}

bool is_identity(const Sizes& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

std::vector<Rewrite> permutations() {
  return {
      {.name = "compose",
       .pattern = "aten::permute(aten::permute(x: node, inner: literal), outer: literal)",
       .when = [](const Match& m) -> Decision { return composed(m).has_value(); },
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         return r.call_function("aten::permute", {m["x"], list_of(*composed(m))});
       },
       .examples = {"aten::permute(aten::permute(x, [0, 2, 1]), [2, 1, 0])",
                    "aten::permute(aten::permute(x, [1, 0]), [-1, 0])"}},
      {.name = "identity",
       .pattern = "aten::permute(x: node, order: literal)",
       .when = [](const Match& m) -> Decision {
         const std::optional<Sizes> order = permutation(m.argument("order"));
         return order && is_identity(*order);
       },
       .replacement = "x",
       .examples = {"aten::permute(x, [0, 1])", "aten::permute(x, [0, -2, 2])", "aten::permute(x, [])"}},
      {.name = "transpose",
       .pattern = "aten::transpose.int(aten::transpose.int(x: node, a: int, b: int), a, b)",
       .replacement = "x",
       .examples = {"aten::transpose.int(aten::transpose.int(x, 0, 1), 0, 1)"}},
      {.name = "transpose-back",
       .pattern = "aten::transpose.int(aten::transpose.int(x: node, a: int, b: int), b, a)",
       .replacement = "x",
       .examples = {"aten::transpose.int(aten::transpose.int(x, 0, -1), -1, 0)"}},
      {.name = "t", .pattern = "aten::t(aten::t(x: node))", .replacement = "x"},
  };
}

/// The sizes that come out are those that go in.
Decision keeps_shape(const Match& match) {
  if (!match.info("x")) return refuse("the shape of its input is not known; give --input");
  const Sizes& there = match.info("x").sizes();
  std::optional<Sizes> sizes = integers_of(match.argument("shape"));
  if (!sizes || sizes->size() != there.size()) return false;
  const bool empty = std::ranges::count(there, 0) > 0;
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    // Where a size is free, -1 stands for it, once; so what is equal is right for any.
    if ((*sizes)[i] != there[i] && ((*sizes)[i] != -1 || empty)) return false;
  }
  return std::ranges::count(*sizes, -1) <= 1;
}

std::vector<Rewrite> reshapes() {
  return {
      {.name = "view-of-view",
       .pattern = "aten::view.default(aten::view.default(x: node, _), shape: any)",
       .replacement = "aten::view(x, shape)",
       .examples = {"aten::view(aten::view(x, [-1]), [2, 2])", "aten::view(aten::view(x, [1, -1]), [-1])"}},
      {.name = "reshape-of-reshape",
       .pattern =
           "aten::reshape({aten::reshape, aten::view.default, aten::flatten.using_ints}(x: node, ...), shape: any)",
       .replacement = "aten::reshape(x, shape)",
       .examples = {"aten::reshape(aten::reshape(x, [-1]), [2, 2])",
                    "aten::reshape(aten::flatten.using_ints(x), [-1])"}},
      {.name = "own-shape",
       .pattern = "{aten::view.default, aten::reshape, aten::expand}(x: node, shape: literal)",
       .when = keeps_shape,
       .replacement = "x",
       .examples = {"aten::reshape(x, [2, -1])", "aten::view(x, [3, 3])", "aten::expand(x, [-1, -1])",
                    "aten::reshape(x, [2])", "aten::reshape(x, [-1])"}},
  };
}

Decision is_one_there(const Match& match) {
  if (!match.info("x")) return refuse("the shape of its input is not known; give --input");
  const Sizes& sizes = match.info("x").sizes();
  const auto rank = static_cast<std::int64_t>(sizes.size());
  const auto dim = static_cast<std::int64_t>(match.literal("d"));
  return rank > 0 && sizes[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)] == 1;
}

/// Never one, whatever the input.
Decision is_never_one(const Match& match) {
  if (!match.info("x")) return false;
  const Sizes& sizes = match.info("x").sizes();
  const auto rank = static_cast<std::int64_t>(sizes.size());
  if (rank == 0) return false;
  const auto dim = static_cast<std::int64_t>(match.literal("d"));
  const std::int64_t size = sizes[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)];
  if (is_free(size)) return refuse("the size of the dimension differs from call to call");
  return size != 1;
}

std::vector<Rewrite> squeezes() {
  return {
      {.name = "of-unsqueeze",
       .pattern = "aten::squeeze.dim(aten::unsqueeze(x: node, d: int), d)",
       .replacement = "x",
       .examples = {"aten::squeeze.dim(aten::unsqueeze(x, 0), 0)", "aten::squeeze.dim(aten::unsqueeze(x, -1), -1)"}},
      {.name = "of-squeeze",
       .pattern = "aten::unsqueeze(aten::squeeze.dim(x: node, d: int), d)",
       .when = is_one_there,
       .replacement = "x",
       .examples = {"aten::unsqueeze(aten::squeeze.dim(x, 0), 0)", "aten::unsqueeze(aten::squeeze.dim(x, -1), -1)"}},
      {.name = "nothing",
       .pattern = "aten::squeeze.dim(x: node, d: int)",
       .when = is_never_one,
       .replacement = "x",
       .examples = {"aten::squeeze.dim(x, 0)", "aten::squeeze.dim(x, -1)"}},
  };
}

std::vector<Rewrite> slices() {
  return {
      {.pattern = "aten::slice.Tensor(x: node, _, (0 | None), end: literal, 1)",
       .when = [](const Match& m) -> Decision {
         const Argument& end = m.argument("end");
         return end.is_none() || (end.is_int() && end.as_int() == std::numeric_limits<std::int64_t>::max());
       },
       .replacement = "x",
       .examples = {"aten::slice.Tensor(x, 0, 0, 9223372036854775807, 1)", "aten::slice.Tensor(x, 1, None, None)",
                    "aten::slice.Tensor(x)"}},
  };
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "permutations",
          .summary = "Composes permutations, drops those that do nothing and transpositions that undo each other",
          .preconditions = "the orders are literals",
          .order = 210,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .rewrites = permutations,
      },
      {
          .name = "reshapes",
          .summary = "Makes reshapes of reshapes one, and drops those to the shape that is there",
          .preconditions = "to drop one, the shape is known (--input)",
          .order = 220,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .rewrites = reshapes,
      },
      {
          .name = "squeezes",
          .summary =
              "Drops squeeze and unsqueeze of one dimension that undo each other, and squeeze of no size-1 dimension",
          .preconditions = "the dimension is a literal; its size is known (--input), but for squeeze of unsqueeze",
          .order = 230,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .rewrites = squeezes,
      },
      {
          .name = "full-slices",
          .summary = "Drops slices of everything",
          .preconditions = "from the start to the end in steps of 1",
          .order = 240,
          .group = Group::simplify,
          .inference = true,
          .promise = Promise::bit_exact,
          .rewrites = slices,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::simplify_views
