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

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>

#include <fxgraph/rewriter/rules/measured_rules.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/rewriter/rules/spelling.h>

namespace fx::rules::lowering_convolution {

namespace {

constexpr const char* kConv =
    "aten::conv2d(x: node, w: node, maybe(b: node), stride: literal, padding: literal, dilation: literal, groups: int)";
constexpr const char* kTransposed =
    "aten::conv_transpose2d(x: node, w: node, maybe(b: node), stride: literal, padding: literal, output_padding: "
    "literal, groups: int, dilation: literal)";

std::string inside(std::string_view activation, const char* conv = kConv) {
  return std::string("c = ") + conv + "\nreturn " + std::string(activation);
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
  pack.push_back(list_of(m.info("x")->sizes));
  pack.push_back(Argument(attribute));
  Node& packed = r.call_function("mkldnn_prepacked::conv2d_prepack", pack);
  return r.call_function("aten::contiguous", {r.call_function("mkldnn_prepacked::conv2d_run", {x, packed})});
}

/// One of XNNPACK's two kernels.
struct Xnnpack {
  const char* name;  ///< of the rules, with what follows
  const char* conv;  ///< the pattern
  const char *pack, *run;
  std::span<const char* const> geometry;
  Decision (*fits)(const Match&);
  const std::vector<std::string>& (*examples)();
};

Node& xnnpack(const Xnnpack& kernel, const Match& m, Rewriter& r, const Argument& least, const Argument& most) {
  Node& x = channels_last(r, m["x"]);
  std::vector<Argument> pack = {m["w"], m.argument("b")};
  push_back(pack, m, kernel.geometry);
  pack.push_back(least);
  pack.push_back(most);
  Node& packed = r.call_function(kernel.pack, pack);
  return r.call_function("aten::contiguous", {r.call_function(kernel.run, {x, packed})});
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

/// XNNPACK clamps to an interval that is not empty.
Decision is_interval(const Match& match) {
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

const std::vector<std::string>& transposed_examples() {
  static const std::vector<std::string> kExamples = {
      "aten::conv_transpose2d.input(x, w, b)", "aten::conv_transpose2d.input(x, w)",
      "aten::conv_transpose2d.input(x, w, None, [2, 1], [1, 0], [1, 0], 1, [1, 2])",
      "aten::conv_transpose2d.input(x, w, None, [2, 2], [0, 0], [0, 0], 2, [1, 1])"};
  return kExamples;
}

std::vector<std::string> examples_in(const std::vector<std::string>& convs, std::string_view before,
                                     std::string_view after) {
  std::vector<std::string> examples;
  for (const std::string& conv : convs) examples.push_back(std::string(before) + conv + std::string(after));
  return examples;
}

/// What follows the convolution, in one kernel with it; `are_bound`: between literals that the pattern binds.
struct Bounds {
  const char* name;
  const char* after;  ///< the pattern of what follows; null: nothing does
  std::optional<double> least{}, most{};
  bool are_bound = false;
  const char* example_before = "";
  const char* example_after = "";
};

Rule rule_of(const Xnnpack& kernel, const Bounds& bounds) {
  return {.name = std::string("lower-convolution/") + kernel.name + bounds.name,
          .pattern = bounds.after ? inside(bounds.after, kernel.conv) : std::string(kernel.conv),
          .when = [kernel, bounds](const Match& m) -> Decision {
            if (const Decision fitting = kernel.fits(m); !fitting) return fitting;
            return !bounds.are_bound || is_interval(m);
          },
          .replacement = [kernel, bounds](const Match& m, Rewriter& r) -> Node& {
            const auto bound = [&](const char* name, const std::optional<double>& number) {
              return bounds.are_bound ? m.argument(name) : number ? Argument(*number) : Argument();
            };
            return xnnpack(kernel, m, r, bound("least", bounds.least), bound("most", bounds.most));
          },
          .promise = Promise::reassociates,
          .needs = {.finite_inputs = true},
          .examples = examples_in(kernel.examples(), bounds.example_before, bounds.example_after)};
}

std::vector<Rule> xnnpack_rules() {
  const std::array<Xnnpack, 2> kernels = {{
      {"xnnpack", kConv, "prepacked::conv2d_clamp_prepack", "prepacked::conv2d_clamp_run", kGeometry, fits_xnnpack,
       conv_examples},
      {"xnnpack-transposed", kTransposed, "prepacked::conv2d_transpose_clamp_prepack",
       "prepacked::conv2d_transpose_clamp_run", kTransposedGeometry, fits_transposed, transposed_examples},
  }};
  const std::array<Bounds, 4> all = {{
      {.name = "-relu",
       .after = "{aten::relu, aten::relu_}(c)",
       .least = 0.0,
       .example_before = "aten::relu(",
       .example_after = ")"},
      {.name = "-relu6",
       .after = "{aten::relu6, aten::relu6_}(c)",
       .least = 0.0,
       .most = 6.0,
       .example_before = "aten::relu6(",
       .example_after = ")"},
      {.name = "-clamp",
       .after = "{aten::hardtanh, aten::hardtanh_, aten::clamp, aten::clamp_}(c, least: literal, most: literal)",
       .are_bound = true,
       .example_before = "aten::hardtanh(",
       .example_after = ", -0.5, 6.0)"},
      {.name = "", .after = nullptr},
  }};
  std::vector<Rule> rules;
  for (const Xnnpack& kernel : kernels) {
    for (const Bounds& bounds : all) rules.push_back(rule_of(kernel, bounds));
  }
  return rules;
}

const std::vector<Rule>& onednn_convolution() {
  static const std::vector<Rule> kRules = {
      {.name = "lower-convolution/onednn-relu",
       .pattern = inside("{aten::relu, aten::relu_}(c)"),
       .when = fits,
       .replacement = [](const Match& m, Rewriter& r) -> Node& { return onednn(m, r, "relu"); },
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true},
       .examples = examples_in(conv_examples(), "aten::relu(", ")")},
      {.name = "lower-convolution/onednn",
       .pattern = std::string(kConv),
       .when = fits,
       .replacement = [](const Match& m, Rewriter& r) -> Node& { return onednn(m, r, "none"); },
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true},
       .examples = conv_examples()},
  };
  return kRules;
}

const std::vector<Rule>& convolution() {
  static const std::vector<Rule> kRules = [] {
    std::vector<Rule> rules = onednn_convolution();
    for (Rule& rule : xnnpack_rules()) rules.push_back(std::move(rule));
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

}  // namespace fx::rules::lowering_convolution
