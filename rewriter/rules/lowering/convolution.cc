// Convolutions, with the activation that follows, as calls of kernels that take packed weights: oneDNN's
// (mkldnn_prepacked::conv2d_run) and XNNPACK's (prepacked::conv2d_clamp_run, conv2d_transpose_clamp_run).
//
//   relu(conv2d(x, w, b, …))
//   ->  contiguous(conv2d_run(onednn_image(x), conv2d_prepack(clone(w, channels_last), b, …)))
//
// Both want activations with channels last (onednn_image, packed_calls.h; contiguous(x, channels_last)). What a rule
// makes ends in contiguous(), the layout that LibTorch's own convolution gives, so that each is right by itself;
// `channels-last` then takes the reorders out between neighbours. oneDNN reads strides only of dense tensors: the
// contiguous() before it stays. clone() gives weights of 1x1 kernels, too, the strides by which oneDNN tells the
// layout.
//
// Sources: the operators' registrations in LibTorch 1.13 and what they were seen to do; which is faster is measured
// (measured_rules.h), for it depends on the machine.
#include <fxgraph/rewriter/rules/rules.h>

#include <algorithm>
#include <array>
#include <span>

#include <fxgraph/ir/number_list.h>
#include <fxgraph/rewriter/rules/measured_rules.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/rewriter/rules/packed_rules.h>

namespace fx::rules::lowering_convolution {

namespace {

constexpr const char* kConv =
    "aten::conv2d.default(x: node, w: node, maybe(b: node), stride: literal, padding: literal, dilation: literal, "
    "groups: int)";
constexpr const char* kTransposed =
    "aten::conv_transpose2d(x: node, w: node, maybe(b: node), stride: literal, padding: literal, output_padding: "
    "literal, groups: int, dilation: literal)";

Decision fits(const Match& match) {
  const TensorFacts x = match.info("x"), w = match.info("w");
  if (!x || !w) return refuse("the shapes of its input and weight are not known; give --input");
  for (const TensorFacts& each : {x, w}) {
    if (each.rank() != 4) return refuse("its input or weight is not of four dimensions");
    if (!has_packed_kernels(each) || each.dtype() != x.dtype())
      return refuse("it is neither float32 nor bfloat16, as far as this processor has that, on the CPU");
    if (each.example().numel() == 0) return refuse("its input or weight is empty");
  }
  const TensorFacts b = match.has("b") ? match.info("b") : TensorFacts();
  if (match.has("b") && !(b && is_on_cpu(b, x.dtype()) && b.rank() == 1))
    return refuse("its bias is not a vector of its type");
  return true;
}

Decision fits_xnnpack(const Match& match) {
  if (const Decision fitting = fits(match); !fitting) return fitting;
  return match.info("x").dtype() == DType::float32;
}

constexpr std::array kGeometry = {"stride", "padding", "dilation", "groups"};
// In the order in which XNNPACK's packing takes them.
constexpr std::array kTransposedGeometry = {"stride", "padding", "output_padding", "dilation", "groups"};

void push_back(std::vector<Argument>& args, const Match& m, std::span<const char* const> names) {
  for (const char* name : names) args.push_back(m.argument(name));
}

Node& onednn(const Match& m, Rewriter& r, std::string_view attribute) {
  Node& x = onednn_image(r, m["x"]);
  std::vector<Argument> pack = {channels_last_weight(r, m["w"]), onednn_bias(r, m.argument("b"))};
  push_back(pack, m, kGeometry);
  pack.push_back(list_of(m.info("x").example().sizes));
  pack.push_back(Argument(attribute));
  Node& packed = r.call_function("mkldnn_prepacked::conv2d_prepack", pack);
  return r.call_function("aten::contiguous", {r.call_function("mkldnn_prepacked::conv2d_run", {x, packed})});
}

Node& xnnpack(const Match& m, Rewriter& r, const char* pack, const char* run, std::span<const char* const> geometry,
              const Argument& least, const Argument& most) {
  Node& x = channels_last(r, m["x"]);
  std::vector<Argument> args = {m["w"], m.argument("b")};
  push_back(args, m, geometry);
  args.push_back(least);
  args.push_back(most);
  return r.call_function("aten::contiguous", {r.call_function(run, {x, r.call_function(pack, args)})});
}

std::int64_t along(const Argument& geometry, std::size_t dim) {
  if (geometry.is_int()) return geometry.as_int();
  const ArgumentSpan each = geometry.elements();
  return each[std::min(dim, each.size() - 1)].as_int();
}

Decision fits_transposed(const Match& match) {
  if (const Decision shapes = fits_xnnpack(match); !shapes) return shapes;
  for (const std::size_t dim : {0, 1}) {
    if (along(match.argument("output_padding"), dim) >= along(match.argument("stride"), dim))
      return refuse("its output padding is not smaller than its stride, as XNNPACK has it");
  }
  return true;
}

std::vector<std::string> conv_examples() {
  return {"aten::conv2d(x, w, b)", "aten::conv2d(x, w)", "aten::conv2d(x, w, b, [2, 1], [1, 2], [1, 1], 1)",
          "aten::conv2d(x, w, None, [1, 1], [2, 2], [2, 2], 1)"};
}

std::vector<std::string> transposed_examples() {
  return {"aten::conv_transpose2d.input(x, w, b)", "aten::conv_transpose2d.input(x, w)",
          "aten::conv_transpose2d.input(x, w, None, [2, 1], [1, 0], [1, 0], 1, [1, 2])",
          "aten::conv_transpose2d.input(x, w, None, [2, 2], [0, 0], [0, 0], 2, [1, 1])"};
}

std::vector<Rewrite> convolution() {
  std::vector<Rewrite> rewrites;
  append_onednn(rewrites, {kConv, fits, onednn, conv_examples()});
  append_xnnpack(rewrites, {"xnnpack", kConv, fits_xnnpack,
                            [](const Match& m, Rewriter& r, const Argument& least, const Argument& most) -> Node& {
                              return xnnpack(m, r, "prepacked::conv2d_clamp_prepack", "prepacked::conv2d_clamp_run",
                                             kGeometry, least, most);
                            },
                            conv_examples()});
  append_xnnpack(rewrites, {"xnnpack-transposed", kTransposed, fits_transposed,
                            [](const Match& m, Rewriter& r, const Argument& least, const Argument& most) -> Node& {
                              return xnnpack(m, r, "prepacked::conv2d_transpose_clamp_prepack",
                                             "prepacked::conv2d_transpose_clamp_run", kTransposedGeometry, least, most);
                            },
                            transposed_examples()});
  return rewrites;
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "lower-convolution",
          .summary =
              "Convolutions, with the relu or clamp that follows, call the kernel that was measured to be fastest, "
              "with packed weights",
          .preconditions = "shapes known (--input); conv2d of float32 or bfloat16, conv_transpose2d of float32, on the "
                           "CPU; weights are attributes that nothing "
                           "writes; inference: no gradients",
          .order = 520,
          .group = Group::lowering,
          .promise = Promise::reassociates,
          .rewrites = convolution,
          .pass = apply_fastest_to_images,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::lowering_convolution
