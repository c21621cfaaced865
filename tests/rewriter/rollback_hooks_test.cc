// Hooks of the graph while a Rewriter rolls back: those that throw keep an edit from being undone, and nothing is lost.
#include <gtest/gtest.h>

#include <stdexcept>

#include <fxgraph/ir/graph_hooks.h>
#include <fxgraph/rewriter/rewriter.h>
#include <fxgraph/text/print.h>
#include "tests/support/short_graph.h"

namespace fx::rollback_hooks_test {

/// Replaces %a by a new node, which has arguments of its own, and erases it.
void edit(Rewriter& rewriter) {
  Graph& graph = rewriter.graph();
  Node& old = *graph.find("a");
  const auto place = rewriter.inserting_before(old);
  Node& made = rewriter.call_function("aten::clamp", {*graph.find("x"), -1.0}, {{"max", 2.0}}, "made");
  rewriter.replace_all_uses_with(old, made);
  rewriter.erase_node(old);
  rewriter.set_args(*graph.find("b"), {made, made});
}

TEST(RollbackHooks, AnotherCallGoesOnWhereOneStopped) {
  struct Throwing {
    const char* name;
    EditHooks hooks;
  };
  const auto no = [] { throw std::runtime_error("no"); };
  const Throwing all[] = {{"created", {.created = [&](Node&) { no(); }}},
                          {"erased", {.erased = [&](Node&) { no(); }}},
                          {"replaced", {.replaced = [&](Node&, const Argument&, Node&) { no(); }}}};
  for (const Throwing& throwing : all) {
    Graph graph = testing::graph_of("a = aten::clamp(%x, 0.0, max=1.0)\nb = aten::add.Tensor(%a, %x)\nreturn b");
    const std::string before = print_graph(graph);
    Rewriter rewriter(graph);
    edit(rewriter);
    {
      const GraphHooks hooks(graph, throwing.hooks);
      for (int i = 0; i < 3; ++i) EXPECT_THROW(rewriter.rollback(), std::runtime_error) << throwing.name;
      EXPECT_TRUE(graph.check().empty()) << throwing.name << graph;
    }
    rewriter.rollback();
    EXPECT_EQ(print_graph(graph), before) << throwing.name;
    EXPECT_FALSE(rewriter.changed());
  }
}

TEST(Rollback, ValuesAreWhereTheyWere) {
  Graph graph = testing::graph_of("a = aten::relu(%x)\nb = aten::neg(%a)\nreturn b");
  Node& a = *graph.find("a");
  Rewriter rewriter(graph);
  const Rewriter::Mark mark = rewriter.mark();
  rewriter.replace_all_uses_with(a, *graph.find("x"));
  EXPECT_EQ(rewriter.forwarded(a), Argument(*graph.find("x")));
  rewriter.replace_all_uses_with(*graph.find("x"), Argument(3));
  EXPECT_EQ(rewriter.forwarded(*graph.find("x")), Argument(3));
  EXPECT_EQ(rewriter.forwarded(a), Argument(3)) << "through what stood for it";
  rewriter.rollback(mark);
  EXPECT_EQ(rewriter.forwarded(a), Argument(a));
  const auto place = rewriter.inserting_before(a);
  Node& made = rewriter.call_function("aten::sin", {*graph.find("x")});
  const Rewriter::Mark made_at = rewriter.mark();
  rewriter.replace_all_uses_with(a, made);
  EXPECT_EQ(rewriter.forwarded(a), Argument(made));
  rewriter.rollback(made_at);
  EXPECT_EQ(rewriter.forwarded(a), Argument(a)) << "all uses moved at once";
  rewriter.rollback(mark);
  EXPECT_EQ(print_graph(graph), print_graph(testing::graph_of("a = aten::relu(%x)\nb = aten::neg(%a)\nreturn b")));
}

}  // namespace fx::rollback_hooks_test
