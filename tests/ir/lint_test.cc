// Every rule that the public interface can break, and how violations are told. FX: test_wrong_topo.
#include <gmock/gmock.h>

#include <fxgraph/ir/definition_order.h>
#include <fxgraph/ir/graph.h>

namespace fx::lint_test {

std::vector<int> rules(const Graph& graph) {
  std::vector<int> found;
  for (const LintViolation& violation : graph.check()) found.push_back(violation.rule);
  return found;
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

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
  Node& x = graph.placeholder("x");
  EXPECT_THAT(rules(graph), ElementsAre(2));
  EXPECT_THAT(graph.placeholders(), ElementsAre(&x)) << "it is not left out";
  Node& y = graph.placeholder("y");
  EXPECT_THAT(graph.placeholders(), ElementsAre(&x, &y));
  EXPECT_EQ(graph.clone().placeholders().size(), 2u);
  graph.erase_node(x);
  EXPECT_THAT(graph.placeholders(), ElementsAre(&y));
  graph.restore_node(x, nullptr, {}, {});
  EXPECT_THAT(graph.placeholders(), ElementsAre(&y, &x));
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

TEST(Lint, DefinitionsBeforeUsesAreAskedForAlone) {
  Graph graph;
  Node& a = graph.call_function("f", {graph.placeholder("x")}, {}, "a");
  Node& b = graph.call_function("f", {{a}}, {}, "b");
  graph.get_attr("w");
  graph.placeholder("late");
  EXPECT_NO_THROW(require_definitions_before_uses(graph)) << "another rule is broken";
  b.append(a);
  EXPECT_THAT(
      [&] { require_definitions_before_uses(graph); },
      ThrowsMessage<Error>("the graph breaks an invariant: b: it uses a, which is defined after it; move one of "
                           "them [rule 3]"));
  a.set_args({a});
  b.set_args({1});
  EXPECT_THAT([&] { require_definitions_before_uses(graph); },
              ThrowsMessage<Error>(HasSubstr("a: it uses its own value")));
}

TEST(Lint, ArgumentsFitTheOpcode) {
  struct Row {
    Op op;
    std::size_t least, most;
    bool keywords;
  };
  constexpr std::size_t kAny = 100;
  for (const auto& [op, least, most, keywords] :
       {Row{Op::placeholder, 0, 1, false}, Row{Op::output, 1, 1, false}, Row{Op::call_method, 1, kAny, true},
        Row{Op::call_function, 0, kAny, true}, Row{Op::call_module, 0, kAny, true}, Row{Op::get_attr, 0, kAny, true}}) {
    for (std::size_t args = 0; args < 4; ++args) {
      for (int kwargs = 0; kwargs < 3; ++kwargs) {
        Graph graph;
        Node& node = op == Op::output ? graph.output(1) : graph.create_node(op, "f");
        node.set_args(std::vector<Argument>(args, 1));
        std::vector<NamedArgument> named;
        for (int i = 0; i < kwargs; ++i) named.push_back({Symbol("k" + std::to_string(i)), 1});
        node.set_kwargs(named);
        const bool fits = args >= least && args <= most && (kwargs == 0 || keywords);
        EXPECT_THAT(rules(graph), fits ? std::vector<int>() : std::vector<int>{8})
            << to_string(op) << " " << args << " " << kwargs;
        if (fits && op != Op::output) {
          node.set_target("");
          EXPECT_THAT(rules(graph), ElementsAre(8)) << to_string(op);
        }
      }
    }
  }
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
                 "the graph breaks invariants in 2 places: "
                 "1. b: it uses a, which is defined after it; move one of them [rule 3]; "
                 "2. late: this input comes after other operations; move it to the start [rule 2]");
  }
}

}  // namespace fx::lint_test
