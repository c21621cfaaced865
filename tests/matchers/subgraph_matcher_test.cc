// torch.fx's SubgraphMatcher, case by case (test_matcher_utils.py), and what it reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "matchers/matcher.h"
#include "tests/support/short_graph.h"
#include "text/parse.h"

namespace fx {
namespace {

using testing::graph_of;

TEST(SubgraphMatcher, AttributesOfAnyNameMatch) {
  const Graph graph = graph_of("w = get_attr[target=big.weight]()\na = aten::add.Tensor(%x, %w)\nreturn a");
  const Graph pattern = graph_of("p = get_attr[target=p]()\na = aten::add.Tensor(%x, %p)\nreturn a");
  EXPECT_EQ(find(graph, pattern).size(), 1u);
  EXPECT_EQ(find(graph, Pattern(pattern, {.exact_attributes = true})).size(), 0u);
  EXPECT_EQ(find(graph, Pattern(graph, {.exact_attributes = true})).size(), 1u);
}

TEST(SubgraphMatcher, ListsOfNodesAndLiterals) {
  const Graph graph = graph_of("v = aten::expand(%x, [%s, 3])\nreturn v", "x s");
  EXPECT_EQ(find(graph, graph_of("v = aten::expand(%x, [%s, 3])\nreturn v", "x s")).size(), 1u);
  EXPECT_EQ(find(graph, graph_of("v = aten::expand(%x, [%s, %t])\nreturn v", "x s t")).size(), 1u);
  EXPECT_EQ(find(graph, graph_of("v = aten::expand(%x, [%s, 4])\nreturn v", "x s")).size(), 0u);
}

TEST(SubgraphMatcher, ListsOfOtherLengthDoNotMatch) {
  const Graph graph = graph_of("c = aten::cat([%x, [%y]])\nreturn c", "x y");
  EXPECT_EQ(find(graph, graph_of("c = aten::cat([%x, %y])\nreturn c", "x y")).size(), 1u)
      << "a wildcard stands for a list";
  EXPECT_EQ(find(graph, graph_of("c = aten::cat([[%x, %y]])\nreturn c", "x y")).size(), 0u);
  EXPECT_EQ(find(graph, graph_of("c = aten::cat([%x, [%y], %z])\nreturn c", "x y z")).size(), 0u);
}

TEST(SubgraphMatcher, LiteralsMayBeIgnored) {
  const Graph graph = graph_of("a = aten::add.Tensor(%x, 2)\nreturn a");
  const Graph pattern = graph_of("a = aten::add.Tensor(%x, 1)\nreturn a");
  EXPECT_EQ(find(graph, pattern).size(), 0u);
  EXPECT_EQ(find(graph, pattern, {.ignore_literals = true}).size(), 1u);
  const Graph node = graph_of("a = aten::add.Tensor(%x, %y)\nreturn a", "x y");
  EXPECT_EQ(find(node, pattern, {.ignore_literals = true}).size(), 0u);
}

TEST(SubgraphMatcher, DefaultsNeedNotBeWritten) {
  const Graph pattern = graph_of("c = aten::conv2d(%x, %w, %b, [1, 1], [0, 0], [1, 1], 1)\nreturn c", "x w b");
  EXPECT_EQ(find(graph_of("c = aten::conv2d(%x, %w, %b)\nreturn c", "x w b"), pattern).size(), 1u);
  EXPECT_EQ(find(graph_of("c = aten::conv2d(%x, %w, None, [1, 1])\nreturn c", "x w"), pattern).size(), 1u);
  EXPECT_EQ(find(graph_of("c = aten::conv2d(%x, %w, %b, [2, 2])\nreturn c", "x w b"), pattern).size(), 0u);
}

TEST(SubgraphMatcher, NamedNodesComeWithTheMatch) {
  const Graph graph =
      graph_of("c = aten::conv2d(%x, %w)\nr = aten::relu(%c)\nm = aten::mul.Tensor(%r, %c)\nreturn (m, c)", "x w");
  const Pattern pattern(graph_of(
      "conv = aten::conv2d(%a, %b)\nrelu = aten::relu(%conv)\nmul = aten::mul.Tensor(%relu, %conv)\nreturn (mul, conv)",
      "a b"));
  const std::vector<Match> matches = find(graph, pattern);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0]["conv"].name(), "c");
  EXPECT_EQ(matches[0]["a"].name(), "x");
  const InternalMatch all = internal_match(matches[0]);
  ASSERT_EQ(all.anchors.size(), 1u) << "conv is used inside, so it is no anchor";
  EXPECT_EQ(all.anchors[0]->name(), "m");
  ASSERT_EQ(all.returning_nodes.size(), 2u);
  EXPECT_EQ(all.returning_nodes[1]->name(), "c");
  ASSERT_EQ(all.placeholder_nodes.size(), 2u);
  EXPECT_EQ(all.placeholder_nodes[1].node().name(), "w");
  EXPECT_EQ(all.nodes_map.size(), 5u);
  EXPECT_EQ(all.name_node_map.size(), 5u);
}

TEST(SubgraphMatcher, OutputAndPlaceholdersMayTakePart) {
  const Graph graph = graph_of("a = aten::relu(%x)\nb = aten::neg(%a)\nreturn b");
  const Graph end = graph_of("b = aten::neg(%a)\nreturn b", "a");
  EXPECT_EQ(find(graph, Pattern(end, {.match_output = true})).size(), 1u);
  EXPECT_EQ(find(graph, Pattern(graph_of("b = aten::relu(%a)\nreturn b", "a"), {.match_output = true})).size(), 0u);
  EXPECT_EQ(find(graph, Pattern(end, {.match_placeholder = true})).size(), 0u);
  EXPECT_EQ(find(graph, Pattern(graph, {.match_output = true, .match_placeholder = true})).size(), 1u);
}

TEST(SubgraphMatcher, ModulesAreComparedByPath) {
  const Graph graph = parse_graph(
      "graph():\n    %x : = placeholder[target=x]\n    %l : = call_module[target=layer1.0](args = (%x,), kwargs = "
      "{})\n    return l\n");
  EXPECT_EQ(find(graph, "call_module[layer1.0](x)").size(), 1u);
  EXPECT_EQ(find(graph, "call_module[/layer\\d+\\.0/](x)").size(), 1u);
  EXPECT_EQ(find(graph, "call_module[layer2.0](x)").size(), 0u);
}

TEST(SubgraphMatcher, DeadCodeAndEmptyPatternsAreErrors) {
  EXPECT_THROW(Pattern(graph_of("a = aten::relu(%x)\nb = aten::neg(%x)\nreturn a")), Error);
  EXPECT_THROW(Pattern(graph_of("return %x")), Error);
  EXPECT_THROW(Pattern(Graph{}), Error);
  EXPECT_THROW(Pattern(graph_of("a = aten::relu(%x)\nreturn (a, 1)")), Error);
  // A call for its effect is no dead code.
  EXPECT_EQ(find(graph_of("n = aten::neg(%x)\na = aten::relu_(%n)\nb = aten::sin(%n)\nreturn b"),
                 graph_of("a = aten::relu_(%x)\nb = aten::sin(%x)\nreturn b"))
                .size(),
            1u);
}

TEST(SubgraphMatcher, TypedPlaceholdersAreHoles) {
  const Pattern pattern(
      parse_graph("graph():\n    %x : torch.Tensor [num_users=1] = placeholder[target=x]\n    %c : float [num_users=1] "
                  "= placeholder[target=c]\n"
                  "    %d : [num_users=1] = call_function[target=torch.ops.aten.div.Tensor](args = (%x, %c), kwargs = "
                  "{})\n    return d\n"));
  EXPECT_EQ(find(graph_of("d = aten::div.Tensor(%x, 2.0)\nreturn d"), pattern).size(), 1u);
  EXPECT_EQ(find(graph_of("d = aten::div.Tensor(%x, %x)\nreturn d"), pattern).size(), 0u);
  EXPECT_EQ(find(graph_of("d = aten::div.Tensor(3.0, 2.0)\nreturn d"), pattern).size(), 0u);
}

}  // namespace
}  // namespace fx
