// Partitions of random graphs against all possible ones: in no circle, as few as any choice, and fast.
#include <fxgraph/rewriter/partition/partitioner.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/text/print.h>
#include "tests/support/allocations.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"

namespace fx::partitioner_random_test {

/// A graph in numbers: edges, and what is supported.
class Oracle {
 public:
  Oracle(const Graph& graph, const std::function<std::optional<std::string>(const Node&)>& why_not,
         const OrderEdges& order)
      : order_(order) {
    for (const Node& node : graph.nodes()) {
      if (node.is(Op::placeholder) || node.is(Op::get_attr) || node.is(Op::output)) continue;
      index_[&node] = nodes_.size();
      nodes_.push_back(&node);
      if (!why_not(node)) supported_.push_back(nodes_.size() - 1);
    }
  }

  std::size_t num_supported() const { return supported_.size(); }
  bool is_supported(const Node& node) const {
    return std::ranges::find(supported_, index_.at(&node)) != supported_.end();
  }

  /// True when groups of nodes, and every other node by itself, wait for each other in no circle.
  bool is_acyclic(const std::map<const Node*, std::size_t>& group_of) const {
    const std::size_t groups = nodes_.size() * 2;
    const auto group = [&](const Node& node) {
      const auto found = group_of.find(&node);
      return found == group_of.end() ? nodes_.size() + index_.at(&node) : found->second;
    };
    std::set<std::pair<std::size_t, std::size_t>> edges;
    for (const Node* node : nodes_) {
      const auto add = [&](const Node& from) {
        if (index_.contains(&from) && group(from) != group(*node)) edges.emplace(group(from), group(*node));
      };
      node->for_each_input(add);
      for (const Node* before : order_.before(*node)) add(*before);
    }
    std::vector<std::size_t> waiting(groups);
    for (const auto& [from, to] : edges) ++waiting[to];
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < groups; ++i) {
      if (waiting[i] == 0) ready.push_back(i);
    }
    std::size_t done = 0;
    while (!ready.empty()) {
      const std::size_t at = ready.back();
      ready.pop_back();
      ++done;
      for (const auto& [from, to] : edges) {
        if (from == at && --waiting[to] == 0) ready.push_back(to);
      }
    }
    return done == groups;
  }

  /// The fewest groups that any acyclic choice needs.
  std::size_t fewest() const {
    std::vector<std::size_t> choice(supported_.size());
    std::size_t best = supported_.size();
    search(choice, 0, 0, best);
    return best;
  }

 private:
  // Elements of tuples stay with what makes the tuple.
  void follow_makers(std::map<const Node*, std::size_t>& group_of) const {
    for (const Node* node : nodes_) {
      if (node->target() != Symbol("operator.getitem") || !order_.before(*node).empty() || !order_.after(*node).empty())
        continue;
      if (const auto maker = group_of.find(node->arg(0).node_or_null()); maker != group_of.end())
        group_of[node] = maker->second;
    }
  }

  void search(std::vector<std::size_t>& choice, std::size_t at, std::size_t used, std::size_t& best) const {
    if (used >= best) return;
    if (at == supported_.size()) {
      std::map<const Node*, std::size_t> group_of;
      for (std::size_t i = 0; i < at; ++i) group_of[nodes_[supported_[i]]] = choice[i];
      follow_makers(group_of);
      if (is_acyclic(group_of)) best = used;
      return;
    }
    for (std::size_t group = 0; group <= used; ++group) {
      choice[at] = group;
      search(choice, at + 1, std::max(used, group + 1), best);
    }
  }

  const OrderEdges& order_;
  std::vector<const Node*> nodes_;
  std::map<const Node*, std::size_t> index_;
  std::vector<std::size_t> supported_;
};

std::map<const Node*, std::size_t> groups_of(const Partitioning& parts) {
  std::map<const Node*, std::size_t> group_of;
  for (std::size_t i = 0; i < parts.partitions().size(); ++i) {
    for (const Node* node : parts.partitions()[i].nodes) group_of[node] = i;
  }
  return group_of;
}

/// Says what is wrong, or nothing.
std::string check(const Partitioning& parts, const Oracle& oracle, const PartitionOptions& options) {
  const auto groups = groups_of(parts);
  if (!oracle.is_acyclic(groups)) return "they run in a circle";
  const std::size_t count = parts.partitions().size();
  const auto rivals = [&](std::size_t a, std::size_t b) {
    return std::ranges::any_of(options.keep_apart, [&](const auto& pair) {
      if (!groups.contains(pair.first) || !groups.contains(pair.second)) return false;
      const std::size_t x = groups.at(pair.first), y = groups.at(pair.second);
      return (x == a && y == b) || (x == b && y == a);
    });
  };
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      auto joined = groups;
      for (auto& [node, group] : joined) group = group == b ? a : group;
      const bool possible =
          parts.partitions()[a].colour == parts.partitions()[b].colour && !rivals(a, b) && oracle.is_acyclic(joined);
      if (possible) return std::to_string(a) + " and " + std::to_string(b) + " could be one";
      if (parts.why_apart(a, b).empty() && !oracle.is_acyclic(joined)) return "no reason is given";
    }
  }
  for (const auto& [x, y] : options.keep_apart) {
    if (groups.contains(x) && groups.contains(y) && groups.at(x) == groups.at(y)) return "a pair is together";
  }
  return "";
}

Graph random_program(std::uint64_t seed, std::size_t nodes) {
  testing::RandomGraphOptions options = testing::random_options(seed, nodes);
  options.nodes = nodes;
  options.vocabulary = seed % 2 ? &testing::pointwise_vocabulary() : &testing::mutating_vocabulary();
  return testing::random_graph(seed, options);
}

std::function<std::optional<std::string>(const Node&)> some(std::uint64_t seed, unsigned percent) {
  return [=](const Node& node) -> std::optional<std::string> {
    const std::uint64_t mixed = (node.id() + 1) * 0x9E3779B97F4A7C15ull ^ seed * 0xBF58476D1CE4E5B9ull;
    if ((mixed >> 33) % 100 < percent && node.target() != Symbol("operator.getitem")) return std::nullopt;
    return "not this one";
  };
}

TEST(CapabilityPartitioner, AreAsFewAsAnyChoiceOnSmallRandomGraphs) {
  std::size_t searched = 0, several = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const Graph graph = random_program(seed, 4 + seed % 8);
    const auto why_not = some(seed, 60);
    const OrderEdges order = Effects(graph).order_edges();
    const PartitionOptions options{.order = &order};
    const Partitioning parts = propose_partitions(graph, why_not, options);
    const Oracle oracle(graph, why_not, order);
    ASSERT_EQ(check(parts, oracle, options), "") << seed << "\n" << print_graph(graph) << parts.report();
    std::size_t in_parts = 0;
    for (const Partition& part : parts.partitions()) {
      in_parts += static_cast<std::size_t>(std::ranges::count_if(
          part.nodes, [&](const Node* node) { return node->target() != Symbol("operator.getitem"); }));
    }
    EXPECT_EQ(in_parts, oracle.num_supported()) << seed;
    if (oracle.num_supported() > 7) continue;
    ASSERT_EQ(parts.partitions().size(), oracle.fewest()) << seed << "\n" << print_graph(graph) << parts.report();
    ++searched;
    several += parts.partitions().size() > 1;
  }
  EXPECT_GT(searched, 300u);
  EXPECT_GT(several, 60u);
}

TEST(CapabilityPartitioner, ColoursAndPairsLeaveNoTwoThatCouldBeOne) {
  std::size_t colours = 0, pairs = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const Graph graph = random_program(seed, 6 + seed % 14);
    const auto why_not = some(seed, 75);
    const OrderEdges order = Effects(graph).order_edges();
    PartitionOptions options{.order = &order};
    if (seed % 3)
      options.colour = [&](const Node& node) { return static_cast<std::int64_t>(node.id() * 7 % (1 + seed % 4)); };
    testing::Random random(seed);
    std::vector<const Node*> calls;
    for (const Node& node : graph.nodes()) {
      if (!node.is(Op::placeholder) && !node.is(Op::get_attr) && !node.is(Op::output) && !why_not(node))
        calls.push_back(&node);
    }
    if (seed % 2 && calls.size() > 1) {
      for (int i = 0; i < 3; ++i) {
        const Node *a = calls[random.below(calls.size())], *b = calls[random.below(calls.size())];
        if (a != b) options.keep_apart.emplace_back(a, b);
      }
    }
    const Partitioning parts = propose_partitions(graph, why_not, options);
    ASSERT_EQ(check(parts, Oracle(graph, why_not, order), options), "") << seed << "\n"
                                                                        << print_graph(graph) << parts.report();
    std::set<std::int64_t> seen;
    for (const Partition& part : parts.partitions()) seen.insert(part.colour);
    colours += seen.size() > 1;
    pairs += !options.keep_apart.empty();
  }
  EXPECT_GT(colours, 100u);
  EXPECT_GT(pairs, 100u);
}

TEST(CapabilityPartitioner, CostIsLinear) {
  for (const testing::Shape shape :
       {testing::Shape::chain, testing::Shape::fan, testing::Shape::ladder, testing::Shape::dag}) {
    const auto cost = [&](std::size_t nodes) {
      testing::RandomGraphOptions options;
      options.nodes = nodes;
      options.shape = shape;
      options.vocabulary = &testing::mutating_vocabulary();
      const Graph graph = testing::random_graph(5, options);
      const OrderEdges order = Effects(graph).order_edges();
      return testing::allocations_of([&] { propose_partitions(graph, some(3, 50), {.order = &order}); });
    };
    EXPECT_LT(cost(100'000), 11 * cost(10'000));
  }
}

}  // namespace fx::partitioner_random_test
