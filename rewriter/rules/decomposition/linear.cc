// linear and addmm as products and sums.
#include <fxgraph/rewriter/rules/rules.h>

#include <cmath>

#include <fxgraph/rewriter/rules/type_conditions.h>

namespace fx::rules::decomposition_linear {

namespace {

/// The kernels take mixed types in part, sums and products promote them.
Decision types_agree(const Match& match, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (match.info(name) && (!is_floating(match, name) || !same_type(match, names.begin()[0], name))) return false;
  }
  return true;
}

std::vector<Rewrite> linear() {
  return {
      {.pattern = "aten::linear(x, w: node, b: node)",
       .when = [](const Match& m) -> Decision {
         if (m.info("b") && m.info("b").rank() != 1) return false;
         return types_agree(m, {"x", "w", "b"});
       },
       .replacement = "aten::add.Tensor(aten::matmul(x, aten::t(w)), b)",
       .examples = {"aten::linear(x, w, b)"}},
      {.name = "no-bias",
       .pattern = "aten::linear(x, w: node)",
       .when =
           [](const Match& m) {
             return types_agree(m, {"x", "w"});
           },
       .replacement = "aten::matmul(x, aten::t(w))",
       .examples = {"aten::linear(x, w)"}},
  };
}

std::vector<Rewrite> addmm() {
  return {
      {.pattern = "aten::addmm(c, x, y, beta=beta: literal, alpha=alpha: literal)",
       .when = [](const Match& m) -> Decision {
         const double alpha = m.literal("alpha"), beta = m.literal("beta");
         if (beta == 0 || alpha == 0) return false;                        // what is left out may hold NaN, unread
         if (!std::isfinite(alpha) || !std::isfinite(beta)) return false;  // of a sum of products, or of each
         if ((alpha != 1 || beta != 1) && !m.info("x"))
           return refuse("the type of its factors is not known; give --input");
         return types_agree(m, {"x", "y", "c"});
       },
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         const auto times = [&](Node& value, std::string_view name) -> Node& {
           return m.literal(name) == 1 ? value : r.call_function("aten::mul.Scalar", {value, m.argument(name)});
         };
         Node& product = times(r.call_function("aten::mm", {m["x"], m["y"]}), "alpha");
         return r.call_function("aten::add.Tensor", {product, times(m["c"], "beta")});
       },
       .examples = {"aten::addmm(c, x, y)", "aten::addmm(c, x, y, beta=2, alpha=3)"}},
  };
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "decompose-linear",
          .summary = "linear becomes matmul with the transposed weight, and a sum",
          .preconditions = "one floating-point type; a bias is a vector",
          .order = 110,
          .group = Group::decomposition,
          .promise = Promise::reassociates,
          .rewrites = linear,
      },
      {
          .name = "decompose-addmm",
          .summary = "addmm becomes mm and a sum",
          .preconditions = "one floating-point type; beta is not 0",
          .order = 120,
          .group = Group::decomposition,
          .promise = Promise::approximate,
          .rewrites = addmm,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::decomposition_linear
