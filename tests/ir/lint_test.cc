// Every rule that the public interface can break, and how violations are told. FX: test_wrong_topo.
#include <gmock/gmock.h>

#include <fxgraph/ir/graph.h>

namespace fx::lint_test {

std::vector<int> rules(const Graph& graph) {
  std::vector<int> found;
  for (const LintViolation& violation : graph.check()) found.push_back(violation.rule);
  return found;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Lint, OutputIsLast) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& output = graph.output(x);
  EXPECT_THAT(rules(graph), IsEmpty());
  output.append(graph.get_attr("w"));
  EXPECT_THAT(rules(graph), ElementsAre(1));
  EXPECT_EQ(graph.check()[0].node, "output");
}

TEST(Lint, PlaceholdersAreFirst) {
  Graph graph;
  graph.get_attr("w");
  graph.placeholder("x");
  EXPECT_THAT(rules(graph), ElementsAre(2));
}

TEST(Lint, DefinitionsComeBeforeUses) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("f", {x}, {}, "a");
  Node& b = graph.call_function("f", {a, {a}}, {}, "b");
  a.prepend(b);
  EXPECT_THAT(rules(graph), ElementsAre(3, 3));
  a.set_args({a});
  EXPECT_THAT(rules(graph), ElementsAre(3, 3, 3)) << "its own input";
}

TEST(Lint, ArgumentsFitTheOpcode) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& method = graph.create_node(Op::call_method, "relu");
  Node& empty = graph.create_node(Op::call_function, "");
  Node& output = graph.output(x);
  EXPECT_THAT(rules(graph), ElementsAre(8, 8));
  method.set_args({x});
  empty.set_target("f");
  x.set_args({1, 2});
  output.set_args({});
  EXPECT_THAT(rules(graph), ElementsAre(8, 8));
}

TEST(Lint, ListsAllViolations) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("f", {x}, {}, "a");
  Node& b = graph.call_function("f", {a}, {}, "b");
  a.prepend(b);
  graph.placeholder("late");
  try {
    graph.lint();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::lint);
    EXPECT_EQ(error.node(), "b");
    EXPECT_STREQ(error.what(),
                 "the graph breaks invariants in 2 places:\n"
                 "  1. b: it uses a, which is defined after it; move one of them [rule 3]\n"
                 "  2. late: this input comes after other operations; move it to the start [rule 2]");
  }
}

}  // namespace fx::lint_test
