// Multiply-adds of torchvision's classification models against the numbers it publishes (`_ops` of their weights, in
// billions, for one image of 224x224 and 1000 classes).
//
// Their definition: one for each multiply-add of convolutions, linear layers and matrix products; biases,
// normalisation, activations and pooling count nothing. That is `macs` here, so all that is compared agrees in
// definition.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/rewriter/partition/stage_costs.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/torchscript/import.h>

namespace fx::model_cost_test {

struct Published {
  const char* name;
  double gmacs;
  int features;  ///< into the classifier, which in the test models has 10 classes instead of 1000
};

// vgg11_bn is missing: the test model's classifier is another one.
constexpr Published kPublished[] = {
    {"resnet18", 1.814, 512},     {"resnet50", 4.089, 2048},           {"mobilenet_v2", 0.301, 1280},
    {"densenet121", 2.834, 1024}, {"shufflenet_v2_x1_0", 0.145, 1024}, {"mnasnet1_0", 0.314, 1280},
    {"googlenet", 1.498, 1024},
};

TEST(ModelCostSlow, MeetsWhatTorchvisionPublishes) {
  const char* variable = std::getenv("FXGRAPH_TEST_MODELS");
  const std::string folder = variable ? variable : "";
  if (!std::filesystem::exists(folder + "/manifest.json"))
    GTEST_SKIP() << "no test models: FXGRAPH_TEST_MODELS names no folder with a manifest.json";
  for (const Published& model : kPublished) {
    const auto module = load(folder + "/" + model.name + ".scripted.pt");
    const Shapes shapes = propagate_shapes(*module, std::vector<TensorInfo>{{.sizes = {1, 3, 224, 224}}});
    const Cost cost(module->graph(), shapes, module_costs(*module));
    const double gmacs = (cost.total().macs + 990.0 * model.features) / 1e9;
    EXPECT_NEAR(gmacs, model.gmacs, 0.01 * model.gmacs) << model.name;
  }
}

TEST(ModelCost, RecurrentLayersAndAttentionAreKnown) {
  const char* variable = std::getenv("FXGRAPH_TEST_MODELS");
  const std::string folder = variable ? variable : "";
  if (!std::filesystem::exists(folder + "/manifest.json"))
    GTEST_SKIP() << "no test models: FXGRAPH_TEST_MODELS names no folder with a manifest.json";
  const std::pair<const char*, std::vector<std::vector<std::int64_t>>> kModels[] = {
      {"lstm", {{5, 2, 8}}},
      {"gru", {{5, 2, 8}}},
      {"multihead_attention", {{5, 2, 8}, {5, 2, 8}, {5, 2, 8}}},
      {"einsum", {{2, 4, 8, 8}, {2, 4, 8, 8}}}};
  for (const auto& [name, sizes] : kModels) {
    const auto module = load(folder + "/" + name + ".scripted.pt");
    std::vector<TensorInfo> inputs;
    for (const auto& size : sizes) inputs.push_back({.sizes = size});
    const Shapes shapes = propagate_shapes(*module, inputs);
    const Cost cost(module->graph(), shapes, module_costs(*module));
    EXPECT_GT(cost.total().macs, 0) << name;
    EXPECT_EQ(cost.num_unknown(), 0u) << name;
  }
}

}  // namespace fx::model_cost_test
