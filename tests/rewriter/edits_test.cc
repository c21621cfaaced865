// Every edit of a Rewriter is told to its listener, and undone by a rollback, which is told too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/rewriter/rewriter.h>
#include <fxgraph/text/print.h>
#include "tests/support/error_of.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"
#include "tests/support/short_graph.h"

namespace fx::edits_test {

using ::testing::ElementsAre;
using testing::error_of;
using testing::graph_of;
using ::testing::HasSubstr;

/// The names of the nodes that it was told of, without those that were made.
class Told : public RewriteListener {
 public:
  void created(Node& node) override { names.insert("+" + node.name()); }
  void changed(Node& node) override { names.insert("~" + node.name()); }
  void erased(Node& node) override { names.insert("-" + node.name()); }
  std::set<std::string> names;
};

struct Edit {
  const char* name;
  std::function<void(Rewriter&, const std::function<Node&(const char*)>&)> make;
  std::set<std::string> told;
  std::set<std::string> undone;
};

const std::vector<Edit>& edits() {
  static const std::vector<Edit> all = {
      {"create", [](Rewriter& to, const auto& at) { to.call_function("aten::neg", {at("x")}); }, {"+neg"}, {"-neg"}},
      {"erase", [](Rewriter& to, const auto& at) { to.erase_node(at("unused")); }, {"-unused"}, {"+unused"}},
      {"arguments", [](Rewriter& to, const auto& at) { to.set_args(at("b"), {at("x")}); }, {"~b"}, {"~b"}},
      {"one input",
       [](Rewriter& to, const auto& at) { to.replace_input_with(at("b"), at("a"), at("x")); },
       {"~b"},
       {"~b"}},
      {"target", [](Rewriter& to, const auto& at) { to.set_target(at("b"), "aten::cos"); }, {"~b"}, {"~b"}},
      {"place", [](Rewriter& to, const auto& at) { to.move_before(at("unused"), at("a")); }, {"~unused"}, {"~unused"}},
      {"place, of the last",
       [](Rewriter& to, const auto& at) { to.move_before(at("output"), at("c")); },
       {"~output"},
       {"~output"}},
      {"uses, to a value that has some",
       [](Rewriter& to, const auto& at) { to.replace_all_uses_with(at("a"), at("x")); },
       {"~b", "~c"},
       {"~b", "~c"}},
      {"uses, to a value that has none",
       [](Rewriter& to, const auto& at) { to.replace_all_uses_with(at("b"), at("unused")); },
       {"~output"},
       {"~output"}},
      {"uses, to a literal",
       [](Rewriter& to, const auto& at) { to.replace_all_uses_with(at("a"), 0); },
       {"~b", "~c"},
       {"~b", "~c"}},
  };
  return all;
}

TEST(Edits, AreToldAndUndone) {
  for (const Edit& edit : edits()) {
    Graph graph = graph_of(
        "a = aten::relu(%x)\nunused = aten::tanh(%x)\nb = aten::sin(%a)\nc = aten::add.Tensor(%a, %a)\nreturn (b, c)");
    const std::string before = print_graph(graph);
    Rewriter rewriter(graph);
    Told told;
    rewriter.set_listener(&told);
    edit.make(rewriter, [&](const char* name) -> Node& { return *graph.find(name); });
    EXPECT_EQ(told.names, edit.told) << edit.name;
    EXPECT_NE(print_graph(graph), before) << edit.name;
    EXPECT_TRUE(rewriter.changed()) << edit.name;
    told.names.clear();
    rewriter.rollback();
    EXPECT_EQ(told.names, edit.undone) << edit.name;
    EXPECT_EQ(print_graph(graph), before) << edit.name;
    EXPECT_FALSE(rewriter.changed()) << edit.name;
    graph.lint();
  }
}

/// What is refused is not told, leaves the graph as it was, and what was done before can be undone all the same.
TEST(Edits, ThatAreRefusedChangeNothing) {
  Graph other;
  Node &foreign = other.placeholder("foreign"), &used = other.placeholder("used");
  other.output(used);
  const std::vector<std::pair<const char*, std::function<void(Rewriter&, Node&, Node&, Node&)>>> refused = {
      {"create", [&](Rewriter& to, Node&, Node&, Node& gone) { to.call_function("aten::neg", {gone}); }},
      {"create from another graph",
       [&](Rewriter& to, Node&, Node&, Node&) { to.call_function("aten::neg", {foreign}); }},
      {"erase what is used", [](Rewriter& to, Node& a, Node&, Node&) { to.erase_node(a); }},
      {"erase from another graph", [&](Rewriter& to, Node&, Node&, Node&) { to.erase_node(foreign); }},
      {"erase twice", [](Rewriter& to, Node&, Node&, Node& gone) { to.erase_node(gone); }},
      {"arguments", [](Rewriter& to, Node&, Node& b, Node& gone) { to.set_args(b, {gone}); }},
      {"arguments of what is gone", [](Rewriter& to, Node& a, Node&, Node& gone) { to.set_args(gone, {a}); }},
      {"a node as its own argument",
       [](Rewriter& to, Node& a, Node& b, Node&) {
         to.set_args(b, {a, b});
       }},
      {"a node in a list of its own",
       [](Rewriter& to, Node& a, Node& b, Node&) {
         to.set_args(b, {Argument::list({a, Argument::list({b})})});
       }},
      {"a node as its own keyword argument",
       [](Rewriter& to, Node& a, Node& b, Node&) {
         to.set_args_kwargs(b, {a}, std::vector<NamedArgument>{{"out", b}});
       }},
      {"one input", [](Rewriter& to, Node& a, Node& b, Node& gone) { to.replace_input_with(b, a, gone); }},
      {"one input, the node itself", [](Rewriter& to, Node& a, Node& b, Node&) { to.replace_input_with(b, a, b); }},
      {"one input from another graph",
       [&](Rewriter& to, Node& a, Node& b, Node&) { to.replace_input_with(b, a, foreign); }},
      {"target", [](Rewriter& to, Node&, Node&, Node& gone) { to.set_target(gone, "aten::cos"); }},
      {"place", [](Rewriter& to, Node& a, Node&, Node& gone) { to.move_before(gone, a); }},
      {"uses", [](Rewriter& to, Node& a, Node&, Node& gone) { to.replace_all_uses_with(a, gone); }},
      {"uses, to one of their users", [](Rewriter& to, Node& a, Node& b, Node&) { to.replace_all_uses_with(a, b); }},
      {"uses, to a value of another graph that has some",
       [&](Rewriter& to, Node& a, Node&, Node&) { to.replace_all_uses_with(a, used); }},
      {"uses, to another graph", [&](Rewriter& to, Node& a, Node&, Node&) { to.replace_all_uses_with(a, foreign); }}};
  for (const auto& [name, make] : refused) {
    Graph graph = graph_of("a = aten::relu(%x)\ngone = aten::tanh(%x)\nb = aten::sin(%a)\nreturn (b, a)");
    const std::string original = print_graph(graph);
    Node &a = *graph.find("a"), &b = *graph.find("b"), &gone = *graph.find("gone");
    Rewriter rewriter(graph);
    rewriter.set_target(b, "aten::cos");
    rewriter.erase_node(gone);
    const std::string before = print_graph(graph);
    Told told;
    rewriter.set_listener(&told);
    EXPECT_THROW(make(rewriter, a, b, gone), Error) << name;
    EXPECT_THAT(told.names, ::testing::IsEmpty()) << name;
    EXPECT_EQ(print_graph(graph), before) << name;
    rewriter.rollback();
    EXPECT_EQ(print_graph(graph), original) << name;
    graph.lint();
  }
}

TEST(Edits, ValuesAreFollowedThroughReplacementsAndBack) {
  Graph graph = graph_of("a = aten::relu(%x)\nb = aten::sin(%a)\nc = aten::cos(%b)\nreturn c");
  Node &x = *graph.find("x"), &a = *graph.find("a"), &b = *graph.find("b");
  Rewriter rewriter(graph);
  const Argument values[] = {a, b, x, 3, Argument(), Argument::list({a, 1}), Argument::list({x, 1})};
  const auto expect = [&](const std::vector<Argument>& now) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      EXPECT_EQ(rewriter.forwarded(values[i]), now[i]) << i;
      EXPECT_EQ(rewriter.is_replaced(values[i]), values[i] != now[i]) << i;
    }
  };
  expect({a, b, x, 3, Argument(), Argument::list({a, 1}), Argument::list({x, 1})});
  rewriter.replace_all_uses_with(b, a);
  expect({a, a, x, 3, Argument(), Argument::list({a, 1}), Argument::list({x, 1})});
  const Rewriter::Mark mark = rewriter.mark();
  rewriter.replace_all_uses_with(a, x);
  expect({x, x, x, 3, Argument(), Argument::list({x, 1}), Argument::list({x, 1})});
  rewriter.rollback(mark);
  expect({a, a, x, 3, Argument(), Argument::list({a, 1}), Argument::list({x, 1})});
  rewriter.replace_all_uses_with(a, 7);
  expect({7, 7, x, 3, Argument(), Argument::list({7, 1}), Argument::list({x, 1})});
}

TEST(Edits, ValuesAreFollowedIntoLists) {
  Graph graph = graph_of("a = aten::relu(%x)\nb = aten::sin(%x)\nc = mine.f(%b)\nreturn (a, c)");
  Node &x = *graph.find("x"), &a = *graph.find("a"), &b = *graph.find("b");
  Rewriter rewriter(graph);
  rewriter.replace_all_uses_with(b, Argument::list({a, 1}));
  rewriter.replace_all_uses_with(a, x);
  EXPECT_EQ(rewriter.forwarded(b), Argument::list({x, 1}));
}

/// Such a graph is read, and lint says so; its edits are undone all the same.
TEST(Edits, OfANodeThatWasItsOwnInput) {
  Graph graph = graph_of("n = mine.f(%x)\nfresh = aten::sin(%x)\nb = aten::cos(%n)\nreturn b");
  Node &x = *graph.find("x"), &n = *graph.find("n"), &fresh = *graph.find("fresh");
  n.set_args({n, Argument::list({x, n})});
  const std::string before = print_graph(graph);
  for (const Argument& to : {Argument(fresh), Argument(x), Argument(3)}) {
    Rewriter rewriter(graph);
    rewriter.replace_all_uses_with(n, to);
    EXPECT_FALSE(n.has_users());
    rewriter.set_args(n, {x});
    rewriter.rollback();
    EXPECT_EQ(print_graph(graph), before);
  }
}

/// A function that goes wrong behind it leaves the graph as it was.
TEST(Edits, ACallbackCannotMakeANodeItsOwnInput) {
  Graph graph = graph_of("a = aten::relu(%x)\nb = aten::sin(%a)\nreturn b");
  const std::string before = print_graph(graph);
  const auto tie = [](const Match& match, Rewriter& rewriter) -> Node& {
    Node& made = rewriter.call_function("mine.f", {match["x"]});
    rewriter.set_args(made, {made, 1});
    rewriter.replace_all_uses_with(made, match["x"]);
    throw std::runtime_error("not reached");
  };
  EXPECT_THAT(error_of([&] { replace_pattern(graph, "aten::relu(x)", tie); }),
              HasSubstr("cannot make mine_f its own input"));
  EXPECT_EQ(print_graph(graph), before);
}

/// What was committed stays; what comes after is undone as ever.
TEST(Edits, ThatAreCommittedStay) {
  Graph graph = graph_of("a = mine.f(%x, k=1, l=2)\nb = aten::sin(%a)\nreturn b");
  Node &x = *graph.find("x"), &a = *graph.find("a");
  Rewriter rewriter(graph);
  rewriter.set_args_kwargs(a, {x}, std::vector<NamedArgument>{{"m", 3}});
  EXPECT_TRUE(rewriter.changed());
  const Rewriter::Mark done = rewriter.mark();
  rewriter.commit();
  EXPECT_FALSE(rewriter.changed());
  const std::string committed = print_graph(graph);
  rewriter.set_args_kwargs(a, {x}, std::vector<NamedArgument>{{"n", 4}, {"o", 5}});
  EXPECT_TRUE(rewriter.changed(done));
  rewriter.rollback(done);
  EXPECT_EQ(print_graph(graph), committed);
  const auto refusal = [&](Rewriter::Mark to) { return error_of([&] { rewriter.rollback(to); }); };
  EXPECT_THAT(refusal(done - 1), HasSubstr("what was done since was committed"));
  EXPECT_THAT(refusal(done + 1), HasSubstr("nothing was done since that mark"));
  EXPECT_EQ(print_graph(graph), committed);
}

TEST(Edits, WhatOnlyTheErasedUsedGoesToo) {
  for (const auto& [keep, left] : {std::pair("", "r = aten::relu(x)\nreturn r\n"),
                                   std::pair("b", "a = aten::sin(x)\nb = aten::cos(a)\nr = aten::relu(x)\nreturn r\n"),
                                   std::pair("c",
                                             "a = aten::sin(x)\nb = aten::cos(a)\nc = aten::add.Tensor(a, b)\n"
                                             "r = aten::relu(x)\nreturn r\n")}) {
    Graph graph =
        graph_of("a = aten::sin(%x)\nb = aten::cos(%a)\nc = aten::add.Tensor(%a, %b)\nr = aten::relu(%x)\nreturn r");
    Rewriter rewriter(graph);
    rewriter.erase_unused(*graph.find("c"),
                          [keep = keep](const Node& node) { return !node.is(Op::placeholder) && node.name() != keep; });
    EXPECT_EQ(testing::calls_of(graph), left) << keep;
    rewriter.rollback();
    EXPECT_EQ(graph.size(), 6u);
  }
}

/// Whatever is done, one after the other, is undone back to any place in between.
TEST(Edits, ManyAreUndone) {
  std::size_t failed = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    testing::RandomGraphOptions options;
    options.nodes = 12;
    Graph graph = testing::random_graph(seed, options);
    testing::Random random(seed);
    Rewriter rewriter(graph);
    std::vector<std::pair<Rewriter::Mark, std::string>> states;
    for (int step = 0; step < 25; ++step) {
      states.emplace_back(rewriter.mark(), print_graph(graph));
      std::vector<Node*> nodes;
      for (Node& node : graph.nodes()) nodes.push_back(&node);
      Node &one = *random.pick(nodes), &other = *random.pick(nodes);
      const auto takes = [](const Node& user, const Node& value) {
        return std::ranges::count(user.all_input_nodes(), &value) > 0;
      };
      try {
        switch (random.below(6)) {
          case 0: rewriter.erase_node(one); break;
          case 1: {
            const bool refused = takes(other, one);
            rewriter.set_args_kwargs(one, other.args(), other.kwargs());
            EXPECT_FALSE(refused) << "its own input, at seed " << seed;
            break;
          }
          case 2:
            rewriter.replace_all_uses_with(one, random.chance(70) ? Argument(other) : Argument::list({other, 1}));
            break;
          case 3: rewriter.replace_input_with(one, *random.pick(nodes), other); break;
          case 4: rewriter.move_before(one, other); break;
          default: rewriter.create_node(Op::call_function, "mine.f", {one, 1}, other.kwargs()); break;
        }
      } catch (const Error&) {
        ++failed;
        ASSERT_EQ(print_graph(graph), states.back().second) << seed;
      }
      if (random.chance(80)) continue;
      const auto& [mark, text] = random.pick(states);
      if (mark > rewriter.mark()) continue;
      rewriter.rollback(mark);
      ASSERT_EQ(print_graph(graph), text) << seed;
      std::erase_if(states, [&, limit = rewriter.mark()](const auto& state) { return state.first > limit; });
    }
    rewriter.rollback();
    ASSERT_EQ(print_graph(graph), states.front().second) << seed;
  }
  EXPECT_GT(failed, 300u);
}

/// The index that followed edits says of every class what one made anew says.
TEST(Edits, TheIndexOfEffectsListsWritersInOrder) {
  Graph graph = graph_of("v = aten::view(%x, [-1])\nb = aten::add_.Tensor(%v, 1)\nd = aten::sin(%x)\nreturn d");
  Node &x = *graph.find("x"), &v = *graph.find("v"), &b = *graph.find("b"), &d = *graph.find("d");
  internal::TrackedEffects index(graph);
  const auto writers = [&](const Node& value) {
    std::vector<Node*> all;
    index.any_writer(value, [&](Node& writer) { return all.push_back(&writer), false; });
    return all;
  };
  EXPECT_THAT(writers(x), ElementsAre(&b));
  std::vector<Node*> made;
  for (Node* next : {&v, &b, &d}) {
    const auto scope = graph.inserting_before(*next);
    made.push_back(&graph.call_function("aten::mul_.Tensor", {x, 2}));
  }
  for (const std::size_t i : {1u, 2u, 0u}) {
    index.add(*made[i]);
    index.add(*made[i]);  // told twice is told once
  }
  EXPECT_THAT(writers(v), ElementsAre(made[0], made[1], &b, made[2]));
  EXPECT_THAT(index.between(*made[0], d), ElementsAre(made[1], &b, made[2]));
  for (Node* gone : {made[1], &b}) {
    index.remove(*gone);
    index.remove(*gone);
  }
  index.remove(d);
  EXPECT_THAT(writers(v), ElementsAre(made[0], made[2]));
}

}  // namespace fx::edits_test
