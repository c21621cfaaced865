// Hostile programs (testing/hostile) through quantization: what it leaves in float, and in which order things
// happen, is what the program says; or it is refused by name.
//
// Rounding hides what goes wrong. So the roundings are taken out again: the reference form without its quantize and
// dequantize computes what the float program does, writes what it writes and shares what it shares.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/quantize/quantize.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/print.h>
#include "tests/program/on_hostile_programs.h"
#include "tests/quantize/programs.h"
#include "tests/support/night.h"

namespace fx::hostile_test {

using hostile::HostileProgram;
using std::optional;
using std::string;

const std::vector<Pattern>& quantized_things() {
  static const std::vector<Pattern>& patterns = *[] {
    auto* made = new std::vector<Pattern>;
    for (const char* text : {
             "return aten::linear(x, w: get_attr, b: get_attr)",
             "y = aten::linear(x, w: get_attr)\nreturn aten::relu(y)",
             "y = aten::linear(x, w: get_attr, b: get_attr)\nreturn aten::relu_(y)",
             "y = aten::linear(x, w: get_attr)\nz = aten::linear(x, v: get_attr)\nreturn aten::add.Tensor(y, z)",
             "y = aten::conv2d(x, w: get_attr, b: get_attr)\nreturn aten::relu(y)",
             "y = aten::conv2d(x, w: get_attr)\nreturn aten::batch_norm(y, g: get_attr, h: get_attr, m: get_attr, s: "
             "get_attr, False, 0.1, 1e-05, False)",
             "y = aten::conv1d(x, w: get_attr)\nreturn aten::hardtanh(y)",
             "y = aten::linear(x, w: get_attr)\nz = aten::view(y, sizes)\nreturn aten::linear(z, v: get_attr)",
             "y = aten::linear(x, w: get_attr)\nz = aten::transpose.int(y, 0, 1)\nreturn aten::cat([z, z], 0)",
             "y = aten::mul.Tensor(x, z)\nreturn aten::mul.Tensor(y, 0.5)",
             "y = aten::add.Tensor(x, z)\nreturn aten::add.Tensor(y, 3)",
             "y = aten::sigmoid(x)\nreturn aten::mul.Tensor(x, y)",
         })
      made->emplace_back(text);
    return made;
  }();
  return patterns;
}

std::vector<c10::IValue> copies(const hostile::Tensors& tensors) {
  std::vector<c10::IValue> all;
  for (const at::Tensor& each : tensors) all.emplace_back(each.clone());
  return all;
}

/// The reference form with the roundings taken out; `floats` has the weights as they were.
void take_roundings_out(GraphModule& reference, const GraphModule& floats) {
  std::vector<Node*> nodes;
  for (Node& node : reference.graph().nodes()) nodes.push_back(&node);
  for (Node* node : nodes) {
    if (!node->is_call("aten::dequantize.self")) continue;
    Node& quantized = node->arg(0).node();
    node->set_target("aten::clone");  // a tensor of its own, as dequantize makes one
    if (quantized.is(Op::get_attr)) {
      const string path = quantized.target().str();
      reference.set_buffer(path, floats.attribute(path.substr(0, path.rfind("_quantized"))));
    } else {
      node->set_args({quantized.arg(0)});
    }
  }
}

/// A program before it is converted, and after.
struct Converted {
  std::shared_ptr<GraphModule> prepared, reference;
};

/// Nothing when the program is refused by an Error: values that are not finite, values without an element.
optional<Converted> converted(const HostileProgram& program) {
  try {
    Converted made;
    made.prepared = prepare(*program.build(), QuantConfig::defaults(), copies(program.inputs[0]));
    made.prepared->run(copies(program.inputs[0]));
    made.reference = convert(*made.prepared, {.backend = QuantBackend::reference});
    return made;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Quantized results are tensors of their own, though the program gives one twice, or a view of another.
bool is_own_result(const string& wrong) {
  return wrong.find("shares storage with nothing before it, before with result") != string::npos;
}

optional<string> difference(const HostileProgram& program, GraphModule& after, const hostile::Tolerance& tolerance) {
  const auto before = program.build();
  before->eval();
  optional<string> wrong = hostile::difference(*before, after, {program.inputs[0]}, tolerance);
  if (wrong && is_own_result(*wrong)) return std::nullopt;
  return wrong && hostile::is_ill_conditioned(program, tolerance) ? std::nullopt : wrong;
}

TEST(HostilePrograms, DoWhatTheyDidButForRoundings) {
  const torch::NoGradGuard no_grad;
  std::size_t converted_ones = 0, quantized = 0;
  testing::on_hostile_programs(
      300, {.motifs = quantized_things(), .common_percent = 15, .motif_percent = 65, .special_percent = 0},
      [&](const HostileProgram& program, std::uint64_t) -> optional<string> {
        const optional<Converted> made = converted(program);
        if (!made) return std::nullopt;
        const auto& [prepared, reference] = *made;
        ++converted_ones;
        const hostile::Tolerance tolerance = hostile::tolerance_of(program.narrowest);
        quantized += testing::count_prefix(*reference, "aten::dequantize") > 0;
        const string text = print_graph(reference->graph());
        take_roundings_out(*reference, *prepared);
        optional<string> wrong = difference(program, *reference, tolerance);
        return wrong ? optional(*wrong + "\n" + text) : std::nullopt;
      });
  EXPECT_GT(converted_ones, testing::by_night(100));
  EXPECT_GT(quantized * 8, converted_ones);  // most are of other types
}

// Kernels in place of operators: what is computed is tested elsewhere, here what else callers see.
TEST(HostilePrograms, KernelsLeaveEverythingElseAsItWas) {
  const torch::NoGradGuard no_grad;
  std::size_t kernels = 0;
  testing::on_hostile_programs(
      200, {.motifs = quantized_things(), .common_percent = 15, .motif_percent = 65, .special_percent = 0},
      [&](const HostileProgram& program, std::uint64_t) -> optional<string> {
        const optional<Converted> made = converted(program);
        if (!made) return std::nullopt;
        const auto& [prepared, reference] = *made;
        const auto lowered = convert(*prepared);
        kernels += testing::count_prefix(*lowered, "quantized::");
        const string text = print_graph(lowered->graph()) + print_graph(reference->graph());
        const optional<string> wrong =
            hostile::difference(*reference, *lowered, {program.inputs[0]}, {.relative = 1e30});
        return wrong ? optional(*wrong + "\n" + text) : std::nullopt;
      });
  EXPECT_GT(kernels, testing::by_night(50));
}

}  // namespace fx::hostile_test
