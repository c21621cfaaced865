// Proofs by running: equality, the first node that differs, and which rewrite is to blame.
#include <fxgraph/rewriter/program/verify.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/text/parse.h>

namespace fx::verify_test {

using ::testing::HasSubstr;

std::shared_ptr<GraphModule> program(const char* body) {
  return std::make_shared<GraphModule>(parse_graph(std::string("graph():\n    %x = placeholder[target=x]\n") + body));
}

constexpr const char* kProgram =
    "    %a = call_function[target=aten::sin](args = (%x,))\n"
    "    %b = call_function[target=aten::mul.Scalar](args = (%a, 2.0))\n"
    "    %c = call_function[target=aten::cos](args = (%b,))\n"
    "    return c\n";

TEST(Verify, NothingIsComparedOnNothing) {
  const auto module = program(kProgram);
  EXPECT_THROW(verify_equivalent(*module, *module, {}), Error);
}

TEST(Verify, EqualProgramsAreEqual) {
  const auto before = program(kProgram), after = program(kProgram);
  const Verification check = verify_equivalent(*before, *after, {{at::randn({3})}, {at::randn({2, 2})}});
  EXPECT_TRUE(check.equal);
  EXPECT_EQ(check.rounds, 2u);
  EXPECT_EQ(check.largest, 0);
}

TEST(Verify, TheFirstNodeThatDiffersIsNamed) {
  const auto before = program(kProgram), after = program(kProgram);
  after->graph().find_nodes(Op::call_function, "aten::mul.Scalar").front()->update_arg(1, Argument(2.5));
  const Verification check = verify_equivalent(*before, *after, {{at::ones({3})}});
  EXPECT_FALSE(check.equal);
  EXPECT_EQ(check.node, "b");
  std::ostringstream out;
  out << check;
  EXPECT_THAT(out.str(), HasSubstr("from b on: Float[3] before, Float[3] after"));
}

TEST(Verify, WhatIsWrittenIntoTheInputsCounts) {
  const auto before = program("    %a = call_function[target=aten::add_.Scalar](args = (%x, 1))\n    return a\n");
  const auto after = program("    %a = call_function[target=aten::add.Scalar](args = (%x, 1))\n    return a\n");
  EXPECT_FALSE(verify_equivalent(*before, *after, {{at::ones({3})}}).equal);
}

TEST(Verify, NonFiniteValuesMustBeInTheSamePlaces) {
  const at::Tensor nan = at::tensor({1.0, NAN, INFINITY});
  EXPECT_EQ(relative_difference(nan, nan.clone()), 0);
  EXPECT_EQ(relative_difference(nan, at::tensor({1.0, NAN, -INFINITY})), INFINITY);
  EXPECT_EQ(relative_difference(nan, at::tensor({1.0, 1.0, INFINITY})), INFINITY);
  EXPECT_EQ(relative_difference(at::ones({2}), at::ones({2, 1})), INFINITY);
  EXPECT_EQ(relative_difference(at::ones({2}), at::ones({2}, at::kDouble)), INFINITY);
}

TEST(Verify, RandomNumbersAreDrawnAlike) {
  const char* body = "    %a = call_function[target=aten::rand_like](args = (%x,))\n    return a\n";
  const auto before = program(body), after = program(body);
  EXPECT_TRUE(verify_equivalent(*before, *after, {{at::ones({3})}}).equal);
}

TEST(Bisect, NamesTheRuleAndThePlace) {
  std::string body;
  for (int i = 0; i < 20; ++i) {
    const std::string input = i == 0 ? "x" : "n" + std::to_string(i - 1);
    const std::string target = i == 13 ? "aten::relu" : "aten::sin";
    body += "    %n" + std::to_string(i) + " = call_function[target=" + target + "](args = (%" + input + ",))\n";
  }
  const auto module = program((body + "    return n19\n").c_str());
  const auto rules = [](GraphModule&) {
    return RuleSet{{.name = "sin-cos",
                    .pattern = "aten::sin(x)",
                    .replacement = "aten::neg(aten::sin(aten::neg(x)))",
                    .may_repeat = true},
                   {.name = "wrong", .pattern = "aten::relu(x)", .replacement = "aten::abs(x)"}};
  };
  DriverOptions options;
  options.max_rewrites = 40;
  const auto culprit = bisect(*module, rules, {{at::full({2}, -1.0)}}, 1e-4, options);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->rule, "wrong");
  EXPECT_EQ(culprit->nodes, std::vector<std::string>{"abs_1"});
  EXPECT_EQ(rewrite_to_fixed_point(*module->clone_graph_module(), rules(*module), {.max_rewrites = 1}).applied, 1u);
}

TEST(Bisect, FindsNothingWhereAllIsRight) {
  const auto module = program("    %a = call_function[target=aten::relu](args = (%x,))\n    return a\n");
  const auto rules = [](GraphModule&) {
    return RuleSet{{.name = "right", .pattern = "aten::relu(x)", .replacement = "aten::clamp_min(x, 0)"}};
  };
  EXPECT_FALSE(bisect(*module, rules, {{at::randn({4})}}));
}

TEST(Copies, WhatSharesMemoryDoesSoInTheCopies) {
  const at::Tensor whole = torch::arange(6, torch::kFloat), alone = torch::ones({2});
  const std::vector<c10::IValue> values = {whole, whole, whole.slice(0, 2, 5, 2),
                                           std::vector<at::Tensor>{whole[1], alone}};
  const std::vector<c10::IValue> copies = copies_of(values);
  copies[0].toTensor().fill_(7);
  EXPECT_TRUE(copies[1].toTensor().is_same(copies[0].toTensor()));
  EXPECT_TRUE(copies[2].toTensor().equal(torch::full({2}, 7.0f)));
  EXPECT_EQ(copies[3].toTensorVector()[0].item<float>(), 7);
  EXPECT_TRUE(whole.equal(torch::arange(6, torch::kFloat)));
  copies[3].toTensorVector()[1].zero_();
  EXPECT_TRUE(alone.equal(torch::ones({2})));
}

}  // namespace fx::verify_test
