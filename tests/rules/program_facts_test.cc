// A rule that went by the rank or type of the example leaves an assertion where the program took others
// (rewriter/rules/program_facts.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/rewriter/rules/program_facts.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/parse.h>
#include "tests/support/error_of.h"

namespace fx::program_facts_test {

using torch::Tensor;

struct Case {
  const char* name;
  const char* rule;
  const char* calls;  ///< make %y of %x and %w
  Tensor example;
  std::vector<Tensor> equal;    ///< what is computed as before
  std::vector<Tensor> refused;  ///< what the program took, and its result would differ for
  const char* why;
};

GraphModule program(const Case& each) {
  return GraphModule({{"w", torch::ones({4, 3})}, {"n", torch::tensor(0.3, torch::kDouble)}},
                     parse_graph("graph():\n    %x = placeholder[target=x]\n    %w = get_attr[target=w]\n" +
                                 std::string(each.calls) + "    return y\n"));
}

std::vector<Case> cases() {
  const Tensor numbers = torch::rand({4}), rows = torch::rand({2, 3});
  return {
      {"own_shape",
       "reshapes",
       "    %r = call_function[target=torch.ops.aten.reshape.default](args = (%x, [-1]))\n"
       "    %y = call_function[target=torch.ops.aten.neg.default](args = (%r,))\n",
       numbers,
       {torch::rand({7})},
       {rows, torch::rand({})},
       "x must be of 1 dimension"},
      {"squeeze",
       "squeezes",
       "    %l = call_function[target=torch.ops.aten.linear.default](args = (%x, %w))\n"
       "    %s = call_function[target=torch.ops.aten.squeeze.dim](args = (%l, 1))\n"
       "    %y = call_function[target=torch.ops.aten.neg.default](args = (%s,))\n",
       rows,
       {torch::rand({1, 3})},
       {torch::rand({2, 1, 3})},
       "x must be of 2 dimensions"},
      {"cast",
       "casts",
       "    %t = call_function[target=torch.ops.aten.to.dtype](args = (%x, torch.float32))\n"
       "    %y = call_function[target=torch.ops.aten.neg.default](args = (%t,))\n",
       rows,
       {torch::rand({3, 1, 2})},
       {rows.to(torch::kDouble), rows.to(torch::kLong)},
       "x must be torch.float32"},
      {"product",
       "identity-arithmetic",
       "    %m = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, 1.0))\n"
       "    %y = call_function[target=torch.ops.aten.neg.default](args = (%m,))\n",
       rows,
       {numbers},
       {torch::arange(3), torch::rand(3).to(torch::kDouble)},
       "x must be torch.float32"},
      {"in_place",
       "in-place",
       "    %f = call_function[target=torch.ops.aten.floor.default](args = (%x,))\n"
       "    %o = call_function[target=torch.ops.aten.ones_like.default](args = (%x,), kwargs = {dtype: "
       "torch.float32})\n"
       "    %y = call_function[target=torch.ops.aten.mul.Tensor](args = (%f, %o))\n",
       torch::rand({4, 3}) * 9,
       {torch::rand({2, 1, 7})},
       {torch::ones({4, 3}, torch::kBFloat16), torch::ones({4, 3}, torch::kLong)},
       "x must be torch.float32"},
      {"literal_operand",
       "literal-operands",
       "    %n = get_attr[target=n]\n"
       "    %y = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, %n))\n",
       rows,
       {numbers},
       {torch::arange(3)},
       "x must be torch.float32"},
      {"nested_concatenation",
       "concatenations",
       "    %i = call_function[target=torch.ops.aten.cat.default](args = ([%x, %w], 0))\n"
       "    %y = call_function[target=torch.ops.aten.cat.default](args = ([%i, %w], 0))\n",
       rows,
       {torch::rand({7, 3})},
       {torch::ones({2, 3}, torch::kLong)},
       "x must be torch.float32"},
  };
}

class InputForms : public ::testing::TestWithParam<std::size_t> {};

TEST_P(InputForms, AreAssertedWhereTheProgramTakesOthers) {
  const Case each = cases()[GetParam()];
  GraphModule before = program(each), after = program(each);
  const OptimizeOptions options{.rules = {each.rule}, .inputs = {tensor_info(each.example)}};
  EXPECT_EQ(optimize(after, options).applied(), 1u) << each.name;
  std::vector<Tensor> equal = each.equal;
  equal.push_back(each.example);
  for (const Tensor& x : equal) EXPECT_TRUE(after.run({x}).toTensor().equal(before.run({x}).toTensor())) << each.name;
  for (const Tensor& x : each.refused) {
    EXPECT_NO_THROW(before.run({x}));
    try {
      after.run({x});
      ADD_FAILURE() << each.name << " runs on " << x.sizes() << after.graph();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(each.why), std::string::npos) << error.what();
    }
  }
  // Once more changes nothing.
  const std::size_t size = after.graph().size();
  optimize(after, options);
  EXPECT_EQ(after.graph().size(), size) << each.name;
}

INSTANTIATE_TEST_SUITE_P(Table, InputForms, ::testing::Range<std::size_t>(0, cases().size()),
                         [](const auto& info) { return std::string(cases()[info.param].name); });

TEST(InputForms, AreNotAssertedWhereTheProgramTakesNoOthers) {
  const Tensor x = torch::rand({2, 3, 8, 8});
  GraphModule module({{"w", torch::rand({4, 3, 3, 3})}},
                     parse_graph("graph():\n    %x = placeholder[target=x]\n    %w = get_attr[target=w]\n"
                                 "    %c = call_function[target=torch.ops.aten.conv2d.default](args = (%x, %w))\n"
                                 "    %t = call_function[target=torch.ops.aten.to.dtype](args = (%c, torch.float32))\n"
                                 "    return t\n"));
  EXPECT_EQ(optimize(module, {.rules = {"casts"}, .inputs = {tensor_info(x)}}).applied(), 1u);
  EXPECT_TRUE(module.graph().find_nodes(Op::call_function, Symbol("torch._assert")).empty()) << module.graph();
}

TEST(InputForms, AreListedOrKept) {
  const auto made = [] {
    return GraphModule(
        GraphModule::Attributes(),
        parse_graph("graph():\n    %x = placeholder[target=x]\n"
                    "    %r = call_function[target=torch.ops.aten.reshape.default](args = (%x, [-1]))\n"
                    "    %y = call_function[target=torch.ops.aten.neg.default](args = (%r,))\n    return y\n"));
  };
  const std::vector<TensorInfo> inputs = {tensor_info(torch::rand({4}))};
  GraphModule held = made(), kept = made();
  const OptimizeReport report = optimize(held, {.rules = {"reshapes"}, .inputs = inputs});
  ASSERT_EQ(report.held.size(), 1u);
  EXPECT_EQ(report.held[0].input + " " + report.held[0].form + " " + report.held[0].rule,
            "x of 1 dimension reshapes/own-shape");
  const OptimizeReport refused = optimize(kept, {.rules = {"reshapes"}, .inputs = inputs, .keep_sizes = true});
  EXPECT_EQ(refused.applied(), 0u);
  EXPECT_TRUE(refused.held.empty());
  ASSERT_EQ(refused.rules[0].refused.size(), 1u);
  EXPECT_THAT(refused.rules[0].refused[0].reason, ::testing::HasSubstr("hold x to be of 1 dimension"));
}

// A rule of one's own is answered for likewise.
TEST(InputForms, OfOnesOwnRulesAreAsserted) {
  GraphModule module(
      GraphModule::Attributes(),
      parse_graph("graph():\n    %x = placeholder[target=x]\n"
                  "    %y = call_function[target=torch.ops.aten.abs.default](args = (%x,))\n    return y\n"));
  const RuleSet rules = {{.name = "mine",
                          .pattern = "aten::abs(x: node)",
                          .when = [](const Match& m) -> Decision { return m.info("x")->sizes.size() == 2; },
                          .replacement = "aten::relu(x)"}};
  rules::ProgramFacts facts(module, {tensor_info(torch::rand({2, 3}))});
  EXPECT_TRUE(rewrite_to_fixed_point(module, rules, facts.driver()).changed());
  facts.assert_required();
  EXPECT_NO_THROW(module.run({torch::rand({4, 5})}));
  EXPECT_THAT(testing::error_of([&] { module.run({torch::rand({4})}); }), ::testing::HasSubstr("mine went by that"));
}

// What is normalised in half precision is of that type again; what is decomposed is of that of the statistics.
TEST(InputForms, OfNormalisationsAreAsserted) {
  const at::NoGradGuard no_grad;
  const GraphModule before(
      {{"mean", torch::rand({3})}, {"variance", torch::rand({3}) + 0.5}},
      parse_graph("graph():\n    %x = placeholder[target=x]\n    %m = get_attr[target=mean]\n"
                  "    %v = get_attr[target=variance]\n"
                  "    %y = call_function[target=torch.ops.aten.batch_norm.default](args = (%x, None, None, %m, %v, "
                  "False, 0.1, 0.01, True))\n    return y\n"));
  const Tensor x = torch::rand({2, 3, 4, 4});
  for (const char* rule : {"decompose-batch-norm", "lower-norm"}) {
    GraphModule plain(before, before.graph().clone()), after(before, before.graph().clone());
    const std::size_t applied = optimize(after, {.rules = {rule}, .inputs = {tensor_info(x)}}).applied();
    if (std::string(rule) == "lower-norm" && applied == 0) continue;  // LibTorch's own was the fastest
    EXPECT_EQ(applied, 1u) << rule;
    EXPECT_TRUE(after.run({x}).toTensor().allclose(plain.run({x}).toTensor(), 1e-4, 1e-5)) << rule;
    EXPECT_NO_THROW(plain.run({x.to(torch::kBFloat16)}));
    EXPECT_THAT(testing::error_of([&] { after.run({x.to(torch::kBFloat16)}); }),
                ::testing::HasSubstr("x must be torch.float32"));
    EXPECT_NO_THROW(plain.run({torch::rand({4, 3, 4})}));
    EXPECT_THAT(testing::error_of([&] {
                  after.run({torch::rand({4, 3, 4})});
                }),
                ::testing::HasSubstr("x must be of 4 dimensions"));
  }
}

TEST(InputForms, OfViewsOfViewsAreOfNoConcern) {
  GraphModule module(
      GraphModule::Attributes(),
      parse_graph("graph():\n    %x = placeholder[target=x]\n"
                  "    %v = call_function[target=torch.ops.aten.view.default](args = (%x, [-1]))\n"
                  "    %w = call_function[target=torch.ops.aten.view.default](args = (%v, [2, -1]))\n    return w\n"));
  const Tensor x = torch::rand({2, 3});
  EXPECT_GT(optimize(module, {.rules = {"reshapes"}, .inputs = {tensor_info(x)}}).applied(), 0u);
  const Tensor other = torch::rand({2, 3, 4});
  EXPECT_TRUE(module.run({other}).toTensor().equal(other.view({2, -1})));
}

TEST(InputForms, AreNotAssertedOfInputsThatTheProgramDoesNotTake) {
  GraphModule module(GraphModule::Attributes(),
                     parse_graph("graph():\n    %x = placeholder[target=x]\n"
                                 "    %u = call_function[target=torch.ops.aten.unsqueeze.default](args = (%x, 1))\n"
                                 "    %s = call_function[target=torch.ops.aten.squeeze.dim](args = (%u, 1))\n"
                                 "    %n = call_function[target=torch.ops.aten.neg.default](args = (%s,))\n"
                                 "    return n\n"));
  const TensorInfo one = tensor_info(torch::rand({2, 3}));
  EXPECT_EQ(optimize(module, {.rules = {"squeezes"}, .inputs = {one, one, one}}).applied(), 1u);
  EXPECT_TRUE(module.graph().find_nodes(Op::call_function, Symbol("torch._assert")).empty()) << module.graph();
}

}  // namespace fx::program_facts_test
