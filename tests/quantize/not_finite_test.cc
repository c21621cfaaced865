// Values that are not finite though the samples are: masks of infinity, logarithms of zero. They stay float.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/support/error.h>
#include "tests/quantize/programs.h"

namespace fx::not_finite_test {

using testing::calibrated;
using testing::count_prefix;
using testing::program_of;
using testing::Samples;

struct Body {
  std::string name, text, at;  ///< `at`: the node whose value is not finite, or that reads it
};
void PrintTo(const Body& each, std::ostream* out) { *out << each.name; }

class NotFinite : public ::testing::TestWithParam<Body> {
 protected:
  void SetUp() override {
    torch::manual_seed(3);
    gm_ = program_of("q = aten::linear(%x, %w)\nk = aten::transpose(%q, 1, 2)\np = aten::matmul(%q, %k)\n" +
                         GetParam().text + "\nv = aten::linear(%x, %u)\ny = aten::matmul(%s, %v)\nreturn y",
                     "x",
                     {{"w", torch::randn({8, 8}) / 3},
                      {"u", torch::randn({8, 8}) / 3},
                      {"b", torch::full({6, 6}, -INFINITY).triu(1)}});
    for (int i = 0; i < 4; ++i) samples_.push_back({torch::randn({2, 6, 8})});
  }
  std::shared_ptr<GraphModule> gm_;
  Samples samples_;
};

TEST_P(NotFinite, StaysFloatAndTheRestIsQuantized) {
  const auto prepared = calibrated(*gm_, samples_);
  for (QuantBackend backend : {QuantBackend::automatic, QuantBackend::reference}) {
    const auto int8 = convert(*prepared, {.backend = backend});
    EXPECT_GT(compare_outputs(*gm_, *int8, samples_).output.sqnr_db, 25) << to_string(backend);
    EXPECT_FALSE(compare_activations(*gm_, *int8, samples_).nodes.empty());
    if (backend != QuantBackend::reference) {
      EXPECT_EQ(count_prefix(*int8, "quantized::linear"), 2u);
    }
  }
  bool found = false;
  for (const QuantReason& each : quantization_reasons(*prepared)) {
    if (each.node == "y") {
      EXPECT_TRUE(each.quantized) << each.reason;
    }
    if (each.node != GetParam().at) continue;
    found = true;
    EXPECT_FALSE(each.quantized);
    EXPECT_THAT(each.reason, ::testing::HasSubstr("not finite for a sample"));
  }
  EXPECT_TRUE(found);
}

TEST_P(NotFinite, SamplesThatAreNotAreRefused) {
  const auto prepared = calibrated(*gm_, samples_);
  for (const double number : {NAN, INFINITY, -INFINITY}) {
    torch::Tensor spoilt = torch::randn({2, 6, 8});
    spoilt[0][0][0] = number;
    try {
      prepared->run({spoilt});
      ADD_FAILURE() << number;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), ::testing::HasSubstr("the input %x is not finite"));
    }
  }
}

TEST_P(NotFinite, WhileItTrains) {
  const auto prepared = prepare_qat(*gm_, QuantConfig::training(), samples_[0]);
  for (const auto& inputs : samples_) prepared->run(inputs);
  EXPECT_GT(compare_outputs(*gm_, *convert(*prepared), samples_).output.sqnr_db, 10);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, NotFinite,
    ::testing::Values(
        Body{"constant",
             "f = aten::full([6, 6], -inf)\nm = aten::triu(%f, 1)\na = aten::add(%p, %m)\ns = aten::softmax(%a, -1)",
             "a"},
        Body{"buffer", "a = aten::add(%p, %b)\ns = aten::softmax(%a, -1)", "a"},
        Body{"filled",
             "g = aten::lt(%p, 0)\na = aten::masked_fill(%p, %g, -inf)\nn = aten::relu(%a)\n"
             "s = aten::softmax(%a, -1)",
             "s"},
        Body{"by_the_input", "r = aten::relu(%p)\nl = aten::log(%r)\nz = aten::mul(%l, 2)\ns = aten::exp(%z)", "z"},
        Body{"cut_again", "r = aten::relu(%p)\nl = aten::log(%r)\nz = aten::add(%l, %p)\ns = aten::clamp(%z, -2, 2)",
             "z"}),
    [](const auto& info) { return info.param.name; });

// Finite in the example, and not in a sample after it.
TEST(NotFiniteLater, StaysFloat) {
  torch::manual_seed(3);
  const auto gm = program_of(
      "q = aten::linear(%x, %w)\ng = aten::gt(%m, 0.5)\na = aten::masked_fill(%q, %g, -inf)\n"
      "b = aten::add(%a, %q)\nc = aten::clamp(%b, -2, 2)\ns = aten::softmax(%c, -1)\ny = aten::linear(%s, %w)\nreturn "
      "y",
      "x m", {{"w", torch::randn({8, 8}) / 3}});
  Samples samples = {{torch::randn({4, 8}), torch::zeros({4, 8})}};
  for (int i = 0; i < 4; ++i) samples.push_back({torch::randn({4, 8}), torch::rand({4, 8})});
  const auto prepared = calibrated(*gm, samples);
  const auto int8 = convert(*prepared);
  EXPECT_GT(compare_outputs(*gm, *int8, samples).output.sqnr_db, 25);
  for (const QuantReason& each : quantization_reasons(*prepared)) {
    if (each.node == "b") {
      EXPECT_EQ(each.reason, "a is not finite for a sample");
    }
  }
}

// Though it is read by what stays float alone.
TEST(NotFiniteLater, SamplesOfWhatIsNotObserved) {
  const auto gm =
      program_of("g = aten::gelu(%x)\ny = aten::linear(%g, %w)\nreturn y", "x", {{"w", torch::randn({8, 8})}});
  const auto prepared = calibrated(*gm, {{torch::randn({4, 8})}});
  EXPECT_THROW(prepared->run({torch::full({4, 8}, NAN)}), Error);
}

}  // namespace fx::not_finite_test
