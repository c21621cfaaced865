// Packed calls become the operators that they were lowered from: the way back from --target cpu.
//
// A pass, for its rewrites cannot test themselves: LibTorch divides by zero where the packing of a self-test's empty
// tensors is asked for. The tests of the group `lowering` come back through it.
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/rules/packed_checks.h>
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

const std::vector<Rule>& packed() {
  static const std::vector<Rule> kRules = {
      {.name = "decompose-packed/onednn-relu",
       .pattern = onednn("relu"),
       .replacement = conv("aten::relu($)"),
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true}},
      {.name = "decompose-packed/onednn",
       .pattern = onednn("none"),
       .replacement = conv("$"),
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true}},
      {.name = "decompose-packed/xnnpack",
       .pattern = xnnpack("None, None"),
       .replacement = conv("$"),
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true}},
      {.name = "decompose-packed/xnnpack-clamp",
       .pattern = xnnpack("least: literal, most: literal"),
       .replacement = conv("aten::clamp($, least, most)"),
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true}},
      {.name = "decompose-packed/xnnpack-transposed",
       .pattern = xnnpack_transposed("None, None"),
       .replacement = conv("$", kTransposed),
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true}},
      {.name = "decompose-packed/xnnpack-transposed-clamp",
       .pattern = xnnpack_transposed("least: literal, most: literal"),
       .replacement = conv("aten::clamp($, least, most)", kTransposed),
       .promise = Promise::reassociates,
       .needs = {.finite_inputs = true}},
  };
  return kRules;
}

PassResult unpack(RuleContext& program) {
  const RewriteReport done = rewrite_to_fixed_point(program.module, RuleSet(packed()),
                                                    {.find = {.normalize = true}, .shapes = &program.shapes});
  if (done.applied > 0) drop_packed_assertions(program.module);
  return {.applied = done.applied, .refused = done.refused};
}

}  // namespace

std::span<const OptimizeRule> family() {
  static const OptimizeRule kFamily[] = {
      {
          .name = "decompose-packed",
          .summary = "Convolutions with packed weights become conv2d or conv_transpose2d and the relu or clamp that "
                     "was in them",
          .preconditions = "weights are packed by a call in the same graph, as fxgraph saves and loads them",
          .order = 15,
          .group = Group::decomposition,
          .inference = false,
          .promise = Promise::reassociates,
          .pass = unpack,
      },
  };
  return kFamily;
}

}  // namespace fx::rules::decomposition_packed
