// Whole numbers that people compute of a size: clamps, what is affine in a division, real multiples. The graph computes
// the same at hundreds of sizes, or refuses.
#include <bit>
#include <cmath>

#include "tests/support/night.h"
#include "tests/trace/round_trips.h"
#include "tests/trace/sizes_testing.h"

namespace fx::followed_sizes_test {

using testing::AtSizes;
using testing::Stays;
using torch::Tensor;
using I = std::int64_t;

struct SizeFunction {
  const char* name;
  I (*of)(I n);
  Stays stays = Stays::free;
  std::vector<I> examples = {2, 6, 16, 33, 64};
};
void PrintTo(const SizeFunction& each, std::ostream* out) { *out << each.name; }

double real(I n) { return static_cast<double>(n); }
float single(I n) { return static_cast<float>(n); }

// What a convolution adds so that it gives ceil(n / stride), as TensorFlow does: whole, before and behind.
template <I kernel, I stride, I dilation = 1>
I same(I n) {
  return std::max<I>(((n + stride - 1) / stride - 1) * stride + (kernel - 1) * dilation + 1 - n, 0);
}
template <I kernel, I stride, I dilation = 1>
I same_before(I n) {
  return same<kernel, stride, dilation>(n) / 2;
}
template <I kernel, I stride, I dilation = 1>
I same_behind(I n) {
  return same<kernel, stride, dilation>(n) - same_before<kernel, stride, dilation>(n);
}

// From 64 the rest is 1 at each size that is probed, and nothing tells the rule from a constant.
const std::vector<I> kRests = {2, 4, 6, 16};
// Near the bounds of what is held between two, and away from them.
const std::vector<I> kHeld = {7, 17, 18, 23, 38, 64};

const std::vector<SizeFunction>& size_functions() {
  static const auto& table = *new std::vector<SizeFunction>{
      {"clamp", [](I n) { return std::clamp<I>(n, 4, 20); }, Stays::free_or_refused},
      {"at_most_4", [](I n) { return std::min<I>(n, 4); }},
      {"at_least_8", [](I n) { return std::max<I>(n, 8); }},
      {"at_most_100", [](I n) { return std::min<I>(n, 100); }},
      {"at_most_1000", [](I n) { return std::min<I>(n, 1000); }},
      {"at_least_1_of_4", [](I n) { return std::max<I>(n / 4, 1); }, Stays::free_or_refused},
      {"at_least_2_rounded_up",
       [](I n) { return std::max<I>(static_cast<I>(std::ceil(1.25 * static_cast<double>(n) / 4)), 2); },
       Stays::free_or_refused},
      {"affine_at_most_100", [](I n) { return std::min<I>(2 * n + 1, 100); }, Stays::free_or_refused},
      {"half_between", [](I n) { return std::clamp<I>(n / 2, 3, 30); }, Stays::free_or_refused},
      {"multiple_of_8_at_least_8", [](I n) { return std::max<I>(8, (n + 4) / 8 * 8); }, Stays::free_or_refused},
      {"three_quarters_at_most_64", [](I n) { return std::min<I>(64, static_cast<I>(real(n) * 0.75)); },
       Stays::free_or_refused},
      {"at_least_1_tenth", [](I n) { return std::max<I>(1, static_cast<I>(real(n) * 0.1)); }, Stays::free_or_refused},

      {"odd", [](I n) { return 2 * (n / 2) + 1; }, Stays::free_or_refused},
      {"two_below_a_multiple", [](I n) { return 4 * ((n + 3) / 4) - 2; }, Stays::free_or_refused},
      {"two_quarters_and_3", [](I n) { return 2 * (n / 4) + 3; }, Stays::free_or_refused},
      {"10_less_half", [](I n) { return 10 - n / 2; }, Stays::free_or_refused},
      {"three_halves_less_1", [](I n) { return 3 * ((n + 1) / 2) - 1; }, Stays::free_or_refused},
      {"eight_sixteenths_and_4", [](I n) { return 8 * (n / 16) + 4; }, Stays::free_or_refused},

      {"same_2_by_2", same<2, 2>},
      {"same_3_by_2", same<3, 2>, Stays::free_or_refused},
      {"same_3_by_2_before", same_before<3, 2>},
      {"same_3_by_2_behind", same_behind<3, 2>},
      {"same_5_by_2", same<5, 2>, Stays::free_or_refused},
      {"same_5_by_2_before", same_before<5, 2>, Stays::free_or_refused},
      {"same_5_by_2_behind", same_behind<5, 2>},
      {"same_7_by_2_before", same_before<7, 2>, Stays::free_or_refused},
      {"same_5_by_1_before", same_before<5, 1>},
      {"same_3_by_2_dilated", same<3, 2, 2>, Stays::free_or_refused},
      {"same_3_by_2_dilated_before", same_before<3, 2, 2>, Stays::free_or_refused},
      {"same_5_by_3", same<5, 3>, Stays::free_or_refused},
      {"same_7_by_4", same<7, 4>, Stays::free_or_refused},
      {"same_7_by_4_before", same_before<7, 4>, Stays::free_or_refused},
      {"same_7_by_4_behind", same_behind<7, 4>, Stays::free_or_refused},
      {"same_3_by_4", same<3, 4>, Stays::free_or_refused},
      {"same_3_by_4_behind", same_behind<3, 4>, Stays::free_or_refused},
      {"same_5_by_3_before", same_before<5, 3>, Stays::free_or_refused},
      {"to_the_next_8", [](I n) { return 8 - (n + 3) % 8; }, Stays::free_or_refused},
      {"to_the_next_16", [](I n) { return 16 - n % 16; }, Stays::free_or_refused},
      {"to_the_next_7", [](I n) { return 7 - (n + 2) % 7; }, Stays::free_or_refused},
      {"shifted_rest", [](I n) { return (n + 5) % 8; }, Stays::free_or_refused},
      {"rest_and_2", [](I n) { return n % 4 + 2; }, Stays::free_or_refused},
      {"half_of_a_shifted_rest", [](I n) { return (n + 3) % 8 / 2; }, Stays::free_or_refused},
      {"to_the_next_32_before", [](I n) { return (32 - (n + 1) % 32) / 2; }, Stays::free_or_refused},
      {"to_the_next_64", [](I n) { return 64 - (n + 1) % 64; }, Stays::free_or_refused},
      {"odd_quotient", [](I n) { return n / 3 % 2; }, Stays::free_or_refused},
      {"two_rests", [](I n) { return n % 2 + n % 3; }, Stays::free_or_refused},
      {"rest_of_a_rest", [](I n) { return n % 7 % 2; }, Stays::free_or_refused, kRests},
      {"rest_of_a_square", [](I n) { return n * n % 8; }, Stays::free_or_refused},
      {"parity_but_at_23", [](I n) { return n == 23 ? 4 : 2 + n % 2; }, Stays::free_or_refused},
      {"ones_among_bits", [](I n) { return static_cast<I>(std::popcount(static_cast<std::uint64_t>(n))); },
       Stays::free_or_refused},

      {"int_of_0_7", [](I n) { return static_cast<I>(0.7 * real(n)); }, Stays::free_or_refused},
      {"floor_of_0_7", [](I n) { return static_cast<I>(std::floor(real(n) * 0.7)); }, Stays::free_or_refused},
      {"float_0_7", [](I n) { return static_cast<I>(single(n) * 0.7F); }, Stays::free_or_refused},
      {"float_1_3", [](I n) { return static_cast<I>(single(n) * 1.3F); }, Stays::free_or_refused},
      {"round_of_half", [](I n) { return static_cast<I>(std::round(real(n - 6) / 2.)); }, Stays::free_or_refused},
      {"round_of_2_hundredths", [](I n) { return static_cast<I>(std::lround(real(n) * 0.02)); },
       Stays::free_or_refused},
      {"round_of_9_hundredths", [](I n) { return static_cast<I>(std::llround(real(n) * 0.09)); },
       Stays::free_or_refused},
      {"ceil_of_1_25", [](I n) { return static_cast<I>(std::ceil(real(n) * 1.25)); }, Stays::free_or_refused},
      {"ceil_of_1_1", [](I n) { return static_cast<I>(std::ceil(real(n) * 1.1)); }, Stays::free_or_refused},
      {"ceil_of_0_1", [](I n) { return static_cast<I>(std::ceil(real(n) * 0.1)); }},
      {"int_of_0_29", [](I n) { return static_cast<I>(real(n) * 0.29); }, Stays::free_or_refused},
      {"int_of_0_333", [](I n) { return static_cast<I>(real(n) * 0.333); }, Stays::free_or_refused},
      {"int_over_1_08", [](I n) { return static_cast<I>(real(n) / 1.08); }, Stays::free_or_refused},
      {"int_over_1_5", [](I n) { return static_cast<I>(real(n) / 1.5); }, Stays::free_or_refused},
      {"float_0_55", [](I n) { return static_cast<I>(single(n) * 0.55F); }, Stays::free_or_refused},
      {"float_0_85", [](I n) { return static_cast<I>(single(n) * 0.85F); }, Stays::free_or_refused},
      {"half_to_even", [](I n) { return static_cast<I>(std::nearbyint(real(n) * 0.5)); }, Stays::free_or_refused},
      {"root", [](I n) { return static_cast<I>(std::sqrt(real(n))); }, Stays::free_or_refused},
      {"slower_from_8", [](I n) { return n < 8 ? n : 8 + (n - 8) / 2; }, Stays::free_or_refused},
      {"flipped_bit", [](I n) { return n ^ 1; }, Stays::free_or_refused},
      {"in_a_byte", [](I n) { return n & 255; }, Stays::free_or_refused},
      {"held_0_8", [](I n) { return std::clamp<I>(std::lround(real(n) * 0.8), 9, 29); }, Stays::free_or_refused, kHeld},
      {"held_0_7", [](I n) { return std::clamp<I>(static_cast<I>(real(n) * 0.7), 10, 29) + 1; }, Stays::free_or_refused,
       kHeld},
      {"held_0_6_above", [](I n) { return std::max<I>(static_cast<I>(real(n) * 0.6), 12); }, Stays::free_or_refused,
       kHeld},
      {"held_float_0_85", [](I n) { return std::min<I>(static_cast<I>(0.85F * single(n)), 67); },
       Stays::free_or_refused, kHeld},
      {"held_float_0_3_rounded", [](I n) { return std::clamp<I>(static_cast<I>(0.3F * single(n) + 0.5), 10, 38); },
       Stays::free_or_refused, kHeld},
      {"held_22_64", [](I n) { return std::min<I>(2 + n * 22 / 64, 24); }, Stays::free_or_refused, kHeld},
      {"rounded_part", [](I n) { return (static_cast<I>(real(n) * 0.35) + 7) / 8 * 8; }, Stays::free_or_refused},
  };
  return table;
}

class FollowedSizes : public ::testing::TestWithParam<SizeFunction> {};

TEST_P(FollowedSizes, AreTheProgramsOrRefused) {
  const SizeFunction& function = GetParam();
  const auto program = [&](Tensor x) { return x * function.of(x.size(0)); };
  for (const I example : function.examples) {
    const auto gm = symbolic_trace(program, {torch::rand({example})});
    I refused = 0;
    const auto check = [&](I n) {
      const Tensor x = torch::rand({n});
      const AtSizes outcome = testing::at_sizes(
          *gm, [&]() -> c10::IValue { return program(x); }, {x}, 0);
      ASSERT_NE(outcome, AtSizes::wrong) << n << " from " << example << gm->graph();
      if (outcome == AtSizes::refused) refused = n;
    };
    for (I n = 1; n <= 512; ++n) check(n);
    for (const I n : {777, 1000, 1023, 1024, 1025, 2048, 4099, 6000, 20'000, 99'990, 131'071, 150'000}) check(n);
    if (function.stays == Stays::free) {
      EXPECT_EQ(refused, 0) << "from " << example << '\n' << SizeReport(gm->graph());
    }
  }
}

// Where samples are computed, none are far away: beyond them the report says so.
TEST_P(FollowedSizes, OfOwnTensorsAreTheProgramsOrRefused) {
  const SizeFunction& function = GetParam();
  const auto program = [&](Tensor x) { return x * torch::tensor({function.of(x.size(0))}, torch::kDouble); };
  for (const I size : {6, 33}) {
    const Tensor example = torch::rand({size});
    const auto gm = symbolic_trace(program, {example});
    for (I n = 1; n <= 512; n += n < 128 ? 1 : 7) {
      const Tensor x = torch::rand({n});
      ASSERT_NE(testing::at_sizes(*gm, [&]() -> c10::IValue { return program(x); }, {x}, 0, {example}), AtSizes::wrong)
          << n << " from " << size << gm->graph();
    }
  }
}

TEST(UnprobedSizes, AreThoseThatAReportSaysNothingOf) {
  const auto program = [](Tensor x) { return x * torch::tensor({std::min<I>(x.size(0), 1000)}, torch::kDouble); };
  const Tensor example = torch::rand({6});
  const auto gm = symbolic_trace(program, {example});
  const SizeReport report = gm->sizes();
  ASSERT_EQ(report.statements().size(), 1U);
  ASSERT_FALSE(report.statements()[0].probed.empty());
  const I last = report.statements()[0].probed.back();
  EXPECT_FALSE(testing::is_unprobed(gm->graph(), {example}, {torch::rand({last})}));
  EXPECT_TRUE(testing::is_unprobed(gm->graph(), {example}, {torch::rand({last + 1})}));
  EXPECT_FALSE(testing::is_unprobed(gm->graph(), {torch::rand({last + 1})}, {torch::rand({last + 1})}));
  EXPECT_FALSE(testing::is_unprobed(parse_graph(print_graph(gm->graph())), {example}, {torch::rand({last + 1})}));
}

TEST_P(FollowedSizes, AreWrittenAndReadAgain) {
  const SizeFunction& function = GetParam();
  const auto program = [&](Tensor x) { return x * function.of(x.size(0)); };
  const auto gm = symbolic_trace(program, {torch::rand({16})});
  for (const I n : function.stays == Stays::free ? std::vector<I>{1, 7, 90, 300} : std::vector<I>{16}) {
    const Tensor x = torch::rand({n});
    testing::expect_same_from_text(*gm, {x}, program(x));
    testing::expect_same_from_torchscript(*gm, {x}, program(x));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, FollowedSizes, ::testing::ValuesIn(testing::some_by_day(size_functions())),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::followed_sizes_test
