// Programs with a condition on sizes, of every form that people write, and a great many sizes: the graph does what the
// program does, or refuses.
#include <cassert>
#include <cmath>

#include "tests/support/night.h"
#include "tests/trace/sizes_testing.h"

namespace fx::size_conditions_test {

using testing::AtSizes;
using torch::Tensor;

struct Condition {
  const char* name;
  bool (*holds)(std::int64_t b, std::int64_t n);
  std::int64_t b = 2, n = 6;  ///< of the example
};
void PrintTo(const Condition& each, std::ostream* out) { *out << each.name; }

const std::vector<Condition>& conditions() {
  static const std::vector<Condition> all = {
      {"divisible_by_4", [](std::int64_t, std::int64_t n) { return n % 4 == 0; }},
      {"divisible_by_8", [](std::int64_t, std::int64_t n) { return n % 8 == 0; }, 2, 12},
      {"divisible_by_3", [](std::int64_t, std::int64_t n) { return n % 3 == 0; }, 2, 7},
      {"divisible_by_3_already", [](std::int64_t, std::int64_t n) { return n % 3 == 0; }},
      {"not_divisible_by_32", [](std::int64_t, std::int64_t n) { return n % 32 != 0; }, 2, 40},
      {"divisible_by_5", [](std::int64_t, std::int64_t n) { return n % 5 == 0; }},
      {"divisible_by_7", [](std::int64_t, std::int64_t n) { return n % 7 == 0; }},
      {"divisible_by_9", [](std::int64_t, std::int64_t n) { return n % 9 == 0; }, 2, 10},
      {"divisible_by_11", [](std::int64_t, std::int64_t n) { return n % 11 == 0; }, 2, 10},
      {"divisible_by_14", [](std::int64_t, std::int64_t n) { return n % 14 == 0; }, 2, 10},
      {"divisible_by_21", [](std::int64_t, std::int64_t n) { return n % 21 == 0; }},
      {"power_of_two", [](std::int64_t, std::int64_t n) { return (n & (n - 1)) == 0; }},
      {"power_of_two_already", [](std::int64_t, std::int64_t n) { return (n & (n - 1)) == 0; }, 2, 8},
      {"odd_batch", [](std::int64_t b, std::int64_t) { return b % 2 == 1; }},
      {"both_large", [](std::int64_t b, std::int64_t n) { return b > 9 && n > 50; }},
      {"either_large", [](std::int64_t b, std::int64_t n) { return b > 9 || n > 50; }},
      {"more_than_twice", [](std::int64_t b, std::int64_t n) { return n > 2 * b; }, 10, 6},
      {"more_than_twice_already", [](std::int64_t b, std::int64_t n) { return n > 2 * b; }},
      {"ratio", [](std::int64_t b, std::int64_t n) { return b / n >= 2; }, 10, 6},
      {"near_each_other", [](std::int64_t b, std::int64_t n) { return std::abs(b - n) < 8; }, 10, 6},
      {"product", [](std::int64_t b, std::int64_t n) { return b * n > 50; }},
      {"sum", [](std::int64_t b, std::int64_t n) { return b + n > 50; }},
      {"multiple_of_the_other", [](std::int64_t b, std::int64_t n) { return n % b == 0; }},
      {"few_elements", [](std::int64_t b, std::int64_t n) { return b * n < 8; }, 5, 6},
      {"few_elements_of_many", [](std::int64_t b, std::int64_t n) { return b * n <= 12; }, 32, 32},
      {"both_small", [](std::int64_t b, std::int64_t n) { return b < 4 && n < 4; }, 10, 6},
      {"small_together", [](std::int64_t b, std::int64_t n) { return b + n < 7; }, 10, 6},
      {"is_usual", [](std::int64_t, std::int64_t n) { return n == 32; }, 2, 64},
      {"is_that", [](std::int64_t, std::int64_t n) { return n == 18; }, 2, 64},
      {"divisible_by_13", [](std::int64_t, std::int64_t n) { return n % 13 == 0; }},
      {"divisible_by_25", [](std::int64_t, std::int64_t n) { return n % 25 == 0; }},
      {"is_square", [](std::int64_t, std::int64_t n) { return n == 9 || n == 16 || n == 25 || n == 64 || n == 256; }},
      {"in_a_band", [](std::int64_t, std::int64_t n) { return n >= 12 && n <= 16; }},
      {"in_a_band_below", [](std::int64_t, std::int64_t n) { return n > 20 && n < 30; }, 2, 64},
      {"one_more", [](std::int64_t b, std::int64_t n) { return b == n + 1; }},
      {"threshold", [](std::int64_t, std::int64_t n) { return n > 64; }},
  };
  return all;
}

class SizeConditions : public ::testing::TestWithParam<Condition> {};

TEST_P(SizeConditions, AreFollowedOrAsserted) {
  const Condition& c = GetParam();
  const auto branches = [&c](Tensor x) { return c.holds(x.size(0), x.size(1)) ? x * 2 : x.relu(); };
  const auto numbers = [&c](Tensor x) { return x * (c.holds(x.size(0), x.size(1)) ? 2 : 1); };
  const auto reals = [&c](Tensor x) { return x * (c.holds(x.size(0), x.size(1)) ? 2.5 : 1.0); };
  const auto reduces = [&c](Tensor x) { return c.holds(x.size(0), x.size(1)) ? x.sum(1) : x.mean(1); };
  const std::function<Tensor(Tensor)> programs[] = {branches, numbers, reals, reduces};
  for (const auto& program : programs) {
    const auto gm = symbolic_trace([&](Tensor x) { return program(x); }, {torch::rand({c.b, c.n})});
    int equal = 0, refused = 0;
    for (const std::int64_t b : {1, 2, 3, 5, 6, 10, 12, 20, 40, 100}) {
      for (const std::int64_t n : {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 12, 15, 16,  18,  20,  24,  25,  27,  28, 32,
                                   33, 40, 42, 48, 50, 51, 60, 63, 64, 65, 96, 99, 100, 128, 194, 256, 288, 512, 960}) {
        const Tensor x = torch::rand({b, n}) - 0.5;
        const AtSizes outcome = testing::at_sizes(*gm, [&]() -> c10::IValue { return program(x); }, {x});
        ASSERT_NE(outcome, AtSizes::wrong) << b << " " << n << "\n" << gm->graph();
        ++(outcome == AtSizes::equal ? equal : refused);
      }
    }
    EXPECT_GT(equal, 0);
    std::cout << c.name << ": " << equal << " equal, " << refused << " refused\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Table, SizeConditions, ::testing::ValuesIn(testing::some_by_day(conditions())),
                         [](const auto& info) { return info.param.name; });

// Small programs are tried at as many sizes on a slow machine: one that computes for a long time meets its size at the
// two hundredth.
TEST(SizeConditionsOfSlowPrograms, AreMetAllTheSame) {
  const auto program = [](Tensor x) {
    volatile int turns = 0;
    while (turns < 200'000) turns = turns + 1;
    return x.size(1) == 77 ? x.sum(1) : x.mean(1);
  };
  const auto gm = symbolic_trace(program, {torch::rand({2, 6})});
  const Tensor x = torch::rand({2, 77});
  EXPECT_EQ(testing::at_sizes(*gm, [&]() -> c10::IValue { return program(x); }, {x}), AtSizes::refused) << gm->graph();
}

// What several sizes make together: within the bounds that are found for each alone, all others at theirs.
TEST(SizeConditionsOfSeveral, HoldAtTheirBoundsTogether) {
  struct Program {
    const char* name;
    std::function<Tensor(const Tensor&, std::int64_t limit)> run;
  };
  const std::vector<Program> programs = {
      {"branches_on_a_product",
       [](const Tensor& x, std::int64_t limit) { return x.numel() < limit ? x.exp() : x + 1; }},
      {"branches_on_a_sum",
       [](const Tensor& x, std::int64_t limit) {
         return x.size(0) + x.size(1) + x.size(2) < limit / 4 ? x.exp() : x + 1;
       }},
      {"branches_on_squares",
       [](const Tensor& x, std::int64_t limit) {
         return x.size(1) * x.size(1) + x.size(2) * x.size(2) < limit ? x.exp() : x + 1;
       }},
      {"smaller_of_a_product_and_a_number",
       [](const Tensor& x, std::int64_t limit) {
         return x * static_cast<double>(std::min<std::int64_t>(3 * x.size(1) * x.size(2), limit));
       }},
  };
  std::int64_t equal = 0;
  for (const Program& program : programs) {
    for (const std::int64_t limit : testing::at_night()
                                        ? std::vector<std::int64_t>{10, 30, 50, 90, 100, 200, 500, 1000, 7440}
                                        : std::vector<std::int64_t>{50}) {
      for (const std::vector<std::int64_t>& example :
           std::vector<std::vector<std::int64_t>>{{1, 3, 40}, {1, 7, 11}, {1, 20, 30}, {2, 37, 51}, {1, 60, 60}}) {
        const auto gm = symbolic_trace([&](Tensor x) { return program.run(x, limit); }, {torch::rand(example)});
        for (const std::int64_t b : {1, 5}) {
          for (std::int64_t h = 1; h <= 128; h = h < 20 ? h + 1 : h * 5 / 4) {
            for (std::int64_t w = 1; w <= 128; w = w < 20 ? w + 1 : w * 9 / 7) {
              const Tensor x = torch::rand({b, h, w});
              const AtSizes outcome =
                  testing::at_sizes(*gm, [&]() -> c10::IValue { return program.run(x, limit); }, {x});
              ASSERT_NE(outcome, AtSizes::wrong) << program.name << " " << limit << " of "
                                                 << torch::IntArrayRef(example) << " at " << x.sizes() << "\n"
                                                 << gm->sizes() << gm->graph();
              equal += outcome == AtSizes::equal;
            }
          }
        }
      }
    }
  }
  std::cout << equal << " equal\n";
  EXPECT_GT(equal, testing::by_night(50'000));
}

// ── What a program does beside returning ─────────────────────────────────────────────────────────────────────────────

template <typename Program>
void expect_traced(const Program& program, const Tensor& example, const Tensor& other, AtSizes wanted) {
  const auto gm = symbolic_trace(program, {example});
  EXPECT_TRUE(gm->forward(example).equal(program(example)));
  EXPECT_EQ(testing::at_sizes(*gm, [&]() -> c10::IValue { return program(other); }, {other}), wanted) << gm->graph();
}

TEST(SizeConditionsThatEnd, TheProcess) {
  const auto divides = [](Tensor x) { return x.slice(1, 0, 12 / (x.size(1) - 2)); };
  expect_traced(divides, torch::rand({2, 4}), torch::rand({3, 4}), AtSizes::equal);
  const auto quotient = [](Tensor x) { return x * (x.size(1) / (x.size(2) / 4)); };
  expect_traced(quotient, torch::rand({2, 6, 8}), torch::rand({5, 6, 8}), AtSizes::equal);
  const auto asserts = [](Tensor x) {
    if (x.size(1) % 32 != 0) std::abort();
    const std::vector<Tensor> parts = {x * 2, x * 3};
    return parts[0] + parts[1];
  };
  expect_traced(asserts, torch::rand({2, 64}), torch::rand({3, 64}), AtSizes::equal);
  const auto channels = [](Tensor x) {
    const Tensor y = x * 2;
    if (x.size(1) != 3) std::abort();
    return y + 1;
  };
  expect_traced(channels, torch::rand({2, 3}), torch::rand({7, 3}), AtSizes::equal);
  EXPECT_FX_ERROR(symbolic_trace(channels, {torch::rand({2, 3})})->run({torch::rand({2, 4})}), execution,
                  ::testing::HasSubstr("x[1] must be 3"));
}

TEST(SizeConditionsThatEnd, WithWhatIsNoException) {
  const auto throws_a_number = [](Tensor x) {
    if (x.size(1) > 9) throw 42;
    return x * 2;
  };
  expect_traced(throws_a_number, torch::rand({2, 6}), torch::rand({5, 6}), AtSizes::equal);
}

// How many items a sample has: known at two sizes only, it may follow many rules.
TEST(Steps, ANumberOfStepsIsThatNumberEverywhere) {
  const auto program = [](Tensor x, Tensor y) {
    return x.view({y.size(0), -1, 4}).sum(1) / (x.size(0) / y.size(0)) + y;
  };
  for (std::int64_t groups = 2; groups <= 8; ++groups) {
    for (std::int64_t items = 2; items <= 4; ++items) {
      const auto gm = symbolic_trace(program, {torch::rand({groups * items, 4}), torch::rand({groups, 4})});
      for (std::int64_t n = 1; n <= 33; ++n) {
        const Tensor x = torch::rand({groups * n, 4}), y = torch::rand({groups, 4});
        // An input of the same size as the steps may be tied to them.
        EXPECT_NE(testing::at_sizes(*gm, [&]() -> c10::IValue { return program(x, y); }, {x, y}), AtSizes::wrong)
            << groups << " times " << n << " from " << items << "\n"
            << gm->sizes() << gm->graph();
      }
    }
  }
}

}  // namespace fx::size_conditions_test
