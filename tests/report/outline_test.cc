#include <fxgraph/report/outline.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/ir/meta.h>
#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"

namespace fx::outline_test {

using ::testing::ElementsAre;

std::string label_of(const Graph& graph, const Outline& outline, const char* name) {
  return outline.groups()[outline.group_of(*graph.find(name))].label;
}

std::vector<std::string> labels(const Outline& outline) {
  std::vector<std::string> found;
  for (const Outline::Group& group : outline.groups()) found.push_back(group.label);
  return found;
}

TEST(Outline, NodesLieInTheModuleTheyCameFrom) {
  const Graph graph = load_graph_text("tests/corpus/torchfx113_resnet18.fx");
  const Outline outline(graph);
  EXPECT_EQ(label_of(graph, outline, "x"), "");
  EXPECT_EQ(label_of(graph, outline, "conv1"), "");
  EXPECT_EQ(label_of(graph, outline, "layer2_0_conv2"), "layer2.0");
  EXPECT_EQ(label_of(graph, outline, "layer2_0_downsample_1"), "layer2.0.downsample");
  EXPECT_EQ(label_of(graph, outline, "add"), "layer1.0") << "between two nodes of the block";
  EXPECT_EQ(label_of(graph, outline, "flatten"), "") << "between avgpool and fc";
  EXPECT_EQ(label_of(graph, outline, "output"), "");
}

TEST(Outline, NotesAndAttributesSayTheModuleToo) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& w = graph.get_attr("head.fc.weight");
  Node& h = graph.call_function("aten::linear", {x, w}, {}, "h");
  h.meta().set(meta_key::kModuleStack, std::string("head.fc"));
  Node& lonely = graph.call_function("aten::relu", {h}, {}, "lonely");
  lonely.meta().set(meta_key::kModuleStack, std::string("act"));
  graph.output(lonely);
  const Outline outline(graph);
  EXPECT_THAT(labels(outline), ElementsAre("", "head", "head.fc"));
  EXPECT_EQ(label_of(graph, outline, "h"), "head.fc");
  EXPECT_EQ(label_of(graph, outline, "lonely"), "") << "a module of one node is no group";
}

TEST(Outline, LongFlatGraphsAreCutWhereFewValuesPass) {
  // Pairs of parallel chains of 19 nodes that meet in one: a good place to cut every 39 nodes.
  Graph graph;
  Node* value = &graph.placeholder("x");
  for (int block = 0; block < 50; ++block) {
    Node *a = value, *b = value;
    for (int i = 0; i < 19; ++i) a = &graph.call_function("aten::relu", {*a});
    for (int i = 0; i < 19; ++i) b = &graph.call_function("aten::neg", {*b});
    value = &graph.call_function("aten::add.Tensor", {*a, *b});
  }
  graph.output(*value);
  const Outline outline(graph);
  EXPECT_GT(outline.groups().size(), 20u);
  EXPECT_LT(outline.groups().size(), 60u);
  std::size_t good = 0;
  for (const Node& node : graph.nodes()) {
    const Node* before = node.previous();
    if (!before || outline.group_of(node) == outline.group_of(*before) || node.is(Op::output)) continue;
    good += before->is_call("aten::add.Tensor");
  }
  EXPECT_EQ(good, outline.groups().size() - 2) << "every stage but the first begins after a join";
}

TEST(Outline, StagesKeepParametersBesideTheirUser) {
  Graph graph;
  Node* value = &graph.placeholder("x");
  std::vector<Node*> weights;
  for (int i = 0; i < 100; ++i) weights.push_back(&graph.placeholder("w" + std::to_string(i)));
  std::vector<Node*> calls;
  for (Node* weight : weights) calls.push_back(value = &graph.call_function("aten::mul.Tensor", {*value, *weight}));
  graph.output(*value);
  const Outline outline(graph);
  ASSERT_GT(outline.groups().size(), 3u);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(outline.group_of(*weights[i]), outline.group_of(*calls[i]));
  }
}

TEST(Outline, ManyModulesAreCutIntoStagesToo) {
  Graph graph;
  Node* value = &graph.placeholder("x");
  for (int block = 0; block < 200; ++block) {
    Node* skip = value;
    for (const char* part : {".norm", ".fc"})
      value = &graph.call_module("blocks." + std::to_string(block) + part, {*value});
    value = &graph.call_function("aten::add.Tensor", {*value, *skip});
  }
  graph.output(*value);
  const Outline outline(graph);
  const auto& groups = outline.groups();
  std::vector<std::size_t> items(groups.size(), 0);
  for (std::size_t i = 1; i < groups.size(); ++i) ++items[static_cast<std::size_t>(groups[i].parent)];
  for (const Node& node : graph.nodes()) ++items[outline.group_of(node)];
  for (const std::size_t count : items) EXPECT_LE(count, Outline::kMaxMembers);
  const auto parent_of = [&](const char* name) { return groups[outline.group_of(*graph.find(name))].parent; };
  EXPECT_TRUE(groups[static_cast<std::size_t>(parent_of("blocks_0_fc"))].is_stage);
  EXPECT_EQ(parent_of("blocks_0_fc"), parent_of("blocks_1_fc"));
  EXPECT_NE(parent_of("blocks_0_fc"), parent_of("blocks_199_fc"));
}

TEST(Outline, ParentsComeFirstAndEveryNodeHasAGroup) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = testing::random_graph(seed, testing::random_options(seed, 600));
    const Outline outline(graph);
    const auto& groups = outline.groups();
    ASSERT_EQ(groups[0].parent, -1);
    for (std::size_t i = 1; i < groups.size(); ++i) ASSERT_LT(groups[i].parent, static_cast<std::int32_t>(i)) << seed;
    std::vector<std::size_t> members(groups.size(), 0);
    for (const Node& node : graph.nodes()) ASSERT_LT(outline.group_of(node), groups.size()) << seed;
  }
  EXPECT_THAT(labels(Outline(Graph())), ElementsAre(""));
}

TEST(OutlineNight, LargeGraphs) {
  for (const Graph& graph : {testing::chain(100'000), testing::fan(100'000), testing::ladder(100'000)}) {
    EXPECT_LT(Outline(graph).groups().size(), 2000u);
  }
}

}  // namespace fx::outline_test
