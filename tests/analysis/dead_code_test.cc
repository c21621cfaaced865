#include <fxgraph/analysis/dead_code.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <fxgraph/analysis/no_ops.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"
#include "tests/support/short_graph.h"

namespace fx::dead_code_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = DeadFinding::Kind;

std::vector<std::string> explanations(const Graph& graph, const DeadCodeOptions& options = {}) {
  const DeadCode dead(graph, options);
  std::vector<std::string> lines;
  for (const DeadFinding& finding : dead.findings()) lines.push_back(dead.explain(finding));
  return lines;
}

TEST(DeadCode, FindsExactlyWhatWasPlanted) {
  const Graph graph = parse_graph(R"(graph():
    %x : [num_users=4] = placeholder[target=x]
    %unused : [num_users=0] = placeholder[target=unused]
    %a : [num_users=4] = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})
    %dead1 : [num_users=1] = call_function[target=torch.ops.aten.neg.default](args = (%a,), kwargs = {})
    %dead2 : [num_users=1] = call_function[target=torch.ops.aten.abs.default](args = (%dead1,), kwargs = {})
    %dead3 : [num_users=0] = call_function[target=torch.ops.aten.exp.default](args = (%dead2,), kwargs = {})
    %scratch : [num_users=1] = call_function[target=torch.ops.aten.clone.default](args = (%a,), kwargs = {})
    %store : [num_users=0] = call_function[target=torch.ops.aten.add_.Tensor](args = (%scratch, 1), kwargs = {})
    %view : [num_users=1] = call_function[target=torch.ops.aten.view.default](args = (%a, [-1]), kwargs = {})
    %seen : [num_users=0] = call_function[target=torch.ops.aten.mul_.Tensor](args = (%view, 2), kwargs = {})
    %top : [num_users=1] = call_function[target=torch.ops.aten.max.dim](args = (%a, 0), kwargs = {})
    %values : [num_users=1] = call_function[target=operator.getitem](args = (%top, 0), kwargs = {})
    return values
)");
  EXPECT_THAT(
      explanations(graph),
      ElementsAre("dead1: dead because its only user dead2 is dead because its only user dead3 is dead because "
                  "nothing uses it",
                  "dead2: dead because its only user dead3 is dead because nothing uses it",
                  "dead3: dead because nothing uses it",
                  "scratch: dead because its only user store is a dead store because nothing reads what it writes",
                  "store: dead store because nothing reads what it writes", "top: result 1 (indices) is never used",
                  "unused: unused input because nothing uses it"));
}

TEST(DeadCode, WritesThatCanBeSeenAreLive) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& count = graph.get_attr("count");
  Node& into_attribute = graph.call_function("aten::add_.Tensor", {count, 1});
  Node& into_input = graph.call_function("aten::relu_", {x});
  Node& own = graph.call_function("aten::zeros_like", {x});
  Node& before = graph.call_function("aten::add_.Tensor", {own, 1});
  Node& read = graph.call_function("aten::neg", {own});
  Node& after = graph.call_function("aten::add_.Tensor", {own, 2});
  graph.output(read);
  const DeadCode dead(graph);
  EXPECT_FALSE(dead.is_dead(into_attribute));
  EXPECT_FALSE(dead.is_dead(into_input));
  EXPECT_FALSE(dead.is_dead(before));
  EXPECT_TRUE(dead.is_dead_store(after));
  EXPECT_THAT(explanations(graph), ElementsAre("add__2: dead store because nothing reads what it writes"));
}

TEST(DeadCode, LongChainsOfReasonsAreCut) {
  Graph graph = testing::chain(300'000);
  Node* x = graph.placeholders()[0];
  graph.erase_node(*graph.output_node());
  graph.output(*x);
  const DeadCode dead(graph);
  EXPECT_EQ(dead.count(Kind::dead_node), graph.size() - 3);
  EXPECT_EQ(dead.count(Kind::unused_input), 1u);
  const std::string why = dead.why(*graph.find("add"));
  EXPECT_THAT(why, ::testing::EndsWith("…"));
  EXPECT_LT(why.size(), 400u);
}

// Who takes all results uses each, wherever it stands among those that take one.
TEST(DeadCode, ResultsThatAreTakenWhole) {
  for (const int whole : {-1, 0, 1, 2}) {
    Graph graph;
    Node& top = graph.call_function("aten::max.dim", {graph.placeholder("x"), 0});
    std::vector<Argument> used;
    for (int i = 0; i < 3; ++i) {
      used.emplace_back(i == whole ? graph.call_function("mine.f", {top})
                                   : graph.call_function("operator.getitem", {top, 0}));
    }
    graph.output(Argument::list(used));
    EXPECT_EQ(DeadCode(graph).count(Kind::unused_output), whole < 0 ? 1u : 0u) << whole;
  }
}

// What an operator does beside writing is seen, whatever becomes of what it writes.
TEST(DeadCode, AWriteThatDoesMoreIsLive) {
  register_schema("dead_code_test::log_(Tensor(a!) x) -> Tensor(a!)", {.side_effect = true});
  register_schema("dead_code_test::note_(Tensor(a!) x) -> Tensor(a!)");
  for (const auto& [target, live] : {std::pair("dead_code_test::log_", true),
                                     {"dead_code_test::note_", false},
                                     {"aten::normal_", true},
                                     {"dead_code_test::unheard_of_", true}}) {
    Graph graph;
    Node& own = graph.call_function("aten::clone", {graph.placeholder("x")});
    Node& write = graph.call_function(target, {own});
    graph.output(nullptr);
    EXPECT_EQ(DeadCode(graph).is_dead(write), !live) << target;
    EXPECT_EQ(DeadCode(graph).is_dead_store(write), !live) << target;
  }
}

TEST(DeadCode, AWriteThatOnlyDeadNodesRead) {
  const Graph graph = testing::graph_of("y = aten::clone(%x)\nw = aten::relu_(%y)\nn = aten::neg(%w)\nreturn %x");
  const Effects effects(graph);
  const DeadCode dead(graph, {.effects = &effects});
  EXPECT_EQ(dead.why(*graph.find("w")),
            "nothing live reads what it writes, and its only user n is dead because nothing uses it");
}

TEST(DeadCode, SeveralUsers) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x}, {}, "a");
  graph.call_function("aten::neg", {a}, {}, "b");
  graph.call_function("aten::abs", {a}, {}, "c");
  graph.output(x);
  EXPECT_EQ(DeadCode(graph).why(a), "all its 2 users are dead: b because nothing uses it");
  EXPECT_EQ(DeadCode(graph).why(x), "");
}

TEST(DeadCode, NoOps) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& d = graph.call_function("aten::dropout", {x, 0.5, false}, {}, "d");
  Node& kept = graph.call_function("aten::dropout", {d, 0.5, true}, {}, "kept");
  Node& z = graph.call_function("aten::add.Tensor", {kept, 0}, {}, "z");
  Node& scaled = graph.call_function("aten::mul.Tensor", {z, 2}, {}, "scaled");
  Node& r = graph.call_function("aten::relu", {scaled}, {}, "r");
  Node& rr = graph.call_function("aten::relu", {r}, {}, "rr");
  Node& p = graph.call_function("aten::permute", {rr, Argument::list({0, 1})}, {}, "p");
  Node& q = graph.call_function("aten::permute", {p, Argument::list({1, 0})}, {}, "q");
  graph.output(q);
  EXPECT_THAT(explanations(graph), ElementsAre("d: no-op, drops nothing at inference; the same as x",
                                               "rr: no-op, rectifies what is rectified already; the same as r",
                                               "p: no-op, keeps the order of the dimensions; the same as rr"));
  Shapes shapes(graph);
  for (const Node& node : graph.nodes()) shapes[node] = TensorInfo{.sizes = {2, 2}};
  EXPECT_THAT(explanations(graph, {.shapes = &shapes}), ::testing::Contains("z: no-op, adds 0; the same as kept"));
  shapes[z] = TensorInfo{.dtype = DType::float64, .sizes = {2, 2}};
  EXPECT_THAT(explanations(graph, {.shapes = &shapes}),
              ::testing::Not(::testing::Contains(::testing::HasSubstr("adds 0"))));
}

TEST(DeadCode, AttributesAndModules) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& w = graph.get_attr("conv.weight");
  graph.get_attr("conv.bias");  // fetched, never used
  Node& y = graph.call_function("aten::conv2d", {x, w});
  Node& z = graph.call_module("head.fc", {y});
  graph.output(z);
  const DeadCodeOptions options{.attributes = {{"conv.weight", 100},
                                               {"conv.bias", 8},
                                               {"head.fc.weight", 50},
                                               {"head.aux.fc.weight", 40},
                                               {"head.aux.fc.bias", 4},
                                               {"scale", 4},
                                               {"offset", 2},
                                               {"conv.again", 8}}};
  const DeadCode dead(graph, options);
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const DeadFinding& f : dead.findings()) {
    if (f.node == nullptr) found.emplace_back(std::string(to_string(f.kind)) + " " + f.path, f.bytes);
  }
  EXPECT_THAT(found, ElementsAre(std::pair("unused attribute conv.again", 8),
                                 std::pair("unused attribute conv.bias", 8), std::pair("unused attribute offset", 2),
                                 std::pair("unused attribute scale", 4), std::pair("unused module head.aux", 44)));
}

/// Dead by the definition: a node is live when a root needs it. Iterated until nothing changes.
std::set<const Node*> live_by_definition(const Graph& graph, const Effects& effects) {
  std::set<const Node*> live;
  std::vector<const Node*> nodes;
  for (const Node& node : graph.nodes()) nodes.push_back(&node);
  const auto overlap = [](auto a, auto b) {
    return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Node* node : nodes) {
      const NodeEffects& e = effects.of(*node);
      bool needed = node->is(Op::output) || e.random || e.side_effect || e.unknown;
      const auto written = effects.written_sets(*node);
      needed |= e.writes && written.empty();
      for (const auto set : written) needed |= effects.is_external(set);
      for (const Node* other : nodes) {
        if (!live.count(other)) continue;
        other->for_each_input([&](Node& input) {
          needed |= &input == node;
          needed |= node->is_before(*other) && overlap(written, effects.sets(input));
        });
      }
      if (needed) changed |= live.insert(node).second;
    }
  }
  return live;
}

TEST(DeadCode, AgreesWithTheDefinitionOnRandomGraphs) {
  std::size_t stores = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    testing::RandomGraphOptions options = testing::random_options(seed, 30);
    if (seed % 2) options.vocabulary = &testing::mutating_vocabulary();
    Graph graph = testing::random_graph(seed, options);
    const Effects effects(graph);
    const DeadCode dead(graph, {.effects = &effects});
    const std::set<const Node*> live = live_by_definition(graph, effects);
    for (const Node& node : graph.nodes()) {
      ASSERT_EQ(dead.is_dead(node), live.count(&node) == 0) << seed << ' ' << node;
      ASSERT_EQ(dead.why(node).empty(), !dead.is_dead(node));
    }
    stores += dead.count(Kind::dead_store);
    // What the conservative pass removes is dead here too.
    const std::size_t all_dead = dead.count(Kind::dead_node) + dead.count(Kind::dead_store);
    ASSERT_LE(eliminate_dead_code(graph), all_dead) << seed;
  }
  EXPECT_GT(stores, 50u);
}

TEST(DeadCode, ANoOpSaysSoInItsArguments) {
  struct Case {
    const char* call;
    bool nothing;
  };
  for (const Case& one : {Case{"aten::slice.Tensor(%x, 0, 0, 9223372036854775807, 1)", true},
                          {"aten::slice.Tensor(%x, 0, None, None, 1)", true},
                          {"aten::slice.Tensor(%x, 0, 1, 9223372036854775807, 1)", false},
                          {"aten::slice.Tensor(%x, 0, 0, 2, 1)", false},
                          {"aten::slice.Tensor(%x, 0, 0, 9223372036854775807, 2)", false},
                          {"aten::contiguous(%x)", true},
                          {"aten::contiguous(%x, memory_format=torch.contiguous_format)", true},
                          {"aten::contiguous(%x, memory_format=torch.channels_last)", false},
                          {"aten::add.Tensor(%x, 0, alpha=2)", true},
                          {"aten::add.Tensor(%x, 0, alpha=inf)", false},
                          {"aten::add.out(%x, 0, out=%x)", false},
                          {"aten::to.dtype(%x, torch.float32)", true},
                          {"aten::to.dtype(%x, torch.float32, False, True)", false}}) {
    const Graph graph = testing::graph_of("a = " + std::string(one.call) + "\nreturn a");
    Shapes shapes(graph);
    for (const Node& node : graph.nodes()) shapes[node] = TensorInfo{.sizes = {2, 2}, .strides = {2, 1}};
    const auto found = [&] { return DeadCode(graph, {.shapes = &shapes}).count(Kind::no_op); };
    EXPECT_EQ(found(), one.nothing ? 1u : 0u) << one.call;
    if (std::string(one.call).starts_with("aten::slice")) continue;
    for (const char* name : {"x", "a"}) {
      ValueInfo& info = shapes[*graph.find(name)];
      const ValueInfo known = std::exchange(info, {});
      EXPECT_EQ(found(), 0u) << one.call << " with an unknown " << name;
      info = known;
      info.tensors[0].device = Device{"cuda", 0};
      EXPECT_EQ(found(), 0u) << one.call << " with " << name << " elsewhere";
      info = known;
    }
  }
}

TEST(DeadCode, AnElementIsTakenByTwoArguments) {
  const Graph graph = testing::graph_of("t = aten::max.dim(%x, 0)\na = operator.getitem(%t, 0, 1)\nreturn a");
  EXPECT_THAT(explanations(graph), IsEmpty()) << "whatever it does, it may need both results";
}

TEST(NoOps, AreToldByTheCallAloneWhereNeitherShapesNorWritesCount) {
  const Graph graph = testing::graph_of(
      "a = aten::relu(%x)\nb = aten::relu(%a)\nc = aten::reshape(%a, [2])\nd = aten::transpose.int(%a, 1, 1)\n"
      "e = aten::transpose.int(%a, 0, 1)\nf = aten::dropout(%a, 0.5, False)\nreturn b");
  std::string same;
  for (const Node& node : graph.nodes()) {
    if (const Node* argument = no_op_argument(node)) same += node.name() + "=" + argument->name() + " ";
  }
  EXPECT_EQ(same, "d=a f=a ");
}

}  // namespace fx::dead_code_test
