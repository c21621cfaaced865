// Seeds, random draws, and what switches the mode that calls are made in.
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/rewriter/common_subexpression.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/print.h>
#include "tests/support/short_graph.h"

namespace fx::draws_and_modes_test {

using testing::graph_of;

void expect_refused(Graph& graph, const Pattern& pattern, const Replacement& replacement, const std::string& why) {
  const std::string before = print_graph(graph);
  std::ostringstream report;
  report << replace_pattern(graph, pattern, replacement);
  EXPECT_EQ(report.str(), "applied 0; refused 1 (" + why + ")");
  EXPECT_EQ(print_graph(graph), before);
}

TEST(DrawsAndModes, DrawsStayBehindTheirSeedAndCallsInTheirMode) {
  struct Case {
    const char *between, *why;
  };
  for (const Case& c :
       {Case{"m = aten::manual_seed(1)", "n: a random draw and a side effect would change places: m lies in between"},
        Case{"m = aten::set_grad_enabled(False)", "n: m switches gradients or autocast on or off in between"},
        Case{"m = torch._C._set_grad_enabled(False)", "n: m switches gradients or autocast on or off in between"},
        Case{"m = torch.amp.autocast_mode._enter_autocast('cpu', None, True, None)",
             "n: m switches gradients or autocast on or off in between"}}) {
    Graph graph = graph_of(std::string("a = aten::rand_like(%x)\n") + c.between + "\nn = aten::neg(%a)\nreturn n");
    expect_refused(graph, "aten::neg(aten::rand_like(x))", "aten::neg(aten::randn_like(x))", c.why);
  }
  Graph seed = graph_of("a = aten::sin(%x)\nm = aten::manual_seed(1)\nn = aten::neg(%a)\nreturn n");
  EXPECT_EQ(replace_pattern(seed, "aten::neg(aten::sin(x))", "aten::cos(x)").applied, 1u) << "draws nothing";
  Graph mode = graph_of("a = aten::sin(%x)\nm = aten::set_grad_enabled(False)\nn = aten::neg(%a)\nreturn n");
  expect_refused(mode, "aten::neg(aten::sin(x))", "aten::cos(x)",
                 "n: m switches gradients or autocast on or off in between");
}

// native_dropout that is switched off clones what it takes, where dropout hands it on.
TEST(DrawsAndModes, WhatMayBeACopyAndIsWrittenStaysTwo) {
  for (const bool written : {true, false}) {
    Graph graph;
    Node& x = graph.placeholder("x");
    std::vector<Node*> values;
    for (int i = 0; i < 2; ++i) {
      Node& call = graph.call_function("aten::native_dropout", {x, 0.5, false});
      values.push_back(&graph.call_function("operator.getitem", {call, 0}));
    }
    if (written) graph.call_function("aten::add_.Scalar", {*values[0], 100});
    graph.output(graph.call_function("aten::cat", {Argument::list({*values[0], *values[1]})}));
    EXPECT_EQ(eliminate_common_subexpressions(graph), written ? 0u : 2u);
  }
}

}  // namespace fx::draws_and_modes_test
