// Names in patterns that look like something else: numbers, bytes that are no text, the rest of a list.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/text/parse.h>
#include "tests/support/short_graph.h"

namespace fx::pattern_names_test {

using testing::graph_of;

/// `%1` is a name, `1` a number.
TEST(PatternNames, NamesMayBeginWithADigit) {
  const Graph graph = graph_of("a = my::op(%x, %x, 1)\nb = my::op(%x, 1, 1)\nreturn [a, b]");
  for (const char* text : {"my::op(%1, %1, 1)", "my::op(%1: node, %1, 1)", "my::op(%1, ...%2)",
                           "%1 = my::op(_, _, 1)\nreturn %1", "%1e5 = my::op(%2, %2, _)\nreturn %1e5"}) {
    const Pattern pattern(text), again(pattern.str());
    EXPECT_EQ(again.str(), pattern.str()) << text;
    EXPECT_EQ(find(graph, again, {.contained = false}).size(), find(graph, pattern, {.contained = false}).size())
        << text;
    EXPECT_EQ(find(graph, pattern, {.contained = false}).empty(), false) << text << pattern.str();
  }
}

/// Names of targets are bytes: one that is no UTF-8 is printed as an expression, which reads and finds it.
TEST(PatternNames, TheRootMayHaveANameAsPrintingGives) {
  const match::Expr shared = match::op("aten::neg", match::any());
  const Pattern pattern(match::op("aten::mul.Tensor", shared, shared).name("_1"));
  EXPECT_EQ(Pattern(pattern.str()).str(), pattern.str()) << pattern.str();
  EXPECT_THAT(pattern.str(), ::testing::HasSubstr("_2"));
}

TEST(PatternNames, TargetsNeedNotBeUtf8) {
  const Graph graph = parse_graph(
      "graph(%x):\n    %y = call_function[target=\xe1ten::relu](args = (%x,), kwargs = {})\n    return %y\n");
  const Pattern pattern(graph);
  for (const Pattern& same : {pattern, Pattern(pattern.str())}) {
    EXPECT_EQ(same.str(), pattern.str());
    EXPECT_EQ(find(graph, same).size(), 1u) << same.str();
    EXPECT_EQ(find(graph_of("y = aten::relu(%x)\nreturn y"), same).size(), 0u) << same.str();
  }
}

/// The name of a rest is the list of what it took, before it as behind it.
TEST(PatternNames, ANameBesideItsRestIsAList) {
  const Graph graph = parse_graph(
      "graph(%x):\n    %a = call_function[target=my::op](args = ([%x, 1], %x, 1), kwargs = {})\n"
      "    %b = call_function[target=my::op](args = ([%x, 2], %x, 1), kwargs = {})\n"
      "    %c = call_function[target=my::op](args = ([%x, %b], [%x, %b]), kwargs = {})\n    return (%a, %b, %c)\n");
  for (const auto& [text, finds] : {std::pair("my::op(v, ...v)", "a"), std::pair("my::op([...v], v)", "c"),
                                    std::pair("my::op([first, ...v], first, ...v)", "a")}) {
    for (const std::string& said : {std::string(text), Pattern(text).str()}) {
      const std::vector<Match> found = find(graph, Pattern(said));
      ASSERT_EQ(found.size(), 1u) << said;
      EXPECT_EQ(found[0].anchor().name(), finds) << said;
    }
  }
}

}  // namespace fx::pattern_names_test
