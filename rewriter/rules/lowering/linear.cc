// Linear layers, with the activation that follows: oneDNN's convolution of 1x1 with packed weights, XNNPACK's linear
// layer, addmm with a weight that is transposed already, or, for one row, fxgraph::packed_linear. For oneDNN rows stand
// where pixels do: [rows, features] is [1, features, 1, rows] with channels last, so nothing moves in memory.
#include <fxgraph/rewriter/rules/rules.h>

#include <fxgraph/ir/number_list.h>
#include <fxgraph/rewriter/rules/measured_rules.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/rewriter/rules/packed_rules.h>

namespace fx::rules::lowering_linear {

namespace {

using Sizes = std::vector<std::int64_t>;

constexpr const char* kLinear = "aten::linear(x: node, w: node, maybe(b: node))";

Decision fits(const Match& match) {
  const TensorFacts x = match.info("x"), w = match.info("w");
  if (!x || !w) return refuse("the shapes of its input and weight are not known; give --input");
  if (w.rank() != 2 || x.rank() < 2 || x.rank() > 4)
    return refuse("its input is not of two to four dimensions, or its weight no matrix");
  if (!has_packed_kernels(x) || !is_on_cpu(w, x.dtype()))
    return refuse("it is neither float32 nor bfloat16, as far as this processor has that, on the CPU");
  if (x.example().numel() == 0 || w.example().numel() == 0) return refuse("its input or weight is empty");
  const TensorFacts b = match.has("b") ? match.info("b") : TensorFacts();
  if (match.has("b") && !(b && is_on_cpu(b, x.dtype()) && b.sizes() == Sizes{w.sizes()[0]}))
    return refuse("its bias is not a number of its type for each output");
  return true;
}

Decision fits_addmm(const Match& match) {
  if (const Decision shapes = fits(match); !shapes) return shapes;
  return match.has("b") && match.info("x").rank() == 2;
}

Decision fits_row(const Match& match) {
  if (const Decision shapes = fits(match); !shapes) return shapes;
  const TensorFacts x = match.info("x");
  return x.dtype() == DType::float32 && x.example().numel() == x.example().sizes.back();
}

/// XNNPACK takes the last dimension of what lies in memory: an image with channels last is not for it.
Decision fits_xnnpack(const Match& match) {
  if (const Decision shapes = fits(match); !shapes) return shapes;
  const TensorFacts x = match.info("x");
  return x.dtype() == DType::float32 && x.rank() <= 3;
}

/// [n, m, rows, features] of an input of two to four dimensions.
Node& in_four_dimensions(Rewriter& r, Node& x, std::size_t rank) {
  if (rank == 2) return r.call_function("aten::unsqueeze", {r.call_function("aten::unsqueeze", {x, 0}), 0});
  return rank == 3 ? r.call_function("aten::unsqueeze", {x, 1}) : x;
}

Node& in_dimensions(Rewriter& r, Node& y, std::size_t rank) {
  if (rank == 2) return r.call_function("aten::squeeze.dim", {r.call_function("aten::squeeze.dim", {y, 0}), 0});
  return rank == 3 ? r.call_function("aten::squeeze.dim", {y, 1}) : y;
}

Sizes image_sizes(const Sizes& sizes) {
  Sizes four = sizes;
  if (sizes.size() == 3) four.insert(four.begin() + 1, 1);
  if (sizes.size() == 2) four.insert(four.begin(), {1, 1});
  return {four[0], four[3], four[1], four[2]};
}

Node& onednn(const Match& m, Rewriter& r, std::string_view attribute) {
  const Sizes &x = m.info("x").example().sizes, &w = m.info("w").sizes();
  Node& kernel = channels_last_weight(r, r.call_function("aten::reshape", {m["w"], list_of({w[0], w[1], 1, 1})}));
  Node& packed = r.call_function("mkldnn_prepacked::conv2d_prepack",
                                 {kernel, onednn_bias(r, m.argument("b")), list_of({1, 1}), list_of({0, 0}),
                                  list_of({1, 1}), 1, list_of(image_sizes(x)), Argument(attribute)});
  Node& image = as_image(r, in_four_dimensions(r, m["x"], x.size()));
  Node& y = r.call_function("mkldnn_prepacked::conv2d_run", {onednn_image(r, image), packed});
  // It lies so already: contiguous() says it to who checks what depends on it.
  return r.call_function("aten::contiguous", {in_dimensions(r, as_pixels(r, y), x.size())});
}

Node& xnnpack(const Match& m, Rewriter& r, const Argument& least, const Argument& most) {
  Node& packed = xnnpack_linear_weights(r, m["w"], m.argument("b"), least, most);
  return r.call_function("prepacked::linear_clamp_run", {m["x"], packed});
}

Node& transposed(const Match& m, Rewriter& r) {
  Node& weight = r.call_function("aten::contiguous", {r.call_function("aten::t", {m["w"]})});
  return r.call_function("aten::addmm", {m["b"], m["x"], weight});
}

std::vector<Rewrite> linear() {
  const std::vector<std::string> examples = {"aten::linear(x, w, b)", "aten::linear(x, w)"};
  std::vector<Rewrite> rewrites;
  append_onednn(rewrites, {kLinear, fits, onednn, examples});
  rewrites.push_back({.name = "transposed",
                      .pattern = kLinear,
                      .when = fits_addmm,
                      .replacement = transposed,
                      .needs = {.finite_inputs = true},
                      .examples = {"aten::linear(x, w, b)"}});
  rewrites.push_back({.name = "row",
                      .pattern = kLinear,
                      .when = fits_row,
                      .replacement = [](const Match& m, Rewriter& r) -> Node& {
                        return r.call_function("fxgraph::packed_linear", {m["x"], m["w"], m.argument("b")});
                      },
                      .needs = {.finite_inputs = true},
                      .examples = examples});
  append_xnnpack(rewrites, {"xnnpack", kLinear, fits_xnnpack, xnnpack, examples});
  return rewrites;
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "lower-linear",
          .summary =
              "Linear layers, with the relu or clamp that follows, call what was measured to be fastest: a kernel "
              "with packed weights, or addmm with a weight that is transposed now",
          .preconditions =
              "shapes known (--input); float32 or bfloat16 on the CPU; weights are attributes that nothing writes; "
              "inference: no gradients",
          .order = 530,
          .group = Group::lowering,
          .promise = Promise::reassociates,
          .rewrites = linear,
          .pass = apply_fastest,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::lowering_linear
