#include <fxgraph/report/draw.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/report/outline.h>
#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"

namespace fx::draw_test {

using ::testing::HasSubstr;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Draw, ShowsEveryNodeAndUse) {
  const Graph graph = load_graph_text("tests/corpus/torchfx113_resnet18.fx");
  const std::string svg = draw_svg(graph);
  EXPECT_EQ(count(svg, "class=\"node "), graph.size());
  EXPECT_EQ(count(svg, "<g "), count(svg, "</g>"));
  EXPECT_EQ(count(svg, "class=\"edge arrow\""), 78u);
  EXPECT_THAT(svg, HasSubstr(">layer1_0_conv1</text>"));
}

TEST(Draw, PutsModulesInFrames) {
  const Graph graph = load_graph_text("tests/corpus/torchfx113_resnet18.fx");
  const std::string svg = draw_svg(graph);
  EXPECT_EQ(count(svg, "<g class=\"frame\">"), Outline(graph).groups().size() - 1);
  EXPECT_THAT(svg, HasSubstr("<title>layer2.0.downsample</title>"));
  EXPECT_THAT(svg, HasSubstr(">downsample</text>"));
  EXPECT_EQ(count(draw_svg(testing::chain(1000)), "class=\"frame\""), 0u) << "stages are for pages that open them";
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
  EXPECT_EQ(escape_xml("größe € 𝄞 \xff\xfe, \xe2\x82"), "größe € 𝄞 \uFFFD\uFFFD, \uFFFD\uFFFD") << "no UTF-8";
  EXPECT_EQ(escape_xml("\xc0\x80 \xed\xa0\x80 \xef\xbf\xbf"), "\uFFFD\uFFFD \uFFFD\uFFFD\uFFFD \uFFFD\uFFFD\uFFFD")
      << "longer than need be, half a pair, no letter";
  Graph graph;
  graph.call_function("<built-in function add>", {"<&>"});
  EXPECT_EQ(count(draw_svg(graph), "<built-in"), 0u);
}

TEST(Draw, EmptyGraph) { EXPECT_THAT(draw_svg(Graph()), ::testing::EndsWith("</svg>\n")); }

TEST(DrawNight, LargeGraphs) {
  for (const Graph& graph : {testing::chain(10'000), testing::fan(20'000), testing::ladder(10'000)}) {
    EXPECT_EQ(count(draw_svg(graph), "class=\"node "), graph.size());
  }
}

}  // namespace fx::draw_test
