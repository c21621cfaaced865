// What calls of modules do, in Effects: they read, write and return tensors that no edge leads to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <fxgraph/analysis/effects.h>

namespace fx::module_info_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

TEST(ModuleInfo, ModulesThatWriteTheirState) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& mean = graph.get_attr("block.bn.running_mean");
  Node& other = graph.get_attr("block.conv.weight");
  Node& bn = graph.call_module("block.bn", {x});
  Node& again = graph.get_attr("block.bn.running_mean");
  Node& sum = graph.call_function("aten::add.Tensor", {again, other});
  graph.output(Argument::tuple({bn, sum}));
  const ModuleInfo trains{
      .effects = [](const Node& call) { return NodeEffects{.writes = call.target() == "block.bn"}; }};
  const Effects effects(graph, {.modules = trains});
  EXPECT_TRUE(effects.writes(bn));
  EXPECT_EQ(effects.write_between(mean, mean, sum), &bn);
  EXPECT_EQ(effects.write_between(other, other, sum), nullptr);
  EXPECT_TRUE(Effects(graph).written_sets(bn).empty());
  // Where the program says what the module holds, that is written, whatever its path.
  ModuleInfo says = trains;
  says.state = [](Symbol, const auto& visit) { visit(Symbol("block.conv.weight")); };
  const Effects said(graph, {.modules = says});
  EXPECT_EQ(said.write_between(mean, mean, sum), nullptr);
  EXPECT_EQ(said.write_between(other, other, sum), &bn);
}

// A module reads the tensors that it holds, though no edge says so.
TEST(ModuleInfo, ModulesReadTheirState) {
  for (const bool says_state : {true, false}) {
    Graph graph;
    Node& x = graph.placeholder("x");
    Node& before = graph.call_module("layer", {x});
    Node& weight = graph.get_attr("layer.weight");
    Node& write = graph.call_function("aten::add_.Scalar", {weight, 1});
    Node& after = graph.call_module("layer", {x});
    Node& other = graph.call_module("other", {x});
    graph.output(Argument::tuple({before, after, other}));
    ModuleInfo modules{.effects = [](const Node&) { return NodeEffects{}; }};
    if (says_state) {
      modules.state = [](Symbol module, const auto& visit) {
        if (module == "layer") visit(Symbol("layer.weight"));
      };
    }
    const Effects effects(graph, {.modules = modules});
    const Effects::Set set = effects.sets(weight)[0];
    EXPECT_THAT(effects.state_sets(before), ElementsAre(set));
    EXPECT_TRUE(effects.state_sets(other).empty());
    EXPECT_THAT(effects.state_readers(set), ElementsAre(&before, &after));
    EXPECT_THAT(effects.readers(write), ElementsAre(&after));
    EXPECT_FALSE(effects.may_swap(before, write));
    EXPECT_FALSE(effects.may_swap(write, after));
    EXPECT_TRUE(effects.may_swap(write, other));
    const OrderEdges order = effects.order_edges();
    EXPECT_THAT(order.before(write), ElementsAre(&before));
    EXPECT_THAT(order.before(after), ElementsAre(&write));
    EXPECT_THAT(order.before(other), IsEmpty());
  }
}

// A module may return a tensor that it holds, as GraphModules do.
TEST(ModuleInfo, ModulesThatReturnTheirState) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& weight = graph.get_attr("weight");
  Node& made = graph.call_module("layer", {x});
  graph.output(Argument::tuple({weight, made}));
  ModuleInfo modules{.effects = [](const Node&) { return NodeEffects{.may_alias = true, .may_alias_state = true}; }};
  modules.state = [](Symbol, const auto& visit) { visit(Symbol("weight")); };
  const Effects effects(graph, {.modules = modules});
  EXPECT_TRUE(effects.may_alias(weight, made));
  EXPECT_TRUE(std::ranges::any_of(effects.sets(made), [&](Effects::Set set) { return effects.is_external(set); }));
}

// Graphs that a call runs may be called as modules, too: what one writes the other reads.
TEST(ModuleInfo, GraphsThatCallsRunHoldTensors) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& body = graph.get_attr("body");
  Node& runs = graph.call_function("higher_order::wrap", {body, x});
  Node& made = graph.call_module("body", {x});
  Node& weight = graph.get_attr("body.weight");
  Node& read = graph.call_function("aten::neg", {weight});
  graph.output(Argument::tuple({runs, made, read}));
  ModuleInfo modules{.effects = [](const Node&) { return NodeEffects{}; }};
  modules.state = [](Symbol module, const auto& visit) {
    if (module == "body") visit(Symbol("body.weight"));
  };
  const Effects effects(graph, {.modules = modules});
  EXPECT_FALSE(effects.may_swap(runs, made));
  EXPECT_FALSE(effects.may_swap(runs, read));
  EXPECT_TRUE(effects.may_swap(made, read));
  EXPECT_THAT(effects.order_edges().before(made), Contains(&runs));
  EXPECT_THAT(effects.readers(runs), IsSupersetOf({&made, &read}));
}

}  // namespace fx::module_info_test
