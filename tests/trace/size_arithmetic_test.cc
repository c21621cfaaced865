// What programs compute of sizes, at small sizes, in the other order, rounded from below: the graph computes the same
// or refuses.
#include <cmath>
#include <numeric>

#include "tests/support/night.h"
#include "tests/trace/sizes_testing.h"

namespace fx::size_arithmetic_test {

using testing::AtSizes;
using torch::Tensor;

struct Arithmetic {
  const char* name;
  std::function<std::int64_t(std::int64_t, std::int64_t)> of;
  bool stays_free = false;  // in both dimensions, at all sizes
};
std::ostream& operator<<(std::ostream& out, const Arithmetic& each) { return out << each.name; }

class SizeArithmetic : public ::testing::TestWithParam<Arithmetic> {};

void expect_followed_or_refused(const Arithmetic& each, const std::function<Tensor(Tensor)>& program,
                                bool is_probed_far) {
  for (const auto& [h0, w0] : std::vector<std::pair<int, int>>{{6, 8}, {5, 5}, {16, 24}, {33, 10}}) {
    const std::vector<c10::IValue> examples = {torch::rand({h0, w0})};
    const auto gm = symbolic_trace(program, examples);
    for (const std::int64_t h : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20, 24, 33, 130, 290}) {
      for (const std::int64_t w : {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 16, 23, 24, 70}) {
        const Tensor x = torch::rand({h, w});
        const AtSizes outcome = testing::at_sizes(
            *gm, [&]() -> c10::IValue { return program(x); }, {x}, 0,
            is_probed_far ? std::vector<c10::IValue>() : examples);
        EXPECT_NE(outcome, AtSizes::wrong) << h << " x " << w << " from " << h0 << " x " << w0 << gm->graph();
        if (each.stays_free) {
          EXPECT_EQ(outcome, AtSizes::equal) << h << " x " << w << " from " << h0 << " x " << w0;
        }
      }
    }
  }
}

TEST_P(SizeArithmetic, IsFollowedOrRefused) {
  const Arithmetic& each = GetParam();
  expect_followed_or_refused(
      each, [&](Tensor x) { return x * each.of(x.size(0), x.size(1)); }, /*is_probed_far=*/true);
}

// A tensor that is made without operators is another matter: sizes far away are not tried on it, as the report says.
TEST_P(SizeArithmetic, OfOwnTensorsIsFollowedOrRefused) {
  const Arithmetic& each = GetParam();
  expect_followed_or_refused(
      each, [&](Tensor x) { return x * torch::tensor({each.of(x.size(0), x.size(1))}, torch::kFloat); },
      /*is_probed_far=*/false);
}

std::int64_t power_above(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

const std::vector<Arithmetic>& cases() {
  using I = std::int64_t;
  static const auto& table = *new std::vector<Arithmetic>{
      {"half_of_a_difference", [](I h, I w) { return (h - w) / 2; }, true},
      {"half_of_the_other_difference", [](I h, I w) { return (w - h) / 2; }, true},
      {"the_other_half", [](I h, I w) { return h - w - (h - w) / 2; }, true},
      {"rest_of_a_difference", [](I h, I w) { return (h - w) % 3; }},
      {"half_and_rest", [](I h, I w) { return (h - w) / 2 + (h - w) % 2; }},
      {"at_least_one_quarter", [](I h, I) { return std::max<I>(1, h / 4); }},
      {"at_most_ten", [](I h, I) { return std::min<I>(h, 10); }},
      {"within", [](I h, I) { return std::clamp<I>(h, 4, 32); }},
      {"windows", [](I h, I) { return (h - 3) / 2 + 1; }},
      {"windows_of_windows", [](I h, I) { return ((h - 3) / 2 + 1 - 3) / 2 + 1; }},
      {"wide_windows", [](I h, I) { return (h - 5) / 3 + 1; }},
      {"windows_without_one_more", [](I, I w) { return (w - 10) / 5; }},
      {"half_and_third", [](I h, I) { return h / 2 + h / 3; }},
      {"to_a_square", [](I h, I w) { return std::max(h, w) - w; }, true},
      {"half_to_a_square", [](I h, I w) { return (std::max(h, w) - w) / 2; }},
      {"rest_to_a_square", [](I h, I w) { return std::max(h, w) - w - (std::max(h, w) - w) / 2; }, true},
      {"beside_the_square_in_the_middle", [](I h, I w) { return (h - std::min(h, w)) / 2; }},
      {"sum_with_twice_the_other", [](I h, I w) { return h + 2 * w + 3; }, true},
      {"in_proportion", [](I h, I w) { return 32 * h / w; }},
      {"in_proportion_to_the_smaller", [](I h, I w) { return 32 * h / std::min(h, w); }},
      {"quotient", [](I h, I w) { return h / w; }},
      {"rounded_up_quotient", [](I h, I w) { return (h + w - 1) / w; }},
      {"digits_of_a_number", [](I h, I) { return h / 5 % 4; }},
      {"power_above", [](I h, I) { return power_above(h); }},
      {"power_below", [](I h, I) { return static_cast<I>(std::pow(2, std::floor(std::log2(h)))); }},
      {"root", [](I h, I) { return static_cast<I>(std::sqrt(h)); }},
      {"to_even", [](I h, I) { return static_cast<I>(std::nearbyint(static_cast<double>(h) * 0.5)); }},
      {"part", [](I h, I) { return static_cast<I>(static_cast<double>(h) * 0.29); }},
      {"seven_tenths", [](I h, I) { return static_cast<I>(static_cast<double>(h) * 0.7); }},
      {"nine_hundredths", [](I h, I) { return std::llround(static_cast<double>(h) * 0.09); }},
      {"at_least_a_tenth", [](I h, I) { return static_cast<I>(std::ceil(static_cast<double>(h) * 0.1)); }},
      {"a_tenth_in_float", [](I, I w) { return static_cast<I>(static_cast<float>(w) * 0.1F); }},
      {"over_one_and_a_half", [](I h, I) { return static_cast<I>(static_cast<double>(h) / 1.5); }},
      {"sixty_fourths", [](I h, I) { return h / 64; }},
      {"more_than_thirty_seconds", [](I h, I) { return 1 + h / 32; }},
      {"two_hundredths", [](I h, I) { return std::llround(static_cast<double>(h) * 0.02); }},
      {"over_one_and_eight_hundredths", [](I, I w) { return static_cast<I>(static_cast<double>(w) / 1.08); }},
      {"rounded_twice", [](I h, I) { return std::llround(std::floor(static_cast<double>(h) * 0.25 + 0.5) / 10.0); }},
      {"quotient_of_small_ones", [](I h, I) { return (3 - h % 3) % 3 / std::max<I>(h / 2, 1); }},
      {"slower_from_eight_on", [](I h, I) { return h < 8 ? h : 8 + (h - 8) / 2; }},
      {"rest", [](I h, I w) { return h % w; }},
      {"pairs", [](I h, I) { return h * (h - 1) / 2; }},
      {"pairs_with_itself", [](I, I w) { return w * (w + 1) / 2; }},
      {"common_divisor", [](I h, I w) { return std::gcd(h, w); }},
      {"negative_rest", [](I h, I) { return -h % 8; }},
      {"bits", [](I h, I) { return h ^ 1; }},
      {"at_most_64", [](I h, I) { return h > 64 ? 64 : h; }},
      {"area_of_at_least_64", [](I h, I w) { return std::max<I>(h * w, 64); }},
      {"at_least_ten",
       [](I h, I w) {
         return std::max<I>({h, w, 10});
       }},
      {"area_in_a_byte", [](I h, I w) { return static_cast<I>(static_cast<std::uint8_t>(h * w)); }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Table, SizeArithmetic, ::testing::ValuesIn(testing::some_by_day(cases())),
                         [](const auto& info) { return std::string(info.param.name); });

struct AtOne {
  const char* name;
  Tensor (*program)(Tensor);
};
std::ostream& operator<<(std::ostream& out, const AtOne& each) { return out << each.name; }

class AtSizeOne : public ::testing::TestWithParam<AtOne> {};

TEST_P(AtSizeOne, IsFollowedOrRefused) {
  for (const auto& example : std::vector<std::vector<std::int64_t>>{{2, 4}, {4, 6}, {12, 20}}) {
    const auto gm = symbolic_trace(GetParam().program, {torch::rand(example)});
    for (const std::int64_t h : {1, 2, 3, 5}) {
      for (const std::int64_t w : {1, 2, 3, 6}) {
        const Tensor x = torch::rand({h, w});
        EXPECT_NE(testing::at_sizes(
                      *gm, [&]() -> c10::IValue { return GetParam().program(x); }, {x}, 1e-6),
                  AtSizes::wrong)
            << h << " x " << w << gm->graph();
      }
    }
  }
}

const std::vector<AtOne>& at_one() {
  static const auto& table = *new std::vector<AtOne>{
      {"number_of_parts", [](Tensor x) { return x * static_cast<double>(x.chunk(2, 1).size()); }},
      {"flag", [](Tensor x) { return x.var(1, x.size(1) > 1, true) + x; }},
      {"flag_of_the_first", [](Tensor x) { return x.var(0, x.size(0) > 1, true) + x; }},
      {"division_by_one_less",
       [](Tensor x) { return x * (x.size(1) > 1 ? 1.0 / static_cast<double>(x.size(1) - 1) : 0.0); }},
      {"squeezed_when_it_can", [](Tensor x) { return x.size(1) == 1 ? x.squeeze(1) : x.sum(1) * 2; }},
      {"branch_on_both", [](Tensor x) { return x.size(0) == 1 && x.size(1) == 1 ? x * 5 : x * 3; }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Table, AtSizeOne, ::testing::ValuesIn(testing::some_by_day(at_one())),
                         [](const auto& info) { return std::string(info.param.name); });

struct Pad : torch::nn::Module {
  Tensor forward(Tensor x, Tensor y) {
    const std::int64_t down = y.size(2) - x.size(2), right = y.size(3) - x.size(3);
    return torch::constant_pad_nd(x, {right / 2, right - right / 2, down / 2, down - down / 2}) + y;
  }
};

// U-Net's skip connections: either side may be the larger.
TEST(SizeArithmetic, PadsOrCropsToTheSizeOfAnother) {
  const auto pad = std::make_shared<Pad>();
  const auto gm = symbolic_trace(pad, {torch::rand({1, 2, 6, 6}), torch::rand({1, 2, 9, 12})});
  for (const std::int64_t h : {4, 5, 9}) {
    for (const std::int64_t w : {3, 6, 8}) {
      const Tensor x = torch::rand({1, 2, h, 6}), y = torch::rand({1, 2, w, 9});
      EXPECT_NE(testing::at_sizes(
                    *gm, [&]() -> c10::IValue { return pad->forward(x, y); }, {x, y}, 0),
                AtSizes::wrong)
          << h << " to " << w;
    }
  }
}

}  // namespace fx::size_arithmetic_test
