#include <fxgraph/report/draw.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <fxgraph/report/layout.h>
#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"

namespace fx::draw_test {

using ::testing::HasSubstr;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(GraphLayout, BoxesDoNotOverlapAndEdgesPointDown) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Graph graph = testing::random_graph(seed, testing::random_options(seed, 80));
    const GraphLayout layout = lay_out(graph);
    ASSERT_EQ(layout.boxes.size(), graph.size());
    std::map<double, std::vector<const LayoutBox*>> rows;
    for (const LayoutBox& box : layout.boxes) {
      rows[box.centre.y].push_back(&box);
      ASSERT_GE(box.centre.x - box.width / 2, 0);
      ASSERT_LE(box.centre.x + box.width / 2, layout.width);
      ASSERT_LE(box.centre.y + box.height / 2, layout.height);
    }
    for (auto& [y, row] : rows) {
      std::sort(row.begin(), row.end(), [](auto* a, auto* b) { return a->centre.x < b->centre.x; });
      for (std::size_t i = 1; i < row.size(); ++i) {
        ASSERT_GE(row[i]->centre.x - row[i - 1]->centre.x, (row[i]->width + row[i - 1]->width) / 2) << seed;
      }
    }
    std::size_t pairs = 0;
    for (const Node& node : graph.nodes()) pairs += node.all_input_nodes().size();
    ASSERT_EQ(layout.edges.size(), pairs);
    for (const LayoutEdge& edge : layout.edges) {
      for (std::size_t i = 1; i < edge.points.size(); ++i) ASSERT_LT(edge.points[i - 1].y, edge.points[i].y) << seed;
    }
  }
}

TEST(GraphLayout, OfAChainIsStraight) {
  Graph graph;
  Node* value = &graph.placeholder("x");
  for (int i = 0; i < 10; ++i) value = &graph.call_function("aten::relu", {*value});
  graph.output(*value);
  const GraphLayout layout = lay_out(graph);
  for (const LayoutBox& box : layout.boxes) EXPECT_DOUBLE_EQ(box.centre.x, layout.boxes[0].centre.x);
}

TEST(Draw, ShowsEveryNodeAndUse) {
  const Graph graph = load_graph_text("tests/corpus/torchfx113_resnet18.fx");
  const std::string svg = draw_svg(graph);
  EXPECT_EQ(count(svg, "class=\"node "), graph.size());
  EXPECT_EQ(count(svg, "<g "), count(svg, "</g>"));
  EXPECT_EQ(count(svg, "class=\"edge\""), 78u);
  EXPECT_THAT(svg, HasSubstr(">layer1_0_conv1</text>"));
}

TEST(Draw, MarksDeadNodesEffectsAndThePeak) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.call_function("aten::neg", {x}, {}, "dead");
  Node& w = graph.call_function("aten::relu_", {x});
  graph.output(w);
  const DeadCode dead(graph);
  const std::string svg = draw_svg(graph, {.dead = &dead, .marked = &x});
  EXPECT_THAT(svg, HasSubstr("node placeholder marked"));
  EXPECT_THAT(svg, HasSubstr("node call_function dead"));
  EXPECT_THAT(svg, HasSubstr("node call_function effect"));
}

TEST(Draw, EscapesNames) {
  EXPECT_EQ(escape_xml("a<b> & \"c\" 'd'\x01"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;?");
  Graph graph;
  graph.call_function("<built-in function add>", {"<&>"});
  EXPECT_EQ(count(draw_svg(graph), "<built-in"), 0u);
}

TEST(Draw, EmptyGraph) { EXPECT_THAT(draw_svg(Graph()), ::testing::EndsWith("</svg>\n")); }

TEST(DrawSlow, LargeGraphs) {
  for (const Graph& graph : {testing::chain(10'000), testing::fan(20'000), testing::ladder(10'000)}) {
    EXPECT_EQ(count(draw_svg(graph), "class=\"node "), graph.size());
  }
}

}  // namespace fx::draw_test
