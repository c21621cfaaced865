// Each row of the table of definitions: what is found by it computes the same, as far as it promises.
#include <fxgraph/matchers/definitions.h>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <map>

#include <fxgraph/fx.h>
#include "tests/support/short_graph.h"

namespace fx::definition_rows_test {

using testing::graph_of;

/// A program of which the row's call is found, as it is made.
struct Example {
  const char* row;
  const char* program;
  std::vector<std::vector<std::int64_t>> inputs;  ///< x, y, z, …
  std::string call{};                             ///< where the row's own fits what stands there, too
};

const std::vector<Example>& examples() {
  static const std::vector<Example> kExamples = {
      {"relu", "r = aten::clamp_min(%x, 0.0)\nreturn r", {{2, 6}}},
      {"relu", "r = aten::clamp(%x, 0)\nreturn r", {{2, 6}}},
      {"clamp", "a = aten::clamp(%x, -1.0)\nr = aten::clamp(%a, None, 1.0)\nreturn r", {{2, 6}}},
      {"clamp", "a = aten::clamp_min(%x, -1)\nr = aten::clamp_max(%a, 1)\nreturn r", {{2, 6}}},
      {"hardtanh", "r = aten::clamp(%x, -1.0, 0.5)\nreturn r", {{2, 6}}},
      {"relu6", "r = aten::hardtanh(%x, 0, 6)\nreturn r", {{2, 6}}},
      {"hardsigmoid",
       "a = aten::add.Scalar(%x, 3)\nb = aten::relu6(%a)\nr = aten::div.Scalar(%b, 6)\nreturn r",
       {{2, 6}}},
      {"hardswish",
       "a = aten::add.Scalar(%x, 3)\nb = aten::clamp(%a, 0)\nc = aten::clamp(%b, None, 6)\nd = aten::mul.Tensor(%x, "
       "%c)\nr = aten::div.Tensor(%d, 6)\nreturn r",
       {{2, 6}}},
      {"hardswish", "a = aten::hardsigmoid(%x)\nr = aten::mul.Tensor(%a, %x)\nreturn r", {{2, 6}}},
      {"silu", "a = aten::sigmoid(%x)\nr = aten::mul.Tensor(%a, %x)\nreturn r", {{2, 6}}},
      {"mish", "a = aten::softplus(%x)\nb = aten::tanh(%a)\nr = aten::mul.Tensor(%x, %b)\nreturn r", {{2, 6}}},
      {"glu",
       "a = aten::slice.Tensor(%x, 1, 0, 3)\nb = aten::slice.Tensor(%x, 1, 3, 9223372036854775807)\nc = "
       "aten::sigmoid(%b)\nr = aten::mul.Tensor(%a, %c)\nreturn r",
       {{2, 6}}},
      {"leaky_relu",
       "a = aten::gt.Scalar(%x, 0)\nb = aten::mul.Scalar(%x, 0.1)\nr = aten::where.self(%a, %x, %b)\nreturn r",
       {{2, 6}}},
      {"square", "r = aten::mul.Tensor(%x, %x)\nreturn r", {{2, 6}}},
      {"square", "r = aten::pow.Tensor_Scalar(%x, 2.0)\nreturn r", {{2, 6}}},
      {"sqrt", "r = aten::pow.Tensor_Scalar(%x, 0.5)\nreturn r", {{2, 6}}},
      {"rsqrt", "a = aten::sqrt(%x)\nr = aten::reciprocal(%a)\nreturn r", {{2, 6}}},
      {"division", "r = aten::mul.Tensor(%x, 0.125)\nreturn r", {{2, 6}}},
      {"gelu",
       "a = aten::div.Tensor(%x, 1.4142135623730951)\nb = aten::erf(%a)\nc = aten::add.Tensor(%b, 1)\nd = "
       "aten::mul.Tensor(%x, %c)\nr = aten::mul.Tensor(%d, 0.5)\nreturn r",
       {{2, 6}}},
      {"gelu-tanh",
       "a = aten::mul.Tensor(%x, 0.044715)\nb = aten::mul.Tensor(%a, %x)\nc = aten::mul.Tensor(%b, %x)\nd = "
       "aten::add.Tensor(%x, %c)\ne = aten::mul.Tensor(%d, 0.7978845608028654)\nf = aten::tanh(%e)\ng = "
       "aten::add.Tensor(%f, 1)\nh = aten::mul.Tensor(%x, 0.5)\nr = aten::mul.Tensor(%h, %g)\nreturn r",
       {{2, 6}}},
      {"softmax", "r = aten::_softmax(%x, 1, False)\nreturn r", {{2, 6}}},
      {"log_softmax", "r = aten::_log_softmax(%x, -1, False)\nreturn r", {{2, 6}}},
      {"softmax-dimension", "r = aten::softmax.int(%x, 1)\nreturn r", {{2, 6}}, "aten::softmax.int(x, -1)"},
      {"log_softmax-dimension", "r = aten::log_softmax.int(%x, 1)\nreturn r", {{2, 6}}, "aten::log_softmax.int(x, -1)"},
      {"layer_norm",
       "a = aten::native_layer_norm(%x, [6], %y, %z, 1e-05)\nr = operator.getitem(%a, 0)\nreturn r",
       {{2, 6}, {6}, {6}}},
      {"group_norm",
       "a = aten::native_group_norm(%x, %y, %z, 2, 6, 4, 3, 1e-05)\nr = operator.getitem(%a, 0)\nreturn r",
       {{2, 6, 4}, {6}, {6}}},
      {"batch_norm",
       "a = aten::native_batch_norm(%x, %y, %z, %u, %v, False, 0.1, 1e-05)\nr = operator.getitem(%a, 0)\nreturn r",
       {{2, 6, 4}, {6}, {6}, {6}, {6}}},
      {"max_pool2d",
       "a = aten::max_pool2d_with_indices(%x, [2, 2], [2, 2])\nr = operator.getitem(%a, 0)\nreturn r",
       {{2, 3, 6, 6}}},
      {"adaptive_avg_pool2d", "r = aten::mean.dim(%x, [2, 3], True)\nreturn r", {{2, 3, 4, 5}}},
      {"adaptive_avg_pool2d", "r = aten::mean.dim(%x, [-1, -2], True)\nreturn r", {{2, 3, 4, 5}}},
      {"conv1d",
       "r = aten::convolution(%x, %y, %z, [1], [1], [1], False, [0], 1)\nreturn r",
       {{2, 3, 8}, {4, 3, 3}, {4}}},
      {"conv2d",
       "r = aten::convolution(%x, %y, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 3)\nreturn r",
       {{2, 3, 8, 8}, {6, 1, 3, 3}}},
      {"conv3d",
       "r = aten::convolution(%x, %y, %z, [1, 1, 1], [0, 0, 0], [1, 1, 1], False, [0, 0, 0], 1)\nreturn r",
       {{1, 2, 4, 4, 4}, {3, 2, 2, 2, 2}, {3}}},
      {"transpose", "r = aten::permute(%x, [0, 2, 1])\nreturn r", {{2, 3, 4}}},
      {"transpose", "r = aten::transpose.int(%x, 2, 1)\nreturn r", {{2, 3, 4}}},
      {"t", "r = aten::transpose.int(%x, 0, 1)\nreturn r", {{2, 6}}},
      {"reshape", "r = aten::view(%x, [3, 4])\nreturn r", {{2, 6}}},
      {"flatten", "r = aten::view(%x, [2, -1])\nreturn r", {{2, 3, 4}}},
      {"flatten", "r = aten::reshape(%x, [6, 4])\nreturn r", {{2, 3, 4}}},
      {"matrix-product", "r = aten::mm(%x, %y)\nreturn r", {{2, 6}, {6, 3}}},
      {"batched-product", "r = aten::bmm(%x, %y)\nreturn r", {{2, 3, 4}, {2, 4, 5}}},
      {"matmul",
       "a = aten::expand(%x, [2, 3, 4, 5])\nb = aten::view(%a, [6, 4, 5])\nc = aten::expand(%y, [2, 3, 5, 2])\nd = "
       "aten::clone(%c)\ne = aten::view(%d, [6, 5, 2])\nf = aten::bmm(%b, %e)\nr = aten::view(%f, [2, 3, 4, "
       "2])\nreturn r",
       {{2, 3, 4, 5}, {3, 5, 2}}},
      {"linear", "a = aten::permute(%y, [1, 0])\nr = aten::addmm(%z, %x, %a)\nreturn r", {{2, 6}, {4, 6}, {4}}},
      {"linear-without-bias", "a = aten::t(%y)\nr = aten::mm(%x, %a)\nreturn r", {{2, 6}, {4, 6}}},
      {"linear-and-bias", "a = aten::linear(%x, %y)\nr = aten::add.Tensor(%a, %z)\nreturn r", {{2, 5, 6}, {4, 6}, {4}}},
      {"linear-of-rows",
       "a = aten::view(%x, [10, 6])\nb = aten::t(%y)\nc = aten::addmm(%z, %a, %b)\nr = aten::view(%c, [2, 5, "
       "4])\nreturn r",
       {{2, 5, 6}, {4, 6}, {4}}},
      {"scaled-scores", "a = aten::mul.Scalar(%x, 0.5)\nr = aten::matmul(%a, %y)\nreturn r", {{2, 6}, {6, 3}}},
  };
  return kExamples;
}

std::string names(std::size_t count) {
  static const char* kNames[] = {"x", "y", "z", "u", "v"};
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += std::string(i > 0 ? " " : "") + kNames[i];
  return all;
}

class DefinitionRows : public ::testing::TestWithParam<const Example*> {};

TEST_P(DefinitionRows, ComputeTheSame) {
  const Example& example = *GetParam();
  const Definition& row = definition(example.row);
  torch::manual_seed(1);
  for (const torch::ScalarType type : {torch::kFloat, torch::kDouble}) {
    std::vector<torch::Tensor> inputs;
    for (const auto& sizes : example.inputs)
      inputs.push_back(torch::rand(sizes, type) * 4 + (row.name == "rsqrt" ? 1 : -1));
    if (row.name == "batch_norm") inputs.back() = inputs.back().abs() + 1;
    if (inputs.size() == 1 && row.name != "rsqrt" && row.name != "sqrt" && inputs[0].size(-1) == 6) {
      inputs[0][0][0] = 0.0;
      inputs[0][0][1] = -0.0;
      inputs[0][0][2] = row.promise == Promise::bit_exact ? std::numeric_limits<double>::quiet_NaN() : 7.0;
    }
    auto module = std::make_shared<GraphModule>(graph_of(example.program, names(inputs.size())));
    const std::vector<c10::IValue> values(inputs.begin(), inputs.end());
    const torch::Tensor before = module->run(values).toTensor();
    std::vector<TensorInfo> infos;
    for (const torch::Tensor& input : inputs) infos.push_back(tensor_info(input));
    Shapes shapes = propagate_shapes(*module, infos);
    const std::string call = example.call.empty() ? row.call : example.call;
    const Pattern pattern(row.calls.empty() || !example.call.empty() ? call : row.calls.front());
    FindOptions find_options;
    find_options.definitions = true;
    find_options.shapes = &shapes;
    const std::vector<Match> found = find(*module, pattern, find_options);
    ASSERT_EQ(found.size(), 1u) << near_misses(module->graph(), pattern, find_options);
    EXPECT_FALSE(found[0].definitions().empty());
    ReplaceOptions options;
    options.find.definitions = true;
    options.shapes = &shapes;
    options.allow_output_aliases = true;
    const RewriteReport report = replace_pattern(*module, pattern, Replacement(call), options);
    if (report.applied == 0) {  // what is returned may not come to share storage
      ASSERT_EQ(report.refused.size(), 1u) << report;
      continue;
    }
    module->graph().lint();
    module->recompile();
    const torch::Tensor after = module->run(values).toTensor();
    ASSERT_EQ(after.sizes(), before.sizes()) << print_graph(module->graph());
    ASSERT_EQ(after.scalar_type(), before.scalar_type());
    if (row.promise == Promise::bit_exact) {
      EXPECT_TRUE(torch::equal(after.isnan(), before.isnan()));
      EXPECT_TRUE(torch::equal(after.nan_to_num(), before.nan_to_num())) << (after - before).abs().max();
      EXPECT_TRUE(torch::equal(after.signbit(), before.signbit()));
    } else {
      EXPECT_TRUE(torch::allclose(after, before, type == torch::kFloat ? 1e-4 : 1e-6, 1e-6))
          << (after - before).abs().max();
    }
  }
}

std::vector<const Example*> all_examples() {
  std::vector<const Example*> all;
  for (const Example& example : examples()) all.push_back(&example);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Of, DefinitionRows, ::testing::ValuesIn(all_examples()), [](const auto& info) {
  std::string name = info.param->row + std::string("_") + std::to_string(info.index);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

TEST(DefinitionRows, EachHasAnExample) {
  // Shown elsewhere: a change of type, and what is made of other rows.
  const std::map<std::string, bool> elsewhere = {{"conversion", true}, {"attention", true}};
  for (const Definition& row : definitions()) {
    const bool shown = std::ranges::any_of(examples(), [&](const Example& example) { return example.row == row.name; });
    EXPECT_TRUE(shown || elsewhere.contains(row.name)) << row.name;
  }
}

}  // namespace fx::definition_rows_test
