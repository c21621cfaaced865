// Models traced at one choice of sizes and run at others, beside themselves, with gradients, through files and
// generated code: equal, or refused by an assertion that names the dimension.
#include "tests/trace/size_models.h"
#include "tests/torchscript/saved_and_loaded.h"

#include <torch/script.h>

#include <fxgraph/torchscript/import.h>
#include "tests/trace/larger_models.h"
#include "tests/trace/sizes_testing.h"

namespace fx::size_models_test {

using testing::AtSizes;
using testing::same_value;
using torch::Tensor;

std::vector<Tensor> gradients(const torch::nn::Module& module) {
  std::vector<Tensor> result;
  for (const Tensor& parameter : module.parameters())
    result.push_back(parameter.grad().defined() ? parameter.grad().clone() : Tensor());
  for (const Tensor& parameter : module.parameters()) parameter.mutable_grad() = Tensor();
  return result;
}

Tensor total(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().to(torch::kFloat).pow(2).mean();
  Tensor sum = torch::zeros({});
  for (const c10::IValue& each : value.toTupleRef().elements()) sum = sum + total(each);
  return sum;
}

// The same tensors, so the same gradients.
template <typename Model>
void expect_gradients(Model& model, GraphModule& gm, const std::vector<c10::IValue>& inputs,
                      const c10::IValue& expected) {
  total(expected).backward();
  const std::vector<Tensor> wanted = gradients(*model);
  total(gm.run(inputs)).backward();
  const std::vector<Tensor> found = gradients(*model);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(same_value(found[i], wanted[i], 1e-4)) << "gradient " << i;
}

template <typename Model, typename... Inputs>
class Traced {
 public:
  Traced(Model model, const Inputs&... examples) : model_(model) {
    model_->eval();
    gm_ = symbolic_trace(model_, {examples...});
    gm_->graph().lint();
    saved_ = testing::saved_and_loaded(*gm_);
    read_ = from_torchscript(saved_);
  }

  AtSizes at(const Inputs&... inputs) {
    const auto eager = [&]() -> c10::IValue { return model_->forward(inputs...); };
    const AtSizes outcome = testing::at_sizes(*gm_, eager, {inputs...});
    if (outcome != AtSizes::equal) return outcome;
    const c10::IValue expected = eager();
    if (has_bodies_) return outcome;
    EXPECT_TRUE(same_value(saved_.forward({inputs...}), expected, 1e-5)) << "saved";
    EXPECT_TRUE(same_value(read_->run({inputs...}), expected, 1e-5)) << "saved and read";
    expect_gradients(model_, *gm_, {inputs...}, expected);
    return outcome;
  }
  /// Some leaf modules are saved as the operators that they were, at the sizes of the examples.
  void has_bodies() { has_bodies_ = true; }
  std::string sizes() const { return SizeReport(gm_->graph()).str(); }
  GraphModule& module() { return *gm_; }

 private:
  Model model_;
  std::shared_ptr<GraphModule> gm_;
  torch::jit::Module saved_;
  bool has_bodies_ = false;
  std::shared_ptr<GraphModule> read_;
};

Tensor words(std::int64_t n, std::int64_t t, std::int64_t vocabulary = 17) {
  return torch::randint(vocabulary, {n, t});
}
using testing::image;

#define EXPECT_EQUAL_AT(traced, ...) \
  EXPECT_EQ((traced).at(__VA_ARGS__), AtSizes::equal) << (traced).sizes() << (traced).module().graph()
#define EXPECT_REFUSED_AT(traced, ...) EXPECT_EQ((traced).at(__VA_ARGS__), AtSizes::refused) << (traced).sizes()

class SizeModels : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(3); }
};

TEST_F(SizeModels, Gpt) {
  Traced gpt(testing::Gpt(), words(2, 8));
  EXPECT_EQUAL_AT(gpt, words(3, 13));
  EXPECT_NE(gpt.at(words(1, 1)), AtSizes::wrong);
  EXPECT_EQUAL_AT(gpt, words(5, 23));
}

// LibTorch leaves a slice of everything out: at its largest the model runs other operators than below.
TEST_F(SizeModels, GptAtItsLargest) {
  Traced gpt(testing::Gpt(), words(1, 24));
  EXPECT_EQUAL_AT(gpt, words(3, 24));
  EXPECT_EQUAL_AT(gpt, words(3, 13));
}

TEST_F(SizeModels, Llama) {
  Traced llama(testing::Llama(), words(2, 8));
  EXPECT_EQUAL_AT(llama, words(3, 13));
  EXPECT_EQUAL_AT(llama, words(1, 40));
  EXPECT_NE(llama.at(words(1, 1)), AtSizes::wrong);  // a branch for one word, which computes the same
}

TEST_F(SizeModels, UnetThatPads) {
  Traced unet(testing::Unet(true), image(2, 3, 16, 16));
  EXPECT_EQUAL_AT(unet, image(1, 3, 24, 20));
  EXPECT_EQUAL_AT(unet, image(3, 3, 19, 30));
  EXPECT_REFUSED_AT(unet, image(3, 4, 16, 16));
}

TEST_F(SizeModels, UnetThatDoesNot) {
  Traced unet(testing::Unet(false), image(2, 3, 16, 16));
  EXPECT_EQUAL_AT(unet, image(1, 3, 24, 20));
  EXPECT_REFUSED_AT(unet, image(3, 3, 18, 16));
}

TEST_F(SizeModels, Segmenter) {
  Traced segmenter(testing::Segmenter(), image(2, 3, 16, 16));
  EXPECT_EQUAL_AT(segmenter, image(1, 3, 24, 20));
  EXPECT_EQUAL_AT(segmenter, image(3, 3, 19, 31));
}

TEST_F(SizeModels, Detector) {
  Traced detector(testing::Detector(), image(2, 3, 32, 32));
  EXPECT_EQUAL_AT(detector, image(1, 3, 64, 48));
  EXPECT_EQUAL_AT(detector, image(3, 3, 40, 20));
}

TEST_F(SizeModels, Swin) {
  Traced swin(testing::Swin(), image(2, 3, 16, 16));
  EXPECT_EQUAL_AT(swin, image(1, 3, 24, 32));
  EXPECT_NE(swin.at(image(3, 3, 18, 30)), AtSizes::wrong);
}

TEST_F(SizeModels, Generator) {
  Traced generator(testing::Generator(), torch::rand({2, 10}));
  EXPECT_EQUAL_AT(generator, torch::rand({7, 10}));
  EXPECT_EQUAL_AT(generator, torch::rand({1, 10}));
  EXPECT_REFUSED_AT(generator, torch::rand({7, 9}));
}

TEST_F(SizeModels, Classifier) {
  Traced classifier(testing::Classifier(), torch::rand({2, 5, 6}));
  EXPECT_EQUAL_AT(classifier, torch::rand({3, 9, 6}));
  EXPECT_EQUAL_AT(classifier, torch::rand({1, 1, 6}));
}

TEST_F(SizeModels, Lenet) {
  Traced lenet(testing::Lenet(), image(2, 1, 28, 28));
  EXPECT_EQUAL_AT(lenet, image(5, 1, 28, 28));
  EXPECT_REFUSED_AT(lenet, image(2, 1, 36, 28));
}

TEST_F(SizeModels, Bert) {
  const auto mask = [](std::int64_t n, std::int64_t t) {
    return torch::ones({n, t}, torch::kLong).index_put_({0, t - 1}, 0);
  };
  Traced bert(testing::Bert(), words(2, 6, 19), mask(2, 6));
  EXPECT_EQUAL_AT(bert, words(3, 11, 19), mask(3, 11));
  EXPECT_EQUAL_AT(bert, words(1, 2, 19), mask(1, 2));
}

TEST_F(SizeModels, RnnByHand) {
  Traced rnn(testing::RnnByHand(), torch::rand({2, 3, 4}));
  EXPECT_EQUAL_AT(rnn, torch::rand({5, 3, 4}));
  EXPECT_REFUSED_AT(rnn, torch::rand({5, 4, 4}));
}

TEST_F(SizeModels, Translator) {
  Traced translator(testing::Translator(), words(5, 2, 11), words(4, 2, 13));
  translator.has_bodies();
  EXPECT_EQUAL_AT(translator, words(7, 3, 11), words(2, 3, 13));
}

}  // namespace fx::size_models_test
