// Multiply-adds of torchvision's classification models against the numbers it publishes (`_ops` of their weights, in
// billions, for one image of 224x224 and 1000 classes).
//
// Their definition: one for each multiply-add of convolutions, linear layers and matrix products; biases,
// normalisation, activations and pooling count nothing. That is `macs` here, so all that is compared agrees in
// definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>

#include <fxgraph/analysis/cost.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/rewriter/partition/stage_costs.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/import.h>
#include <fxgraph/trace/symbolic_trace.h>

#include "tests/support/night.h"

namespace fx::model_cost_test {

struct Published {
  const char* name;
  double gmacs;
  int features;         ///< into the classifier, which in the test models has 10 classes instead of 1000
  bool by_day = false;  ///< whether the model is written by day too
};

// vgg11_bn is missing: the test model's classifier is another one.
constexpr Published kPublished[] = {
    {"resnet18", 1.814, 512},
    {"resnet50", 4.089, 2048},
    {"mobilenet_v2", 0.301, 1280, true},
    {"densenet121", 2.834, 1024},
    {"shufflenet_v2_x1_0", 0.145, 1024, true},
    {"mnasnet1_0", 0.314, 1280},
    {"googlenet", 1.498, 1024},
};

TEST(ModelCost, MeetsWhatTorchvisionPublishes) {
  const char* variable = std::getenv("FXGRAPH_TEST_MODELS");
  const std::string folder = variable ? variable : "";
  if (!std::filesystem::exists(folder + "/manifest.json"))
    GTEST_SKIP() << "no test models: FXGRAPH_TEST_MODELS names no folder with a manifest.json";
  for (const Published& model : kPublished) {
    if (!model.by_day && !testing::at_night()) continue;
    const auto module = load(folder + "/" + model.name + ".scripted.pt");
    const Shapes shapes = propagate_shapes(*module, std::vector<TensorInfo>{{.sizes = {1, 3, 224, 224}}});
    const Cost cost(*module, shapes);
    const double gmacs = (cost.total().macs + 990.0 * model.features) / 1e9;
    EXPECT_NEAR(gmacs, model.gmacs, 0.01 * model.gmacs) << model.name;
  }
}

struct Tied : torch::nn::Module {
  torch::nn::Embedding table{nullptr};
  torch::nn::Linear head{nullptr};
  Tied() {
    table = register_module("table", torch::nn::Embedding(40, 8));
    head = register_module("head", torch::nn::Linear(torch::nn::LinearOptions(8, 40).bias(false)));
    head->weight.set_data(table->weight.data());
  }
  torch::Tensor forward(torch::Tensor x) { return head(table(x)); }
};

TEST(ModelCost, TiedWeightsCountOnce) {
  const auto module = symbolic_trace(std::make_shared<Tied>(), {torch::zeros({1, 5}, torch::kLong)});
  const auto flat = [&] {
    auto made = module->clone_graph_module();
    torch::Tensor weight = torch::rand({40, 8});
    Graph graph;
    Node& x = graph.placeholder("x");
    Node &table = graph.get_attr("first"), &head = graph.get_attr("second");
    graph.output(graph.call_function("aten::linear", {graph.call_function("aten::embedding", {table, x}), head}));
    made->set_parameter("first", weight);
    made->set_parameter("second", weight.detach());
    made->set_graph(std::move(graph));
    return made;
  }();
  for (const auto& each : {module, flat}) {
    const Shapes shapes = propagate_shapes(*each, std::vector<TensorInfo>{{.dtype = DType::int64, .sizes = {1, 5}}});
    const Cost cost(*each, shapes);
    EXPECT_EQ(cost.total().parameter_bytes, 40 * 8 * 4);
    for (const ModuleCost& part : cost.modules()) {
      if (part.depth == 1) {
        EXPECT_EQ(part.cost.parameter_bytes, 40 * 8 * 4) << part.path;
      }
    }
  }
}

// A traced module whose body multiplies twice: it is not the last product alone.
TEST(ModelCost, ModulesOfSeveralProductsCostAllOfThem) {
  const auto cost_of = [](const char* type) {
    GraphModule module;
    module.add_submodule(
        "cell", make_leaf(type, {{"weight_ih", torch::rand({18, 8})}, {"weight_hh", torch::rand({18, 6})}},
                          parse_graph("graph():\n%x = placeholder[target=x]\n%i = get_attr[target=weight_ih]\n"
                                      "%h = get_attr[target=weight_hh]\n"
                                      "%a = call_function[target=torch.ops.aten.linear.default](args = (%x, %i))\n"
                                      "%s = call_function[target=torch.ops.aten.slice.Tensor](args = (%a, 1, 0, 6))\n"
                                      "%y = call_function[target=torch.ops.aten.linear.default](args = (%s, %h))\n"
                                      "return y")));
    module.set_graph(
        parse_graph("graph():\n%x = placeholder[target=x]\n%y = call_module[target=cell](args = (%x,))\nreturn y"));
    const Shapes shapes = propagate_shapes(module, std::vector<TensorInfo>{{.sizes = {2, 8}}});
    const Cost cost(module, shapes);
    EXPECT_EQ(cost.total().parameter_bytes, 4 * 18 * (8 + 6)) << type;
    EXPECT_THAT(cost.unknown(), ::testing::IsEmpty()) << type;
    return cost.total().macs;
  };
  for (const char* type :
       {"torch.nn.modules.rnn.GRUCell", "torch.nn.modules.activation.MultiheadAttention", "own.Twice"})
    EXPECT_EQ(cost_of(type), 2.0 * 18 * (8 + 6)) << type;
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
    const Cost cost(*module, shapes);
    EXPECT_GT(cost.total().macs, 0) << name;
    EXPECT_EQ(cost.num_unknown(), 0u) << name;
  }
}

}  // namespace fx::model_cost_test
