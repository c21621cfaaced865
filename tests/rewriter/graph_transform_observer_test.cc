// What a pass did. FX: fx/test_fx_xform_observer.py.
#include <fxgraph/rewriter/graph_transform_observer.h>

#include <gmock/gmock.h>

#include <filesystem>

#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

#include "tests/support/file_text.h"
#include "tests/support/scratch_folder.h"

namespace fx::graph_transform_observer_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

Graph program() {
  return parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = placeholder[target=y]
    %add = call_function[target=aten::add.Tensor](args = (%x, %y), kwargs = {})
    %relu = call_function[target=aten::relu](args = (%add,), kwargs = {})
    return relu)");
}

void replace_add(Graph& graph) {
  const Graph pattern = parse_graph(
      "graph():\n %a = placeholder[target=a]\n %b = placeholder[target=b]\n"
      " %s = call_function[target=aten::add.Tensor](args = (%a, %b), kwargs = {})\n return s");
  const Graph replacement = parse_graph(
      "graph():\n %a = placeholder[target=a]\n %b = placeholder[target=b]\n"
      " %p = call_function[target=aten::mul.Tensor](args = (%a, %b), kwargs = {})\n return p");
  replace_pattern(graph, pattern, replacement);
}

TEST(GraphTransformObserver, test_graph_transform_observer) {
  const testing::ScratchFolder folder;
  Graph graph = program();
  GraphTransformObserver observer(graph, "replace/add", folder.path().string());
  replace_add(graph);
  ASSERT_EQ(observer.created_nodes().size(), 1u);
  const std::string made = observer.created_nodes()[0];
  EXPECT_THAT(observer.erased_nodes(), ElementsAre("add"));
  EXPECT_THAT(observer.replaced_nodes(), ElementsAre(Pair("add", made)));
  EXPECT_EQ(observer.str(), "replace/add: created " + made + "; erased add; replaced add by " + made);
  observer.finish();
  EXPECT_THAT(testing::file_text(folder / "replace_add_input_graph.dot"), HasSubstr("fillcolor=\"#f4a6a6\""));
  EXPECT_THAT(testing::file_text(folder / "replace_add_output_graph.dot"), HasSubstr("fillcolor=\"#a6f4a6\""));
  graph.call_function("aten::neg", {*graph.find("x")});
  EXPECT_EQ(observer.created_nodes().size(), 1u);
}

TEST(GraphTransformObserver, test_graph_transform_observer_replace) {
  Graph graph = program();
  GraphTransformObserver observer(graph, "none");
  EXPECT_EQ(observer.str(), "none: nothing");
  graph.find("add")->replace_all_uses_with(*graph.find("x"));
  EXPECT_EQ(observer.str(), "none: replaced add by x");
  observer.finish();
}

// However many users follow, a replaced node is named once.
TEST(GraphTransformObserver, NamesEachReplacementOnce) {
  Graph graph = parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = call_function[target=aten::relu](args = (%x,), kwargs = {})
    %b = call_function[target=aten::neg](args = (%a,), kwargs = {})
    %c = call_function[target=aten::add.Tensor](args = (%a, %b), kwargs = {})
    return (a, b, c))");
  GraphTransformObserver observer(graph, "none");
  graph.find("a")->replace_all_uses_with(*graph.find("x"));
  graph.find("b")->replace_all_uses_with(*graph.find("x"));
  EXPECT_THAT(observer.replaced_nodes(), ElementsAre(Pair("a", "x"), Pair("b", "x")));
}

TEST(GraphTransformObserver, DrawsOnceIntoAFolderThatItMakes) {
  const testing::ScratchFolder folder;
  Graph graph = program();
  GraphTransformObserver observer(graph, "pass", (folder / "not" / "yet").string());
  observer.finish();
  EXPECT_TRUE(std::filesystem::exists(folder / "not" / "yet" / "pass_input_graph.dot"));
  std::filesystem::remove_all(folder / "not");
  observer.finish();
  EXPECT_FALSE(std::filesystem::exists(folder / "not"));
}

TEST(GraphTransformObserver, test_graph_transform_observer_deepcopy) {
  Graph graph = program();
  GraphTransformObserver observer(graph, "copy");
  Graph copy = graph.clone();
  replace_add(copy);
  EXPECT_THAT(observer.created_nodes(), IsEmpty());
  EXPECT_THAT(observer.erased_nodes(), IsEmpty());
}

}  // namespace fx::graph_transform_observer_test
