// Converted programs at sizes that the example does not have: images of one point, nothing at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/quantize/programs.h"
#include "tests/support/error_of.h"

namespace fx::other_sizes_test {

using testing::calibrated;
using testing::error_of;
using ::testing::HasSubstr;
using testing::program_of;
using testing::Samples;

class ImagesOfOnePoint : public ::testing::TestWithParam<std::pair<const char*, std::string>> {};

// They lie with their channels first and last at once; a kernel that reads them as the one and writes the other mixes
// them.
TEST_P(ImagesOfOnePoint, KeepTheirChannels) {
  torch::manual_seed(5);
  const std::vector<std::pair<std::string, torch::Tensor>> weights = {{"w", torch::randn({3, 3, 1, 1})}};
  for (const char* before : {"a = aten::add.Tensor(%x, %x)", "a = aten::conv2d(%x, %w)",
                             "c = aten::conv2d(%x, %w)\na = aten::add.Tensor(%c, %c)",
                             "c = aten::conv2d(%x, %w)\na = aten::add.Tensor(%c, %x)"}) {
    const auto gm = program_of(before + std::string("\n") + GetParam().second + "\nreturn y", "x", weights);
    Samples samples;
    for (int i = 0; i < 4; ++i) samples.push_back({torch::randn({2, 3, 8, 8})});
    const auto prepared = calibrated(*gm, samples);
    const auto int8 = convert(*prepared), reference = convert(*prepared, {.backend = QuantBackend::reference});
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{1, 3, 1, 1}, {2, 3, 1, 1}, {2, 3, 1, 4}, {2, 3, 5, 1}, {2, 3, 8, 8}}) {
      const torch::Tensor x = torch::randn(sizes);
      EXPECT_LE(testing::largest_difference(int8->run({x}), reference->run({x})), 2.1 * testing::largest_quantum(*int8))
          << before << " at " << x.sizes() << *int8;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operators, ImagesOfOnePoint,
    ::testing::Values(std::pair("nearest", "y = aten::upsample_nearest2d.vec(%a, None, [2.0, 2.0])"),
                      std::pair("bilinear", "y = aten::upsample_bilinear2d.vec(%a, None, False, [2.0, 2.0])"),
                      std::pair("aligned", "y = aten::upsample_bilinear2d.vec(%a, None, True, [2.0, 2.0])"),
                      std::pair("max_pool", "y = aten::max_pool2d(%a, [2, 2], [1, 1], [1, 1])"),
                      std::pair("adaptive_pool", "y = aten::adaptive_avg_pool2d(%a, [2, 2])"),
                      std::pair("average_pool", "y = aten::avg_pool2d(%a, [3, 3], [1, 1], [1, 1])"),
                      std::pair("cat", "y = aten::cat([%a, %a], 1)"), std::pair("hardswish", "y = aten::hardswish(%a)"),
                      std::pair("group_norm", "y = aten::group_norm(%a, 1)")),
    [](const auto& info) { return std::string(info.param.first); });

// The mean of one number is that number, but for what rounding left of it.
TEST(NormsOfOnePoint, AreRefused) {
  torch::manual_seed(5);
  const Samples samples = {{torch::randn({2, 3, 8, 8})}};
  for (const char* norm :
       {"aten::group_norm(%x, 3)", "aten::instance_norm(%x, None, None, None, None, True, 0.1, 0.00001, False)"}) {
    const auto gm = program_of("y = " + std::string(norm) + "\nreturn y", "x", {});
    const auto int8 = convert(*calibrated(*gm, samples));
    EXPECT_GT(testing::count_prefix(*int8, "quantized::"), 0u) << *int8;
    EXPECT_NO_THROW(int8->run({torch::randn({2, 3, 1, 2})}));
    for (const std::int64_t images : {1, 2})
      EXPECT_THAT(error_of([&] { int8->run({torch::randn({images, 3, 1, 1})}); }), HasSubstr("groups of one number"));
  }
}

// LibTorch's embeddings read what is not theirs, its linear layers give two dimensions. What is right stays.
TEST(EmptyInputs, AreRefusedWhereKernelsDoNotTakeThem) {
  torch::manual_seed(5);
  const auto linear = program_of("y = aten::linear(%x, %w, %b)\nreturn y", "x",
                                 {{"w", torch::randn({3, 4})}, {"b", torch::randn({3})}});
  const auto table = program_of("y = aten::embedding(%w, %x)\nreturn y", "x", {{"w", torch::randn({9, 6})}});
  const torch::Tensor rows = torch::randn({5, 4}), deep = torch::randn({5, 2, 4}),
                      ids = torch::ones({2, 3}, torch::kLong);
  const auto flat = convert(*calibrated(*linear, {{rows}}));
  EXPECT_EQ(flat->run({rows.slice(0, 0, 0)}).toTensor().sizes(), (std::vector<std::int64_t>{0, 3}));
  const char* refusal = "the input 'x' is empty, and LibTorch's int8 kernels of this program take no empty tensors";
  for (const QuantConfig& config : {QuantConfig::defaults(), QuantConfig::dynamic()}) {
    const auto int8 = convert(*calibrated(*linear, {{deep}}, config));
    EXPECT_EQ(int8->run({deep}).toTensor().sizes(), (std::vector<std::int64_t>{5, 2, 3}));
    for (const torch::Tensor& empty : {deep.slice(0, 0, 0), deep.slice(1, 0, 0)})
      EXPECT_THAT(error_of([&] { int8->run({empty}); }), HasSubstr(refusal));
  }
  for (const QuantConfig& config : {QuantConfig::dynamic(), QuantConfig::weight_only()}) {
    const auto int8 = convert(*calibrated(*table, {{ids}}, config));
    EXPECT_GT(testing::count_prefix(*int8, "quantized::embedding"), 0u);
    EXPECT_THAT(error_of([&] { int8->run({ids.slice(0, 0, 0)}); }), HasSubstr(refusal));
  }
}

}  // namespace fx::other_sizes_test
