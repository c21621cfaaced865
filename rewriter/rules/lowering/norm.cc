// Batch normalisation that no convolution before it took up: a scale and a shift that are computed now, as oneDNN's
// convolution of each channel by itself, or as one addcmul. A relu that follows stays: oneDNN's makes 0 of what is no
// number, and a variance below 0 gives that.
#include <fxgraph/rewriter/rules/rules.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fxgraph/ir/number_list.h>
#include <fxgraph/rewriter/rules/measured_rules.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/packed_calls.h>

namespace fx::rules::lowering_norm {

namespace {

constexpr const char* kNorm =
    "aten::batch_norm(x: node, maybe(weight: node), maybe(bias: node), mean: node, variance: node, False, _, eps: "
    "float, "
    "_)";

Decision fits(const Match& match) {
  const TensorFacts x = match.info("x");
  if (!x) return refuse("the shape of its input is not known; give --input");
  if (x.rank() != 4 || x.example().numel() == 0 || !is_on_cpu(x, DType::float32))
    return refuse("its input is not float32 on the CPU, of four dimensions");
  for (const char* name : {"mean", "variance", "weight", "bias"}) {
    if (!match.has(name)) continue;
    const TensorFacts each = match.info(name);
    if (!each || !is_on_cpu(each, DType::float32) || each.sizes() != match.info("mean").sizes())
      return refuse("its statistics or weights are not vectors of float32");
  }
  return true;
}

/// addcmul spreads one channel over all, which batch normalisation refuses.
bool has_sure_channels(const Node& x) {
  constexpr std::size_t kMost = 256;
  std::vector<const Node*> open = {&x};
  for (std::size_t next = 0; next < open.size(); ++next) {
    const std::string_view name = last_name(*open[next]);
    if (open[next]->is(Op::placeholder) || next == kMost) return false;
    if (name.find("conv") != name.npos || name == "batch_norm") continue;
    for (const Node* input : open[next]->all_input_nodes()) {
      if (std::ranges::find(open, input) == open.end()) open.push_back(input);
    }
  }
  return true;
}

struct Affine {
  Node *scale, *shift;  ///< by channel
};

Affine affine_of(const Match& m, Rewriter& r) {
  Node* scale =
      &r.call_function("aten::rsqrt", {r.call_function("aten::add.Scalar", {m["variance"], m.argument("eps")})});
  if (m.has("weight")) scale = &r.call_function("aten::mul.Tensor", {m["weight"], *scale});
  Node* shift = &r.call_function("aten::mul.Tensor", {m["mean"], *scale});
  shift = m.has("bias") ? &r.call_function("aten::sub.Tensor", {m["bias"], *shift})
                        : &r.call_function("aten::neg", {*shift});
  return {scale, shift};
}

Node& onednn(const Match& m, Rewriter& r) {
  const std::vector<std::int64_t>& sizes = m.info("x").example().sizes;
  const std::int64_t channels = m.info("mean").sizes()[0];
  const Affine affine = affine_of(m, r);
  Node& kernel =
      channels_last_weight(r, r.call_function("aten::reshape", {*affine.scale, list_of({channels, 1, 1, 1})}));
  Node& packed = r.call_function(
      "mkldnn_prepacked::conv2d_prepack",
      {kernel, *affine.shift, list_of({1, 1}), list_of({0, 0}), list_of({1, 1}), channels, list_of(sizes), "none"});
  return r.call_function("aten::contiguous",
                         {r.call_function("mkldnn_prepacked::conv2d_run", {onednn_image(r, m["x"]), packed})});
}

Node& scaled(const Match& m, Rewriter& r) {
  const std::int64_t channels = m.info("mean").sizes()[0];
  if (channels > 1 && !has_sure_channels(m["x"])) {
    r.assertions().add(SizeRelation::equal, r.call_function("aten::size.int", {m["x"], 1}), channels,
                       m["x"].name() + " must be " + std::to_string(channels) +
                           " in dimension 1: its batch normalisation takes nothing else");
  }
  const Affine affine = affine_of(m, r);
  const Argument shape = list_of({1, channels, 1, 1});
  Node& shift = r.call_function("aten::reshape", {*affine.shift, shape});
  return r.call_function("aten::addcmul", {shift, m["x"], r.call_function("aten::reshape", {*affine.scale, shape})});
}

std::vector<std::string> norm_examples() {
  return {"aten::batch_norm(x, w, b, m, aten::abs(v), False, 0.1, 0.01, True)",
          "aten::batch_norm(x, None, b, m, aten::abs(v), False, 0.1, 0.5, False)",
          "aten::batch_norm(x, w, None, m, aten::abs(v), False, 0.1, 0.01, True)"};
}

std::vector<Rewrite> norm() {
  return {
      {.name = "onednn",
       .pattern = kNorm,
       .when = fits,
       .replacement = onednn,
       .needs = {.finite_inputs = true},
       .examples = norm_examples()},
      {.name = "scaled",
       .pattern = kNorm,
       .when = fits,
       .replacement = scaled,
       .needs = {.finite_inputs = true},
       .examples = norm_examples()},
  };
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "lower-norm",
          .summary = "Batch normalisation that is left becomes the scale and shift that was "
                     "measured to be fastest",
          .preconditions =
              "shapes known (--input); four dimensions of float32 on the CPU; evaluation mode; statistics and "
              "weights are attributes that nothing writes; inference: no gradients",
          .order = 510,
          .group = Group::lowering,
          .promise = Promise::approximate,
          .rewrites = norm,
          .pass = apply_fastest_to_images,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::lowering_norm
