// Examples in which sizes are the same by chance, a length that is the batch, an image that is a square: what the
// program does not need to be equal is free of each other.
#include "tests/support/night.h"
#include "tests/trace/shaped_programs.h"

namespace fx::coincident_sizes_test {

using testing::program;
using testing::ShapedProgram;
using testing::Shapes;
using torch::Tensor;

Tensor mean(Tensor x) { return x.sum(0) / x.size(0) + x.size(1); }
Tensor masked_causally(Tensor x, Tensor mask) {
  return torch::softmax(x.matmul(x.transpose(1, 2)) + mask, -1).matmul(x) / x.size(1);
}
Tensor masked_padding(Tensor x, Tensor mask) { return x * mask.unsqueeze(-1) * x.size(0); }
Tensor of_each_row(Tensor x, Tensor y) { return x.sum({1, 2}) * y; }
Tensor of_each_step(Tensor x, Tensor y) { return x.sum(2).sum(0) * y + x.size(0); }
Tensor several(Tensor x, Tensor square, Tensor turned, Tensor row) {
  return (x * row.unsqueeze(1)).matmul(square) + turned.t();
}
Tensor far_from_each_other(Tensor x, Tensor y) { return x.sum(0) * x.size(0) + y.sum() * y.size(0); }
Tensor pairs_beside(Tensor x, Tensor y) { return x.view({-1, 2}).sum() + y * y.size(0); }
Tensor outer(Tensor x, Tensor y) { return x.unsqueeze(1) + y.unsqueeze(0); }
Tensor attended(Tensor x, Tensor y, Tensor mask) {
  return (x.matmul(y.transpose(1, 2)) * mask.unsqueeze(1)).matmul(y) / y.size(1);
}
Tensor linear(Tensor x, Tensor w) { return torch::linear(x, w) * x.size(0); }
Tensor linear_twice(Tensor x, Tensor w, Tensor v) {
  return torch::linear(torch::relu(torch::linear(x, w)), v) * x.size(0);
}
Tensor crossed(Tensor x, Tensor y) { return torch::einsum("bi,bj->bij", {x, y}).flatten(1) * x.size(1); }
Tensor expanded(Tensor x, Tensor y) { return x.unsqueeze(0).expand({y.size(0), -1, -1}).sum(0); }

const ShapedProgram kCases[] = {
    program("mean", mean, {{4, 4}}, {"x[0] free", "x[1] free"}, {{{2, 9}}, {{9, 2}}, {{1, 1}}}),
    program("masked_causally", masked_causally, {{4, 4, 8}, {4, 4}}, {"x[0] free"},
            {{{2, 5, 8}, {5, 5}}, {{7, 3, 8}, {3, 3}}, {{1, 4, 2}, {4, 4}}}, {{{5, 4, 8}, {5, 5}}}),
    program("masked_causally_of_one_size", masked_causally, {{4, 4, 4}, {4, 4}}, {"x[0] free", "x[2] free"},
            {{{2, 5, 8}, {5, 5}}, {{7, 3, 1}, {3, 3}}}, {{{5, 4, 8}, {5, 5}}}),
    program("masked_padding", masked_padding, {{4, 4, 8}, {4, 4}}, {"x[0] = y[0] free", "x[1] = y[1] free"},
            {{{2, 5, 8}, {2, 5}}, {{7, 3, 1}, {7, 3}}}, {{{2, 5, 8}, {5, 2}}}),
    program("masked_padding_of_one_size", masked_padding, {{4, 4, 4}, {4, 4}},
            {"x[0] = y[0] free", "x[1] = y[1] free", "x[2] free"}, {{{2, 5, 8}, {2, 5}}, {{7, 3, 1}, {7, 3}}}),
    program("of_each_row", of_each_row, {{4, 4, 4}, {4}}, {"x[0] = y[0] free", "x[1] free", "x[2] free"},
            {{{2, 5, 8}, {2}}, {{7, 3, 1}, {7}}}, {{{2, 5, 8}, {5}}}),
    program("of_each_step", of_each_step, {{4, 4, 4}, {4}}, {"x[0] free", "x[1] = y[0] free", "x[2] free"},
            {{{2, 5, 8}, {5}}, {{7, 3, 1}, {3}}}, {{{2, 5, 8}, {2}}}),
    program("several", several, {{4, 4}, {4, 4}, {4, 4}, {4}},
            {"arg_0[0] free", "arg_0[1] = arg_1[0] free", "arg_1[1] = arg_2[0] free"},
            {{{2, 5}, {5, 5}, {5, 2}, {2}}, {{7, 3}, {3, 3}, {3, 7}, {7}}, {{2, 5}, {5, 9}, {9, 2}, {2}}},
            {{{2, 5}, {5, 5}, {5, 2}, {5}}}, {"arg_2[1] = arg_0[0]", "arg_3[0] = arg_0[0]"}),
    program("far_from_each_other", far_from_each_other, {{4, 4}, {4}}, {"x[0] free", "x[1] free", "y[0] free"},
            {{{2, 5}, {7}}, {{7, 1}, {1}}}),
    program("pairs_beside", pairs_beside, {{6, 6}, {6}}, {"x[0] free", "x[1] free in steps of 2", "y[0] free"},
            {{{6, 8}, {7}}, {{8, 6}, {1}}, {{5, 4}, {3}}}, {{{6, 7}, {6}}}),
    program("outer", outer, {{4, 3}, {4, 3}}, {"x[0] free", "x[1] = y[1] free", "y[0] free"},
            {{{2, 5}, {7, 5}}, {{7, 3}, {1, 3}}}),
    program("attended", attended, {{4, 4, 4}, {4, 4, 4}, {4, 4}}, {"x[0] = y[0] = z[0] free", "y[1] = z[1] free"},
            {{{2, 5, 3}, {2, 7, 3}, {2, 7}}, {{3, 1, 4}, {3, 2, 4}, {3, 2}}}),
    program("linear", linear, {{3, 3}, {3, 3}}, {"x[0] free", "x[1] = y[1] free", "y[0] free"},
            {{{2, 5}, {7, 5}}, {{7, 3}, {1, 3}}}),
    program("linear_twice", linear_twice, {{3, 3}, {3, 3}, {3, 3}}, {"x[0] free", "y[0] = z[1] free", "z[0] free"},
            {{{2, 5}, {7, 5}, {4, 7}}, {{7, 3}, {1, 3}, {2, 1}}}),
    program("crossed", crossed, {{4, 4}, {4, 4}}, {"x[0] = y[0] free", "x[1] free", "y[1] free"},
            {{{2, 5}, {2, 3}}, {{7, 1}, {7, 4}}}),
    program("expanded", expanded, {{4, 4}, {4, 4}}, {"x[0] free", "x[1] free", "y[0] free", "y[1] free"},
            {{{2, 5}, {3, 1}}, {{7, 1}, {1, 7}}}),
};

class CoincidentSizes : public testing::ShapedProgramTest {};

TEST_P(CoincidentSizes, StayFreeOfEachOther) {
  const auto gm = trace();
  expect_says(*gm);
  expect_everywhere(*gm);
}

TEST_P(CoincidentSizes, HaveTheGradientsOfTheProgram) {
  const auto gm = trace();
  for (const Shapes& shapes : GetParam().equal) {
    SCOPED_TRACE(::testing::PrintToString(shapes));
    testing::expect_same_gradients(*gm, GetParam().eager, testing::inputs_of(shapes));
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, CoincidentSizes, ::testing::ValuesIn(testing::some_by_day(kCases)),
                         [](const auto& info) { return std::string(info.param.name); });

// Ten dimensions of one size, which operators ask to be two: their records say so, and no set of them is tried.
TEST(DemandedSizes, AreTiedWithoutARun) {
  int calls = 0;
  const auto program = [&](Tensor a, Tensor b, Tensor c, Tensor d, Tensor e) {
    ++calls;
    return ((a + b) * c - d) / e * a.size(0);
  };
  const auto inputs = [](std::int64_t rows, std::int64_t columns) {
    std::vector<c10::IValue> some;
    for (int i = 0; i < 5; ++i) some.emplace_back(torch::rand({rows, columns}) + 1);
    return some;
  };
  const auto gm = symbolic_trace(program, inputs(4, 4));
  EXPECT_LE(calls, 20);
  for (const auto& [rows, columns] : {std::pair{4, 4}, {3, 7}, {9, 1}}) {
    const std::vector<c10::IValue> some = inputs(rows, columns);
    const Tensor theirs =
        program(some[0].toTensor(), some[1].toTensor(), some[2].toTensor(), some[3].toTensor(), some[4].toTensor());
    EXPECT_TRUE(testing::same_value(gm->run(some).toTensor(), theirs, 1e-6)) << rows << " x " << columns;
  }
}

}  // namespace fx::coincident_sizes_test
