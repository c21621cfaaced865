// What clones of a GraphModule keep of parameters and buffers, wherever these are registered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/support/error.h>

namespace fx::clones_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// LibTorch's own modules make the tensors of their clones anew: trainable, and each its own.
struct SharingImpl : torch::nn::Module {
  torch::nn::Embedding embedding = register_module("embedding", torch::nn::Embedding(5, 3));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(torch::nn::LinearOptions(3, 5).bias(false)));
  torch::nn::LSTM lstm = register_module("lstm", torch::nn::LSTM(3, 3));
  torch::nn::LSTMCell cell = register_module("cell", torch::nn::LSTMCell(3, 3));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(3));
  torch::nn::MultiheadAttention attention =
      register_module("attention", torch::nn::MultiheadAttention(torch::nn::MultiheadAttentionOptions(3, 1)));
  torch::Tensor w = register_parameter("w", torch::ones({3}), /*requires_grad=*/false);
  torch::Tensor row = register_buffer("row", torch::ones({3}).requires_grad_());
};
TORCH_MODULE(Sharing);

Graph graph_calling(const std::vector<std::string>& modules, const std::vector<std::string>& tensors) {
  Graph graph;
  Node& x = graph.placeholder("x");
  std::vector<Argument> all;
  for (const std::string& path : modules) all.emplace_back(graph.call_module(path, {Argument(x)}));
  for (const std::string& path : tensors) all.emplace_back(graph.get_attr(path));
  graph.output(Argument::tuple(all));
  return graph;
}

TEST(Clones, KeepWhatIsFrozen) {
  Sharing root;
  const std::vector<std::string> children{"embedding", "head", "lstm", "cell", "norm", "attention"};
  for (const auto& child : root->children()) {
    for (torch::Tensor& parameter : child->parameters()) parameter.set_requires_grad(false);
  }
  root->norm->bias.set_requires_grad(true);
  const GraphModule gm(*root, graph_calling(children, {"w", "row"}));
  const auto copy = gm.clone_graph_module();
  for (const auto& item : copy->named_parameters())
    EXPECT_EQ(item.value().requires_grad(), item.key() == "norm.bias") << item.key();
  EXPECT_TRUE(copy->attribute("row").requires_grad());
}

TEST(Clones, HaveOneVariableWhereverItIsRegistered) {
  // The embedding takes the head's weight for its own.
  struct Net : torch::nn::Module {
    torch::nn::Linear head = register_module("head", torch::nn::Linear(torch::nn::LinearOptions(3, 5).bias(false)));
    torch::nn::Embedding embedding =
        register_module("embedding", torch::nn::Embedding(torch::nn::EmbeddingOptions(5, 3)._weight(head->weight)));
    torch::nn::LSTM lstm = register_module("lstm", torch::nn::LSTM(3, 3));
    torch::nn::GRUCell cell = register_module("cell", torch::nn::GRUCell(3, 3));
    torch::Tensor lstm_weight = register_parameter("lstm_weight", lstm->named_parameters()["weight_hh_l0"]);
    torch::Tensor cell_weight = register_parameter("cell_weight", cell->weight_ih);
    torch::Tensor row = register_buffer("row", head->weight.detach().select(0, 1));
  };
  const auto root = std::make_shared<Net>();
  const GraphModule gm(*root, graph_calling({"embedding", "head", "lstm", "cell"},
                                            {"embedding.weight", "lstm_weight", "cell_weight", "row"}));
  const std::vector<std::pair<std::string, std::string>> ties{
      {"head.weight", "embedding.weight"}, {"lstm_weight", "lstm.weight_hh_l0"}, {"cell_weight", "cell.weight_ih"}};
  const auto copy = gm.clone_graph_module();
  for (const auto& [one, other] : ties) {
    ASSERT_TRUE(gm.attribute(one).is_same(gm.attribute(other))) << one;
    EXPECT_TRUE(copy->attribute(one).is_same(copy->attribute(other))) << one;
    EXPECT_FALSE(copy->attribute(one).is_alias_of(gm.attribute(one))) << one;
    EXPECT_TRUE(copy->attribute(one).equal(gm.attribute(one))) << one;
  }
  EXPECT_TRUE(copy->attribute("row").is_alias_of(copy->attribute("head.weight")));
  EXPECT_FALSE(copy->attribute("row").requires_grad());
  // The modules compute with it.
  const torch::Tensor x = torch::ones({1, 3});
  const auto gradient_of = [&](const torch::Tensor& result, const std::string& path) {
    result.sum().backward();
    const torch::Tensor parameter = copy->attribute(path);
    const bool found = parameter.grad().defined() && parameter.grad().abs().sum().item<float>() > 0;
    parameter.mutable_grad() = torch::Tensor();
    return found;
  };
  const auto called = [&](const char* path, const torch::Tensor& input) {
    torch::jit::Stack stack{input};
    torch::nn::Module& module = *copy->submodule(path);
    find_module_type(module)->call(module, stack);
    return stack[0].isTuple() ? stack[0].toTupleRef().elements()[0].toTensor() : stack[0].toTensor();
  };
  EXPECT_TRUE(gradient_of(called("head", x), "embedding.weight"));
  EXPECT_TRUE(gradient_of(called("embedding", torch::tensor({1})), "head.weight"));
  EXPECT_TRUE(gradient_of(called("lstm", torch::ones({2, 1, 3})), "lstm_weight"));
  EXPECT_TRUE(gradient_of(called("cell", x), "cell_weight"));
}

TEST(Clones, LieInMemoryAsTheOriginals) {
  torch::nn::Module root;
  const torch::Tensor whole = torch::arange(12, torch::kFloat).view({3, 4});
  root.register_buffer("part", whole.clone().slice(1, 1, 3));
  root.register_buffer("negated", at::_neg_view(whole.clone()));
  root.register_buffer("expanded", whole.clone().select(0, 1).expand({2, 4}));
  root.register_buffer("turned", whole.clone().t());
  const auto copy =
      GraphModule(root, graph_calling({}, {"part", "negated", "expanded", "turned"})).clone_graph_module();
  for (const auto& item : root.named_buffers()) {
    const torch::Tensor &original = item.value(), cloned = copy->attribute(item.key());
    EXPECT_TRUE(cloned.equal(original) && cloned.strides() == original.strides()) << item.key();
    EXPECT_EQ(cloned.storage_offset(), original.storage_offset()) << item.key();
    EXPECT_EQ(cloned.storage().nbytes(), original.storage().nbytes()) << item.key();
    EXPECT_EQ(cloned.is_neg(), original.is_neg()) << item.key();
    EXPECT_FALSE(cloned.is_alias_of(original)) << item.key();
  }
}

struct OwnScaleImpl : torch::nn::Cloneable<OwnScaleImpl> {
  explicit OwnScaleImpl(torch::Tensor given = {}) : w(std::move(given)) { register_parameter("w", w); }
  void reset() override { w = register_parameter("w", torch::ones({3})); }
  torch::Tensor forward(const torch::Tensor& x) { return x * w; }
  torch::Tensor w;
};

TEST(Clones, OfTypesThatKeepTheirTensorsAreTiedOrRefused) {
  register_module_type<OwnScaleImpl>("own.Scale");
  const torch::Tensor w = torch::ones({3}).requires_grad_();
  torch::nn::Module root;
  root.register_module("a", std::make_shared<OwnScaleImpl>(w));
  root.register_parameter("w", w);
  const auto copy = GraphModule(root, graph_calling({"a"}, {"w"})).clone_graph_module();
  EXPECT_TRUE(copy->attribute("a.w").is_same(copy->attribute("w"))) << "the root takes the module's";
  root.register_module("b", std::make_shared<OwnScaleImpl>(w));
  const GraphModule two(root, graph_calling({"a", "b"}, {}));
  EXPECT_THAT([&] { two.clone_graph_module(); }, ThrowsMessage<Error>(HasSubstr("a.w and b.w are one parameter")));
  w.set_requires_grad(false);
  const auto frozen = two.clone_graph_module();
  EXPECT_TRUE(frozen->attribute("a.w").is_alias_of(frozen->attribute("b.w")));
}

}  // namespace fx::clones_test
