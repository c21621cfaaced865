// Dead code: what torch.fx's test_dce_pass.py checks, and the wrong results found in it.
#include <gtest/gtest.h>

#include <fxgraph/effects/effects_of.h>

namespace fx::dead_code_test {

class DeadCode : public ::testing::Test {
 protected:
  // Removes dead code from a graph that returns `result`, and lists what is left.
  std::string left(Node& result, const ModuleInfo& modules = {}) {
    graph.output(result);
    const std::size_t before = graph.size();
    const std::size_t removed = eliminate_dead_code(graph, modules);
    EXPECT_EQ(before - graph.size(), removed);
    EXPECT_EQ(eliminate_dead_code(graph, modules), 0u) << "one pass is enough";
    graph.lint();
    std::string names;
    for (Node& node : graph.nodes()) names += (names.empty() ? "" : " ") + node.name();
    return names;
  }

  Graph graph;
  Node& x = graph.placeholder("x");
};

TEST_F(DeadCode, OneDeadOperator) {
  graph.call_function("aten::relu", {x}, {}, "dead");
  Node& live = graph.call_function("aten::neg", {x}, {}, "live");
  EXPECT_EQ(left(live), "x live output");
}

TEST_F(DeadCode, AChainInOneCall) {
  Node* node = &x;
  for (int i = 0; i < 1000; ++i) node = &graph.call_function("aten::relu", {*node});
  EXPECT_EQ(left(x), "x output");
}

TEST_F(DeadCode, GetAttr) {
  graph.get_attr("weight");
  EXPECT_EQ(left(x), "x output");
}

TEST_F(DeadCode, PlaceholdersStay) {
  graph.placeholder("unused");
  EXPECT_EQ(left(x), "x unused output");
}

TEST_F(DeadCode, PlaceholderWithADeadUser) {
  Node& y = graph.placeholder("y");
  graph.call_function("aten::relu", {y}, {}, "dead");
  EXPECT_EQ(left(x), "x y output");
}

TEST_F(DeadCode, ModulesWithSideEffectsStay) {
  graph.call_module("pure", {x});
  graph.call_module("logger", {x});
  const ModuleInfo modules{
      .effects = [](const Node& call) { return NodeEffects{.side_effect = call.target() == "logger"}; }};
  EXPECT_EQ(left(x, modules), "x logger output");
}

TEST_F(DeadCode, AssertsStay) {
  Node& positive = graph.call_function("aten::gt.Scalar", {x, 0}, {}, "positive");
  graph.call_function("torch._assert", {positive, "x must be positive"}, {}, "check");
  graph.call_function("aten::_assert_async", {positive}, {}, "check_later");
  EXPECT_EQ(left(x), "x positive check check_later output");
}

TEST_F(DeadCode, SetitemStays) {
  Node& y = graph.call_function("aten::clone", {x}, {}, "y");
  graph.call_function("operator.setitem", {y, 0, 1.0}, {}, "store");
  EXPECT_EQ(left(y), "x y store output");
}

TEST_F(DeadCode, InPlaceOperatorsStay) {
  Node& y = graph.call_function("aten::clone", {x}, {}, "y");
  graph.call_function("aten::add_.Tensor", {y, x}, {}, "function");
  graph.call_method("add_", {y, x}, {}, "method");
  graph.call_function("operator.iadd", {y, x}, {}, "iadd");
  graph.call_function("torch.nn.functional.relu", {y}, {{"inplace", true}}, "functional");
  graph.call_function("torch.relu_", {y}, {}, "underscore");
  graph.call_function("aten::relu_", {y}, {}, "relu");
  EXPECT_EQ(left(y), "x y function method iadd functional underscore relu output");
}

TEST_F(DeadCode, WritesToKeywordArgumentsStay) {
  Node& y = graph.call_function("aten::clone", {x}, {}, "y");
  graph.call_function("aten::add.out", {x, x}, {{"out", y}}, "overload");
  graph.call_function("torch.add", {x, x}, {{"out", y}}, "python");
  EXPECT_EQ(left(y), "x y overload python output");
}

TEST_F(DeadCode, RandomOperatorsStay) {
  const Argument shape = Argument::list({2, 2});
  graph.call_function("aten::rand", {shape}, {}, "rand");
  graph.call_function("torch.randn", {2, 2}, {}, "randn");
  graph.call_function("aten::rand.generator", {shape}, {{"generator", Argument::opaque("generator")}},
                      "with_generator");
  graph.call_function("aten::dropout", {x, 0.5, true}, {}, "train");
  graph.call_function("aten::dropout", {x, 0.5, false}, {}, "eval");
  EXPECT_EQ(left(x), "x rand randn with_generator train output");
}

TEST_F(DeadCode, UnknownFunctionsStay) {
  graph.call_function("my_module.f", {x}, {}, "f");
  graph.call_method("my_method", {x}, {}, "m");
  graph.call_function("mylib::op", {x}, {}, "op");
  EXPECT_EQ(left(x), "x f m op output");
}

TEST_F(DeadCode, RunningStatisticsAreAnEffect) {
  Node& mean = graph.get_attr("mean");
  Node& var = graph.get_attr("var");
  const Argument none;
  graph.call_function("aten::batch_norm", {x, none, none, mean, var, true, 0.1, 1e-5, true}, {}, "train");
  graph.call_function("aten::batch_norm", {x, none, none, mean, var, false, 0.1, 1e-5, true}, {}, "eval");
  EXPECT_EQ(left(x), "x mean var train output");
}

TEST_F(DeadCode, ACallerMayDecide) {
  graph.call_function("aten::relu", {x}, {}, "kept");
  graph.call_function("aten::neg", {x}, {}, "dead");
  EXPECT_EQ(graph.eliminate_dead_code([](const Node& node) { return node.target() == "aten::relu"; }), 1u);
  EXPECT_EQ(left(x), "x output") << "by the schemas it is dead";
}

TEST_F(DeadCode, CollectivesStay) {
  register_schema("_c10d_functional::all_gather(Tensor input, int size, str group) -> Tensor");
  graph.call_function("_c10d_functional::all_gather", {x, 2, "g"}, {}, "gather");
  graph.call_function("torch.ops._c10d_functional.all_gather.default", {x, 2, "g"}, {}, "spelt");
  EXPECT_EQ(left(x), "x gather spelt output");
}

TEST_F(DeadCode, SideEffectsOfPackets) {
  register_schema("dead_code_test::tell.default(Tensor x) -> Tensor", {.side_effect = true});
  register_schema("dead_code_test::tell.loudly(Tensor x, int n) -> Tensor", {.side_effect = true});
  graph.call_function("dead_code_test::tell", {x}, {}, "packet");
  graph.call_function("dead_code_test::tell", {x, 1}, {}, "overload");
  EXPECT_EQ(left(x), "x packet overload output");
}

TEST_F(DeadCode, OperatorsThatReturnNothingStay) {
  register_schema("dead_code_test::publish(Tensor x) -> ()");
  graph.call_function("dead_code_test::publish", {x}, {}, "publish");
  EXPECT_EQ(left(x), "x publish output");
}

TEST_F(DeadCode, LongDeadChainsAreLinear) {
  Node* node = &x;
  for (int i = 0; i < 300000; ++i) node = &graph.call_function("aten::relu", {*node});
  graph.output(x);
  EXPECT_EQ(eliminate_dead_code(graph), 300000u);
}

}  // namespace fx::dead_code_test
