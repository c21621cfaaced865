// Where programs are cut into stages, against all possible cuts of small ones.
#include <fxgraph/rewriter/partition/stage_cuts.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include <fxgraph/analysis/effects.h>
#include "tests/support/allocations.h"
#include "tests/support/error_of.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"

namespace fx::stage_cuts_test {

using ::testing::HasSubstr;

bool is_call(const Node& node) { return !node.is(Op::placeholder) && !node.is(Op::get_attr) && !node.is(Op::output); }

std::vector<const Node*> calls_of(const Graph& graph) {
  std::vector<const Node*> calls;
  for (const Node& node : graph.nodes()) {
    if (is_call(node)) calls.push_back(&node);
  }
  return calls;
}

/// All that a cut is judged by.
struct Judged {
  double slowest = 0;
  double crossing = 0;  ///< bytes over all cuts, each value at each cut that it passes
  double sent = 0;      ///< bytes to other stages
  std::int64_t weights = 0;
  bool legal = true;
};

/// A storage: the calls that touch it, by place, and the places between which it lives; from -1 for an input.
struct Held {
  std::vector<std::size_t> touching;
  std::int64_t made = -1, last = -1;
};

std::vector<Held> held_of(const StageProblem& problem) {
  std::vector<Held> all;
  if (!problem.max_memory) return all;
  const std::vector<const Node*> calls = calls_of(*problem.graph);
  for (std::uint32_t storage = 0; storage < problem.storage_bytes.size(); ++storage) {
    const auto holds = [&](const Node& value) {
      return std::ranges::find(problem.storages[value], storage) != problem.storages[value].end();
    };
    Held& held = all.emplace_back();
    held.made = static_cast<std::int64_t>(calls.size());
    for (std::size_t i = calls.size(); i-- > 0;) {
      bool touched = holds(*calls[i]);
      if (touched) held.made = static_cast<std::int64_t>(i);
      calls[i]->for_each_input([&](const Node& input) { touched |= holds(input); });
      if (touched) held.touching.push_back(i);
      if (touched) held.last = std::max(held.last, static_cast<std::int64_t>(i));
    }
    for (const Node* input : problem.graph->placeholders()) held.made = holds(*input) ? -1 : held.made;
    if (problem.graph->output_node())
      problem.graph->output_node()->for_each_input(
          [&](const Node& value) { held.last = holds(value) ? 1000 : held.last; });
  }
  return all;
}

/// The most bytes that a stage holds while one of its calls runs: of storages that its calls touch, those that it makes
/// from there to the last use anywhere, those that it is given all the time.
std::int64_t peak_of(const StageProblem& problem, const std::vector<Held>& all, const std::vector<std::uint32_t>& stage,
                     std::uint32_t at) {
  std::vector<std::int64_t> bytes(stage.size(), 0);
  for (std::size_t storage = 0; storage < all.size(); ++storage) {
    const Held& held = all[storage];
    if (std::ranges::none_of(held.touching, [&](std::size_t place) { return stage[place] == at; })) continue;
    const bool own = held.made >= 0 && stage[static_cast<std::size_t>(held.made)] == at;
    for (std::size_t now = 0; now < stage.size(); ++now) {
      const auto place = static_cast<std::int64_t>(now);
      if (!own || (held.made <= place && place <= held.last)) bytes[now] += problem.storage_bytes[storage];
    }
  }
  std::int64_t most = 0;
  for (std::size_t now = 0; now < stage.size(); ++now) most = stage[now] == at ? std::max(most, bytes[now]) : most;
  return most;
}

Judged judge(const StageProblem& problem, const NodeMap<std::uint32_t>& stage, const std::vector<Held>& held) {
  Judged result;
  const std::size_t stages = problem.stages;
  std::vector<double> seconds(stages, 0);
  std::vector<std::size_t> calls(stages, 0);
  std::vector<std::set<std::uint32_t>> weights(stages);
  std::vector<std::int64_t> unit_stage(100, -1);
  for (const Node& node : problem.graph->nodes()) {
    if (is_call(node)) {
      const std::uint32_t at = stage[node];
      if (at >= stages) return {.legal = false};
      seconds[at] += problem.seconds[node];
      ++calls[at];
      weights[at].insert(problem.weights[node].begin(), problem.weights[node].end());
      node.for_each_input([&](const Node& input) { result.legal &= !is_call(input) || stage[input] <= at; });
      for (const Node* before : problem.order->before(node)) result.legal &= !is_call(*before) || stage[*before] <= at;
      if (const std::uint32_t unit = problem.unit[node]) {
        result.legal &= unit_stage[unit] < 0 || unit_stage[unit] == static_cast<std::int64_t>(at);
        unit_stage[unit] = at;
      }
    }
    if (node.is(Op::get_attr) || node.is(Op::output)) continue;
    const std::uint32_t made = is_call(node) ? stage[node] : 0;
    std::set<std::uint32_t> to;
    for (const Node& user : node.users())
      to.insert(is_call(user) ? stage[user] : static_cast<std::uint32_t>(stages - 1));
    const double bytes = static_cast<double>(problem.bytes[node]);
    if (!to.empty() && *to.rbegin() > made) result.crossing += bytes * (*to.rbegin() - made);
    to.erase(made);
    result.sent += bytes * static_cast<double>(to.size());
  }
  std::vector<std::uint32_t> by_place;
  for (const Node* call : problem.max_memory ? calls_of(*problem.graph) : std::vector<const Node*>())
    by_place.push_back(stage[*call]);
  for (std::size_t i = 0; i < stages; ++i) {
    result.slowest = std::max(result.slowest, seconds[i]);
    result.legal &= calls[i] > 0;
    std::int64_t bytes = 0;
    for (const std::uint32_t weight : weights[i]) bytes += problem.weight_bytes[weight];
    result.weights = std::max(result.weights, bytes);
    if (problem.max_memory && result.legal)
      result.legal = bytes + peak_of(problem, held, by_place, static_cast<std::uint32_t>(i)) <= problem.max_memory;
  }
  if (problem.max_weights) result.legal &= result.weights <= problem.max_weights;
  return result;
}

/// The best of all cuts along the order of the graph; nothing when there is none.
struct Best {
  double slowest = std::numeric_limits<double>::infinity();
  double crossing = std::numeric_limits<double>::infinity();
};

template <typename Visit>
void for_each_cut(const StageProblem& problem, Visit&& visit) {
  const std::vector<const Node*> calls = calls_of(*problem.graph);
  const std::vector<Held> held = held_of(problem);
  std::vector<std::size_t> ends(problem.stages, 0);
  const auto place = [&](auto&& self, std::size_t at, std::size_t begin) -> void {
    if (at + 1 == problem.stages) {
      NodeMap<std::uint32_t> stage(*problem.graph, 0);
      std::uint32_t now = 0;
      for (std::size_t i = 0; i < calls.size(); ++i) {
        while (now + 1 < problem.stages && i >= ends[now]) ++now;
        stage[*calls[i]] = now;
      }
      visit(judge(problem, stage, held));
      return;
    }
    for (std::size_t end = begin + 1; end < calls.size(); ++end) {
      ends[at] = end;
      self(self, at + 1, end);
    }
  };
  place(place, 0, 0);
}

std::optional<Best> best_cut(const StageProblem& problem) {
  Best best;
  for_each_cut(problem, [&](const Judged& cut) {
    if (cut.legal) best.slowest = std::min(best.slowest, cut.slowest);
  });
  if (best.slowest == std::numeric_limits<double>::infinity()) return std::nullopt;
  for_each_cut(problem, [&](const Judged& cut) {
    if (cut.legal && cut.slowest <= best.slowest * (1 + problem.slack) * (1 + 1e-12))
      best.crossing = std::min(best.crossing, cut.crossing);
  });
  return best;
}

StageProblem random_problem(const Graph& graph, const OrderEdges& order, testing::Random& random) {
  StageProblem problem;
  problem.graph = &graph;
  problem.order = &order;
  problem.seconds = NodeMap<double>(graph, 0);
  problem.bytes = NodeMap<std::int64_t>(graph, 0);
  problem.weights = NodeMap<std::vector<std::uint32_t>>(graph);
  problem.unit = NodeMap<std::uint32_t>(graph, 0);
  problem.stages = 1 + random.below(4);
  problem.slack = random.chance(50) ? 0 : 0.25 * static_cast<double>(random.below(4));
  for (int i = 0; i < 4; ++i) problem.weight_bytes.push_back(random.between(1, 20));
  if (random.chance(40)) problem.max_weights = random.between(10, 45);
  problem.storages = NodeMap<std::vector<std::uint32_t>>(graph);
  if (random.chance(40)) problem.max_memory = random.between(30, 90);
  for (const Node& node : graph.nodes()) {
    if (problem.max_memory && !node.is(Op::get_attr) && !node.is(Op::output)) {
      // A storage of its own, one of before, or both.
      const auto count = static_cast<std::uint32_t>(problem.storage_bytes.size());
      if (!count || random.chance(75)) {
        problem.storages[node].push_back(count);
        problem.storage_bytes.push_back(random.between(1, 20));
      }
      if (count && random.chance(25)) problem.storages[node].push_back(static_cast<std::uint32_t>(random.below(count)));
    }
    problem.bytes[node] = node.is(Op::get_attr) ? 0 : random.between(1, 30);
    if (!is_call(node)) continue;
    problem.seconds[node] = static_cast<double>(random.between(0, 12));
    for (std::uint32_t weight = 0; weight < 4; ++weight) {
      if (random.chance(20)) problem.weights[node].push_back(weight);
    }
    if (random.chance(25)) problem.unit[node] = static_cast<std::uint32_t>(random.between(1, 3));
  }
  return problem;
}

TEST(StageCuts, AreTheBestOfAllOnSmallRandomGraphs) {
  std::size_t possible = 0, refused = 0, better = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    testing::Random random(seed);
    const Graph graph = testing::random_graph(seed, testing::random_options(seed, 4 + random.below(9)));
    const Effects effects(graph);
    const OrderEdges order = effects.order_edges();
    const StageProblem problem = random_problem(graph, order, random);
    if (calls_of(graph).empty()) continue;
    const std::optional<Best> best = best_cut(problem);
    try {
      const NodeMap<std::uint32_t> stage = cut_stages(problem);
      const Judged got = judge(problem, stage, held_of(problem));
      ASSERT_TRUE(best) << seed;
      ASSERT_TRUE(got.legal) << seed;
      ASSERT_LE(got.slowest, best->slowest * (1 + problem.slack) * (1 + 1e-9)) << seed;
      // Off the order of the graph less may be sent, never more.
      ASSERT_LE(got.sent, best->crossing) << seed;
      better += got.sent < best->crossing;
      ++possible;
    } catch (const Error& error) {
      ASSERT_FALSE(best) << seed << ": " << error.what();
      ++refused;
    }
  }
  EXPECT_GT(possible, 500u);
  EXPECT_GT(refused, 50u);
  EXPECT_GT(better, 50u);
}

TEST(StageCuts, AWeightThatSeveralStagesReadCountsInEach) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node *at = &x, *calls[4];
  for (Node*& call : calls) at = call = &graph.call_function("aten::relu", {*at});
  graph.output(*at);
  const OrderEdges order;
  StageProblem problem;
  problem.graph = &graph;
  problem.order = &order;
  problem.seconds = NodeMap<double>(graph, 1);
  problem.bytes = NodeMap<std::int64_t>(graph, 1);
  problem.weights = NodeMap<std::vector<std::uint32_t>>(graph);
  problem.weight_bytes = {10, 5};
  problem.weights[*calls[0]] = problem.weights[*calls[2]] = {0};  // tied
  problem.weights[*calls[1]] = {1};
  problem.unit = NodeMap<std::uint32_t>(graph, 0);
  problem.stages = 2;
  problem.max_weights = 12;
  EXPECT_THAT(testing::error_of([&] { cut_stages(problem); }), HasSubstr("2 stages of at most 12 bytes of weights"));
  problem.stages = 3;
  const NodeMap<std::uint32_t> stage = cut_stages(problem);
  EXPECT_EQ(stage[*calls[0]], 0u);
  EXPECT_EQ(stage[*calls[1]], 1u);
  EXPECT_EQ(stage[*calls[2]], 2u);
}

TEST(StageCuts, CostIsLinear) {
  const Graph graph = testing::random_graph(3, testing::random_options(3, 100'000));
  const Effects effects(graph);
  const OrderEdges order = effects.order_edges();
  testing::Random random(3);
  StageProblem problem = random_problem(graph, order, random);
  for (const Node& node : graph.nodes()) problem.unit[node] = 0;
  problem.stages = 8;
  problem.max_weights = 0;
  problem.max_memory = std::int64_t{1} << 40;
  problem.storages = NodeMap<std::vector<std::uint32_t>>(graph);
  for (const Node& node : graph.nodes()) {
    problem.storages[node] = {static_cast<std::uint32_t>(problem.storage_bytes.size())};
    problem.storage_bytes.push_back(8);
  }
  NodeMap<std::uint32_t> stage;
  EXPECT_LT(testing::allocations_of([&] { stage = cut_stages(problem); }), 40 * graph.size());
  problem.max_memory = 0;  // judging it takes longer
  EXPECT_TRUE(judge(problem, stage, {}).legal);
}

}  // namespace fx::stage_cuts_test
