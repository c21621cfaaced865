// Who is asked for the number of dimensions: what goes into a layer instead of what comes out of it.
#include <ATen/ATen.h>
#include <fxgraph/module/inline_modules.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <gtest/gtest.h>

namespace fx::rank_questions_test {

/// The program `x -> linear -> batch_norm`, whose batch norm asks the layer's value for its rank; `between` comes
/// before the question.
std::shared_ptr<GraphModule> program(const at::Tensor& weight, const std::string& between = "") {
  auto module = std::make_shared<GraphModule>(Graph());
  module->set_attribute("w", weight);
  module->set_attribute("mean", at::zeros({3}));
  module->set_attribute("var", at::ones({3}));
  module->set_graph(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %w = get_attr[target=w]
    %y = call_function[target=torch.ops.aten.linear.default](args = (%x, %w))
)" + between + R"(    %rank = call_function[target=torch.ops.aten.dim.default](args = (%y,))
    %is_two = call_function[target=torch.ops.aten.eq.int](args = (%rank, 2))
    %check = call_function[target=torch._assert](args = (%is_two, "rank"))
    %mean = get_attr[target=mean]
    %var = get_attr[target=var]
    %z = call_function[target=torch.ops.aten.batch_norm.default](args = (%y, None, None, %mean, %var, False, 0.1, 0.5, True))
    return z
)"));
  return module;
}

std::string asked(const std::shared_ptr<GraphModule>& module) {
  Graph graph = module->graph().clone();
  ask_inputs_for_ranks(*module, graph);
  graph.lint();
  for (const Node& node : graph.nodes()) {
    if (node.name() == "rank") return node.arg(0).node().name();
  }
  return "nobody";
}

TEST(RankQuestions, GoToWhatALayerTakes) { EXPECT_EQ(asked(program(at::ones({3, 4}))), "x"); }

TEST(RankQuestions, StayWhereALayerTakesADimensionAway) { EXPECT_EQ(asked(program(at::ones({4}))), "y"); }

TEST(RankQuestions, StayWhereATensorGetsOthersInPlace) {
  const std::string between = "    %u = call_function[target=torch.ops.aten.unsqueeze_.default](args = (%x, 0))\n";
  EXPECT_EQ(asked(program(at::ones({3, 4}), between)), "y");
  const std::string harmless = "    %u = call_function[target=torch.ops.aten.relu_.default](args = (%x,))\n";
  EXPECT_EQ(asked(program(at::ones({3, 4}), harmless)), "x");
  const std::string unknown = "    %u = call_function[target=a.b](args = (%x,))\n";
  EXPECT_EQ(asked(program(at::ones({3, 4}), unknown)), "y");
}

}  // namespace fx::rank_questions_test
