#include <fxgraph/analysis/effects.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include <fxgraph/ir/node_map.h>
#include "tests/support/random_graph.h"

namespace fx::effects_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::mutating_vocabulary;
using testing::Random;

TEST(Effects, ViewsAndInPlaceResultsAliasTheirBase) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x});
  Node& v = graph.call_function("aten::view", {a, Argument::list({-1})});
  Node& w = graph.call_function("aten::add_.Tensor", {v, 1});
  Node& b = graph.call_function("aten::neg", {a});
  graph.output(b);
  const Effects effects(graph);
  EXPECT_TRUE(effects.may_alias(a, v));
  EXPECT_TRUE(effects.may_alias(a, w));
  EXPECT_FALSE(effects.may_alias(a, x));
  EXPECT_FALSE(effects.may_alias(a, b));
  EXPECT_TRUE(effects.writes(w));
  EXPECT_FALSE(effects.writes(v));
  EXPECT_EQ(effects.write_between(a, a, b), &w);
  EXPECT_EQ(effects.write_between(a, w, b), nullptr);
  EXPECT_EQ(effects.write_between(x, x, b), nullptr);
  EXPECT_EQ(effects.version(a, w), 0u);
  EXPECT_EQ(effects.version(a, b), 1u);
  EXPECT_EQ(effects.last_write_before(v, b), &w);
  EXPECT_THAT(effects.readers(w), ElementsAre(&b));
  EXPECT_THAT(effects.between(x, b), ElementsAre(&w));
  EXPECT_THAT(effects.between(w, b), IsEmpty());
  EXPECT_FALSE(effects.is_external(effects.sets(a)[0]));
  EXPECT_TRUE(effects.is_external(effects.sets(x)[0]));
}

TEST(Effects, GetAttrOfOnePathIsOneStorage) {
  Graph graph;
  Node &a = graph.get_attr("w"), &b = graph.get_attr("w"), &c = graph.get_attr("v");
  const Effects effects(graph);
  EXPECT_TRUE(effects.may_alias(a, b));
  EXPECT_FALSE(effects.may_alias(a, c));
}

TEST(Effects, TiedAttributesAreOneStorage) {
  Graph graph;
  Node& a = graph.get_attr("encoder.weight");
  Node& b = graph.get_attr("decoder.weight");
  Node& c = graph.get_attr("bias");
  const Effects apart(graph);
  EXPECT_FALSE(apart.may_alias(a, b));
  const Symbol shared("decoder.weight");
  ModuleInfo tied;
  tied.storage = [&](Symbol path) { return path == Symbol("encoder.weight") ? shared : path; };
  const Effects effects(graph, {.modules = tied});
  EXPECT_TRUE(effects.may_alias(a, b));
  EXPECT_FALSE(effects.may_alias(a, c));
  EXPECT_TRUE(effects.is_external(effects.sets(a)[0]));
}

TEST(Effects, ElementsOfATupleAreSeparate) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& t = graph.call_function("aten::max.dim", {x, 1});
  Node& values = graph.call_function("operator.getitem", {t, 0});
  Node& indices = graph.call_function("operator.getitem", {t, 1});
  Node& again = graph.call_function("operator.getitem", {t, 0});
  Node& parts = graph.call_function("aten::split.Tensor", {x, 2});
  Node& first = graph.call_function("operator.getitem", {parts, 0});
  Node& second = graph.call_function("operator.getitem", {parts, 1});
  const Effects effects(graph);
  EXPECT_FALSE(effects.may_alias(values, indices));
  EXPECT_TRUE(effects.may_alias(values, again));
  EXPECT_TRUE(effects.may_alias(values, t));
  EXPECT_TRUE(effects.may_alias(indices, t));
  EXPECT_TRUE(effects.may_alias(first, second));  // one storage, though different places of it
  EXPECT_TRUE(effects.may_alias(first, x));
  EXPECT_FALSE(effects.may_alias(first, values));
}

TEST(Effects, UnknownOperatorsMayDoAnything) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y"), &z = graph.placeholder("z");
  Node& u = graph.call_function("my_library::mystery", {x, Argument::list({y})});
  const Effects effects(graph);
  EXPECT_TRUE(effects.may_alias(u, x));
  EXPECT_TRUE(effects.may_alias(u, y));
  EXPECT_FALSE(effects.may_alias(x, y));
  EXPECT_FALSE(effects.may_alias(u, z));
  EXPECT_EQ(effects.last_write_before(y, *graph.nodes().reversed().begin()), nullptr);
  EXPECT_THAT(effects.writers(effects.sets(y)[0]), ElementsAre(&u));
}

TEST(Effects, ManyAliasesAreUnited) {
  Graph graph;
  std::vector<Argument> inputs;
  for (int i = 0; i < 10; ++i) inputs.push_back(Argument(graph.placeholder("x")));
  Node& u = graph.call_function("my_library::mystery", inputs);
  const Effects effects(graph);
  EXPECT_EQ(effects.sets(u).size(), 1u);
  EXPECT_TRUE(effects.may_alias(*graph.placeholders()[0], *graph.placeholders()[9]));
}

TEST(Effects, InputsMayAliasWhenAsked) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  EXPECT_FALSE(Effects(graph).may_alias(x, y));
  EXPECT_TRUE(Effects(graph, {.inputs_may_alias = true}).may_alias(x, y));
}

TEST(Effects, MaySwap) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x});
  Node& b = graph.call_function("aten::neg", {x});
  Node& w = graph.call_function("aten::add_.Tensor", {a, 1});
  Node& r = graph.call_function("aten::neg", {a});
  Node& r2 = graph.call_function("aten::abs", {a});
  Node& d = graph.call_function("aten::rand_like", {x});
  Node& e = graph.call_function("aten::rand_like", {b});
  const Effects effects(graph);
  EXPECT_TRUE(effects.may_swap(a, b));
  EXPECT_FALSE(effects.may_swap(a, w));
  EXPECT_FALSE(effects.may_swap(w, r));
  EXPECT_TRUE(effects.may_swap(r, r2));
  EXPECT_TRUE(effects.may_swap(w, d));
  EXPECT_FALSE(effects.may_swap(d, e));
}

// Values that share one set, several by way of a call that may return any of them: the set is seen from outside when
// one of them is, wherever it stands.
TEST(Effects, WhatIsUnitedIsExternalWhenAPartIs) {
  constexpr unsigned kValues = Effects::kMaxSets + 2;
  for (unsigned attributes = 0; attributes < 1u << kValues; ++attributes) {
    Graph graph;
    std::vector<Argument> values;
    for (unsigned i = 0; i < kValues; ++i) {
      Node& value =
          attributes >> i & 1 ? graph.get_attr("w" + std::to_string(i)) : graph.call_function("aten::rand", {});
      values.emplace_back(value);
    }
    Node& any = graph.call_function("mine.any_of", values);
    const Effects effects(graph);
    ASSERT_EQ(effects.sets(any).size(), 1u);
    EXPECT_EQ(effects.is_external(effects.sets(any)[0]), attributes != 0) << attributes;
  }
}

// Of two calls that draw, that others see, or of which nobody knows, neither goes before the other; and what writes, or
// may write, stays where it is among those that read it.
TEST(Effects, MaySwapByWhatTheCallsDo) {
  struct Call {
    const char* target;
    bool ordered, writes;
  };
  constexpr Call kCalls[] = {{"aten::neg", false, false},      {"aten::add_.Tensor", false, true},
                             {"aten::rand_like", true, false}, {"aten::_assert_async", true, false},
                             {"mine.unknown", true, true},     {"aten::bernoulli_.float", true, true}};
  for (const Call& first : kCalls) {
    for (const Call& second : kCalls) {
      for (const bool apart : {true, false}) {
        Graph graph;
        Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
        Node& a = graph.call_function(first.target, {x, 0.5});
        Node& b = graph.call_function(second.target, {apart ? y : x, 0.5});
        const Effects effects(graph);
        const bool wanted = !(first.ordered && second.ordered) && (apart || !(first.writes || second.writes));
        EXPECT_EQ(effects.may_swap(a, b), wanted) << first.target << " " << second.target << apart;
        EXPECT_EQ(effects.may_swap(b, a), wanted) << first.target << " " << second.target << apart;
      }
    }
  }
}

// ── Against a model that runs the graph ──────────────────────────────────────────────────────────────────────────────

/// Runs a graph on abstract storage: every value is a set of storage numbers, by the per-node facts alone.
struct Model {
  std::vector<std::set<int>> storages;                        // by id
  std::vector<std::pair<const Node*, std::set<int>>> writes;  // in order

  explicit Model(const Graph& graph) : storages(graph.id_bound()) {
    int next = 0;
    std::map<std::string, int> attributes;
    for (const Node& node : graph.nodes()) {
      std::set<int>& own = storages[node.id()];
      if (node.is(Op::output)) continue;
      if (node.is(Op::get_attr)) {
        const auto [it, fresh] = attributes.emplace(node.target().str(), next);
        if (fresh) ++next;
        own = {it->second};
        continue;
      }
      const NodeEffects effects = effects_of(node);
      std::set<int> written;
      const auto take = [&](std::set<int>& into, const Node& from) {
        into.insert(storages[from.id()].begin(), storages[from.id()].end());
      };
      if (effects.unknown) {
        node.for_each_input([&](Node& input) { take(own, input), take(written, input); });
      } else {
        if (effects.may_alias) for_each_aliased_input(node, [&](Node& input) { take(own, input); });
        if (effects.writes) {
          for_each_written(node, [&](const Argument& a) { for_each_node(a, [&](Node& n) { take(written, n); }); });
        }
      }
      if (effects.impure()) writes.emplace_back(&node, written);
      if (own.empty()) own = {next++};
    }
  }

  bool overlap(const std::set<int>& a, const std::set<int>& b) const {
    return std::any_of(a.begin(), a.end(), [&](int s) { return b.count(s) > 0; });
  }
};

testing::RandomGraphOptions mutating(std::uint64_t seed) {
  testing::RandomGraphOptions options = testing::random_options(seed, 40);
  options.vocabulary = &mutating_vocabulary();
  return options;
}

TEST(Effects, NeverMissesAnAliasOrAWriteOnRandomGraphs) {
  std::size_t aliases = 0, precise = 0, pairs = 0, writes = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Graph graph = testing::random_graph(seed, mutating(seed));
    const Model model(graph);
    const Effects effects(graph);
    std::vector<const Node*> nodes;
    for (const Node& node : graph.nodes()) {
      if (!node.is(Op::output)) nodes.push_back(&node);
    }
    for (const Node* a : nodes) {
      for (const Node* b : nodes) {
        const bool expected = model.overlap(model.storages[a->id()], model.storages[b->id()]);
        const bool found = effects.may_alias(*a, *b);
        // A tuple's elements are one storage to the model.
        if (expected && !found) {
          ASSERT_TRUE(a->target() == "operator.getitem" && b->target() == "operator.getitem") << seed;
        }
        aliases += expected;
        precise += expected == found;
        ++pairs;
      }
    }
    for (const auto& [writer, written] : model.writes) {
      ASSERT_TRUE(effects.impure(*writer));
      for (const Node* value : nodes) {
        if (!value->is_before(*writer) || !model.overlap(model.storages[value->id()], written)) continue;
        ++writes;
        const Node* next = writer->next();
        if (!next) continue;
        ASSERT_EQ(effects.write_between(*value, *writer->previous(), *next), writer) << seed << ' ' << *writer;
        ASSERT_GT(effects.version(*value, *next), effects.version(*value, *writer)) << seed;
      }
    }
  }
  EXPECT_GT(aliases, 10'000u);
  EXPECT_GT(writes, 1'000u);
  EXPECT_GT(precise * 100, pairs * 95) << "alias sets have become too coarse to be useful";
}

TEST(Effects, WindowQuestionsAgreeWithScanning) {
  std::vector<testing::OperatorForm> forms = testing::mutating_vocabulary();
  forms.push_back({Op::call_module, "layer", "tt"});      // its value may be either
  forms.push_back({Op::call_function, "mine.f", "ttt"});  // it may write to each, and may be given one twice
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    testing::RandomGraphOptions options = mutating(seed);
    options.vocabulary = &forms;
    const Graph graph = testing::random_graph(seed, options);
    const Effects effects(graph);
    std::vector<Node*> nodes;
    for (const Node& node : graph.nodes()) nodes.push_back(const_cast<Node*>(&node));
    Random random(seed);
    for (int i = 0; i < 50 && nodes.size() > 2; ++i) {
      const std::size_t a = random.below(nodes.size() - 1), b = a + 1 + random.below(nodes.size() - a - 1);
      const Node& value = *random.pick(nodes);
      Node* first = nullptr;
      std::vector<Node*> impure;
      for (std::size_t at = a + 1; at < b; ++at) {
        if (effects.impure(*nodes[at])) impure.push_back(nodes[at]);
        const auto written = effects.written_sets(*nodes[at]);
        const auto sets = effects.sets(value);
        const bool hit = std::find_first_of(sets.begin(), sets.end(), written.begin(), written.end()) != sets.end();
        if (hit && !first) first = nodes[at];
      }
      ASSERT_EQ(effects.write_between(value, *nodes[a], *nodes[b]), first) << seed;
      const auto window = effects.between(*nodes[a], *nodes[b]);
      ASSERT_TRUE(std::equal(window.begin(), window.end(), impure.begin(), impure.end())) << seed;
    }
  }
}

// ── Order edges: every order that keeps them must show every read the same writes ────────────────────────────────────

/// What each node can see: for every input, the writes made to its sets so far; and its turn among random draws.
std::vector<std::vector<std::size_t>> run(const Effects& effects, const std::vector<Node*>& order, std::size_t ids) {
  std::vector<std::vector<std::size_t>> seen(ids);
  std::vector<std::size_t> state(effects.num_sets(), 0);
  std::size_t turn = 0;
  for (Node* node : order) {
    auto& own = seen[node->id()];
    node->for_each_input([&](Node& input) {
      for (const auto set : effects.sets(input)) own.push_back(state[set]);
    });
    const NodeEffects e = effects.of(*node);
    if (e.random || e.side_effect || e.unknown) own.push_back(++turn);
    for (const auto set : effects.written_sets(*node)) state[set] = state[set] * 31 + node->id() + 1;
  }
  return seen;
}

TEST(OrderEdges, EveryOrderThatKeepsThemDoesTheSame) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Graph graph = testing::random_graph(seed, mutating(seed));
    const Effects effects(graph);
    const OrderEdges edges = effects.order_edges();
    std::vector<Node*> order, shuffled, ready;
    std::vector<int> waiting(graph.id_bound(), 0);
    for (const Node& const_node : graph.nodes()) {
      Node* node = const_cast<Node*>(&const_node);
      order.push_back(node);
      node->for_each_input([&](Node&) { ++waiting[node->id()]; });
      for (Node* before : edges.before(*node)) {
        ASSERT_TRUE(before->is_before(*node));
        ++waiting[node->id()];
      }
      if (waiting[node->id()] == 0) ready.push_back(node);
    }
    Random random(seed);
    while (!ready.empty()) {
      std::swap(ready[random.below(ready.size())], ready.back());
      Node* node = ready.back();
      ready.pop_back();
      shuffled.push_back(node);
      const auto arrive = [&](Node& after) {
        if (--waiting[after.id()] == 0) ready.push_back(&after);
      };
      for (const Use use : node->uses()) arrive(use.user());
      for (Node* after : edges.after(*node)) arrive(*after);
    }
    ASSERT_EQ(shuffled.size(), order.size());
    moved += shuffled != order;
    const auto before = run(effects, order, graph.id_bound()), after = run(effects, shuffled, graph.id_bound());
    ASSERT_EQ(before, after) << seed;
  }
  EXPECT_GT(moved, 500);
}

TEST(Effects, MillionNodes) {
  Graph graph;
  Node* value = &graph.call_function("aten::relu", {graph.placeholder("x")});
  for (int i = 0; i < 1'000'000; ++i) value = &graph.call_function("aten::relu_", {*value});
  graph.output(*value);
  const Effects effects(graph);
  EXPECT_EQ(effects.version(*value, *graph.output_node()), 1'000'000u);
  EXPECT_EQ(effects.order_edges().size(), 1'000'000u);
  const Effects fan(testing::fan(1'000'000));
  EXPECT_EQ(fan.num_sets(), 1'000'001u);
}

}  // namespace fx::effects_test
