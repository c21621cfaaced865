// An index that is told of each edit says what one says that is made afterwards: the same while nodes are added, and no
// less when uses move and nodes go.
#include <gtest/gtest.h>

#include <algorithm>

#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/text/print.h>
#include "tests/support/any_operators.h"
#include "tests/support/module_info.h"
#include "tests/support/night.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"
#include "tests/support/record.h"

namespace fx::tracked_effects_test {

using internal::Cell;
using internal::TrackedEffects;

Graph graph_at(std::uint64_t seed) {
  static const std::vector<testing::OperatorForm> kForms = [] {
    std::vector<testing::OperatorForm> forms = testing::mutating_vocabulary();
    forms.insert(forms.end(), {{Op::call_function, "aten::resize_", "tI"},
                               {Op::call_function, "aten::cat", "T"},
                               {Op::call_function, "aten::dropout", "tfb"},
                               {Op::call_function, "aten::append.t", "tt"},
                               {Op::call_function, "operator.setitem", "tit"},
                               {Op::call_function, "mylib::nobody_knows", "tt"},
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

ModuleInfo modules_at(std::uint64_t seed) {
  std::optional<NodeEffects> call;
  if (seed % 3 == 1) call = NodeEffects{.writes = true};
  const bool surely = seed % 2 == 0;
  if (seed % 3 == 2)
    call = NodeEffects{.random = true, .may_alias = true, .aliases = surely, .may_alias_state = !surely};
  return testing::module_info(call, seed % 5 == 3, seed % 5 == 4);
}

std::string names_of(std::vector<const Node*> nodes) {
  std::ranges::sort(nodes, GraphOrder{});
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::string text;
  for (const Node* node : nodes) text += " " + node->name();
  return text;
}

/// Everything that is said of a graph, a line for each node.
std::string said(const Graph& graph, const TrackedEffects& index) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    text += node.name() + (index.escapes(node) ? " escapes" : "") + (index.is_fresh(node) ? " fresh" : "") + " with";
    for (const Node* member : index.members(node)) text += " " + member->name();
    std::vector<const Node*> writers, read;
    index.any_writer(node, [&](const Node& writer) { return writers.push_back(&writer), false; });
    text += " written by" + names_of(writers);
    if (index.has_inplace_view(node)) text += " viewed in place";
    if (index.is_returned(node)) text += " returned";
    index.for_each_read_cell(node, [&](Cell cell) {
      for (const Node& other : graph.nodes())
        index.for_each_cell(other, [&](Cell one) {
          if (one == cell) read.push_back(&other);
        });
    });
    text += " reads" + names_of(read) + " after";
    for (const Node* impure : index.between(*graph.nodes().begin(), node)) text += " " + impure->name();
    const Node* write = index.write_between(node, *graph.nodes().begin(), node);
    text += (write ? " " + write->name() : "") + "\n";
  }
  return text;
}

/// Where the storage of each value comes from for certain.
std::string origins(const Graph& graph, const TrackedEffects& index) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    const TrackedEffects::Origin origin = index.origin_of(node);
    text += node.name() + " from " + origin.node->name() + " " + origin.storage.str() + " " +
            std::to_string(origin.element) + (origin.fresh ? " fresh" : "");
    for (const Node& user : node.users())
      text += index.may_alias_input(user, node) ? " shared with " + user.name() : "";
    text += "\n";
  }
  return text;
}

TEST(RecordedTrackedEffects, WhatItSaysOfRandomGraphs) {
  std::vector<testing::Recorded> all;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const Graph graph = graph_at(seed);
    TrackedEffects index(graph, modules_at(seed));
    std::string found = index.any_writes() ? "writes\n" : index.any_impure() ? "impure\n" : "pure\n";
    index.expect_writes();
    found += said(graph, index) + origins(graph, index);
    if (seed % 20 == 1) all.push_back({std::to_string(seed), ""});
    all.back().found += found;
  }
  testing::expect_as_recorded("tracked_effects", all);
}

bool writes_or_may(const Graph& graph, const TrackedEffects& index) {
  for (const Node& node : graph.nodes()) {
    const NodeEffects effects = index.of(node);
    if (effects.writes || effects.unknown) return true;
  }
  return false;
}

TEST(TrackedEffects, ToldOfEachNodeItSaysWhatOneMadeAfterwardsSays) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    const Graph whole = graph_at(seed);
    const ModuleInfo modules = modules_at(seed);
    Graph graph;
    NodeMap<Node*> copies(whole, nullptr);
    TrackedEffects index(graph, modules);
    if (seed % 2) index.expect_writes();
    for (const Node& node : whole.nodes()) {
      copies[node] = &graph.node_copy(node, [&](Node& input) { return Argument(*copies[input]); });
      index.add(*copies[node]);
    }
    TrackedEffects anew(graph, modules);
    ASSERT_LE(anew.any_writes(), index.any_writes() || seed % 3 == 0);
    ASSERT_EQ(index.any_writes(), seed % 2 == 1 || writes_or_may(graph, anew)) << seed << "\n" << print_graph(graph);
    anew.expect_writes();
    index.expect_writes();
    ASSERT_EQ(said(graph, index), said(graph, anew)) << seed << "\n" << print_graph(graph);
  }
}

/// Edits `graph` and tells the index: a value is used in place of another, unused nodes go, new ones come.
void edit(Graph& graph, TrackedEffects& index, testing::Random& random, const Graph& more) {
  std::vector<Node*> nodes;
  for (Node& node : graph.nodes()) nodes.push_back(&node);
  Node &from = *random.pick(nodes), &to = *random.pick(nodes);
  if (!from.is(Op::output) && to.is_before(from)) {
    const std::vector<Node*> users = from.users().to_vector();
    from.replace_all_uses_with(to);
    for (Node* user : users) index.changed(*user);
  }
  for (std::size_t i = nodes.size(); i-- > 0;) {
    Node* node = nodes[i];
    if (!(node->is_callable() || node->is(Op::get_attr)) || node->has_users() || random.chance(50)) continue;
    index.remove(*node);
    graph.erase_node(*node);
  }
  std::vector<Node*> values;
  for (Node& node : graph.nodes()) {
    if (!node.is(Op::output)) values.push_back(&node);
  }
  if (values.empty()) return;
  std::vector<const Node*> calls;
  for (const Node& node : more.nodes()) {
    if ((node.is_callable() || node.is(Op::get_attr)) && !effects_of(node).unknown) calls.push_back(&node);
  }
  Node& place = *random.pick(values);
  for (std::size_t i = random.below(3); i > 0 && !calls.empty(); --i) {
    const auto scope = graph.inserting_before(place);
    std::vector<Node*> before;
    for (Node& node : graph.nodes()) {
      if (&node == &place) break;
      before.push_back(&node);
    }
    const Node& call = *random.pick(calls);
    if (before.empty() && !call.all_input_nodes().empty()) continue;
    index.add(graph.node_copy(call, [&](Node&) { return Argument(*random.pick(before)); }));
  }
}

TEST(TrackedEffects, ToldOfEveryEditItSaysWhatOneMadeAfterwardsSays) {
  const std::uint64_t seeds = testing::at_night() ? 170000 : 3000;  // of six edits
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Graph graph = graph_at(seed);
    const Graph more = graph_at(seed + 7);
    const ModuleInfo modules = modules_at(seed);
    TrackedEffects index(graph, modules);
    index.expect_writes();
    testing::Random random(seed);
    for (int edits = 0; edits < 6; ++edits) {
      const std::string before = print_graph(graph);
      edit(graph, index, random, more);
      TrackedEffects anew(graph, modules);
      anew.expect_writes();
      ASSERT_EQ(said(graph, index) + origins(graph, index), said(graph, anew) + origins(graph, anew))
          << seed << "\n"
          << before << print_graph(graph);
    }
  }
}

// Two values that it writes become one afterwards: it goes once, and no other writer with it.
TEST(TrackedEffects, OfTwoWritersThatBecomeOfOneValueOneGoes) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  Node& both = graph.call_function("aten::_foreach_add_.Scalar", {Argument::list({x, y}), 1});
  Node& other = graph.call_function("aten::relu_", {y});
  TrackedEffects index(graph);
  index.expect_writes();
  Node& list = graph.call_function("aten::broadcast_tensors", {Argument::list({x, y})});
  index.add(list);
  EXPECT_TRUE(index.may_alias(list, x));
  EXPECT_TRUE(index.may_alias(list, y));
  EXPECT_FALSE(index.may_alias(x, y));
  index.remove(both);
  graph.erase_node(both);
  EXPECT_FALSE(index.is_written(x));
  EXPECT_EQ(index.last_write(y), &other);
  EXPECT_EQ(index.last_write(list), &other);
}

}  // namespace fx::tracked_effects_test
