// Packed calls become the operators that they were lowered from: the way back from --target cpu.
//
// A pass, for its rewrites cannot test themselves: LibTorch divides by zero where the packing of a self-test's empty
// tensors is asked for. The tests of the group `lowering` come back through it.
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/rules/rules.h>

namespace fx::rules::decomposition_packed {

namespace {

constexpr const char* kConv = "aten::conv2d(x, w, b, stride, padding, dilation, groups)";
constexpr const char* kTransposed =
    "aten::conv_transpose2d.input(x, w, b, stride, padding, output_padding, groups, dilation)";

/// The activation, with the convolution in place of its $.
std::string conv(std::string_view activation, const std::string& call = kConv) {
  const std::size_t at = activation.find('$');
  return std::string(activation.substr(0, at)) + call + std::string(activation.substr(at + 1));
}

std::string onednn(std::string_view attribute) {
  return "mkldnn_prepacked::conv2d_run(x: node, mkldnn_prepacked::conv2d_prepack(w: node, b, stride: literal, padding: "
         "literal, dilation: literal, groups: literal, _, '" +
         std::string(attribute) + "'))";
}

std::string xnnpack(std::string_view bounds) {
  return "prepacked::conv2d_clamp_run(x: node, prepacked::conv2d_clamp_prepack(w: node, b, stride: literal, padding: "
         "literal, dilation: literal, groups: literal, " +
         std::string(bounds) + "))";
}

std::string xnnpack_transposed(std::string_view bounds) {
  return "prepacked::conv2d_transpose_clamp_run(x: node, prepacked::conv2d_transpose_clamp_prepack(w: node, b, stride: "
         "literal, padding: literal, output_padding: literal, dilation: literal, groups: literal, " +
         std::string(bounds) + "))";
}

std::string xnnpack_linear(std::string_view bounds) {
  return "prepacked::linear_clamp_run(x: node, prepacked::linear_clamp_prepack(w: node, b, " + std::string(bounds) +
         "))";
}

std::string own(std::string_view target) {
  return std::string(target) +
         "(x: node, state, weights, _, num_layers: literal, bidirectional: literal, batch_first: literal)";
}

/// The gates of fxgraph::packed_lstm, whose cell is last, in LibTorch's order.
Node& cell_third(Rewriter& r, Node& gates) {
  Node& four = r.call_function("aten::chunk", {gates, 4});
  const auto part = [&](std::int64_t i) { return Argument(r.call_function(python::kGetItem, {four, i})); };
  return r.call_function("aten::cat", {Argument::list(std::vector<Argument>{part(0), part(1), part(3), part(2)})});
}

Node& aten_call(const Match& m, Rewriter& r, const char* target, const std::vector<Argument>& weights) {
  return r.call_function(target, {m["x"], m.argument("state"), Argument::list(weights), true, m.argument("num_layers"),
                                  0.0, false, m.argument("bidirectional"), m.argument("batch_first")});
}

Node& aten_lstm(const Match& m, Rewriter& r) {
  const ArgumentSpan packed = m.argument("weights").elements();
  std::vector<Argument> weights;
  for (std::size_t i = 0; i + 2 < packed.size(); i += 3) {
    Node& bias = cell_third(r, packed[i + 1].node());
    weights.emplace_back(cell_third(r, r.call_function("aten::t", {packed[i]})));
    weights.emplace_back(cell_third(r, packed[i + 2].node()));
    weights.emplace_back(bias);
    weights.emplace_back(r.call_function("aten::zeros_like", {bias}));
  }
  return aten_call(m, r, "aten::lstm.input", weights);
}

Node& aten_gru(const Match& m, Rewriter& r) {
  const ArgumentSpan packed = m.argument("weights").elements();
  std::vector<Argument> weights;
  for (std::size_t i = 0; i + 3 < packed.size(); i += 4) {
    weights.emplace_back(r.call_function("aten::t", {packed[i]}));
    weights.insert(weights.end(), {packed[i + 2], packed[i + 1], packed[i + 3]});
  }
  return aten_call(m, r, "aten::gru.input", weights);
}

Decision has_a_list(const Match& match) {
  if (!match.argument("weights").is_container()) return refuse("its weights are no list here");
  return true;
}

std::vector<Rewrite> packed() {
  return {
      {.name = "onednn-relu",
       .pattern = onednn("relu"),
       .replacement = conv("aten::relu($)"),
       .needs = {.finite_inputs = true}},
      {.name = "onednn", .pattern = onednn("none"), .replacement = conv("$"), .needs = {.finite_inputs = true}},
      {.name = "xnnpack", .pattern = xnnpack("None, None"), .replacement = conv("$"), .needs = {.finite_inputs = true}},
      {.name = "xnnpack-clamp",
       .pattern = xnnpack("least: literal, most: literal"),
       .replacement = conv("aten::clamp($, least, most)"),
       .needs = {.finite_inputs = true}},
      {.name = "xnnpack-transposed",
       .pattern = xnnpack_transposed("None, None"),
       .replacement = conv("$", kTransposed),
       .needs = {.finite_inputs = true}},
      {.name = "xnnpack-transposed-clamp",
       .pattern = xnnpack_transposed("least: literal, most: literal"),
       .replacement = conv("aten::clamp($, least, most)", kTransposed),
       .needs = {.finite_inputs = true}},
      {.name = "xnnpack-linear",
       .pattern = xnnpack_linear("None, None"),
       .replacement = "aten::linear(x, w, b)",
       .needs = {.finite_inputs = true}},
      {.name = "xnnpack-linear-clamp",
       .pattern = xnnpack_linear("least: literal, most: literal"),
       .replacement = "aten::clamp(aten::linear(x, w, b), least, most)",
       .needs = {.finite_inputs = true}},
      {.name = "linear",
       .pattern = "fxgraph::packed_linear(x, w, b)",
       .replacement = "aten::linear(x, w, b)",
       .needs = {.finite_inputs = true}},
      {.name = "pool",
       .pattern = "fxgraph::max_pool2d(x, kernel, stride, padding, dilation, ceil)",
       .replacement = "aten::max_pool2d(x, kernel, stride, padding, dilation, ceil)"},
      {.name = "lstm",
       .pattern = own("fxgraph::packed_lstm"),
       .when = has_a_list,
       .replacement = aten_lstm,
       .needs = {.finite_inputs = true}},
      {.name = "gru",
       .pattern = own("fxgraph::packed_gru"),
       .when = has_a_list,
       .replacement = aten_gru,
       .needs = {.finite_inputs = true}},
  };
}

PassResult unpack(RuleContext& program) {
  static const RuleSet rules(program.rule.rules(packed()));
  const RewriteReport done = rewrite_to_fixed_point(program.module, rules, program.values.driver());
  if (done.applied > 0) eliminate_dead_code(program.module);  // packing for recurrent networks
  const bool cut = program.module.micro_batches().size > 0;
  program.module.set_micro_batches({});
  return {.applied = done.applied + cut, .refused = done.refused};
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "decompose-packed",
          .summary = "Convolutions with packed weights become conv2d or conv_transpose2d and the relu or clamp that "
                     "was in them, and fxgraph's own operators LibTorch's; batches are no longer cut",
          .preconditions = "weights of convolutions are packed by a call in the same graph, as fxgraph saves and loads "
                           "them",
          .order = 15,
          .group = Group::decomposition,
          .promise = Promise::reassociates,
          .pass = unpack,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::decomposition_packed
