// What the judge of hostile programs takes for rounding: programs whose results turn on the last bits of a number, also
// of one that no input shows, and none else.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fxgraph/testing/hostile/behaviour.h>
#include <fxgraph/text/parse.h>

namespace fx::hostile_judge_test {

hostile::HostileProgram program_of(std::string_view lines) {
  hostile::HostileProgram program;
  program.graph = parse_graph("graph():\n    %x = placeholder[target=x]\n" + std::string(lines));
  program.inputs = {{at::rand({4, 5}) + 1}};
  program.narrowest = at::kFloat;
  return program;
}

bool is_ill_conditioned(std::string_view lines) {
  return hostile::is_ill_conditioned(program_of(lines), hostile::tolerance_of(at::kFloat));
}

TEST(HostileJudge, ExcusesWhatRoundingDecides) {
  EXPECT_TRUE(is_ill_conditioned(R"(    %mul = call_function[target=aten::mul.Tensor](args = (%x, 100000))
    %sin = call_function[target=aten::sin](args = (%mul,))
    return sin
)"));
  // However the inputs are moved, it is one, and the two are equal.
  EXPECT_TRUE(is_ill_conditioned(R"(    %div = call_function[target=aten::div.Tensor](args = (%x, %x))
    %floor = call_function[target=aten::floor](args = (%div,))
    return floor
)"));
  EXPECT_TRUE(is_ill_conditioned(R"(    %exp = call_function[target=aten::exp](args = (%x,))
    %again = call_function[target=aten::exp](args = (%x,))
    %eq = call_function[target=aten::eq.Tensor](args = (%exp, %again))
    return eq
)"));
}

TEST(HostileJudge, ExcusesNothingElse) {
  EXPECT_FALSE(is_ill_conditioned(R"(    %log = call_function[target=aten::log](args = (%x,))
    %mean = call_function[target=aten::mean](args = (%x,))
    %add = call_function[target=aten::add.Tensor](args = (%log, %mean))
    %gt = call_function[target=aten::gt.Scalar](args = (%add, 100.0))
    return (add, gt)
)"));
  // Writes and views are no rounding, and stay what they are.
  EXPECT_FALSE(is_ill_conditioned(R"(    %clone = call_function[target=aten::clone](args = (%x,))
    %row = call_function[target=aten::select.int](args = (%clone, 0, 1))
    %relu = call_function[target=aten::relu_](args = (%row,))
    %add = call_method[target=add_](args = (%clone, 1))
    return (row, add)
)"));
}

}  // namespace fx::hostile_judge_test
