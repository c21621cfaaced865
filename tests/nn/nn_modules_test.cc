// Every torch::nn module that graphs can call: a call gives what the module itself gives.
#include <fxgraph/nn/nn_modules.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/run/plan.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>

namespace fx::nn_modules_test {

namespace nn = torch::nn;

struct Entry {
  const char* type;
  std::shared_ptr<nn::Module> module;
  std::vector<torch::Tensor> inputs;
  bool has_body;
};

torch::Tensor random(std::vector<std::int64_t> sizes) { return torch::randn(sizes); }

std::vector<Entry> entries_with_bodies() {
  return {
      {"Conv1d", nn::Conv1d(nn::Conv1dOptions(4, 6, 3).stride(2)).ptr(), {random({2, 4, 9})}, true},
      {"Conv2d",
       nn::Conv2d(nn::Conv2dOptions(4, 6, 3).padding(1).groups(2).bias(false)).ptr(),
       {random({2, 4, 8, 8})},
       true},
      {"Conv2d",
       nn::Conv2d(nn::Conv2dOptions(4, 6, 3).padding(torch::kSame).dilation(2)).ptr(),
       {random({2, 4, 8, 8})},
       true},
      {"Conv2d", nn::Conv2d(nn::Conv2dOptions(4, 6, 3).padding(torch::kValid)).ptr(), {random({2, 4, 8, 8})}, true},
      {"Conv2d",
       nn::Conv2d(nn::Conv2dOptions(4, 6, 3).padding(1).padding_mode(torch::kReflect)).ptr(),
       {random({2, 4, 8, 8})},
       false},
      {"Conv3d", nn::Conv3d(4, 2, 3).ptr(), {random({1, 4, 5, 5, 5})}, true},
      {"ConvTranspose1d",
       nn::ConvTranspose1d(nn::ConvTranspose1dOptions(4, 6, 3).stride(2)).ptr(),
       {random({2, 4, 9})},
       true},
      {"ConvTranspose2d",
       nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4, 6, 3).stride(2).output_padding(1).groups(2)).ptr(),
       {random({2, 4, 5, 5})},
       true},
      {"ConvTranspose3d", nn::ConvTranspose3d(4, 2, 3).ptr(), {random({1, 4, 4, 4, 4})}, true},
      {"BatchNorm1d", nn::BatchNorm1d(4).ptr(), {random({3, 4})}, true},
      {"BatchNorm2d",
       nn::BatchNorm2d(nn::BatchNorm2dOptions(4).affine(false).eps(0.1)).ptr(),
       {random({3, 4, 5, 5})},
       true},
      {"BatchNorm2d",
       nn::BatchNorm2d(nn::BatchNorm2dOptions(4).track_running_stats(false)).ptr(),
       {random({3, 4, 5, 5})},
       false},
      {"BatchNorm2d",
       nn::BatchNorm2d(nn::BatchNorm2dOptions(4).momentum(c10::nullopt)).ptr(),
       {random({3, 4, 5, 5})},
       true},
      {"BatchNorm3d", nn::BatchNorm3d(4).ptr(), {random({3, 4, 2, 2, 2})}, true},
      {"Linear", nn::Linear(4, 3).ptr(), {random({5, 4})}, true},
      {"Linear", nn::Linear(nn::LinearOptions(4, 3).bias(false)).ptr(), {random({2, 5, 4})}, true},
      {"LayerNorm", nn::LayerNorm(nn::LayerNormOptions({4})).ptr(), {random({5, 4})}, true},
      {"GroupNorm", nn::GroupNorm(2, 4).ptr(), {random({5, 4, 3})}, true},
      {"ReLU", nn::ReLU().ptr(), {random({5, 4})}, true},
      {"ReLU6", nn::ReLU6().ptr(), {random({5, 4}) * 9}, true},
      {"Sigmoid", nn::Sigmoid().ptr(), {random({5, 4})}, true},
      {"Tanh", nn::Tanh().ptr(), {random({5, 4})}, true},
      {"SiLU", nn::SiLU().ptr(), {random({5, 4})}, true},
      {"MaxPool1d", nn::MaxPool1d(2).ptr(), {random({2, 4, 8})}, true},
      {"MaxPool2d",
       nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1).ceil_mode(true)).ptr(),
       {random({2, 4, 8, 8})},
       true},
      {"MaxPool3d", nn::MaxPool3d(2).ptr(), {random({2, 4, 4, 4, 4})}, true},
      {"AvgPool2d",
       nn::AvgPool2d(nn::AvgPool2dOptions(3).count_include_pad(false).padding(1)).ptr(),
       {random({2, 4, 8, 8})},
       true},
      {"AdaptiveAvgPool2d",
       nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({2, 3})).ptr(),
       {random({2, 4, 8, 8})},
       true},
      {"AdaptiveAvgPool2d",
       nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({c10::nullopt, 3})).ptr(),
       {random({2, 4, 8, 8})},
       false},
      {"Dropout", nn::Dropout(0.3).ptr(), {random({5, 4})}, true},
      {"Identity", nn::Identity().ptr(), {random({5, 4})}, true},
      {"Flatten", nn::Flatten().ptr(), {random({5, 4, 2})}, true},
      {"Embedding",
       nn::Embedding(nn::EmbeddingOptions(9, 4).padding_idx(0)).ptr(),
       {torch::tensor({{1, 0}, {8, 3}})},
       true},
  };
}

std::vector<Entry> entries_that_are_called() {
  return {
      {"InstanceNorm2d", nn::InstanceNorm2d(4).ptr(), {random({2, 4, 5, 5})}, false},
      {"LocalResponseNorm", nn::LocalResponseNorm(2).ptr(), {random({2, 4, 5, 5})}, false},
      {"Bilinear", nn::Bilinear(3, 4, 2).ptr(), {random({5, 3}), random({5, 4})}, false},
      {"GELU", nn::GELU().ptr(), {random({5, 4})}, false},
      {"Softmax", nn::Softmax(1).ptr(), {random({5, 4})}, false},
      {"PReLU", nn::PReLU().ptr(), {random({5, 4})}, false},
      {"LeakyReLU", nn::LeakyReLU().ptr(), {random({5, 4})}, false},
      {"ReflectionPad2d", nn::ReflectionPad2d(1).ptr(), {random({2, 4, 5, 5})}, false},
      {"Upsample",
       nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2.0, 2.0}).mode(torch::kNearest)).ptr(),
       {random({2, 4, 5, 5})},
       false},
      {"PixelShuffle", nn::PixelShuffle(2).ptr(), {random({2, 4, 5, 5})}, false},
      {"CosineSimilarity", nn::CosineSimilarity().ptr(), {random({5, 4}), random({5, 4})}, false},
      {"LSTM", nn::LSTM(4, 3).ptr(), {random({5, 2, 4})}, false},
      {"GRU", nn::GRU(4, 3).ptr(), {random({5, 2, 4}), random({1, 2, 3})}, false},
      {"LSTMCell", nn::LSTMCell(4, 3).ptr(), {random({5, 4})}, false},
      {"MultiheadAttention",
       nn::MultiheadAttention(4, 2).ptr(),
       {random({5, 2, 4}), random({5, 2, 4}), random({5, 2, 4})},
       false},
      {"TransformerEncoderLayer",
       nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(4, 2).dropout(0.0)).ptr(),
       {random({5, 2, 4})},
       false},
  };
}

/// What the module itself gives, through the same table that graphs use when there is no body.
c10::IValue call_directly(nn::Module& module, const std::vector<torch::Tensor>& inputs) {
  torch::jit::Stack stack(inputs.begin(), inputs.end());
  find_module_type(module)->call(module, stack);
  return stack.at(0);
}

void expect_equal(const c10::IValue& got, const c10::IValue& expected, const std::string& what) {
  if (expected.isTuple()) {
    ASSERT_EQ(got.toTuple()->elements().size(), expected.toTuple()->elements().size());
    for (std::size_t i = 0; i < expected.toTuple()->elements().size(); ++i) {
      expect_equal(got.toTuple()->elements()[i], expected.toTuple()->elements()[i], what);
    }
  } else {
    EXPECT_TRUE(got.toTensor().allclose(expected.toTensor(), 1e-5, 1e-6)) << what;
  }
}

std::unique_ptr<GraphModule> calling(const Entry& entry) {
  Graph graph;
  std::vector<Argument> args;
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) args.emplace_back(graph.placeholder("x" + std::to_string(i)));
  graph.output(graph.call_module("m", args));
  return std::make_unique<GraphModule>(GraphModule::Attributes{{"m", entry.module}}, std::move(graph));
}

void check(const Entry& entry) {
  for (const bool training : {false, true}) {
    entry.module->train(training);
    const auto gm = calling(entry);
    EXPECT_EQ(gm->module_type("m"), entry.type);
    if (!training) {
      EXPECT_EQ(leaf_from_module(*entry.module) != nullptr, entry.has_body) << entry.type;
    }
    const std::vector<c10::IValue> inputs(entry.inputs.begin(), entry.inputs.end());
    torch::manual_seed(1);
    const c10::IValue got = gm->run(inputs);
    torch::manual_seed(1);
    expect_equal(got, call_directly(*entry.module, entry.inputs), entry.type);
  }
}

TEST(NnModules, BodiesComputeWhatTheModulesDo) {
  torch::manual_seed(0);
  for (const Entry& entry : entries_with_bodies()) check(entry);
}

TEST(NnModules, OthersAreCalled) {
  torch::manual_seed(0);
  for (const Entry& entry : entries_that_are_called()) check(entry);
}

TEST(NnModules, SequentialIsAChain) {
  nn::Sequential chain(nn::Linear(4, 5), nn::ReLU(), nn::Linear(5, 2));
  const auto gm = calling({"Sequential", chain.ptr(), {random({3, 4})}, false});
  const torch::Tensor x = random({3, 4});
  EXPECT_TRUE(gm->forward(x).allclose(chain->forward(x)));
  EXPECT_EQ(gm->plan()->num_steps(), 3u) << "its children are inlined";
}

struct DoublerImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& x, std::int64_t times) { return x * times; }
};
struct StrangerImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return x; }
};

TEST(NnModules, UsersAddTheirOwnTypes) {
  register_module_type<DoublerImpl>("mine.Doubler");
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(graph.call_module("m", {x, 3}));
  GraphModule gm({{"m", std::make_shared<DoublerImpl>()}}, std::move(graph));
  EXPECT_TRUE(gm.forward(torch::ones(2)).equal(torch::full({2}, 3.0)));
  EXPECT_EQ(gm.module_type("m"), "Doubler");
}

TEST(NnModules, UnknownTypesSayWhatToDo) {
  const auto gm = calling({"", std::make_shared<StrangerImpl>(), {random({1})}, false});
  EXPECT_THAT([&] { gm->forward(random({1})); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("fx::register_module_type")));
}

TEST(LeafModule, IsMadeFromTensorsAndABody) {
  const torch::Tensor weight = random({3, 4});
  const auto leaf =
      make_leaf("Linear", {{"weight", weight, true}},
                parse_graph("graph():\n%input = placeholder[target=input]\n%weight = get_attr[target=weight]\n"
                            "%y = call_function[target=aten::linear](args = (%input, %weight))\nreturn y"));
  EXPECT_EQ(leaf->qualified_name(), "torch.nn.modules.linear.Linear");
  EXPECT_EQ(leaf->parameters().size(), 1u);
  const auto gm = calling({"Linear", leaf, {random({2, 4})}, true});
  const torch::Tensor x = random({2, 4});
  EXPECT_TRUE(gm->forward(x).equal(torch::linear(x, weight)));
  EXPECT_THAT([] { make_leaf("Linear", {}, parse_graph("graph():\n%w = get_attr[target=weight]\nreturn w")); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("reads 'weight', which is not among its tensors")));
  EXPECT_EQ(qualify_module_type("mine.Linear"), "mine.Linear");
  EXPECT_EQ(qualify_module_type("Unheard"), "Unheard");
}

TEST(LeafModule, ErrorsInsideABodyShowBothPlaces) {
  const auto gm = calling({"Linear", nn::Linear(4, 3).ptr(), {random({2, 5})}, true});
  EXPECT_THAT(
      [&] {
        gm->forward(random({2, 5}));
      },
      ::testing::ThrowsMessage<Error>(::testing::AllOf(::testing::HasSubstr("while running %m = m(%x0)"),
                                                       ::testing::HasSubstr("inside: %linear = aten::linear("))));
}

}  // namespace fx::nn_modules_test
