// Arguments of calls of modules by name. FX: test_normalize_args over its table of torch.nn's modules.
#include <fxgraph/module/module_arguments.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/ops/schema.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx::module_arguments_test {

using ::testing::HasSubstr;
using torch::Tensor;

/// A module of the user's that LibTorch knows nothing of.
struct MineImpl : torch::nn::Module {
  Tensor forward(const Tensor& x) { return x + 1; }
};
TORCH_MODULE(Mine);

std::shared_ptr<GraphModule> called(std::shared_ptr<torch::nn::Module> layer, const std::string& arguments) {
  return std::make_shared<GraphModule>(GraphModule::Attributes{{"layer", std::move(layer)}},
                                       parse_graph("graph():\n    %x = placeholder[target=x]\n"
                                                   "    %y = call_module[target=layer](" +
                                                   arguments + ")\n    return y"));
}

std::string line(const GraphModule& module) {
  const Node& node = *module.graph().find("y");
  std::string text;
  for (const Argument& arg : node.args()) text += to_string(arg) + " ";
  for (const auto& [name, value] : node.kwargs()) text += name.str() + "=" + to_string(value) + " ";
  return text;
}

TEST(ModuleArguments, OfLayersHaveTheNamesOfTheirForward) {
  const std::vector<std::pair<std::shared_ptr<torch::nn::Module>, std::vector<std::int64_t>>> layers = {
      {torch::nn::Linear(4, 3).ptr(), {2, 4}},
      {torch::nn::Conv2d(3, 2, 3).ptr(), {1, 3, 5, 5}},
      {torch::nn::ReLU().ptr(), {2, 4}},
      {torch::nn::BatchNorm1d(4).ptr(), {2, 4}},
      {torch::nn::MaxPool2d(2).ptr(), {1, 3, 4, 4}},
      {torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})).ptr(), {2, 4}},
  };
  for (const auto& [layer, sizes] : layers) {
    layer->eval();
    const auto gm = called(layer, "args = (%x,)");
    const Tensor x = torch::rand(sizes);
    const Tensor before = gm->forward(x);
    EXPECT_EQ(normalize_args(*gm), 1u) << layer->name();
    EXPECT_EQ(line(*gm), "input=%x ") << layer->name();
    EXPECT_EQ(normalize_args(*gm), 0u);
    EXPECT_TRUE(torch::equal(gm->forward(x), before)) << layer->name();
  }
}

TEST(ModuleArguments, OfGraphModulesWithDefaults) {
  const auto inner = std::make_shared<GraphModule>(parse_graph(R"(graph():
    %a = placeholder[target=a]
    %b = placeholder[target=b](default=2.0)
    %r = call_function[target=aten::mul.Tensor](args = (%a, %b))
    return r)"));
  const auto gm = called(inner, "args = (%x,)");
  const auto kept = normalized_arguments(*gm, *gm->graph().find("y"), false);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->args.size(), 1u);
  EXPECT_EQ(kept->kwargs.size(), 1u);
  const Tensor x = torch::rand({3});
  EXPECT_EQ(normalize_args(*gm), 1u);
  EXPECT_EQ(line(*gm), "a=%x b=2.0 ");
  EXPECT_TRUE(torch::equal(gm->forward(x), x * 2));
  for (const char* wrong : {"args = (%x,), kwargs = {c: 1}", "args = (%x,), kwargs = {a: %x}", "args = (%x, %x, %x)"}) {
    const auto other = called(inner, wrong);
    EXPECT_EQ(normalize_args(*other), 0u) << wrong;
  }
}

TEST(ModuleArguments, OfModulesWithoutNamesStay) {
  const auto gm = called(Mine().ptr(), "args = (%x,)");
  EXPECT_EQ(normalize_args(*gm), 0u);
  EXPECT_EQ(line(*gm), "%x ");
}

TEST(ModuleArguments, SequentialsTakeTheirInputByName) {
  torch::nn::Sequential chain(torch::nn::Linear(2, 3), torch::nn::ReLU());
  const auto gm = called(chain.ptr(), "args = (%x,)");
  const Tensor x = torch::randn({4, 2}), before = gm->forward(x);
  EXPECT_EQ(normalize_args(*gm), 1u);
  EXPECT_THAT(line(*gm), HasSubstr("input=%x"));
  EXPECT_TRUE(gm->forward(x).equal(before));
}

}  // namespace fx::module_arguments_test
