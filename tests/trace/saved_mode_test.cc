// The mode of what is saved: after a file is read, train() and eval() do what the module would, or are refused.
#include <torch/script.h>
#include <torch/torch.h>

#include <functional>
#include <stdexcept>

#include <fxgraph/export/load.h>
#include <fxgraph/module/code.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/support/scratch_folder.h"
#include "tests/trace/trace_testing.h"

namespace fx::saved_mode_test {

using ::testing::HasSubstr;
using torch::Tensor;

struct TwiceOrThrice : torch::nn::Module {
  Tensor forward(const Tensor& x) { return is_training() ? x * 2 : x * 3; }
};

template <typename Layer>
struct OneLayer : torch::nn::Module {
  Layer layer{nullptr};
  explicit OneLayer(Layer made) { layer = register_module("layer", std::move(made)); }
  Tensor forward(const Tensor& x) {
    const auto result = layer->forward(x);
    if constexpr (std::is_same_v<std::decay_t<decltype(result)>, Tensor>) {
      return result;
    } else {
      return std::get<0>(result);
    }
  }
};

class SavedMode : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(7); }

  std::shared_ptr<GraphModule> again(const GraphModule& module, const char* ending) {
    const std::string path = (scratch_.path() / ("mode" + std::string(ending))).string();
    module.save(path);
    return load(path);
  }

  testing::ScratchFolder scratch_;
};

void expect_refused(GraphModule& module) {
  const bool mode = module.is_training();
  EXPECT_NO_THROW(module.train(mode));
  EXPECT_FX_ERROR(module.train(!mode), unsupported, HasSubstr("the graph does not follow"));
  EXPECT_EQ(module.is_training(), mode);
}

TEST_F(SavedMode, AFixedModeStaysFixed) {
  const auto net = std::make_shared<TwiceOrThrice>();
  const Tensor x = torch::rand({2, 3});
  for (const bool training : {true, false}) {
    net->train(training);
    const auto traced = symbolic_trace(net, {x});
    expect_refused(*traced);
    for (const char* ending : {".pt", ".pt2"}) {
      SCOPED_TRACE(ending);
      const auto loaded = again(*traced, ending);
      EXPECT_EQ(loaded->is_training(), training);
      EXPECT_TRUE(loaded->forward(x).equal(net->forward(x)));
      expect_refused(*loaded);
      expect_refused(*again(*loaded, ending));
    }
  }
}

TEST_F(SavedMode, AProgramWithoutAModeMayBeSwitched) {
  const auto net = std::make_shared<OneLayer<torch::nn::Linear>>(torch::nn::Linear(3, 2));
  const auto traced = symbolic_trace(net, {torch::rand({2, 3})});
  for (const char* ending : {".pt", ".pt2"}) {
    const auto loaded = again(*traced, ending);
    EXPECT_NO_THROW(loaded->eval());
    EXPECT_NO_THROW(loaded->train());
  }
  EXPECT_FALSE(to_torchscript(*traced).hasattr("_fxgraph_mode"));
}

TEST_F(SavedMode, DropoutFollowsInTorchScript) {
  const auto net = std::make_shared<OneLayer<torch::nn::Dropout>>(torch::nn::Dropout(0.5));
  const Tensor x = torch::ones({100});
  for (const bool training : {true, false}) {
    net->train(training);
    const auto traced = symbolic_trace(net, {x});
    auto loaded = again(*traced, ".pt");
    loaded = again(*loaded, ".pt");
    EXPECT_EQ(loaded->is_training(), training);
    EXPECT_EQ(loaded->forward(x).equal(x), !training);
    loaded->train(!training);
    EXPECT_EQ(loaded->forward(x).equal(x), training);
    loaded->train(training);
    EXPECT_EQ(loaded->forward(x).equal(x), !training);
    torch::jit::Module script = to_torchscript(*traced);
    script.train(!training);
    EXPECT_EQ(script.forward({x}).toTensor().equal(x), training) << "LibTorch follows, too";
    expect_refused(*again(*traced, ".pt2"));
    LoadOptions options;
    options.is_leaf = [](const std::string&, const std::string&) { return false; };
    expect_refused(*from_torchscript(to_torchscript(*traced), options));
  }
}

template <typename Net>
void expect_refused_as_saved(const std::shared_ptr<Net>& net, const Tensor& x,
                             const std::function<std::shared_ptr<GraphModule>(const GraphModule&, const char*)>& again,
                             const std::vector<const char*>& endings = {".pt", ".pt2"}) {
  for (const bool training : {true, false}) {
    net->train(training);
    const auto traced = symbolic_trace(net, {x});
    for (const char* ending : endings) {
      SCOPED_TRACE(net->name() + ending + (training ? " in train()" : " in eval()"));
      const auto loaded = again(*traced, ending);
      EXPECT_EQ(loaded->is_training(), training);
      expect_refused(*loaded);
    }
  }
}

TEST_F(SavedMode, WhatIsWrittenInOneModeRefusesTheOther) {
  const auto save = [this](const GraphModule& module, const char* ending) { return again(module, ending); };
  using namespace torch::nn;
  expect_refused_as_saved(std::make_shared<OneLayer<BatchNorm1d>>(BatchNorm1d(3)), torch::rand({4, 3}), save);
  expect_refused_as_saved(
      std::make_shared<OneLayer<InstanceNorm1d>>(InstanceNorm1d(InstanceNorm1dOptions(3).track_running_stats(true))),
      torch::rand({4, 3, 5}), save);
  expect_refused_as_saved(std::make_shared<OneLayer<LSTM>>(LSTM(LSTMOptions(3, 4).num_layers(2).dropout(0.5))),
                          torch::rand({4, 2, 3}), save, {".pt"});
  expect_refused_as_saved(std::make_shared<OneLayer<TransformerEncoderLayer>>(
                              TransformerEncoderLayer(TransformerEncoderLayerOptions(4, 2))),
                          torch::rand({4, 2, 4}), save);
}

TEST_F(SavedMode, LayersThatDoTheSameInBothModesMayBeSwitched) {
  using namespace torch::nn;
  const auto lstm = std::make_shared<OneLayer<LSTM>>(LSTM(3, 4));
  const auto norm = std::make_shared<OneLayer<InstanceNorm1d>>(InstanceNorm1d(3));
  EXPECT_NO_THROW(again(*symbolic_trace(lstm, {torch::rand({4, 2, 3})}), ".pt")->eval());
  EXPECT_NO_THROW(again(*symbolic_trace(norm, {torch::rand({4, 3, 5})}), ".pt")->eval());
  EXPECT_NO_THROW(again(*symbolic_trace(norm, {torch::rand({4, 3, 5})}), ".pt2")->eval());
}

TEST_F(SavedMode, ATraceOfAFixedModuleIsFixedToo) {
  const auto net = std::make_shared<TwiceOrThrice>();
  const Tensor x = torch::rand({2, 3});
  for (const bool training : {true, false}) {
    net->train(training);
    const auto inner = symbolic_trace(net, {x});
    const auto traced = symbolic_trace([inner](Tensor y) { return inner->forward(y) + 1; }, {x});
    EXPECT_EQ(traced->is_training(), training);
    expect_refused(*traced);
    struct Around : torch::nn::Module {
      std::shared_ptr<GraphModule> inner;
      explicit Around(std::shared_ptr<GraphModule> made) { inner = register_module("inner", std::move(made)); }
      Tensor forward(const Tensor& y) { return inner->forward(y) + 1; }
    };
    const auto around = std::make_shared<Around>(inner);
    if (training) expect_refused(*symbolic_trace(around, {x}));
  }
}

// ── Writes
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

struct Clamps : torch::nn::Module {
  torch::nn::Linear l{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  Tensor w;
  bool by_mode;
  explicit Clamps(bool differently = false) : by_mode(differently) {
    l = register_module("l", torch::nn::Linear(3, 3));
    norm = register_module("norm", torch::nn::BatchNorm1d(3));
    w = register_parameter("w", torch::rand({3}));
  }
  Tensor forward(const Tensor& x) {
    l->weight.data().clamp_(-0.2, 0.2);
    w.data().clamp_(-0.2, by_mode && is_training() ? 0.1 : 0.2);
    return norm(l(x)) * w;
  }
};

TEST_F(SavedMode, WritesOfTheSameAreNoReasonToRefuse) {
  const auto net = std::make_shared<Clamps>();
  const Tensor x = torch::rand({4, 3});
  for (const bool training : {true, false}) {
    net->train(training);
    const auto traced = symbolic_trace(net, {x});
    EXPECT_EQ(traced->fixed_mode(), "");
    traced->train(!training);
    net->train(!training);
    EXPECT_TRUE(testing::same_value(traced->forward(x), net->forward(x), 1e-6));
  }
}

TEST_F(SavedMode, WritesOfSomethingElseAreRefused) {
  const auto net = std::make_shared<Clamps>(/*differently=*/true);
  for (const bool training : {true, false}) {
    net->train(training);
    expect_refused(*symbolic_trace(net, {torch::rand({4, 3})}));
  }
}

// In one mode nothing can be traced: asks for data, for gradients, draws numbers of its own, or throws.
struct Untraceable : torch::nn::Module {
  using Step = std::function<Tensor(const Tensor&)>;
  Untraceable(Step given, bool mode) : step(std::move(given)), mode(mode) {}
  Tensor forward(const Tensor& x) { return is_training() == mode ? step(x) : x * 2; }

  Step step;
  bool mode;
};

TEST_F(SavedMode, AModeThatCannotBeTracedIsRefused) {
  const std::vector<Untraceable::Step> steps = {
      [](const Tensor& x) { return torch::rand({1}).item<float>() < 0.9F ? x : x * 3; },
      [](const Tensor& x) { return x / x.max().item<float>(); },
      [](const Tensor& x) { return x * x.data_ptr<float>()[0]; },
      [](const Tensor& x) { return x.requires_grad() ? x : x * 3; },
      [](const Tensor&) -> Tensor { throw std::runtime_error("not in this mode"); },
      [](const Tensor& x) {
        TORCH_CHECK(x.size(0) == 1, "one at a time in this mode");
        return x;
      },
  };
  for (const auto& step : steps) {
    for (const bool mode : {true, false}) {
      const auto net = std::make_shared<Untraceable>(step, mode);
      net->train(!mode);
      const auto traced = symbolic_trace(net, {torch::rand({4, 3})});
      expect_refused(*traced);
      expect_refused(*again(*traced, ".pt"));
    }
  }
}

TEST_F(SavedMode, TooFewValuesForStatisticsAskForALargerExample) {
  const auto net = std::make_shared<OneLayer<torch::nn::BatchNorm1d>>(torch::nn::BatchNorm1d(3));
  net->eval();
  EXPECT_FX_ERROR(symbolic_trace(net, {torch::rand({1, 3})})->train(), unsupported, HasSubstr("larger example"));
  const auto traced = symbolic_trace(net, {torch::rand({2, 3})});
  EXPECT_NO_THROW(traced->train());
  net->train();
  const Tensor x = torch::rand({5, 3});
  EXPECT_TRUE(testing::same_value(traced->forward(x), net->forward(x), 1e-6));
}

struct Noisy : torch::nn::Module {
  Tensor w = register_parameter("w", torch::rand({3}));
  Tensor forward(const Tensor& x) {
    return is_training() ? x * (w + at::normal(torch::zeros_like(w), torch::ones_like(w))) : x * w;
  }
};

TEST_F(SavedMode, NoiseIsNoWriteToParameters) {
  const auto net = std::make_shared<Noisy>();
  const auto traced = symbolic_trace(net, {torch::rand({4, 3})});
  EXPECT_FX_ERROR(traced->eval(), unsupported, HasSubstr("the program does something else"));
}

TEST_F(SavedMode, GeneratedCppSaysWhatItHoldsFor) {
  const auto net = std::make_shared<TwiceOrThrice>();
  net->eval();
  const auto traced = symbolic_trace(net, {torch::rand({2, 3})});
  const std::string source = code(*traced, Language::cpp);
  EXPECT_THAT(source, HasSubstr("torch::nn::Module::train(false);"));
  EXPECT_THAT(source, HasSubstr("void train(bool on = true) override {"));
  EXPECT_THAT(source, HasSubstr("it was traced in eval() mode"));
  const auto plain = std::make_shared<OneLayer<torch::nn::Linear>>(torch::nn::Linear(3, 2));
  EXPECT_THAT(code(*symbolic_trace(plain, {torch::rand({2, 3})}), Language::cpp),
              ::testing::Not(HasSubstr("train(bool")));
}

}  // namespace fx::saved_mode_test
