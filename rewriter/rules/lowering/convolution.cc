// Convolutions, with the activation that follows, as calls of kernels that take packed weights: oneDNN's
// (mkldnn_prepacked::conv2d_run) and XNNPACK's (prepacked::conv2d_clamp_run).
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

#include <ATen/Parallel.h>

#include <limits>

#include <fxgraph/rewriter/rules/measured_rules.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/rewriter/rules/spelling.h>

namespace fx::rules {

namespace {

constexpr const char* kConv =
    "aten::conv2d(x: node, w: node, maybe(b: node), stride: literal, padding: literal, dilation: literal, groups: int)";

std::string inside(std::string_view activation) {
  return std::string("c = ") + kConv + "\nreturn " + std::string(activation);
}

const std::string& relu_of_conv() {
  static const std::string kPattern = inside("{aten::relu, aten::relu_}(c)");
  return kPattern;
}

Decision fits(const Match& match) {
  const TensorInfo *x = match.info("x"), *w = match.info("w");
  if (!x || !w) return refuse("the shapes of its input and weight are not known; give --input");
  for (const TensorInfo* each : {x, w}) {
    if (each->sizes.size() != 4) return refuse("its input or weight is not of four dimensions");
    if (!has_packed_kernels(*each) || each->dtype != x->dtype)
      return refuse("it is neither float32 nor bfloat16, as far as this processor has that, on the CPU");
    if (each->numel() == 0) return refuse("its input or weight is empty");
  }
  const TensorInfo* b = match.has("b") ? match.info("b") : nullptr;
  if (match.has("b") && !(b && is_on_cpu(*b, x->dtype) && b->sizes.size() == 1))
    return refuse("its bias is not a vector of its type");
  return true;
}

Decision fits_xnnpack(const Match& match) {
  if (const Decision fitting = fits(match); !fitting) return fitting;
  return match.info("x")->dtype == DType::float32;
}

/// The convolution's own arguments, in the order in which both packing operators take them.
std::vector<Argument> geometry(const Match& m) {
  return {m.argument("stride"), m.argument("padding"), m.argument("dilation"), m.argument("groups")};
}

Node& onednn(const Match& m, Rewriter& r, std::string_view attribute) {
  Node& x = onednn_image(r, m["x"]);
  std::vector<Argument> pack = {channels_last_weight(r, m["w"]), onednn_bias(r, m.argument("b"))};
  for (Argument& each : geometry(m)) pack.push_back(std::move(each));
  pack.push_back(list_of(m.info("x")->sizes));
  pack.push_back(Argument(attribute));
  Node& packed = r.call_function("mkldnn_prepacked::conv2d_prepack", pack);
  return r.call_function("aten::contiguous", {r.call_function("mkldnn_prepacked::conv2d_run", {x, packed})});
}

Node& xnnpack(const Match& m, Rewriter& r, const Argument& least, const Argument& most) {
  Node& x = channels_last(r, m["x"]);
  std::vector<Argument> pack = {m["w"], m.argument("b")};
  for (Argument& each : geometry(m)) pack.push_back(std::move(each));
  pack.push_back(least);
  pack.push_back(most);
  Node& packed = r.call_function("prepacked::conv2d_clamp_prepack", pack);
  return r.call_function("aten::contiguous", {r.call_function("prepacked::conv2d_clamp_run", {x, packed})});
}

/// XNNPACK clamps to an interval that is not empty.
Decision fits_clamp(const Match& match) {
  if (const Decision shapes = fits_xnnpack(match); !shapes) return shapes;
  const auto bound = [&](std::string_view name, double otherwise) {
    return match.has(name) ? match.literal(name) : otherwise;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return bound("least", -kInfinity) < bound("most", kInfinity);
}

const std::vector<std::string>& conv_examples() {
  static const std::vector<std::string> kExamples = {"aten::conv2d(x, w, b)", "aten::conv2d(x, w)",
                                                     "aten::conv2d(x, w, b, [2, 1], [1, 2], [1, 1], 1)",
                                                     "aten::conv2d(x, w, None, [1, 1], [2, 2], [2, 2], 1)"};
  return kExamples;
}

std::vector<std::string> examples_in(std::string_view before, std::string_view after) {
  std::vector<std::string> examples;
  for (const std::string& conv : conv_examples()) examples.push_back(std::string(before) + conv + std::string(after));
  return examples;
}

const std::vector<Rule>& convolution() {
  static const std::vector<Rule> kRules = {
      {.name = "lower-convolution/onednn-relu",
       .pattern = relu_of_conv(),
       .when = fits,
       .replacement = [](const Match& m, Rewriter& r) -> Node& { return onednn(m, r, "relu"); },
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true},
       .examples = examples_in("aten::relu(", ")")},
      {.name = "lower-convolution/xnnpack-relu",
       .pattern = relu_of_conv(),
       .when = fits_xnnpack,
       .replacement = [](const Match& m, Rewriter& r) -> Node& { return xnnpack(m, r, Argument(0.0), Argument()); },
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true},
       .examples = examples_in("aten::relu(", ")")},
      {.name = "lower-convolution/xnnpack-relu6",
       .pattern = inside("{aten::relu6, aten::relu6_}(c)"),
       .when = fits_xnnpack,
       .replacement = [](const Match& m, Rewriter& r) -> Node& { return xnnpack(m, r, Argument(0.0), Argument(6.0)); },
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true},
       .examples = examples_in("aten::relu6(", ")")},
      {.name = "lower-convolution/xnnpack-clamp",
       .pattern =
           inside("{aten::hardtanh, aten::hardtanh_, aten::clamp, aten::clamp_}(c, least: literal, most: literal)"),
       .when = fits_clamp,
       .replacement = [](const Match& m, Rewriter& r) -> Node& {
         return xnnpack(m, r, m.argument("least"), m.argument("most"));
       },
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true},
       .examples = examples_in("aten::hardtanh(", ", -0.5, 6.0)")},
      {.name = "lower-convolution/onednn",
       .pattern = std::string(kConv),
       .when = fits,
       .replacement = [](const Match& m, Rewriter& r) -> Node& { return onednn(m, r, "none"); },
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true},
       .examples = conv_examples()},
      {.name = "lower-convolution/xnnpack",
       .pattern = std::string(kConv),
       .when = fits_xnnpack,
       .replacement = [](const Match& m, Rewriter& r) -> Node& { return xnnpack(m, r, Argument(), Argument()); },
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true},
       .examples = conv_examples()},
  };
  return kRules;
}

const std::vector<Rule>& onednn_convolution() {
  static const std::vector<Rule> kRules = [] {
    std::vector<Rule> rules = convolution();
    std::erase_if(rules, [](const Rule& rule) { return rule.name.find("xnnpack") != std::string::npos; });
    return rules;
  }();
  return kRules;
}

// XNNPACK has threads of its own, and OpenMP's keep the processors busy while they wait: with as many of both as there
// are processors, a MobileNet took seven times as long as with one kind. Its places alone do not show that.
PassResult lower(RuleContext& program) {
  const std::vector<Rule>& rules = at::get_num_threads() > 1 ? onednn_convolution() : convolution();
  return apply_fastest(program, rules, Layout::channels_last);
}

/// XNNPACK keeps state in what it packed.
const std::vector<Rule>& concurrent_convolution() {
  static const std::vector<Rule> kRules = [] {
    std::vector<Rule> rules = onednn_convolution();
    for (Rule& rule : rules) rule.name.insert(rule.name.find('/'), "-concurrent");
    return rules;
  }();
  return kRules;
}

PassResult lower_concurrent(RuleContext& program) {
  return apply_fastest(program, concurrent_convolution(), Layout::channels_last);
}

}  // namespace

std::span<const OptimizeRule> lowering_convolution() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "lower-convolution",
          .summary =
              "Convolutions, with the relu or clamp that follows, call the kernel that was measured to be fastest, "
              "with packed weights",
          .preconditions =
              "shapes known (--input); conv2d of float32 or bfloat16 on the CPU; weights are attributes that nothing "
              "writes; inference: no gradients",
          .order = 520,
          .group = Group::lowering,
          .inference = false,
          .promise = Promise::reassociates,
          .rewrites = convolution,
          .pass = lower,
      },
      {
          .name = "lower-convolution-concurrent",
          .summary = "The same with kernels that several threads may run at once in one copy: without XNNPACK's",
          .preconditions = "as lower-convolution",
          .order = 521,
          .group = Group::lowering,
          .inference = false,
          .promise = Promise::reassociates,
          .rewrites = concurrent_convolution,
          .pass = lower_concurrent,
      },
  };
  return kFamily;
}

}  // namespace fx::rules
