// Programs with a condition on sizes, of every form that people write, and a great many sizes: the graph does what the
// program does, or refuses.
#include <cassert>
#include <cmath>

#include "tests/support/night.h"
#include "tests/trace/sizes_testing.h"

namespace fx::size_conditions_test {

using testing::AtSizes;
using torch::Tensor;

// ── What a program does beside returning ─────────────────────────────────────────────────────────────────────────────

template <typename Program>
void expect_traced(const Program& program, const Tensor& example, const Tensor& other, AtSizes wanted) {
  const auto gm = symbolic_trace(program, {example});
  EXPECT_TRUE(gm->forward(example).equal(program(example)));
  EXPECT_EQ(testing::at_sizes(*gm, [&]() -> c10::IValue { return program(other); }, {other}), wanted) << gm->graph();
}

// What ends the process at other sizes ends it: such a program is traced at those of the examples.
TEST(SizeConditionsThatEnd, TheProcess) {
  const auto divides = [](Tensor x) { return x.slice(1, 0, 12 / (x.size(1) - 2)); };
  const auto asserts = [](Tensor x) {
    if (x.size(1) % 32 != 0) std::abort();
    return x * 2;
  };
  EXPECT_NO_THROW(symbolic_trace(divides, {torch::rand({2, 4})}, {.sizes = Sizes::fixed}));
  EXPECT_NO_THROW(symbolic_trace(asserts, {torch::rand({2, 64})}, {.sizes = Sizes::fixed}));
  EXPECT_EXIT(symbolic_trace(asserts, {torch::rand({2, 64})}), ::testing::KilledBySignal(SIGABRT), "");
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
