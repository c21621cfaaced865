// Programs that ask how many dimensions an input has, or count them from behind.
#include "tests/trace/pair_programs.h"

namespace fx::other_ranks_test {

using ::testing::HasSubstr;
using testing::PairProgram;
using torch::Tensor;

class OtherRanks : public ::testing::TestWithParam<PairProgram> {};

TEST_P(OtherRanks, AreFollowedOrAsserted) { testing::expect_followed_or_asserted(GetParam()); }

Tensor of_images(const Tensor& x) { return torch::adaptive_avg_pool2d(x, {2, 2}) * 2; }

const std::vector<PairProgram>& cases() {
  static const auto& table = *new std::vector<PairProgram>{
      {"one_image_or_several",
       [](Tensor x, Tensor y) { return (x.dim() == 3 ? of_images(x.unsqueeze(0)).squeeze(0) + 1 : of_images(x)) * y; },
       {{2, 3, 4, 4}, {2}},
       {{{5, 3, 6, 4}, {2}}},
       {{{3, 4, 4}, {2}}}},
      {"several_images_or_one",
       [](Tensor x, Tensor y) { return (x.dim() == 3 ? of_images(x.unsqueeze(0)).squeeze(0) + 1 : of_images(x)) * y; },
       {{3, 4, 4}, {2}},
       {{{3, 8, 4}, {2}}},
       {{{2, 3, 4, 4}, {2}}}},
      {"how_many_are_left_of_several",
       [](Tensor x, Tensor y) {
         const Tensor squeezed = x.squeeze(0);
         return squeezed.sum() * static_cast<double>(squeezed.dim()) + y.sum();
       },
       {{3, 12}, {2}},
       {{{1, 4}, {2}}, {{2, 4}, {2}}, {{4, 7}, {2}}, {{200, 3}, {2}}},
       {}},
      {"the_side_of_what_is_left",
       [](Tensor x, Tensor y) {
         const Tensor squeezed = x.squeeze();
         return (squeezed.dim() == 2 ? squeezed * 2 : squeezed + 1).sum() + y.sum();
       },
       {{3, 12}, {2}},
       {{{2, 4}, {2}}, {{4, 7}, {2}}, {{200, 3}, {2}}},
       {{{1, 4}, {2}}}},
      {"the_last_size",
       [](Tensor x, Tensor y) {
         return x.reshape({-1, x.size(-1)}).sum(0) + y.sum();
       },
       {{4, 3}, {2}},
       {{{5, 7}, {2}}},
       {{{2, 4, 3}, {2}}}},
      {"the_last_of_the_sizes",
       [](Tensor x, Tensor y) { return x.sum() / x.sizes().back() + y; },
       {{4, 3}, {2}},
       {{{5, 7}, {6}}},
       {{{2, 4, 3}, {2}}, {{3}, {2}}}},
      {"so_often",
       [](Tensor x, Tensor y) {
         for (std::int64_t i = 1; i < x.dim(); ++i) x = x.mean(-1);
         return x.sum() + y;
       },
       {{4, 3, 2}, {2}},
       {{{2, 5, 3}, {1}}},
       {{{4, 3}, {2}}, {{2, 4, 3, 2}, {2}}}},
      {"all_dimensions_turned",
       [](Tensor x, Tensor y) {
         std::vector<std::int64_t> order(static_cast<std::size_t>(x.dim()));
         for (std::size_t i = 0; i < order.size(); ++i) order[i] = x.dim() - 1 - static_cast<std::int64_t>(i);
         return x.permute(order).contiguous() + y.sum();
       },
       {{4, 3, 2}, {2}},
       {{{2, 5, 3}, {1}}},
       {}},
      {"only_the_rank_of_the_other",
       [](Tensor x, Tensor y) { return y.dim() == 1 ? x + y.sum() : x + y.mean(); },
       {{4, 3}, {3}},
       {{{2, 5}, {5}}, {{7}, {3}}, {{2, 2, 2}, {4}}},
       {{{4, 3}, {4, 3}}}},
      {"a_rank_more_than_the_other",
       [](Tensor x, Tensor y) { return x.dim() > y.dim() ? x * y.sum() : x - y.sum(); },
       {{4, 3}, {3}},
       {{{2, 5}, {4}}},
       {{{4, 3}, {4, 3}}, {{4}, {4}}}},
      {"any_rank",
       [](Tensor x, Tensor y) { return x.relu() * 2 + y.sum(); },
       {{4, 3}, {2}},
       {{{5}, {2, 2}}, {{2, 3, 4}, {1}}, {{}, {1}}},
       {}},
      {"any_rank_by_its_first_size",
       [](Tensor x, Tensor y) { return x.sum() / x.size(0) + y; },
       {{4, 3}, {2}},
       {{{5}, {2}}, {{2, 3, 4}, {1}}},
       {}},
      {"what_it_does_with_scalars",
       [](Tensor x, Tensor y) { return y.dim() == 0 ? x * 2 : x * y.sum(); },
       {{4, 3}, {2}},
       {{{5}, {2}}},
       {{{4, 3}, {}}}},
      {"sizes_of_what_it_computes",
       [](Tensor x, Tensor y) { return x.sum(0).dim() == 1 ? x * 2 : x * y.sum(); },
       {{4, 3}, {2}},
       {{{5, 2}, {2}}},
       {{{4}, {2}}, {{2, 2, 2}, {2}}}},
      {"type_that_a_scalar_does_not_decide",
       [](Tensor x, Tensor y) {
         return at::result_type(x, y.to(torch::kHalf)) == torch::kFloat ? x * 2 + y : x * 3 + y;
       },
       {{}, {2}},
       {{{}, {5}}},
       {{{4}, {4}}}},
      {"type_that_a_row_decides",
       [](Tensor x, Tensor y) {
         return at::result_type(x, y.to(torch::kHalf)) == torch::kFloat ? x * 2 + y : x * 3 + y;
       },
       {{3}, {3}},
       {{{5}, {5}}},
       {{{}, {4}}, {{2, 3}, {3}}}},
      {"size_that_a_function_tells",
       [](Tensor x, Tensor y) { return x * at::size(x, 0) + y.sum() / at::size(y.relu(), 0); },
       {{4, 3}, {2}},
       {{{5, 2}, {3}}, {{1, 1}, {1}}},
       {}},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Programs, OtherRanks, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

std::string why_not(GraphModule& gm, const Tensor& x) {
  try {
    gm.forward(x);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "it runs";
}

TEST(OtherRank, IsNamedWithTheReason) {
  const auto gm =
      symbolic_trace([](Tensor x) { return x.dim() == 3 ? x * 2 : x.flatten(1); }, {torch::rand({2, 3, 4, 4})});
  EXPECT_THAT(
      why_not(*gm, torch::rand({3, 4, 4})),
      HasSubstr("x must be of 4 dimensions, but is of 3, as in the example: the program asks how many there are"));
  EXPECT_EQ(why_not(*gm, torch::rand({1, 5, 2, 2})), "it runs");
}

TEST(OtherRank, ThatTheProgramRefusesIsRefused) {
  const auto gm = symbolic_trace(
      [](Tensor x) {
        TORCH_CHECK(x.dim() == 2, "rows of numbers are expected");
        return x.relu();
      },
      {torch::rand({2, 3})});
  EXPECT_THAT(why_not(*gm, torch::rand({2, 3, 4})), HasSubstr("x must be of 2 dimensions"));
  EXPECT_THAT(why_not(*gm, torch::rand({3})), HasSubstr("x must be of 2 dimensions"));
}

// It reads beyond the sizes there are, which may end the process; the trace does not.
TEST(OtherRank, ThatEndsTheProgramDoesNotEndTheTrace) {
  const auto gm = symbolic_trace(
      [](Tensor x) {
        if (x.dim() != 2) std::abort();
        return x.relu();
      },
      {torch::rand({2, 3})});
  EXPECT_THAT(why_not(*gm, torch::rand({2, 3, 4})), HasSubstr("x must be of 2 dimensions"));
  EXPECT_EQ(why_not(*gm, torch::rand({4, 5})), "it runs");
}

}  // namespace fx::other_ranks_test
