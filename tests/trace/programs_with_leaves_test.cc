// Programs that do something of their own around leaf modules, or hand these more than their input: what differs before
// a leaf is the program's, and what the leaf is given holds at other sizes, too.
#include <torch/nn/functional/conv.h>
#include <torch/nn/functional/linear.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include "tests/trace/sizes_testing.h"

namespace fx::programs_with_leaves_test {

using testing::at_sizes;
using testing::AtSizes;
using torch::Tensor;

struct Net : torch::nn::Module {
  using Program = Tensor (*)(Net&, Tensor, Tensor);

  explicit Net(Program forward) : program(forward) {
    register_module("conv", conv);
    register_module("padded", padded);
    register_module("up", up);
    register_module("fc", fc);
    register_module("other", other);
    register_module("bn", bn);
    register_module("words", words);
    register_module("gru", gru);
    eval();
    bn->running_mean.uniform_();
  }
  Tensor forward(Tensor x, Tensor y) { return program(*this, std::move(x), std::move(y)); }

  Program program;
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(3, 4, 3)};
  torch::nn::Conv2d padded{torch::nn::Conv2dOptions(3, 4, 3).padding(1)};
  torch::nn::ConvTranspose2d up{torch::nn::ConvTranspose2dOptions(4, 3, 2).stride(2)};
  torch::nn::Linear fc{8, 8}, other{8, 8};
  torch::nn::BatchNorm1d bn{8};
  torch::nn::Embedding words{20, 8};
  torch::nn::GRU gru{torch::nn::GRUOptions(8, 8).batch_first(true)};
};

using Sizes = std::vector<std::int64_t>;

struct Case {
  const char* name;
  Net::Program program;
  std::pair<Sizes, Sizes> example;
  std::vector<std::pair<Sizes, Sizes>> equal, refused;
  bool has_numbers = false;  // x is of whole numbers
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

const std::vector<Case>& cases() {
  static const auto& table = *new std::vector<Case>{
      {"one_image_in_front_of_a_convolution",
       [](Net& net, Tensor x, Tensor y) {
         if (x.dim() == 3) x = x.unsqueeze(0);
         return net.conv(x) * y.sum();
       },
       {{2, 3, 8, 8}, {2}},
       {{{5, 3, 7, 9}, {3}}},
       {{{3, 8, 8}, {2}}}},
      {"a_step_for_batches_alone",
       [](Net& net, Tensor x, Tensor y) {
         x = net.fc(x);
         if (x.size(0) > 1) x = net.bn(x);
         return net.other(x) * y.sum();
       },
       {{16, 8}, {2}},
       {{{16, 8}, {2}}, {{40, 8}, {2}}},
       {{{1, 8}, {2}}}},
      {"a_check_before_a_leaf",
       [](Net& net, Tensor x, Tensor y) {
         TORCH_CHECK(x.size(1) <= 64, "too long");
         return net.fc(net.words(x).mean(1)) * y.sum();
       },
       {{2, 8}, {2}},
       {{{3, 64}, {2}}, {{1, 1}, {2}}},
       {{{2, 65}, {2}}, {{2, 100}, {2}}},
       true},
      {"a_check_of_the_rank_before_a_leaf",
       [](Net& net, Tensor x, Tensor y) {
         TORCH_CHECK(x.dim() == 3, "batches of rows");
         return net.fc(x) * y.sum();
       },
       {{2, 3, 8}, {2}},
       {{{3, 7, 8}, {2}}},
       {{{2, 8}, {2}}}},
      {"a_check_at_the_end",
       [](Net& net, Tensor x, Tensor y) {
         Tensor result = net.fc(x) * y.sum();
         TORCH_CHECK(result.size(0) <= 64, "too many");
         return result;
       },
       {{2, 8}, {2}},
       {{{5, 8}, {2}}},
       {{{65, 8}, {2}}, {{100, 8}, {2}}}},
      {"another_leaf_for_the_long",
       [](Net& net, Tensor x, Tensor y) { return (x.size(1) > 200 ? net.other(x) : net.fc(x)) * y.sum(); },
       {{2, 6, 8}, {2}},
       {{{3, 7, 8}, {2}}},
       {}},
      {"up_to_the_size_before",
       [](Net& net, Tensor x, Tensor y) {
         const std::vector<std::int64_t> size = x.sizes().slice(2).vec();
         x = torch::max_pool2d(net.padded(x), 2);
         return net.up->forward(x, torch::IntArrayRef(size)) * y.sum();
       },
       {{1, 3, 32, 32}, {2}},
       {{{2, 3, 16, 48}, {2}}, {{1, 3, 33, 32}, {2}}, {{1, 3, 32, 35}, {2}}, {{1, 3, 33, 35}, {2}}},
       {}},
      {"always_up_to_an_even_size",
       [](Net& net, Tensor x, Tensor y) { return net.up(torch::max_pool2d(net.padded(x), 2)) * y.sum(); },
       {{1, 3, 32, 32}, {2}},
       {{{2, 3, 16, 48}, {2}}, {{1, 3, 33, 32}, {2}}, {{1, 3, 33, 35}, {2}}},
       {}},
      {"padding_by_hand",
       [](Net& net, Tensor x, Tensor y) {
         return torch::conv2d(x, net.padded->weight, net.padded->bias, 1, x.size(2) % 2) * y.sum();
       },
       {{1, 3, 9, 8}, {2}},
       {{{2, 3, 11, 8}, {2}}},
       {}},
      {"a_leaf_that_has_numbers_of_sizes",
       [](Net& net, Tensor x, Tensor y) { return std::get<0>(net.gru(net.fc(x))) * y.sum(); },
       {{2, 3, 8}, {2}},
       {{{5, 7, 8}, {2}}, {{1, 1, 8}, {2}}},
       {}},
      {"a_state_of_its_own_size",
       [](Net& net, Tensor x, Tensor y) {
         const Tensor state = torch::zeros({1, x.size(0), 8});
         return std::get<0>(net.gru(net.fc(x), state)) * y.sum();
       },
       {{2, 3, 8}, {2}},
       {{{5, 7, 8}, {2}}, {{1, 1, 8}, {2}}},
       {}},
  };
  return table;
}

class ProgramsWithLeaves : public ::testing::TestWithParam<Case> {};

TEST_P(ProgramsWithLeaves, AreFollowedOrAsserted) {
  const Case& c = GetParam();
  const auto net = std::make_shared<Net>(c.program);
  const auto input = [&](const Sizes& sizes) { return c.has_numbers ? torch::randint(20, sizes) : torch::rand(sizes); };
  const auto gm = symbolic_trace(net, {input(c.example.first), torch::rand(c.example.second)});
  gm->graph().lint();
  const auto expect_at = [&](const std::pair<Sizes, Sizes>& sizes, AtSizes wanted) {
    const Tensor x = input(sizes.first), y = torch::rand(sizes.second);
    EXPECT_EQ(at_sizes(*gm, [&]() -> c10::IValue { return net->forward(x, y); }, {x, y}), wanted)
        << x.sizes() << gm->graph();
  };
  expect_at(c.example, AtSizes::equal);
  for (const auto& sizes : c.equal) expect_at(sizes, AtSizes::equal);
  for (const auto& sizes : c.refused) expect_at(sizes, AtSizes::refused);
}

INSTANTIATE_TEST_SUITE_P(Programs, ProgramsWithLeaves, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// Masks of truth values and of numbers are taken otherwise, in front of a leaf as anywhere.
TEST(ProgramsWithLeavesOfTypes, AreFollowedOrAsserted) {
  const auto net = std::make_shared<Net>([](Net& net, Tensor x, Tensor mask) {
    if (mask.scalar_type() == torch::kBool) mask = torch::zeros(mask.sizes()).masked_fill(mask.logical_not(), -1e9);
    return torch::softmax(net.fc(x) + mask, -1);
  });
  const Tensor x = torch::rand({2, 3, 8});
  for (const auto& [example, other] :
       {std::pair{torch::rand({8}), torch::rand({8}) > 0.5}, std::pair{torch::rand({8}) > 0.5, torch::rand({8})}}) {
    const auto gm = symbolic_trace(net, {x, example});
    for (const Tensor& mask : {example, other}) {
      const AtSizes found = at_sizes(*gm, [&]() -> c10::IValue { return net->forward(x, mask); }, {x, mask});
      EXPECT_NE(found, AtSizes::wrong) << gm->graph();
      if (mask.is_same(example)) {
        EXPECT_EQ(found, AtSizes::equal);
      }
    }
  }
}

// Elements of lists of which the program takes nothing but the size.
TEST(ProgramsWithLeavesOfLists, SizesOfWhatIsNotComputedWithAreFollowedOrAsserted) {
  const auto program = [](Tensor x, std::vector<Tensor> features) {
    return torch::upsample_nearest2d(x, {features[0].size(2), features[0].size(3)});
  };
  const auto condition = [](Tensor x, std::vector<Tensor> features) { return features[1].size(0) > 4 ? x + 1 : x * 2; };
  const auto rank = [](Tensor x, std::vector<Tensor> features) { return features[1].dim() == 3 ? x + 1 : x * 2; };
  const auto made = [](std::int64_t n, std::int64_t h) {
    return std::vector<Tensor>{torch::rand({n, 4, h, h}), torch::rand({n, 2, h, h})};
  };
  const Tensor x = torch::rand({1, 3, 8, 8});
  const auto expect_not_wrong = [&](const auto& function, const std::vector<Tensor>& others) {
    const auto gm = symbolic_trace(function, {x, made(1, 16)});
    gm->graph().lint();
    EXPECT_EQ(at_sizes(*gm, [&]() -> c10::IValue { return function(x, made(1, 16)); }, {x, made(1, 16)}),
              AtSizes::equal);
    EXPECT_NE(at_sizes(*gm, [&]() -> c10::IValue { return function(x, others); }, {x, others}), AtSizes::wrong)
        << gm->graph();
  };
  expect_not_wrong(program, made(1, 32));
  expect_not_wrong(condition, made(9, 16));
  expect_not_wrong(rank, {torch::rand({1, 4, 16, 16}), torch::rand({2, 16, 16})});
}

}  // namespace fx::programs_with_leaves_test
