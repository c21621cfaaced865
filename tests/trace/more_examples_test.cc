// Examples that the caller adds, and what the report says of the sizes at which the program was run.
#include "tests/trace/sizes_testing.h"

namespace fx::more_examples_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using torch::Tensor;

TEST(MoreExamples, GeneraliseToSizesThatNoProbeWouldMeet) {
  const auto program = [](Tensor x) { return x * static_cast<double>(x.size(0) / 100); };
  const auto gm = symbolic_trace(program, {torch::rand({10, 3})}, {.more_examples = {{torch::rand({1000, 3})}}});
  for (const std::int64_t rows : {10, 99, 100, 1000, 1001, 1250}) {
    const Tensor x = torch::rand({rows, 3});
    EXPECT_NE(testing::at_sizes(*gm, [&]() -> c10::IValue { return program(x); }, {x}), testing::AtSizes::wrong)
        << rows;
  }
  const Tensor x = torch::rand({1000, 3});
  EXPECT_EQ(testing::at_sizes(*gm, [&]() -> c10::IValue { return program(x); }, {x}), testing::AtSizes::equal);
}

TEST(MoreExamples, RefusedWhereTheProgramIsAnotherOne) {
  const auto program = [](Tensor x) { return x.size(0) == 777 ? x.relu() : x.exp(); };
  EXPECT_FX_ERROR(symbolic_trace(program, {torch::rand({4})}, {.more_examples = {{torch::rand({777})}}}), trace,
                  HasSubstr("more_examples[0]"), HasSubstr("aten::relu runs instead of aten::exp"));
}

TEST(MoreExamples, RefusedWhereTheyDoNotFit) {
  const auto program = [](const std::vector<Tensor>& xs, std::int64_t n) { return xs[0] * n; };
  const c10::List<Tensor> one({torch::rand({4})}), two({torch::rand({4}), torch::rand({4})});
  const auto trace = [&](std::vector<c10::IValue> more) {
    return symbolic_trace(program, {one, 2}, {.more_examples = {std::move(more)}});
  };
  EXPECT_NO_THROW(trace({c10::List<Tensor>({torch::rand({9})}), 2}));
  EXPECT_FX_ERROR(trace({one}), invalid_argument, HasSubstr("has 1 values, the examples have 2"));
  EXPECT_FX_ERROR(trace({two, 2}), invalid_argument, HasSubstr("value 0 is not like that of the examples"));
  EXPECT_FX_ERROR(trace({one, 3}), invalid_argument, HasSubstr("value 1 is not like that of the examples"));
  EXPECT_FX_ERROR(trace({c10::List<Tensor>({torch::rand({4, 1})}), 2}), invalid_argument,
                  HasSubstr("another type or number of dimensions"));
}

TEST(MoreExamples, RefusedWhereSizesAreFixed) {
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x * 2; }, {torch::rand({4})},
                                 {.sizes = Sizes::fixed, .more_examples = {{torch::rand({5})}}}),
                  invalid_argument, HasSubstr("more_examples"), HasSubstr("Sizes::fixed"));
}

TEST(ProbedSizes, AreReportedOfProgramsThatAskForSizes) {
  const auto asks = symbolic_trace([](Tensor x) { return x.view({x.size(0), -1}).sum(1); }, {torch::rand({4, 6})});
  const SizeStatement first = asks->sizes().statements().front();
  EXPECT_THAT(first.probed, Contains(1));
  EXPECT_THAT(first.str(), HasSubstr("x[0] free, probed at 1, "));
  const auto never_asks = symbolic_trace([](Tensor x) { return x.relu(); }, {torch::rand({4, 6})});
  EXPECT_THAT(never_asks->sizes().statements().front().probed, IsEmpty());
  EXPECT_EQ(never_asks->sizes().str(), "x[0] free\nx[1] free\n");
}

}  // namespace fx::more_examples_test
