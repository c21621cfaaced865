#include <fxgraph/analysis/liveness.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include <fxgraph/analysis/memory_plan.h>
#include <fxgraph/analysis/schedule.h>
#include "tests/support/analysis_oracles.h"
#include "tests/support/random_graph.h"

namespace fx::liveness_test {

using testing::all_nodes;
using ::testing::ElementsAre;
using testing::live_sets;
using testing::Random;
using testing::random_graph;
using testing::random_options;

TensorInfo floats(std::int64_t count) { return {.dtype = DType::float32, .sizes = {count}, .strides = {}}; }

TEST(Liveness, AgreesWithSetsOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Graph graph = random_graph(seed, random_options(seed, 150));
    if (seed % 2) graph.eliminate_dead_code([](const Node&) { return false; });
    const auto expected = live_sets(graph);
    const std::vector<Node*> nodes = all_nodes(graph);
    const Liveness live(graph);
    ASSERT_EQ(testing::disagreement_on_liveness(graph), "") << seed;
    for (const Node* a : nodes) {
      for (const Node* b : nodes) {
        if (a->is(Op::output) || b->is(Op::output)) continue;
        const bool together = std::any_of(expected.begin(), expected.end(), [&](const std::vector<Node*>& set) {
          return std::count(set.begin(), set.end(), a) && std::count(set.begin(), set.end(), b);
        });
        ASSERT_EQ(live.interfere(*a, *b), together) << seed;
      }
      if (seed % 20) break;  // the full square on some graphs only
    }
  }
}

TEST(Liveness, LastUse) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x});
  Node& b = graph.call_function("aten::add.Tensor", {a, x});
  Node& dead = graph.call_function("aten::neg", {a});
  graph.output(b);
  const Liveness live(graph);
  EXPECT_EQ(&live.last_use(x), &b);
  EXPECT_EQ(&live.last_use(a), &dead);
  EXPECT_EQ(&live.last_use(dead), &dead);
  EXPECT_EQ(live.interval(a), (Interval{1, 3}));
  EXPECT_EQ(live.peak_live(), 3u);
}

TEST(Liveness, EmptyGraph) {
  const Graph graph;
  const Liveness live(graph, Shapes(graph));
  EXPECT_EQ(live.peak_live(), 0u);
  EXPECT_EQ(live.peak_live_node(), nullptr);
  EXPECT_EQ(live.peak().bytes, 0);
}

/// x (100) -> a (100) -> view v of a -> in place w of v -> b (1000) -> c (10) = f(b, w) -> output.
struct Sample {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& weight = graph.get_attr("weight");
  Node& a = graph.call_function("aten::relu", {x});
  Node& v = graph.call_function("aten::view", {a, Argument::list({10, 10})});
  Node& w = graph.call_function("aten::add_.Tensor", {v, weight});
  Node& b = graph.call_function("aten::neg", {w});
  Node& c = graph.call_function("aten::add.Tensor", {b, w});
  Node& out = graph.output(c);
  Shapes shapes{graph};

  Sample() {
    for (Node* node : {&x, &a, &v, &w}) shapes[*node] = floats(100);
    shapes[weight] = floats(1);
    shapes[b] = floats(1000);
    shapes[c] = floats(10);
  }
};

TEST(Storages, ViewsAndInPlaceResultsShareTheirBase) {
  Sample g;
  const Liveness live(g.graph, g.shapes, {.alignment = 1});
  ASSERT_EQ(live.storages().size(), 5u);
  const Storage& a = live.storages()[2];
  EXPECT_EQ(a.base, &g.a);
  EXPECT_EQ(a.bytes, 400);
  EXPECT_EQ(a.interval, (Interval{2, 6}));  // until c reads w
  EXPECT_EQ(live.peak().bytes, 400 + 4000 + 40);
  EXPECT_EQ(live.peak().node, &g.c);
  EXPECT_EQ(live.bytes_at(g.w), 400);
  EXPECT_EQ(live.bytes_at(g.out), 40);
  const auto at_peak = live.storages_at(g.c);
  ASSERT_EQ(at_peak.size(), 3u);
  EXPECT_EQ(at_peak[0]->base, &g.b);
  EXPECT_EQ(at_peak[1]->base, &g.a);
  ASSERT_EQ(live.storages_at(g.out).size(), 1u);
  EXPECT_EQ(live.storages_at(g.out)[0]->base, &g.c);
}

TEST(Storages, InputsAndAttributesCountWhenAsked) {
  Sample g;
  const Liveness live(g.graph, g.shapes, {.count_inputs = true, .count_attributes = true, .alignment = 1});
  EXPECT_EQ(live.peak().bytes, 400 + 4000 + 40 + 400 + 4);
  EXPECT_EQ(live.bytes_at(g.out), 40 + 404);
  EXPECT_EQ(Liveness(g.graph, g.shapes).peak().bytes, 448 + 4032 + 64);  // rounded up to 64
}

TEST(Storages, IdentityInShapesWinsOverSchemas) {
  // The view was a copy after all, whatever number any storage has.
  for (std::int64_t first = 0; first < 6; ++first) {
    Sample g;
    std::int64_t next = first;
    for (Node* node : {&g.x, &g.weight, &g.a, &g.v, &g.b, &g.c}) g.shapes[*node].tensors[0].storage = next++ % 6;
    g.shapes[g.w].tensors[0].storage = g.shapes[g.v].tensors[0].storage;
    const Liveness live(g.graph, g.shapes, {.alignment = 1});
    EXPECT_EQ(live.storages().size(), 6u) << first;
    EXPECT_EQ(live.storages()[2].interval, (Interval{2, 3})) << first;
    EXPECT_EQ(live.bytes_at(g.v), 800) << first;
  }
}

TEST(Storages, LiveOnesAreTheLargestFirstThenTheEarliest) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = random_graph(seed, random_options(seed, 40));
    Shapes shapes(graph);
    Random random(seed);
    for (const Node& node : graph.nodes()) {
      if (!node.is(Op::output)) shapes[node] = floats(random.between(1, 3));
    }
    const Liveness live(graph, shapes, {.count_inputs = seed % 2 == 0, .alignment = 1});
    std::set<std::int64_t, std::greater<>> sizes;
    for (const Storage& storage : live.storages()) sizes.insert(storage.bytes);
    for (const Node& node : graph.nodes()) {
      std::vector<const Storage*> wanted;
      for (const std::int64_t bytes : sizes) {
        for (const Storage& storage : live.storages()) {
          const bool here = storage.counted && storage.interval.contains(live.place(node));
          if (here && storage.bytes == bytes) wanted.push_back(&storage);
        }
      }
      ASSERT_EQ(live.storages_at(node), wanted) << seed << " " << node.name();
    }
  }
}

TEST(Storages, ElementsOfATupleEndOnTheirOwn) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& t = graph.call_function("aten::max.dim", {x, 1});
  Node& values = graph.call_function("operator.getitem", {t, 0});
  Node& indices = graph.call_function("operator.getitem", {t, 1});
  Node& a = graph.call_function("aten::neg", {indices});
  Node& b = graph.call_function("aten::relu", {values});
  graph.output(Argument::tuple({a, b}));
  Shapes shapes(graph);
  for (Node* node : {&x, &values, &b}) shapes[*node] = floats(16);
  shapes[indices] = shapes[a] = TensorInfo{.dtype = DType::int64, .sizes = {16}, .strides = {}};
  shapes[t] = ValueInfo(std::vector<TensorInfo>{floats(16), *shapes[indices].tensor()});
  const Liveness live(graph, shapes, {.alignment = 1});
  EXPECT_EQ(live.bytes_at(t), 64 + 128);
  EXPECT_EQ(live.bytes_at(a), 64 + 128 + 128);
  EXPECT_EQ(live.bytes_at(b), 64 + 128 + 64);
}

/// Random sizes on graphs of plain operators, and bytes by adding up what the definition says is live.
Shapes random_shapes(const Graph& graph, std::uint64_t seed) {
  Random random(seed);
  Shapes shapes(graph);
  std::int64_t storage = 0;
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::output)) continue;
    TensorInfo info = floats(random.between(0, 1000));
    info.storage = storage++;
    shapes[node] = info;
  }
  return shapes;
}

TEST(Storages, BytesAgreeWithSetsOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph = random_graph(seed, random_options(seed, 60));
    const Shapes shapes = random_shapes(graph, seed);
    const auto sets = live_sets(graph);
    const std::vector<Node*> nodes = all_nodes(graph);
    const Liveness live(graph, shapes, {.alignment = 1});
    MemoryPeak peak;  // of the first node, if all nodes are as high
    for (std::size_t at = 0; at < nodes.size(); ++at) {
      std::int64_t bytes = 0;
      for (Node* value : sets[at]) {
        if (!value->is(Op::placeholder) && !value->is(Op::get_attr)) bytes += shapes[*value].bytes();
      }
      ASSERT_EQ(live.bytes_at(*nodes[at]), bytes) << seed;
      if (at == 0 || bytes > peak.bytes) peak = {nodes[at], bytes};
    }
    ASSERT_EQ(live.peak().bytes, peak.bytes) << seed;
    ASSERT_EQ(live.peak().node, peak.node) << seed;
  }
}

// ── Memory plans ─────────────────────────────────────────────────────────────────────────────────────────────────────

void expect_valid(std::span<const MemoryBlock> blocks, const MemoryPlan& plan) {
  std::int64_t top = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes == 0) continue;
    ASSERT_GE(plan.offsets[i], 0);
    top = std::max(top, plan.offsets[i] + blocks[i].bytes);
    for (std::size_t j = 0; j < i; ++j) {
      if (blocks[j].bytes == 0 || !blocks[i].interval.overlaps(blocks[j].interval)) continue;
      ASSERT_TRUE(plan.offsets[i] + blocks[i].bytes <= plan.offsets[j] ||
                  plan.offsets[j] + blocks[j].bytes <= plan.offsets[i]);
    }
  }
  ASSERT_EQ(plan.bytes, top);
  std::int64_t bound = 0;
  for (const MemoryBlock& at : blocks) {
    std::int64_t live = 0;
    for (const MemoryBlock& b : blocks) live += b.interval.contains(at.interval.begin) ? b.bytes : 0;
    bound = std::max(bound, live);
  }
  ASSERT_EQ(plan.lower_bound, bound);
  ASSERT_GE(plan.bytes, bound);
}

TEST(MemoryPlan, IsValidOnRandomBlocks) {
  double overhead = 0;
  constexpr int kRuns = 500;
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    Random random(seed);
    std::vector<MemoryBlock> blocks(random.below(60));
    for (MemoryBlock& block : blocks) {
      block.interval.begin = static_cast<std::uint32_t>(random.below(50));
      block.interval.end = block.interval.begin + static_cast<std::uint32_t>(random.below(10));
      block.bytes = random.between(0, 100);
    }
    const MemoryPlan plan = plan_memory(blocks);
    expect_valid(blocks, plan);
    if (HasFatalFailure()) return;
    if (plan.lower_bound > 0) overhead += static_cast<double>(plan.bytes) / static_cast<double>(plan.lower_bound) - 1;
  }
  EXPECT_LT(overhead / kRuns, 0.05) << "plans have become wasteful";
}

TEST(MemoryPlan, LargeOnesUseTheOrderOnly) {
  Random random(1);
  std::vector<MemoryBlock> blocks(kMaxBySize + 100);
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = {{i, i + static_cast<std::uint32_t>(random.below(5))}, random.between(1, 100)};
  }
  expect_valid(blocks, plan_memory(blocks));
}

// Three blocks that fit into three bytes when the largest is placed first, and into four in order; then ones that live
// alone.
TEST(MemoryPlan, TheLargestAreFirstUpToSoManyBlocks) {
  for (const std::size_t count : {std::size_t{3}, kMaxBySize - 1, kMaxBySize, kMaxBySize + 1, kMaxBySize + 2}) {
    std::vector<MemoryBlock> blocks = {{{0, 1}, 1}, {{0, 3}, 1}, {{2, 3}, 2}};
    for (std::uint32_t i = 4; blocks.size() < count; ++i) blocks.push_back({{i, i}, 1});
    const MemoryPlan plan = plan_memory(blocks);
    EXPECT_EQ(plan.bytes, count <= kMaxBySize ? 3 : 4) << count;
    EXPECT_EQ(plan.lower_bound, 3) << count;
  }
}

TEST(MemoryPlan, OfAGraphLeavesOutWhatIsNotCounted) {
  Sample g;
  const Liveness live(g.graph, g.shapes, {.alignment = 1});
  const MemoryPlan plan = plan_memory(live);
  EXPECT_EQ(plan.offsets[0], -1);  // x
  EXPECT_EQ(plan.offsets[1], -1);  // weight
  EXPECT_EQ(plan.bytes, live.peak().bytes);
  EXPECT_EQ(plan.lower_bound, live.peak().bytes);
}

// ── A better order ───────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Schedule, RunsEachBranchToItsEndFirst) {
  // Four branches made side by side: each makes a large value and reduces it to a small one.
  Graph graph;
  Node& x = graph.placeholder("x");
  std::vector<Node*> large, small;
  for (int i = 0; i < 4; ++i) large.push_back(&graph.call_function("aten::relu", {x}));
  for (Node* node : large) small.push_back(&graph.call_function("aten::sum", {*node}));
  std::vector<Argument> results;
  for (Node* node : small) results.push_back(Argument(*node));
  graph.output(Argument::tuple(results));
  Shapes shapes(graph);
  shapes[x] = floats(1000);
  for (Node* node : large) shapes[*node] = floats(1000);
  for (Node* node : small) shapes[*node] = floats(1);
  const Liveness live(graph, shapes, {.alignment = 1});
  const Schedule schedule = lower_peak(live, Effects(graph));
  EXPECT_EQ(schedule.peak_before, 4 * 4000 + 4);
  EXPECT_EQ(schedule.peak_after, 4000 + 4 * 4);
  apply_order(graph, schedule.order);
  graph.lint();
  EXPECT_EQ(Liveness(graph, shapes, {.alignment = 1}).peak().bytes, schedule.peak_after);
}

TEST(Schedule, IsNeverWorseAndKeepsUsesAndEffects) {
  int better = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    testing::RandomGraphOptions options = random_options(seed, 60);
    if (seed % 2) options.vocabulary = &testing::mutating_vocabulary();
    Graph graph = random_graph(seed, options);
    if (seed % 2 == 0) graph.eliminate_dead_code([](const Node&) { return false; });
    const Shapes shapes = seed % 3 ? random_shapes(graph, seed) : [&] {
      Shapes by_sets = random_shapes(graph, seed);
      for (const Node& node : graph.nodes()) {
        for (TensorInfo& tensor : by_sets[node].tensors) tensor.storage = -1;
      }
      return by_sets;
    }();
    const LivenessOptions counted{.count_inputs = seed % 5 == 0, .alignment = 1};
    const Effects effects(graph);
    const Liveness live(graph, shapes, counted);
    const Schedule schedule = lower_peak(live, effects);
    const std::vector<Node*> inputs = graph.placeholders();
    const OrderEdges edges = effects.order_edges();
    ASSERT_LE(schedule.peak_after, schedule.peak_before);
    apply_order(graph, schedule.order);
    ASSERT_TRUE(graph.check().empty()) << seed;
    ASSERT_EQ(graph.placeholders(), inputs) << seed;
    for (Node* node : schedule.order) {
      for (Node* after : edges.after(*node)) ASSERT_TRUE(node->is_before(*after)) << seed;
    }
    if (seed % 3) {
      ASSERT_EQ(Liveness(graph, shapes, counted).peak().bytes, schedule.peak_after) << seed;
    }
    better += schedule.peak_after < schedule.peak_before;
  }
  EXPECT_GT(better, 300);
}

TEST(Schedule, RefusesAnOrderOfOtherNodes) {
  Graph graph = testing::chain(2);
  EXPECT_THROW(apply_order(graph, {}), Error);
}

TEST(Liveness, MillionNodeGraphs) {
  for (const Graph& graph : {testing::chain(333'333), testing::fan(1'000'000), testing::ladder(300'000)}) {
    Shapes shapes(graph);
    for (const Node& node : graph.nodes()) {
      if (!node.is(Op::output)) shapes[node] = floats(16);
    }
    const Liveness live(graph, shapes);
    EXPECT_GT(live.peak().bytes, 0);
    EXPECT_GE(plan_memory(live).bytes, live.peak().bytes);
    EXPECT_EQ(lower_peak(live, Effects(graph)).order.size(), graph.size());
    std::size_t listed = 0;
    for (const Node& value : live.at(*graph.output_node())) listed += value.id() < graph.id_bound();
    EXPECT_GT(listed, 0u);
  }
}

}  // namespace fx::liveness_test
