// torch.fx's test/fx/test_matcher_utils.py, each case by its name there; what a match reports, and what the options of
// SubgraphMatcher do. The pattern classes of its test_fx_passes.py are in fx_passes_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/text/parse.h>
#include "tests/support/short_graph.h"

namespace fx::subgraph_matcher_test {

using testing::graph_of;

TEST(SubgraphMatcher, test_subgraph_matcher_with_attributes) {
  const Graph graph =
      graph_of("b = get_attr[target=_bias]()\nw = get_attr[target=_weight]()\na = aten::addmm(%b, %x, %w)\nreturn a");
  const Graph pattern = graph_of(
      "p = get_attr[target=_bias_1]()\nq = get_attr[target=_weight_1]()\na = aten::addmm(%p, %x, %q)\nreturn a");
  EXPECT_EQ(find(graph, pattern).size(), 1u);
  EXPECT_EQ(find(graph, Pattern(pattern, {.exact_attributes = true})).size(), 0u);
  EXPECT_EQ(find(graph, Pattern(graph, {.exact_attributes = true})).size(), 1u);
}

TEST(SubgraphMatcher, test_subgraph_matcher_with_list) {
  const Graph graph = graph_of("s = aten::size.int(%y, 0)\nv = aten::view(%x, [5, %s])\nreturn v", "x y");
  const auto of = [](const char* list) {
    return graph_of("s = aten::size.int(%y, 0)\nv = aten::view(%x, " + std::string(list) + ")\nreturn v", "x y z");
  };
  EXPECT_EQ(find(graph, of("[%z, %s]")).size(), 1u);
  EXPECT_EQ(find(graph, of("[5, %s]")).size(), 1u);
  EXPECT_EQ(find(graph, of("[4, %s]")).size(), 0u);
  EXPECT_EQ(find(graph, of("[%s, %z]")).size(), 0u);
}

TEST(SubgraphMatcher, test_subgraph_matcher_with_list_bad) {
  const std::string sizes = "s = aten::size.int(%y, 0)\nt = aten::size.int(%y, 1)\n";
  const Graph graph = graph_of(sizes + "r = aten::_reshape_alias_copy(%x, [1, %s], [%t, %t])\nreturn r", "x y");
  EXPECT_EQ(
      find(graph, graph_of(sizes + "r = aten::_reshape_alias_copy(%x, [%b, %s, %t], [%t])\nreturn r", "x y b")).size(),
      0u);
  EXPECT_EQ(
      find(graph, graph_of(sizes + "r = aten::_reshape_alias_copy(%x, [%b, %s], [%t, %t])\nreturn r", "x y b")).size(),
      1u);
  const Graph nested = graph_of("c = aten::cat([%x, [%y]])\nreturn c", "x y");
  EXPECT_EQ(find(nested, graph_of("c = aten::cat([%x, %y])\nreturn c", "x y")).size(), 1u)
      << "a wildcard stands for a list";
  EXPECT_EQ(find(nested, graph_of("c = aten::cat([[%x, %y]])\nreturn c", "x y")).size(), 0u);
  EXPECT_EQ(find(nested, graph_of("c = aten::cat([%x, [%y], %z])\nreturn c", "x y z")).size(), 0u);
}

TEST(SubgraphMatcher, test_subgraph_matcher_ignore_literals) {
  const Graph graph = graph_of("a = aten::add.Tensor(%x, 1)\nreturn a");
  const Graph pattern = graph_of("a = aten::add.Tensor(%x, 2)\nreturn a");
  EXPECT_EQ(find(graph, pattern).size(), 0u);
  EXPECT_EQ(find(graph, pattern, {.ignore_literals = true}).size(), 1u);
  const Graph node = graph_of("a = aten::add.Tensor(%x, %y)\nreturn a", "x y");
  EXPECT_EQ(find(node, pattern, {.ignore_literals = true}).size(), 0u) << "a node is no literal";
}

TEST(SubgraphMatcher, test_variatic_arg_matching) {
  const char* const kInputs = "x kernel_size stride padding dilation";
  const Graph pattern =
      graph_of("m = aten::max_pool2d_with_indices(%x, %kernel_size, %stride, %padding, %dilation)\nreturn m", kInputs);
  EXPECT_EQ(find(pattern, pattern).size(), 1u);
  for (const char* given : {"[2, 2], [1, 1]", "[2, 2], [], [1, 1]", "[2, 2], padding=[1, 1]", "[2, 2], [1, 1], [1, 1]",
                            "[2, 2]", "[2, 2], [1, 1], [1, 1], [1, 1], False"}) {
    const std::string call = "m = aten::max_pool2d_with_indices(%x, " + std::string(given) + ")\nreturn m";
    EXPECT_EQ(find(graph_of(call), pattern).size(), 1u) << given;
  }
  EXPECT_EQ(find(graph_of("m = aten::max_pool2d_with_indices(%x, [2, 2], ceil_mode=True)\nreturn m"), pattern).size(),
            0u)
      << "ceil_mode is False where the pattern leaves it out";
}

// Upstream's pattern returns a dictionary of names beside its results, and a helper cuts it off. Here nodes have names,
// and these are no results.
TEST(SubgraphMatcher, test_split_to_graph_and_name_node_map) {
  const Pattern pattern(graph_of(
      "conv = aten::conv2d(%x, %w)\nrelu = aten::relu(%conv)\ntwice = aten::mul.Tensor(%relu, 2)\nreturn (relu, twice)",
      "x w"));
  EXPECT_EQ(pattern.num_outputs(), 2u);
  EXPECT_THAT(pattern.captures(), ::testing::UnorderedElementsAre("x", "w", "conv", "relu", "twice"));
}

TEST(SubgraphMatcher, test_matcher_with_name_node_map_function) {
  const Graph graph = graph_of(R"(
    x2 = aten::mul.Tensor(%x, 2)
    w3 = aten::mul.Tensor(%w, 3)
    c = aten::conv2d(%x2, %w3)
    r = aten::relu(%c)
    r2 = aten::mul.Tensor(%r, 2)
    s = aten::add.Tensor(%r, %r2)
    return s)",
                               "x w");
  const Pattern pattern(graph_of(
      "conv = aten::conv2d(%a, %b)\nrelu = aten::relu(%conv)\ntwice = aten::mul.Tensor(%relu, 2)\nreturn (relu, twice)",
      "a b"));
  const std::vector<Match> matches = find(graph, pattern);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0]["conv"].name(), "c");
  EXPECT_EQ(matches[0]["relu"].name(), "r");
  EXPECT_EQ(matches[0]["a"].name(), "x2");
  const InternalMatch all = internal_match(matches[0]);
  ASSERT_EQ(all.anchors.size(), 1u) << "relu is used inside, so it is no anchor";
  EXPECT_EQ(all.anchors[0]->name(), "r2");
  ASSERT_EQ(all.returning_nodes.size(), 2u);
  EXPECT_EQ(all.returning_nodes[0]->name(), "r");
  ASSERT_EQ(all.placeholder_nodes.size(), 2u);
  EXPECT_EQ(all.placeholder_nodes[1].node().name(), "w3");
  EXPECT_EQ(all.nodes_map.size(), 5u);
  EXPECT_EQ(all.name_node_map.size(), 5u);
}

TEST(SubgraphMatcher, test_matcher_with_name_node_map_module) {
  const Graph graph = graph_of("y = call_module[target=linear](%x)\nz = aten::relu(%y)\nreturn z");
  const Pattern pattern(graph_of("linear = call_module[target=linear](%x)\nreturn linear"));
  const std::vector<Match> matches = find(graph, pattern);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0]["linear"].name(), "y");
  EXPECT_EQ(matches[0]["x"].name(), "x");
  matches[0]["linear"].meta().set("custom_annotation", std::string("annotation"));
  EXPECT_EQ(*graph.find("y")->find_meta()->get<std::string>("custom_annotation"), "annotation");
}

// ── Beside them ──────────────────────────────────────────────────────────────────────────────────────────────────────

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

}  // namespace fx::subgraph_matcher_test
