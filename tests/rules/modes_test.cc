// An optimised program holds for the mode in which it was optimised, where that matters: train() says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx::modes_test {

std::shared_ptr<GraphModule> program(const std::string& lines) {
  auto made = std::make_shared<GraphModule>(parse_graph("graph():\n%x = placeholder[target=x]\n" + lines));
  GraphModule& gm = *made;
  gm.add_submodule("dropout", torch::nn::Dropout(0.5).ptr());
  gm.add_submodule("linear", torch::nn::Linear(3, 3).ptr());
  gm.add_submodule("conv", torch::nn::Conv2d(3, 3, 1).ptr());
  gm.add_submodule("norm", torch::nn::BatchNorm2d(3).ptr());
  gm.add_submodule("relu", torch::nn::ReLU().ptr());
  gm.eval();
  return made;
}

struct Case {
  const char* lines;
  std::vector<std::string> rules;
  bool follows;
};

TEST(Modes, WhatStandsForAModuleInEvaluationDoesNotTrain) {
  const Case cases[] = {
      {"%y = call_module[target=dropout](args = (%x,))\n%z = call_function[target=aten::mul.Tensor](args = (%y, %y))\n"
       "return z",
       {},
       false},
      {"%y = call_module[target=dropout](args = (%x,))\n%z = call_function[target=aten::mul.Tensor](args = (%y, %y))\n"
       "return z",
       {"common-subexpression"},
       true},
      {"%y = call_module[target=conv](args = (%x,))\n%n = call_module[target=norm](args = (%y,))\nreturn n", {}, false},
      {"%y = call_module[target=linear](args = (%x,))\n%n = call_module[target=relu](args = (%y,))\nreturn n",
       {"inline-modules"},
       true},
      {"%n = call_module[target=norm](args = (%x,))\n%y = call_module[target=relu](args = (%x,))\nreturn y", {}, false},
      {"%n = call_module[target=norm](args = (%x,))\n%y = call_module[target=norm](args = (%x,))\n%z = "
       "call_function[target=aten::add.Tensor](args = (%n, %y))\nreturn z",
       {"common-subexpression"},
       false},
      {"%n = call_module[target=linear](args = (%x,))\n%y = call_module[target=linear](args = (%x,))\n%z = "
       "call_function[target=aten::add.Tensor](args = (%n, %y))\nreturn z",
       {"common-subexpression"},
       true},
      {"%n = call_module[target=norm](args = (%x,))\n%y = call_module[target=linear](args = (%n,))\nreturn y",
       {"dead-code"},
       true},
  };
  for (const Case& each : cases) {
    const auto made = program(each.lines);
    GraphModule& gm = *made;
    optimize(gm, {.rules = each.rules});
    if (each.follows) {
      EXPECT_NO_THROW(gm.train()) << each.lines;
    } else {
      SCOPED_TRACE(print_graph(gm.graph()));
      EXPECT_THAT([&] { gm.train(); },
                  ::testing::ThrowsMessage<Error>(::testing::HasSubstr("in evaluation mode in its place")))
          << each.lines;
      EXPECT_NO_THROW(gm.eval());
    }
  }
}

}  // namespace fx::modes_test
