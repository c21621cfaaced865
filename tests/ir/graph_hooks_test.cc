// Hooks on edits. FX: fx/test_fx_node_hook.py.
#include <fxgraph/ir/graph_hooks.h>

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <set>

#include <fxgraph/ir/node_map.h>
#include "tests/support/error_of.h"
#include "tests/support/names.h"
#include "tests/support/random.h"

namespace fx::graph_hooks_test {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::order;

/// Hooks that write down what they are told.
struct Log {
  std::vector<std::string> lines;
  EditHooks hooks(const std::string& who = "") {
    return {.created = [=, this](Node& node) { lines.push_back(who + "+" + node.name()); },
            .erased = [=, this](Node& node) { lines.push_back(who + "-" + node.name()); },
            .replaced =
                [=, this](Node& old, const Argument& by, Node& user) {
                  lines.push_back(who + old.name() + ">" + to_string(by) + "@" + user.name());
                }};
  }
};

TEST(GraphHooks, test_hooks_for_node_update) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x});
  graph.output(a);
  Log log;
  GraphHooks first(graph, log.hooks("1"));
  {
    GraphHooks second(graph, log.hooks("2"));
    const auto before = graph.inserting_after(a);
    Node& b = graph.call_function("aten::neg", {x}, {}, "b");
    EXPECT_THAT(log.lines, ElementsAre("1+b", "2+b"));
    log.lines.clear();
    a.replace_all_uses_with(b);
    EXPECT_THAT(log.lines, ElementsAre("1relu>%b@output", "2relu>%b@output"));
    log.lines.clear();
    graph.erase_node(a);
    EXPECT_THAT(log.lines, ElementsAre("1-relu", "2-relu"));
    log.lines.clear();
  }
  graph.call_function("aten::cos", {x}, {}, "c");
  EXPECT_THAT(log.lines, ElementsAre("1+c"));
  first.remove();
  EXPECT_FALSE(first.active());
  graph.erase_node(*graph.find("c"));
  EXPECT_THAT(log.lines, ElementsAre("1+c"));
}

TEST(GraphHooks, SeeTheNodeInItsPlaceAndWhole) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& last = graph.call_function("aten::neg", {x});
  std::vector<std::string> seen;
  GraphHooks hooks(graph, {.created =
                               [&](Node& node) {
                                 seen.push_back(node.name() + (node.next() ? " before " + node.next()->name() : ""));
                                 EXPECT_EQ(node.arg(0).node_or_null(), &x);
                               },
                           .erased =
                               [&](Node& node) {
                                 EXPECT_FALSE(node.is_erased());
                                 EXPECT_EQ(node.arg(0).node_or_null(), &x);
                                 EXPECT_EQ(node.next(), &last);
                               },
                           .replaced =
                               [&](Node& old, const Argument& by, Node& user) {
                                 EXPECT_TRUE(user.arg(0).node_or_null() == &old);
                                 EXPECT_TRUE(by == Argument(2));
                               }});
  const auto before = graph.inserting_before(last);
  Node& made = graph.call_function("aten::cos", {x}, {}, "made");
  EXPECT_THAT(seen, ElementsAre("made before neg"));
  graph.erase_node(made);
  graph.restore_node(made, &last, std::vector<Argument>{x}, {});
  EXPECT_THAT(seen, ElementsAre("made before neg", "made before neg"));
  last.update_arg(0, made);
  made.replace_all_uses_with(Argument(2));
}

TEST(GraphHooks, ANodeIsRestoredInItsOwnGraphOnly) {
  Graph graph, other;
  Node &x = graph.placeholder("x"), &theirs = other.placeholder("x");
  Node& made = graph.call_function("aten::cos", {x}, {}, "made");
  EXPECT_THROW(graph.restore_node(made, nullptr, {}, {}), Error) << "it has not been erased";
  graph.erase_node(made);
  EXPECT_THROW(other.restore_node(made, nullptr, {}, {}), Error);
  EXPECT_THROW(graph.restore_node(made, &theirs, {}, {}), Error);
  EXPECT_THROW(graph.restore_node(made, nullptr, std::vector<Argument>{theirs}, {}), Error);
  EXPECT_TRUE(made.is_erased());
  Node& output = graph.output(x);
  graph.erase_node(output);
  graph.output(x);
  EXPECT_THROW(graph.restore_node(output, nullptr, std::vector<Argument>{x}, {}), Error) << "there is one";
  graph.restore_node(made, &x, std::vector<Argument>{2}, {});
  EXPECT_EQ(made.next(), &x);
}

TEST(GraphHooks, AllWaysToReplace) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  Node &a = graph.call_function("f", {x, x}, {}, "a"), &b = graph.call_function("f", {x}, {}, "b");
  Log log;
  GraphHooks hooks(graph, log.hooks());
  a.replace_input_with(x, y);
  EXPECT_THAT(log.lines, ElementsAre("x>%y@a"));
  a.replace_input_with(x, y);  // has none
  EXPECT_EQ(log.lines.size(), 1u);
  x.move_uses_to(y);
  EXPECT_EQ(log.lines.back(), "x>%y@b");
  y.replace_all_uses_with(Argument::list({x, 1}), [&](const Node& user) { return &user == &b; });
  EXPECT_EQ(log.lines.back(), "y>[%x, 1]@b");
  b.set_args(std::vector<Argument>{y});
  EXPECT_EQ(log.lines.size(), 3u);
}

// Whoever takes the value, wherever in its arguments, and nobody else.
TEST(GraphHooks, AreToldOfAnInputThatIsThereAlone) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y"), &z = graph.placeholder("z");
  graph.call_function("f", {x}, {}, "another");
  const std::pair<std::vector<Argument>, bool> rows[] = {{{}, false},
                                                         {{1}, false},
                                                         {{z}, false},
                                                         {{x}, true},
                                                         {{z, 1, x}, true},
                                                         {{Argument::list({z, x})}, true},
                                                         {{Argument::list({z, 1})}, false}};
  for (const auto& [args, there] : rows) {
    for (const bool last : {true, false}) {
      Node& user = graph.call_function("f", args, {}, "user");
      if (!last) graph.call_function("f", {x}, {}, "later");
      Log log;
      GraphHooks hooks(graph, log.hooks());
      user.replace_input_with(x, y);
      EXPECT_EQ(log.lines.size(), there ? 1u : 0u) << user;
    }
  }
}

TEST(GraphHooks, WhatAHookThrowsKeepsTheEditFromBeingMade) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("f", {x}, {}, "a");
  graph.output(a);
  const std::string before = testing::table(graph);
  const auto fail = [] { throw Error(ErrorKind::invalid_argument, "not so"); };
  GraphHooks hooks(graph, {.created = [&](Node&) { fail(); },
                           .erased = [&](Node&) { fail(); },
                           .replaced = [&](Node&, const Argument&, Node&) { fail(); }});
  EXPECT_EQ(error_of([&] { a.replace_all_uses_with(x); }), "not so");
  EXPECT_EQ(testing::table(graph), before);
  hooks.remove();
  Node& unused = graph.call_function("f", {x});
  Log log;
  GraphHooks again(graph, {.created = [&](Node&) { fail(); }, .erased = log.hooks().erased});
  EXPECT_EQ(error_of([&] { graph.call_function("g", {x}, {}, "g"); }), "not so");
  EXPECT_EQ(graph.find("g"), nullptr);
  EXPECT_THAT(log.lines, ElementsAre("-g"));
  graph.erase_node(unused);
  EXPECT_EQ(testing::table(graph), before);
  EXPECT_NO_THROW(graph.lint());
}

TEST(GraphHooks, MayEditWhenANodeIsMadeAndAtNoOtherTime) {
  Graph graph;
  Node& x = graph.placeholder("x");
  GraphHooks hooks(graph, {.created = [&](Node& node) {
                     if (node.target() == Symbol("f")) graph.call_function("check", {node});
                   }});
  graph.call_function("f", {x});
  EXPECT_THAT(order(graph), ElementsAre("x", "f", "check"));
  hooks.remove();
  Node& f = *graph.find("f");
  GraphHooks bad(graph, {.erased = [&](Node&) { graph.call_function("late", {x}); },
                         .replaced = [&](Node&, const Argument&, Node&) { graph.call_function("late", {x}); }});
  EXPECT_THAT(error_of([&] { f.replace_all_uses_with(x); }), HasSubstr("a hook edited the graph while"));
  EXPECT_THAT(error_of([&] { graph.erase_node(*graph.find("check")); }), HasSubstr("a hook edited the graph while"));
  EXPECT_NE(graph.find("check"), nullptr);
  EXPECT_NO_THROW(graph.lint());
}

TEST(GraphHooks, ComeAndGoWhileTheyAreTold) {
  Graph graph;
  Log log;
  std::unique_ptr<GraphHooks> once, later;
  const auto tell = [&](const std::string& who) { return log.hooks(who).created; };
  once = std::make_unique<GraphHooks>(graph, EditHooks{.created = [&](Node& node) {
                                        tell("once")(node);
                                        later = std::make_unique<GraphHooks>(graph, log.hooks("later"));
                                        once->remove();
                                      }});
  GraphHooks always(graph, log.hooks("always"));
  graph.placeholder("x");
  EXPECT_THAT(log.lines, ElementsAre("once+x", "always+x"));
  graph.placeholder("y");
  EXPECT_THAT(log.lines, ElementsAre("once+x", "always+x", "always+y", "later+y"));
}

// One goes, and makes a node, which all are told of meanwhile: none of those behind it is passed over for the first.
TEST(GraphHooks, GoWhileNodesAreMadeInBetween) {
  Graph graph;
  Log log;
  std::unique_ptr<GraphHooks> once;
  once = std::make_unique<GraphHooks>(graph, EditHooks{.created = [&](Node& node) {
                                        once->remove();
                                        if (node.name() == "x") graph.placeholder("y");
                                      }});
  GraphHooks first(graph, log.hooks("first")), second(graph, log.hooks("second"));
  graph.placeholder("x");
  EXPECT_THAT(log.lines, ElementsAre("first+y", "second+y", "first+x", "second+x"));
}

TEST(GraphHooks, AreNotToldOfANodeThatAnotherErased) {
  Graph graph;
  Log log;
  const GraphHooks eraser(graph, EditHooks{.created = [&](Node& node) { graph.erase_node(node); }});
  const GraphHooks later(graph, {.created = log.hooks("later").created});
  graph.call_function("aten::rand", {});
  EXPECT_TRUE(log.lines.empty());
  EXPECT_EQ(graph.size(), 0u);
}

TEST(GraphHooks, GoWithTheGraphAndNotWithItsClone) {
  Log log;
  auto graph = std::make_unique<Graph>();
  GraphHooks hooks(*graph, log.hooks());
  graph->placeholder("x");
  Graph copy = graph->clone();
  copy.placeholder("y");
  Graph moved = std::move(*graph);
  moved.placeholder("z");
  graph->placeholder("w");
  EXPECT_THAT(log.lines, ElementsAre("+x", "+z"));
  graph.reset();
  EXPECT_TRUE(hooks.active());
  moved = Graph();
  EXPECT_FALSE(hooks.active());
}

TEST(GraphHooks, CopiesOfNodesAreMadeOnes) {
  Graph other;
  Node& x = other.placeholder("x");
  other.output(other.call_function("f", {x}));
  Graph graph;
  Log log;
  GraphHooks hooks(graph, log.hooks());
  Graph::ValueMap values(other);
  graph.graph_copy(other, values);
  EXPECT_THAT(log.lines, ElementsAre("+x", "+f"));
  EXPECT_EQ(graph.eliminate_dead_code([](const Node&) { return false; }), 1u);
  EXPECT_EQ(log.lines.back(), "-f");
}

TEST(GraphHooks, ACopyThatAHookEndsLeavesNothing) {
  Graph other;
  Node& input = other.placeholder("x");
  Node& relu = other.call_function("aten::relu", {input});
  other.output(other.call_function("aten::neg", {relu}));
  for (const int last : {1, 2}) {
    Graph graph;
    Node& x = graph.placeholder("x");
    graph.output(x);
    const std::vector<std::string> before = order(graph);
    int made = 0;
    const GraphHooks hooks(graph, {.created = [&](Node&) {
                             if (++made == last) throw std::runtime_error("no");
                           }});
    Graph::ValueMap values;
    values[input] = x;
    EXPECT_THROW(graph.graph_copy(other, values), std::runtime_error);
    EXPECT_EQ(order(graph), before);
    EXPECT_EQ(x.num_users(), 1u);
    EXPECT_TRUE(values[relu].is_none());
  }
}

TEST(GraphHooks, NodesThatHooksMakeWithoutEndAreRefused) {
  Graph graph;
  graph.placeholder("x");
  const GraphHooks hooks(graph, {.created = [&](Node& node) { graph.call_function("f", {node}); }});
  EXPECT_THAT(error_of([&] { graph.call_function("g"); }),
              HasSubstr("hooks made nodes that hooks were told of, 500 deep"));
  EXPECT_THAT(order(graph), ElementsAre("x"));
}

// Who listens knows at every moment which nodes there are, and who uses what.
TEST(GraphHooks, AMirrorStaysTrueUnderRandomEdits) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    testing::Random random(seed);
    Graph graph;
    std::set<const Node*> alive;
    std::map<std::pair<const Node*, const Node*>, bool> uses;  // (value, user)
    GraphHooks hooks(graph, {.created =
                                 [&](Node& node) {
                                   alive.insert(&node);
                                   node.for_each_input([&](Node& input) { uses[{&input, &node}] = true; });
                                 },
                             .erased =
                                 [&](Node& node) {
                                   alive.erase(&node);
                                   node.for_each_input([&](Node& input) { uses.erase({&input, &node}); });
                                 },
                             .replaced =
                                 [&](Node& old, const Argument& by, Node& user) {
                                   EXPECT_TRUE(uses.erase({&old, &user}));
                                   for_each_node(by, [&](const Node& value) { uses[{&value, &user}] = true; });
                                 }});
    std::vector<Node*> nodes = {&graph.placeholder("x"), &graph.placeholder("y")};
    for (int i = 0; i < 120; ++i) {
      Node& a = *nodes[random.below(nodes.size())];
      Node& b = *nodes[random.below(nodes.size())];
      switch (random.below(4)) {
        case 0:
        case 1: nodes.push_back(&graph.call_function("f", {a, b, a})); break;
        case 2:
          if (&a != &b && a.is_before(b)) {
            error_of([&] { b.replace_all_uses_with(a); });
          }
          break;
        default:
          if (!a.has_users() && nodes.size() > 2) {
            graph.erase_node(a);
            std::erase(nodes, &a);
          }
      }
      std::map<std::pair<const Node*, const Node*>, bool> real;
      for (const Node& node : graph.nodes()) {
        ASSERT_TRUE(alive.contains(&node)) << seed;
        node.for_each_input([&](Node& input) { real[{&input, &node}] = true; });
      }
      ASSERT_EQ(alive.size(), graph.size()) << seed;
      ASSERT_EQ(uses, real) << seed;
    }
  }
}

// A hook that throws: the node that it was told of goes, unless it has gone already or somebody uses it.
TEST(GraphHooks, ThatThrowLeaveTheGraphWhole) {
  for (const bool erases : {false, true}) {
    for (const bool uses : {false, true}) {
      Graph graph;
      Node& x = graph.placeholder("x");
      bool throws = true;
      GraphHooks hooks(graph, {.created = [&](Node& node) {
                         if (!std::exchange(throws, false)) return;
                         if (uses) graph.call_function("aten::sin", {node});
                         if (erases && !uses) graph.erase_node(node);
                         throw Error(ErrorKind::invalid_argument, "not now");
                       }});
      EXPECT_THAT(error_of([&] { graph.call_function("aten::relu", {x}); }), HasSubstr("not now"));
      if (uses) {
        EXPECT_THAT(order(graph), ElementsAre("x", "relu", "sin"));
      } else {
        EXPECT_THAT(order(graph), ElementsAre("x"));
      }
      graph.lint();
      graph.call_function("aten::relu", {x});
    }
  }
}

}  // namespace fx::graph_hooks_test
