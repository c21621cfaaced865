// An index that is told of each edit says what one says that is made afterwards: the same while nodes are added, and no
// less when uses move and nodes go.
#include <gtest/gtest.h>

#include <algorithm>

#include <fxgraph/rewriter/effect_index.h>
#include <fxgraph/text/print.h>
#include "tests/support/any_operators.h"
#include "tests/support/module_effects.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"
#include "tests/support/record.h"

namespace fx::effect_index_test {

using internal::EffectIndex;

Graph graph_at(std::uint64_t seed) {
  static const std::vector<testing::OperatorForm> kForms = [] {
    std::vector<testing::OperatorForm> forms = testing::mutating_vocabulary();
    forms.insert(forms.end(), {{Op::call_function, "aten::resize_", "tI"},
                               {Op::call_function, "aten::cat", "T"},
                               {Op::call_function, "aten::dropout", "tfb"},
                               {Op::call_function, "higher_order::cond", "ttt"},
                               {Op::call_module, "layer", "t"},
                               {Op::call_module, "layer.inner", "t"},
                               {Op::get_attr, "layer.weight", ""},
                               {Op::get_attr, "layer.inner.scale", ""},
                               {Op::get_attr, "layer", ""},
                               {Op::get_attr, "layers.weight", ""},
                               {Op::get_attr, "other.weight", ""}});
    return forms;
  }();
  if (seed % 4 == 0) return testing::graph_of_any_operators(seed, 3 + seed % 10);
  testing::RandomGraphOptions options;
  options.nodes = 3 + seed % 20;
  options.inputs = 1 + seed % 3;
  options.shape = static_cast<testing::Shape>(seed / 5 % 4);
  options.vocabulary = &kForms;
  return testing::random_graph(seed, options);
}

ModuleEffects modules_at(std::uint64_t seed) {
  std::optional<NodeEffects> call;
  if (seed % 3 == 1) call = NodeEffects{.writes = true};
  const bool surely = seed % 2 == 0;
  if (seed % 3 == 2)
    call = NodeEffects{.random = true, .may_alias = true, .aliases = surely, .may_alias_state = !surely};
  return testing::module_effects(call, seed % 5 == 3, seed % 5 == 4);
}

/// Everything that is said of a graph, a line for each node. With `less`, what may be said in addition is left out.
std::string said(const Graph& graph, const EffectIndex& index) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    text += node.name() + (index.escapes(node) ? " escapes" : "") + (index.is_fresh(node) ? " fresh" : "") + " with";
    std::vector<Node*> members = index.members(node);
    std::sort(members.begin(), members.end(), GraphOrder{});
    for (const Node* member : members) text += " " + member->name();
    text += " written by";
    for (const Node* writer : index.writers(index.alias_class(node))) text += " " + writer->name();
    if (index.is_restructured(index.alias_class(node))) text += " restructured";
    if (index.is_returned(index.alias_class(node))) text += " returned";
    if (index.is_constant(index.alias_class(node))) text += " constant";
    text += " reads";
    index.for_each_read_class(
        node, [&](EffectIndex::Class read) { text += " " + std::to_string(index.writers(read).size()); });
    text += " after";
    for (const Node* impure : index.between(*graph.nodes().begin(), node)) text += " " + impure->name();
    const Node* write = index.write_between(index.alias_class(node), *graph.nodes().begin(), node);
    text += (write ? " " + write->name() : "") + "\n";
  }
  return text;
}

/// Where the storage of each value comes from for certain.
std::string origins(const Graph& graph, const EffectIndex& index) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    const EffectIndex::Origin origin = index.origin_of(node);
    text += node.name() + " from " + origin.node->name() + " " + origin.storage.str() + " " +
            std::to_string(origin.element) + (origin.fresh ? " fresh" : "");
    for (const Node& user : node.users()) text += index.may_share(user, node) ? " shared with " + user.name() : "";
    text += "\n";
  }
  return text;
}

TEST(RecordedEffectIndex, WhatItSaysOfRandomGraphs) {
  std::vector<testing::Recorded> all;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const Graph graph = graph_at(seed);
    EffectIndex index(graph, modules_at(seed));
    std::string found = index.any_writes() ? "writes\n" : index.any_impure() ? "impure\n" : "pure\n";
    index.expect_writes();
    found += said(graph, index) + origins(graph, index);
    if (seed % 20 == 1) all.push_back({std::to_string(seed), ""});
    all.back().found += found;
  }
  testing::expect_as_recorded("effect_index", all);
}

bool writes_on_purpose(const Graph& graph, const EffectIndex& index) {
  for (const Node& node : graph.nodes()) {
    const NodeEffects effects = index.of(node);
    if (effects.writes || (effects.unknown && runs_graphs(node))) return true;
  }
  return false;
}

TEST(EffectIndex, ToldOfEachNodeItSaysWhatOneMadeAfterwardsSays) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    const Graph whole = graph_at(seed);
    const ModuleEffects modules = modules_at(seed);
    Graph graph;
    NodeMap<Node*> copies(whole, nullptr);
    EffectIndex index(graph, modules);
    if (seed % 2) index.expect_writes();
    for (const Node& node : whole.nodes()) {
      copies[node] = &graph.node_copy(node, [&](Node& input) { return Argument(*copies[input]); });
      index.add(*copies[node]);
    }
    EffectIndex anew(graph, modules);
    ASSERT_LE(anew.any_writes(), index.any_writes() || seed % 3 == 0);
    ASSERT_EQ(index.any_writes(), seed % 2 == 1 || writes_on_purpose(graph, anew)) << seed << "\n"
                                                                                   << print_graph(graph);
    anew.expect_writes();
    index.expect_writes();
    ASSERT_EQ(said(graph, index), said(graph, anew)) << seed << "\n" << print_graph(graph);
  }
}

/// Whatever shares storage, or is written, is known to.
void expect_no_less(const Graph& graph, const EffectIndex& index, const EffectIndex& anew, std::uint64_t seed) {
  for (const Node& node : graph.nodes()) {
    for (const Node* member : anew.members(node))
      ASSERT_EQ(index.alias_class(node), index.alias_class(*member)) << seed << "\n" << print_graph(graph);
    const auto all = index.writers(index.alias_class(node));
    for (Node* writer : anew.writers(anew.alias_class(node)))
      ASSERT_TRUE(std::ranges::count(all, writer)) << seed << " " << writer->name() << "\n" << print_graph(graph);
    ASSERT_LE(anew.is_restructured(anew.alias_class(node)), index.is_restructured(index.alias_class(node)));
  }
}

TEST(EffectIndex, ToldOfMovedUsesAndOfNodesThatGoItSaysNoLess) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Graph graph = graph_at(seed);
    const ModuleEffects modules = modules_at(seed);
    EffectIndex index(graph, modules);
    index.expect_writes();
    testing::Random random(seed);
    for (int edits = 0; edits < 4; ++edits) {
      std::vector<Node*> nodes;
      for (Node& node : graph.nodes()) nodes.push_back(&node);
      Node &from = *random.pick(nodes), &to = *random.pick(nodes);
      if (!from.is(Op::output) && to.is_before(from)) {
        const std::vector<Node*> users = from.users().to_vector();
        from.replace_all_uses_with(to);
        for (Node* user : users) index.changed(*user);
      }
      for (Node* node : nodes) {
        if (!node->is_callable() || node->has_users() || random.chance(50)) continue;
        index.remove(*node);
        graph.erase_node(*node);
      }
      EffectIndex anew(graph, modules);
      anew.expect_writes();
      expect_no_less(graph, index, anew, seed);
      for (const Node& node : graph.nodes()) {
        for (const Node* writer : index.writers(index.alias_class(node))) ASSERT_FALSE(writer->is_erased()) << seed;
      }
    }
  }
}

// Two values that it writes become one afterwards: it goes once, and no other writer with it.
TEST(EffectIndex, OfTwoWritersThatBecomeOfOneValueOneGoes) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  Node& both = graph.call_function("aten::_foreach_add_.Scalar", {Argument::list({x, y}), 1});
  Node& other = graph.call_function("aten::relu_", {y});
  EffectIndex index(graph);
  index.expect_writes();
  Node& list = graph.call_function("aten::broadcast_tensors", {Argument::list({x, y})});
  index.add(list);
  ASSERT_EQ(index.alias_class(x), index.alias_class(y));
  index.remove(both);
  graph.erase_node(both);
  const auto left = index.writers(index.alias_class(x));
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0], &other);
}

}  // namespace fx::effect_index_test
