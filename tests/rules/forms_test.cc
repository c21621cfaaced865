// One model in the forms in which it comes (tests/newest/forms.py): rules fire on all alike.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fxgraph/export/load.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/torchscript/import.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace fx::forms_test {

using Counts = std::map<std::string, std::size_t>;

struct Model {
  const char* name;
  std::vector<std::int64_t> sizes;
  Counts fired;       ///< by recognisers and fusions, on either form of torch.export
  Counts scripted{};  ///< where it is another number on TorchScript
};

const Model kModels[] = {
    {"convolutions", {2, 3, 8, 8}, {{"fuse-conv-bn", 2}, {"fuse-linear-bn", 1}}},
    {"activations",
     {3, 8},
     {{"recognise-gelu", 2}, {"recognise-silu", 1}, {"recognise-hardswish", 1}, {"recognise-leaky-relu", 1}}},
    // TorchScript leaves every size free, and layer_norm wants one that is fixed.
    {"norms", {3, 8}, {{"recognise-layer-norm", 2}}, {{"recognise-layer-norm", 0}}},
    {"attention", {2, 5, 16}, {{"recognise-attention", 1}, {"merge-linears", 3}}},
    {"causal_attention", {2, 5, 16}, {{"recognise-attention", 1}}},
};

std::string test_name(const ::testing::TestParamInfo<Model>& info) { return info.param.name; }

class Forms : public ::testing::TestWithParam<Model> {};

std::vector<at::Tensor> results(GraphModule& gm, const at::Tensor& input) {
  const c10::IValue value = gm.run({input});
  std::vector<at::Tensor> all;
  if (value.isTensor()) return {value.toTensor()};
  for (const c10::IValue& each : value.toTupleRef().elements()) all.push_back(each.toTensor());
  return all;
}

void expect_fires(GraphModule& gm, const Model& model, const Counts& expected) {
  const at::NoGradGuard no_grad;
  const at::Tensor input = at::rand(model.sizes);
  const std::vector<at::Tensor> before = results(gm, input);
  OptimizeOptions options;
  options.rules = {"inference", "recognise-attention", "merge-linears"};
  TensorInfo info;
  info.sizes = model.sizes;
  info.dtype = DType::float32;
  options.inputs = {info};
  Counts fired;
  for (const RuleOutcome& each : optimize(gm, options).rules) fired[std::string(each.rule->name)] += each.applied;
  for (const auto& [rule, count] : model.fired) {
    const auto other = expected.find(rule);
    EXPECT_EQ(fired[rule], other == expected.end() ? count : other->second) << rule;
  }
  const std::vector<at::Tensor> after = results(gm, input);
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(at::allclose(after[i], before[i], 1e-4, 1e-5)) << i;
}

TEST_P(Forms, AreOptimisedAlike) {
  const std::string path = std::string("tests/corpus/forms/") + GetParam().name;
  for (const char* ending : {".pt2", ".core.pt2"}) {
    SCOPED_TRACE(ending);
    expect_fires(*load_exported(path + ending), GetParam(), {});
  }
  SCOPED_TRACE("TorchScript");
  expect_fires(*load(path + ".pt"), GetParam(), GetParam().scripted);
}

INSTANTIATE_TEST_SUITE_P(Of, Forms, ::testing::ValuesIn(kModels), test_name);

}  // namespace fx::forms_test
