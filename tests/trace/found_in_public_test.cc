// Ways of writing modules that were met in public LibTorch projects, as small as they go.
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/trace/trace_testing.h"

namespace fx::found_in_public_test {

using torch::Tensor;
using Sizes = std::vector<std::int64_t>;

// Equal to the module's, or refused by name; never another value, and at least one of these equal.
template <typename Net>
void expect_honest(const std::shared_ptr<Net>& net, GraphModule& traced, const std::vector<Sizes>& sizes) {
  bool any_equal = false;
  for (const Sizes& each : sizes) {
    const Tensor x = torch::rand(each);
    Tensor ours;
    try {
      torch::manual_seed(1);
      ours = traced.forward(x);
    } catch (const Error&) {
      continue;
    }
    torch::manual_seed(1);
    const bool is_equal = testing::same_value(ours, net->forward(x), 1e-6);
    EXPECT_TRUE(is_equal) << x.sizes();
    any_equal |= is_equal;
  }
  EXPECT_TRUE(any_equal);
}

// ── Sizes of which many make one ─────────────────────────────────────────────────────────────────────────────────────

// The operators take other sizes only in steps, and between them the length of the inner one stays what it is.
struct Pyramid : torch::nn::Module {
  Tensor forward(Tensor x) {
    const Tensor fine = torch::avg_pool1d(x, {8}), coarse = torch::avg_pool1d(fine, {2});
    return (fine + coarse.repeat_interleave(2, 2)).sum() * torch::ones({coarse.size(2)});
  }
};

struct Pyramid2d : torch::nn::Module {
  Tensor forward(Tensor x) {
    const Tensor fine = torch::avg_pool2d(x * weight, 8), coarse = torch::avg_pool2d(fine, 2);
    const Tensor up = coarse.repeat_interleave(2, 2).repeat_interleave(2, 3);
    return (fine + up).sum() * torch::ones({coarse.size(2), coarse.size(3)});
  }
  Tensor weight = register_parameter("weight", torch::rand({1, 3, 1, 1}));
};

TEST(FoundInPublic, SizesOfWhichManyMakeOne) {
  for (const std::int64_t size : {16, 18, 20, 32}) {
    const auto net = std::make_shared<Pyramid>();
    const auto traced = symbolic_trace(net, {torch::rand({2, 3, size})});
    expect_honest(net, *traced, {{2, 3, size}, {2, 3, 17}, {2, 3, 32}, {1, 4, 48}, {2, 3, 64}});
  }
  for (const std::int64_t size : {16, 20, 32}) {
    const auto net = std::make_shared<Pyramid2d>();
    const auto traced = symbolic_trace(net, {torch::rand({2, 3, size, size})});
    expect_honest(net, *traced, {{2, 3, size, size}, {2, 3, 32, 16}, {2, 3, 16, 32}, {1, 3, 64, 64}});
  }
}

// ── Parameters that forward replaces ─────────────────────────────────────────────────────────────────────────────────

struct WeightNorm : torch::nn::Module {
  Tensor forward(Tensor x) {
    weight = direction * 3;
    return x * weight;
  }
  Tensor weight = register_parameter("weight", torch::ones({3}));
  Tensor direction = register_parameter("direction", torch::full({3}, 2.0));
};

struct WeightNormOfChild : torch::nn::Module {
  Tensor forward(Tensor x) {
    linear->weight = direction * 3;
    return linear->forward(x);
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 2));
  Tensor direction = register_parameter("direction", torch::ones({2, 3}));
};

struct GrowingWeight : torch::nn::Module {
  Tensor forward(Tensor x) {
    weight = weight * 3;
    return x * weight;
  }
  Tensor weight = register_parameter("weight", torch::ones({3}));
};

// The member is another tensor from then on; the registered parameter is what it was, and nothing writes to it.
template <typename Net>
void expect_weights_stay() {
  const auto net = std::make_shared<Net>();
  const auto traced = symbolic_trace(net, {torch::rand({2, 3})});
  std::vector<Tensor> before;
  for (const Tensor& parameter : traced->parameters()) before.push_back(parameter.detach().clone());
  for (const bool grad : {true, false}) {
    const torch::AutoGradMode mode(grad);
    const Tensor x = torch::rand({4, 3});
    const Tensor ours = traced->forward(x);
    EXPECT_TRUE(testing::same_value(ours, std::make_shared<Net>(*net)->forward(x), 1e-6));
  }
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(testing::same_value(traced->parameters()[i].detach(), before[i], 0)) << i;
}

TEST(FoundInPublic, ParametersThatForwardReplaces) {
  expect_weights_stay<WeightNorm>();
  expect_weights_stay<WeightNormOfChild>();
  EXPECT_THROW(symbolic_trace(std::make_shared<GrowingWeight>(), {torch::rand({2, 3})}), Error);
}

// ── Shapes that LibTorch has a word for ──────────────────────────────────────────────────────────────────────────────

struct Drawn : torch::nn::Module {
  Tensor forward(Tensor x) {
    const Tensor drawn = x.softmax(1).multinomial(1);
    return drawn * drawn.size(0);
  }
};

TEST(FoundInPublic, ShapesOfDrawnAndOfOneHot) {
  const auto net = std::make_shared<Drawn>();
  const auto traced = symbolic_trace(net, {torch::rand({2, 3})});
  torch::manual_seed(2);
  const Tensor ours = traced->forward(torch::ones({5, 3}));
  torch::manual_seed(2);
  EXPECT_TRUE(testing::same_value(ours, net->forward(torch::ones({5, 3})), 0));

  const auto classes = [](Tensor x) {
    const Tensor hot = torch::one_hot(x, 9).to(torch::kFloat);
    return hot.reshape({-1, hot.size(-1)});
  };
  const auto hot = symbolic_trace(classes, {torch::randint(0, 9, {4, 2})});
  const Tensor other = torch::randint(0, 9, {3, 5});
  EXPECT_TRUE(testing::same_value(hot->forward(other), classes(other), 0));
  EXPECT_THROW(symbolic_trace(
                   [](Tensor x) {
                     return torch::one_hot(x).reshape({x.size(0), -1}).size(1) * x;
                   },
                   {torch::randint(0, 9, {4, 2})}),
               Error);
}

// ── A batch that is as large as there are layers ─────────────────────────────────────────────────────────────────────

struct Recurrent : torch::nn::Module {
  explicit Recurrent(std::int64_t layers)
      : lstm(register_module("lstm",
                             torch::nn::LSTM(torch::nn::LSTMOptions(4, 8).num_layers(layers).batch_first(true)))) {}
  Tensor forward(Tensor x, Tensor h, Tensor c) {
    const auto [out, state] = lstm->forward(x, std::make_tuple(h, c));
    return out + std::get<0>(state).sum();
  }
  torch::nn::LSTM lstm;
};

TEST(FoundInPublic, LayersAsManyAsSequences) {
  for (const std::int64_t layers : {1, 2}) {
    const auto net = std::make_shared<Recurrent>(layers);
    const auto inputs = [&](std::int64_t batch, std::int64_t length) -> std::vector<c10::IValue> {
      return {torch::rand({batch, length, 4}), torch::rand({layers, batch, 8}), torch::rand({layers, batch, 8})};
    };
    const auto traced = symbolic_trace(net, inputs(layers, 5));
    for (const std::int64_t batch : {1, 2, 3}) {
      const std::vector<c10::IValue> some = inputs(batch, 7);
      const Tensor theirs = net->forward(some[0].toTensor(), some[1].toTensor(), some[2].toTensor());
      EXPECT_TRUE(testing::same_value(traced->run(some).toTensor(), theirs, 1e-6)) << layers << " " << batch;
    }
  }
}

// ── Calls whose results nobody takes ─────────────────────────────────────────────────────────────────────────────────

struct UnusedNorm : torch::nn::Module {
  Tensor forward(Tensor x) {
    norm(x);
    return x * 2;
  }
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(3));
};

TEST(FoundInPublic, NormsThatNobodyReadsKeepTheMode) {
  for (const bool training : {true, false}) {
    const auto net = std::make_shared<UnusedNorm>();
    net->train(training);
    const auto traced = symbolic_trace(net, {torch::rand({4, 3})});
    const Tensor before = traced->attribute("norm.running_mean").clone();
    traced->forward(torch::rand({4, 3}) + 5);
    EXPECT_EQ(testing::same_value(traced->attribute("norm.running_mean"), before, 0), !training);
    EXPECT_FX_ERROR(traced->train(!training), unsupported, ::testing::HasSubstr("whose result it does not use"));
  }
}

}  // namespace fx::found_in_public_test
