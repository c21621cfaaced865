// Values that do not leave their partition, FX's fusion groups: never parted, never in a circle, and no fewer calls
// supported than by FX's FxNetAccNodesFinder and FxNetAccFusionsFinder, written out here the slow way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/rewriter/partition/lower.h>
#include <fxgraph/text/parse.h>
#include "tests/partition/copying_part.h"
#include "tests/support/allocations.h"
#include "tests/support/error_of.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"
#include "tests/support/short_graph.h"

namespace fx::tied_calls_test {

using testing::graph_of;
using ::testing::HasSubstr;
using testing::Random;

using Nodes = std::set<const Node*>;

bool is_call(const Node& node) { return node.is_callable(); }

/// True when a way leads from `from` to `to`.
bool reaches(const Node& from, const Node& to) {
  Nodes seen;
  std::vector<const Node*> left = {&from};
  while (!left.empty()) {
    const Node* at = left.back();
    left.pop_back();
    for (const Node& user : at->users()) {
      if (&user == &to) return true;
      if (seen.insert(&user).second) left.push_back(&user);
    }
  }
  return false;
}

/// A call with all that is tied to it and all that stands between.
Nodes closed(const Graph& graph, Nodes group, const std::function<bool(const Node&)>& crosses) {
  for (bool grew = true; grew;) {
    const std::size_t before = group.size();
    for (const Node* node : Nodes(group)) {
      if (!crosses(*node)) {
        for (const Node& user : node->users()) group.insert(&user);
      }
      node->for_each_input([&](const Node& input) {
        if (is_call(input) && !crosses(input)) group.insert(&input);
      });
    }
    for (const Node& node : graph.nodes()) {
      if (!is_call(node) || group.contains(&node)) continue;
      bool behind = false, ahead = false;
      for (const Node* member : Nodes(group)) {
        behind |= reaches(*member, node);
        ahead |= reaches(node, *member);
      }
      if (behind && ahead) group.insert(&node);
    }
    grew = group.size() > before;
  }
  return group;
}

Nodes supported_by_fx(const Graph& graph, Nodes supported, const std::function<bool(const Node&)>& crosses) {
  for (bool again = true; again;) {
    again = false;
    for (const Node* node : Nodes(supported)) {
      bool tied = !crosses(*node) && node->has_users();
      node->for_each_input([&](const Node& input) { tied |= is_call(input) && !crosses(input); });
      if (!tied) continue;
      const Nodes group = closed(graph, {node}, crosses);
      bool whole = true;
      for (const Node* member : group) whole &= supported.contains(member);
      if (whole) continue;
      for (const Node* member : group) again |= supported.erase(member) > 0;
      if (again) break;
    }
  }
  return supported;
}

void expect_no_circle(const Graph& graph, const Partitioning& parts, std::uint64_t seed) {
  // Parts and single calls, taken as soon as all before them are.
  Nodes done;
  for (bool moved = true; moved;) {
    moved = false;
    const auto ready = [&](const std::vector<const Node*>& nodes) {
      const Nodes here(nodes.begin(), nodes.end());
      for (const Node* node : nodes) {
        bool all = true;
        node->for_each_input(
            [&](const Node& input) { all &= !is_call(input) || done.contains(&input) || here.contains(&input); });
        if (!all) return false;
      }
      return true;
    };
    for (const Node& node : graph.nodes()) {
      if (!is_call(node) || done.contains(&node)) continue;
      std::vector<const Node*> together = {&node};
      if (const auto part = parts.of(node))
        together.assign(parts.partitions()[*part].nodes.begin(), parts.partitions()[*part].nodes.end());
      if (!ready(together)) continue;
      done.insert(together.begin(), together.end());
      moved = true;
    }
  }
  for (const Node& node : graph.nodes())
    ASSERT_TRUE(!is_call(node) || done.contains(&node)) << seed << " %" << node.name();
}

TEST(TiedCalls, KeepValuesInsideOnRandomGraphs) {
  std::size_t inside = 0, refused = 0, more = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    const Graph graph = testing::random_graph(seed, testing::random_options(seed, 5 + random.below(25)));
    const unsigned supported_percent = random.chance(50) ? 95 : 75, tensor_percent = random.chance(50) ? 90 : 70;
    NodeMap<bool> supported(graph), tensor(graph);
    for (const Node& node : graph.nodes()) {
      supported[node] = random.chance(supported_percent);
      tensor[node] = random.chance(tensor_percent);
    }
    const std::function<bool(const Node&)> crosses = [&](const Node& value) { return tensor[value]; };
    const Partitioning parts = propose_partitions(
        graph,
        [&](const Node& node) { return supported[node] ? std::nullopt : std::optional<std::string>("by chance"); },
        {.crosses = crosses});
    Nodes before;
    for (const Node& node : graph.nodes()) {
      if (!is_call(node)) continue;
      if (supported[node]) before.insert(&node);
      if (crosses(node)) continue;
      for (const Node& user : node.users()) {
        const auto here = parts.of(node), there = is_call(user) ? parts.of(user) : std::nullopt;
        ASSERT_EQ(here, there) << seed << ": %" << node.name() << " goes to %" << user.name() << "\n" << parts.report();
        inside += here.has_value();
        refused += !here.has_value();
      }
    }
    expect_no_circle(graph, parts, seed);
    // Elements of tuples stay with what makes those, here; so they do for the oracle.
    const Nodes theirs = supported_by_fx(graph, before, [&](const Node& value) {
      bool taken_apart = false;
      for (const Node& user : value.users()) taken_apart |= user.is_call("operator.getitem");
      return crosses(value) && !taken_apart;
    });
    for (const Node* node : theirs)
      ASSERT_TRUE(parts.of(*node)) << seed << ": %" << node->name() << "\n" << parts.report();
    std::size_t ours = 0;
    for (const Partition& part : parts.partitions()) ours += part.nodes.size();
    more += ours > theirs.size();
  }
  EXPECT_GT(inside, 300u);
  EXPECT_GT(refused, 300u);
  EXPECT_GT(more, 0u);
}

TEST(TiedCalls, SayWhyCallsAreLeftOut) {
  const Graph graph = graph_of(R"(
    n = aten::size(%x, 0)
    a = aten::view(%x, [%n])
    b = aten::relu(%a)
    m = aten::size(%b, 0)
    u = aten::view(%b, [%m])
    c = aten::neg(%u)
    d = aten::expand(%c, [%m])
    k = aten::size(%d, 0)
    return (d, k))",
                               "x");
  const std::function<bool(const Node&)> crosses = [](const Node& value) { return value.target() != "aten::size"; };
  const auto propose = [&](const std::string& unsupported, PartitionOptions options = {}) {
    options.crosses = crosses;
    return propose_partitions(
        graph,
        [&](const Node& node) { return node.name() == unsupported ? std::optional<std::string>("no") : std::nullopt; },
        options);
  };
  const Partitioning all = propose("nothing");
  EXPECT_EQ(all.partitions().size(), 1u);
  EXPECT_THAT(all.why_not(*graph.find("k")), HasSubstr("%k, which stays inside of a partition, is returned"));
  const Partitioning without_relu = propose("b");
  EXPECT_EQ(without_relu.partitions().size(), 2u) << without_relu.report();
  const Partitioning without_view = propose("a");
  EXPECT_THAT(without_view.why_not(*graph.find("n")),
              HasSubstr("it stays together with %n, as %a does, which is in no partition"));
  const Partitioning without_neg = propose("c");
  EXPECT_THAT(without_neg.why_not(*graph.find("m")),
              HasSubstr("%c, which is in no partition of that colour, comes between calls that stay together"));
  EXPECT_TRUE(without_neg.of(*graph.find("b"))) << without_neg.report();
  PartitionOptions apart;
  apart.keep_apart = {{graph.find("m"), graph.find("d")}};
  EXPECT_THAT(propose("nothing", apart).why_not(*graph.find("m")), HasSubstr("are to be kept apart and stay together"));
}

// FX's example: tensors alone go in and out, or the calls stay.
TEST(TiedCalls, BackEndsMayAskForTensorsAlone) {
  const auto gm = std::make_shared<GraphModule>(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %n = call_function[target=aten::size.int](args = (%x, 0))
    %m = call_function[target=operator.mul](args = (%n, 2))
    %a = call_function[target=aten::add.Tensor](args = (%x, %m))
    %p = call_function[target=aten::split.Tensor](args = (%a, 1))
    %q = call_function[target=operator.getitem](args = (%p, 1))
    %r = call_function[target=aten::relu](args = (%q,))
    return r)"));
  const torch::Tensor x = torch::rand({3, 2});
  const OperatorSupport no_size([](const CallFacts& call) -> std::optional<std::string> {
    if (call.node().name() == "n") return "a device knows no sizes";
    return std::nullopt;
  });
  const Lowered any = lower(*gm, testing::CopyingBackend(no_size), {.examples = {x}});
  EXPECT_THAT(any.report(), HasSubstr("partition 0: 5 nodes, %m, %a, %p, %q, %r"));
  const Lowered tensors = lower(*gm, testing::CopyingBackend(no_size), {.examples = {x}, .tensors_only = true});
  EXPECT_THAT(tensors.report(), HasSubstr("partition 0: 3 nodes, %p, %q, %r")) << tensors.report();
  EXPECT_THAT(tensors.report(), HasSubstr("%m, %a: it stays together with %m, as %n does, which is in no partition"));
  EXPECT_TRUE(torch::equal(tensors.module()->forward(x), gm->forward(x)));
  EXPECT_THAT(testing::error_of([&] { lower(*gm, testing::CopyingBackend(no_size), {.tensors_only = true}); }),
              HasSubstr("tensors_only needs example inputs"));
}

TEST(TiedCalls, CostIsLinear) {
  const auto cost = [](std::size_t nodes) {
    const Graph graph = testing::random_graph(5, testing::random_options(5, nodes));
    const std::function<bool(const Node&)> crosses = [](const Node& value) { return value.id() % 13 != 0; };
    return testing::allocations_of([&] {
      propose_partitions(
          graph, [](const Node& node) { return node.id() % 31 ? std::nullopt : std::optional<std::string>("no"); },
          {.crosses = crosses});
    });
  };
  EXPECT_LT(cost(100'000), 11 * cost(10'000));
}

}  // namespace fx::tied_calls_test
