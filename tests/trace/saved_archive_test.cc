// C++ models traced and written as archives of torch.export.
#include "tests/trace/saved_archive.h"

#include "tests/trace/larger_models.h"
#include "tests/trace/size_models.h"
#include "tests/trace/torch_models.h"

namespace fx::saved_archive_test {

using testing::Inputs;
using testing::same_value;
using testing::tuple_of;
using torch::Tensor;

using SavedArchive = testing::SavedArchiveTest;

Tensor words(std::int64_t n, std::int64_t t, std::int64_t vocabulary = 17) {
  return torch::randint(vocabulary, {n, t});
}

const auto kOne = [](auto& model, const Inputs& inputs) -> c10::IValue { return model->forward(inputs[0].toTensor()); };
const auto kTwo = [](auto& model, const Inputs& inputs) -> c10::IValue {
  return model->forward(inputs[0].toTensor(), inputs[1].toTensor());
};

Tensor image(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) { return torch::rand({n, c, h, w}); }

TEST_F(SavedArchive, Mlp) {
  torch::nn::Sequential mlp(torch::nn::Linear(4, 6), torch::nn::ReLU(), torch::nn::Linear(6, 2));
  check("mlp", mlp, kOne, {{torch::rand({1, 4})}, {torch::rand({5, 4})}});
}

TEST_F(SavedArchive, ResNet18) {
  check("resnet18", testing::ResNet18(), kOne, {{image(1, 3, 64, 64)}, {image(2, 3, 64, 64)}, {image(2, 3, 70, 96)}});
}

TEST_F(SavedArchive, Lstm) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(4, 5).num_layers(2).batch_first(true).bidirectional(true));
  const auto run = [](auto& model, const Inputs& inputs) -> c10::IValue {
    const auto [out, state] = model->forward(inputs[0].toTensor());
    return tuple_of({out, tuple_of({std::get<0>(state), std::get<1>(state)})});
  };
  check("lstm", lstm, run, {{torch::rand({2, 3, 4})}, {torch::rand({5, 3, 4})}, {torch::rand({3, 7, 4})}});
}

TEST_F(SavedArchive, TransformerEncoder) {
  torch::nn::TransformerEncoder encoder(
      torch::nn::TransformerEncoderLayer(torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16)), 2);
  check("encoder", encoder, kOne, {{torch::rand({6, 4, 8})}, {torch::rand({6, 5, 8})}, {torch::rand({7, 3, 8})}});
}

TEST_F(SavedArchive, Gpt) { check("gpt", testing::Gpt(), kOne, {{words(2, 8)}, {words(3, 13)}, {words(5, 23)}}); }

TEST_F(SavedArchive, Llama) { check("llama", testing::Llama(), kOne, {{words(2, 8)}, {words(3, 13)}}); }

TEST_F(SavedArchive, Unet) {
  check("unet", testing::Unet(true), kOne, {{image(2, 3, 16, 16)}, {image(1, 3, 24, 20)}, {image(3, 3, 19, 30)}});
}

TEST_F(SavedArchive, UnetInSteps) {
  check("unet_steps", testing::Unet(false), kOne, {{image(2, 3, 16, 16)}, {image(1, 3, 24, 20)}});
}

TEST_F(SavedArchive, Detector) {
  check("detector", testing::Detector(), kOne, {{image(2, 3, 32, 32)}, {image(1, 3, 64, 48)}});
}

TEST_F(SavedArchive, Bert) {
  const auto mask = [](std::int64_t n, std::int64_t t) { return torch::ones({n, t}, torch::kLong); };
  check("bert", testing::Bert(), kTwo, {{words(2, 6, 19), mask(2, 6)}, {words(3, 11, 19), mask(3, 11)}});
}

struct CounterImpl : torch::nn::Module {
  CounterImpl() {
    norm = register_module("norm", torch::nn::BatchNorm1d(3));
    calls = register_buffer("calls", torch::zeros({}));
  }
  Tensor forward(const Tensor& x) {
    calls.add_(1);
    return norm(x) * calls;
  }
  torch::nn::BatchNorm1d norm{nullptr};
  Tensor calls;
};
TORCH_MODULE(Counter);

TEST_F(SavedArchive, BuffersThatAreWritten) {
  Counter counter;
  counter->train();
  const std::string path = scratch_ / "counter.pt2";
  symbolic_trace(counter, {torch::rand({4, 3})})->save(path);
  const auto again = load_exported(path);
  for (const std::int64_t batch : {4, 7}) {
    const Tensor x = torch::rand({batch, 3});
    EXPECT_TRUE(same_value(again->forward(x), counter->forward(x), 1e-5));
  }
  EXPECT_TRUE(same_value(again->attribute("calls"), counter->calls, 0));
  EXPECT_TRUE(same_value(again->attribute("norm.running_mean"), counter->norm->running_mean, 1e-6));
}

TEST_F(SavedArchive, FixedSizesStayFixed) {
  const auto gm = symbolic_trace(
      [](const Tensor& x) {
        return x.view({2, -1}) * 2;
      },
      {torch::rand({2, 3, 4})}, {.sizes = Sizes::fixed});
  const std::string path = scratch_ / "fixed.pt2";
  gm->save(path);
  const auto again = load_exported(path);
  EXPECT_EQ(again->forward(torch::rand({2, 3, 4})).size(1), 12);
  EXPECT_THROW(again->forward(torch::rand({4, 3, 4})), Error);
}

}  // namespace fx::saved_archive_test
