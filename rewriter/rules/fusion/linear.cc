// Products and sums become addmm and linear.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/rewriter/rules/type_conditions.h>

namespace fx::rules::fusion_linear {

namespace {

bool has_rank(const Match& match, std::string_view name, std::size_t rank) {
  return match.info(name) && match.info(name).rank() == rank;
}

Decision weight_is_matrix(const Match& match) {
  if (!match.info("w")) return refuse("the shape of its weight is not known; give --input");
  return has_rank(match, "w", 2) && same_type(match, "x", "w");  // of nothing, matmul takes others
}

Decision bias_fits(const Match& match) {
  if (!match.info("b") || !match.info("w"))
    return refuse("the shapes of its weight and bias are not known; give --input");
  return has_rank(match, "w", 2) && has_rank(match, "b", 1) &&
         match.info("b").sizes()[0] == match.info("w").sizes()[0] && match.info("b").sizes()[0] >= 0 &&
         same_type(match, "b", "w") && same_type(match, "x", "w");
}

/// Of sizes [n], [1, n] or [m, n]: what does not make the product larger.
Decision sum_fits_product(const Match& match) {
  for (const char* name : {"x", "y", "c"}) {
    if (!match.info(name)) return refuse("the shapes of its operands are not known; give --input");
  }
  if (!has_rank(match, "x", 2) || !has_rank(match, "y", 2)) return false;
  const std::vector<std::int64_t>& c = match.info("c").sizes();
  if (c.empty() || c.size() > 2) return false;
  const std::int64_t rows = match.info("x").sizes()[0], columns = match.info("y").sizes()[1];
  if (columns < 0 || (c.size() == 2 && c[0] < 0)) return false;  // they may differ in other calls
  if (c.back() != columns || (c.size() == 2 && c[0] != rows && c[0] != 1)) return false;
  return is_floating(match, "x") && same_type(match, "x", "y") && same_type(match, "x", "c");
}

std::vector<Rewrite> linear() {
  return {
      {.name = "addmm",
       .pattern = "aten::addmm(b: node, x, (aten::t(w) | aten::transpose.int(w, (0 | -2), (1 | -1)) | aten::permute(w, "
                  "[1, 0])))",
       .when = bias_fits,
       .replacement = "aten::linear(x, w, b)",
       .examples = {"aten::addmm(b, x, aten::t(w))"}},
      {.name = "mm",
       .pattern = "{aten::mm, aten::matmul}(x, (aten::t(w) | aten::transpose.int(w, (0 | -2), (1 | -1)) | "
                  "aten::permute(w, [1, 0])))",
       .when = weight_is_matrix,
       .replacement = "aten::linear(x, w)",
       .examples = {"aten::mm(x, aten::t(w))", "aten::matmul(x, aten::t(w))"}},
      {.name = "bias",
       .pattern = "commutative(aten::add.Tensor(aten::linear(x, w), b: node))",
       .when = bias_fits,
       .replacement = "aten::linear(x, w, b)",
       .examples = {"aten::add.Tensor(aten::linear(x, w), b)"}},
      // So LibTorch's own functional::linear writes it.
      {.name = "bias-in-place",
       .pattern = "aten::add_.Tensor(aten::linear(x, w), b: node)",
       .when = bias_fits,
       .replacement = "aten::linear(x, w, b)",
       .examples = {"aten::add_.Tensor(aten::linear(x, w), b)"}},
      {.name = "sum",
       .pattern = "commutative(aten::add.Tensor({aten::mm, aten::matmul}(x, y), c: node))",
       .when = sum_fits_product,
       .replacement = "aten::addmm(c, x, y)",
       .examples = {"aten::add.Tensor(aten::mm(x, y), c)", "aten::add.Tensor(c, aten::matmul(x, y))"}},
  };
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "recognise-linear",
          .summary = "Makes matmul and add one addmm, and products with a transposed weight a linear",
          .preconditions = "shapes known (--input); the weight a matrix, the bias of as many elements as it has rows; "
                           "one type; alpha "
                           "and beta 1",
          .order = 330,
          .group = Group::fusion,
          .inference = true,
          .promise = Promise::reassociates,
          .rewrites = linear,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::fusion_linear
