// Scatters in place: torch.fx's test_fx_reinplace_pass.py, by the names there (the graphs are those that
// functionalisation gives), and random programs of nested scatters.
#include <gmock/gmock.h>
#include <torch/version.h>

#include <random>

#include "tests/program/reinplace_testing.h"
#include "tests/support/short_graph.h"

namespace fx::reinplace_scatters_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::reinplaced;

const TensorInfo kMatrix{.sizes = {4, 4}};

TEST(ReinplacePass, test_reinplace_scatter_op) {
  const auto result = reinplaced(testing::graph_of(R"(
    a = aten::clone(%x)
    e = aten::view(%a, [-1])
    b = aten::view(%a, [-1])
    c = aten::select.int(%b, 0, 0)
    d = aten::view(%c, [-1])
    added = aten::add.Tensor(%d, 1)
    b2 = aten::view(%a, [-1])
    c2 = aten::view(%added, [])
    b3 = aten::select_scatter(%b2, %c2, 0, 0)
    a3 = aten::view(%b3, [4])
    e3 = aten::view(%a3, [-1])
    r = aten::add.Tensor(%a3, %e3)
    return r)"),
                                 {TensorInfo{.sizes = {4}}});
  EXPECT_THAT(result.changed, ElementsAre("added"));
  EXPECT_THAT(result.removed, ElementsAre("b3"));
  // Upstream adds a view of %a3 to %a3 in place, too, which kernels do not promise to get right.
  EXPECT_EQ(result.kept.at("r"), "%e3 may share storage with %a3");
}

TEST(ReinplacePass, test_reinplace_scatter_twice) {
  const auto result = reinplaced(testing::graph_of(R"(
    a = aten::clone(%x)
    rows = aten::slice.Tensor(%a, 0, 0, 9223372036854775807)
    b = aten::select.int(%rows, 1, 1)
    c = aten::select.int(%b, 0, 1)
    added = aten::add.Tensor(%c, 1)
    rows2 = aten::slice.Tensor(%a, 0, 0, 9223372036854775807)
    b2 = aten::select.int(%rows2, 1, 1)
    b3 = aten::select_scatter(%b2, %added, 0, 1)
    rows3 = aten::slice.Tensor(%a, 0, 0, 9223372036854775807)
    rows4 = aten::select_scatter(%rows3, %b3, 1, 1)
    a4 = aten::slice_scatter(%a, %rows4, 0, 0, 9223372036854775807)
    return a4)"),
                                 {kMatrix});
  EXPECT_THAT(result.changed, ElementsAre("added"));
  EXPECT_THAT(result.removed, ElementsAre("b3", "rows4", "a4"));
  EXPECT_EQ(result.after->graph().output_node()->arg(0).node_or_null()->name(), "a");
}

// The row that the scatter writes to is another view of the same elements.
TEST(ReinplacePass, test_reinplace_scatter_twice_with_different_view_op_valid) {
  const auto result = reinplaced(testing::graph_of(R"(
    a = aten::clone(%x)
    b = aten::select.int(%a, 0, 1)
    c = aten::select.int(%b, 0, 1)
    added = aten::add.Tensor(%c, 1)
    mirror = aten::as_strided(%a, [4], [1], 4)
    r = aten::select_scatter(%mirror, %added, 0, 1)
    return r)"),
                                 {kMatrix});
  EXPECT_THAT(result.changed, ElementsAre("added"));
  EXPECT_THAT(result.removed, ElementsAre("r"));
  // Upstream's own is a column: what it returns has strides that the program did not have. Here nothing changes.
  const auto column = reinplaced(testing::graph_of(R"(
    a = aten::clone(%x)
    rows = aten::slice.Tensor(%a, 0, 0, 9223372036854775807)
    b = aten::select.int(%rows, 1, 1)
    c = aten::select.int(%b, 0, 1)
    added = aten::add.Tensor(%c, 1)
    mirror = aten::as_strided(%a, [4], [4], 1)
    r = aten::select_scatter(%mirror, %added, 0, 1)
    return r)"),
                                 {kMatrix});
  if (TORCH_VERSION_MAJOR > 1) {  // from LibTorch 2 on the scatter's result has the strides of its input
    EXPECT_THAT(column.changed, ElementsAre("added"));
    return;
  }
  EXPECT_THAT(column.changed, IsEmpty());
  EXPECT_EQ(column.kept.at("r"), "its result is float32[4], %mirror is float32[4] with strides [4]");
}

// Upstream's ..._view_op_invalid and ..._view_op_invalid2: another row is written than was read.
TEST(ReinplacePass, test_reinplace_scatter_twice_with_different_view_op_invalid) {
  for (const char* const scattered : {"4)\n r = aten::select_scatter(%mirror, %added, 0, 0)",
                                      "0)\n r = aten::select_scatter(%mirror, %added, 0, 1)"}) {
    const auto result = reinplaced(testing::graph_of(std::string(R"(
    a = aten::clone(%x)
    b = aten::select.int(%a, 0, 1)
    c = aten::select.int(%b, 0, 1)
    added = aten::add.Tensor(%c, 1)
    mirror = aten::as_strided(%a, [4], [1], )") + scattered +
                                                     "\n return r"),
                                   {kMatrix});
    EXPECT_THAT(result.changed, ElementsAre("copy_")) << scattered;
    EXPECT_THAT(result.removed, IsEmpty()) << scattered;
  }
}

TEST(ReinplacePass, test_out_node_updated) {
  const auto result = reinplaced(testing::graph_of(R"(
    z = aten::zeros([2, 2])
    y = aten::diagonal(%z)
    added = aten::add.Tensor(%y, 1)
    r = aten::diagonal_scatter(%z, %added)
    return [r])"),
                                 {kMatrix});
  EXPECT_THAT(result.changed, ElementsAre("added"));
  EXPECT_THAT(result.removed, ElementsAre("r"));
}

TEST(ReinplacePass, test_reinplace_index_mutation) {
  const auto result = reinplaced(testing::graph_of(R"(
    z = aten::zeros([4, 4, 4])
    ones = aten::ones([4, 2, 4])
    rows = aten::slice.Tensor(%z, 0, 0, 9223372036854775807)
    part = aten::slice.Tensor(%rows, 1, 2, 9223372036854775807)
    rows2 = aten::slice.Tensor(%z, 0, 0, 9223372036854775807)
    rows3 = aten::slice_scatter(%rows2, %ones, 1, 2, 9223372036854775807)
    z3 = aten::slice_scatter(%z, %rows3, 0, 0, 9223372036854775807)
    return z3)"),
                                 {kMatrix});
  EXPECT_THAT(result.changed, ElementsAre("copy_"));
  EXPECT_THAT(result.removed, ElementsAre("z3"));
}

TEST(ReinplacePass, ScattersStayWhereSomebodyCanTell) {
  const auto result = reinplaced(testing::graph_of(R"(
    a = aten::clone(%x)
    v = aten::slice.Tensor(%a, 0, 0, 2)
    u = aten::add.Tensor(%v, 1)
    z = aten::slice_scatter(%a, %u, 0, 0, 2)
    late = aten::sum(%a)
    i = aten::slice_scatter(%x, %u, 0, 0, 2)
    return (z, late, i, u))"),
                                 {kMatrix});
  EXPECT_THAT(result.changed, IsEmpty());
  EXPECT_EQ(result.kept.at("u"), "%v, or a view of it, is read later");
  EXPECT_EQ(result.kept.at("z"), "%a, or a view of it, is read later");
  EXPECT_EQ(result.kept.at("i"), "%x is an input");
  // The sum of the slice is read after the scatter, and what the scatter left is written to: a copy keeps them apart.
  const auto apart = reinplaced(testing::graph_of(R"(
    a = aten::clone(%x)
    v = aten::slice.Tensor(%a, 0, 0, 2)
    u = aten::add.Tensor(%v, 1)
    z = aten::slice_scatter(%a, %u, 0, 0, 2)
    w = aten::mul.Tensor(%z, 2)
    return (w, u))"),
                                {kMatrix});
  EXPECT_THAT(apart.changed, ElementsAre("copy_", "w"));
}

// A cache that is written row by row, as decoders do: every scatter goes.
TEST(ReinplacePass, ACacheIsWrittenInPlace) {
  std::string text = "cache_0 = aten::zeros([64, 4])\n";
  for (int i = 0; i < 64; ++i) {
    const std::string now = "%cache_" + std::to_string(i), row = std::to_string(i);
    text += "v_" + row + " = aten::select.int(" + now + ", 0, " + row + ")\nu_" + row + " = aten::add.Tensor(%v_" +
            row + ", 1.5)\ncache_" + std::to_string(i + 1) + " = aten::select_scatter(" + now + ", %u_" + row +
            ", 0, " + row + ")\n";
  }
  const auto result = reinplaced(testing::graph_of(text + "return cache_64"), {kMatrix});
  EXPECT_EQ(result.changed.size(), 64u);
  EXPECT_EQ(result.removed.size(), 64u);
}

/// A view of %x by its arguments, and the scatter that takes it back.
struct ViewKind {
  const char *view, *scatter;
  std::vector<Argument> args;
};

TEST(ReinplacePass, RandomScattersComputeTheSame) {
  const std::vector<ViewKind> kinds = {{"aten::slice.Tensor", "aten::slice_scatter", {0, 1, 3}},
                                       {"aten::slice.Tensor", "aten::slice_scatter", {1, -3, 100, 2}},
                                       {"aten::slice.Tensor", "aten::slice_scatter", {0, Argument(), Argument(), 1}},
                                       {"aten::select.int", "aten::select_scatter", {0, -1}},
                                       {"aten::select.int", "aten::select_scatter", {1, 2}},
                                       {"aten::diagonal", "aten::diagonal_scatter", {}},
                                       {"aten::diagonal", "aten::diagonal_scatter", {-1, 1, 0}},
                                       {"aten::diagonal", "aten::diagonal_scatter", {1}}};
  std::size_t removed = 0, copies = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 random(seed);
    Graph graph;
    std::vector<Node*> whole = {&graph.placeholder("x")}, parts;
    whole.push_back(&graph.call_function("aten::clone", {whole[0]}));
    const auto with = [](Node& first, std::vector<Argument> between, const std::vector<Argument>& rest) {
      std::vector<Argument> args = {first};
      args.insert(args.end(), between.begin(), between.end());
      args.insert(args.end(), rest.begin(), rest.end());
      return args;
    };
    const auto pick = [&]() -> Node& {
      return *whole[whole.size() - 1 - (random() % 4 == 0 ? random() % whole.size() : 0)];
    };
    for (std::size_t i = 0; i < 3 + seed % 6; ++i) {
      Node& base = pick();
      const ViewKind &kind = kinds[random() % kinds.size()],
                     &back = random() % 5 ? kind : kinds[random() % kinds.size()];
      Node& view = graph.call_function(kind.view, with(base, {}, kind.args));
      Node* part = random() % 6 == 0 && !parts.empty() ? parts[random() % parts.size()]
                                                       : &graph.call_function("aten::add.Tensor", {view, 1});
      if (random() % 4 == 0) part = &graph.call_function("aten::tanh", {part});
      parts.push_back(part);
      Node& target = random() % 5 ? base : pick();
      Node& scattered = graph.call_function(back.scatter, with(target, {part}, back.args));
      whole.push_back(&scattered);
      if (random() % 3 == 0) whole.push_back(&graph.call_function("aten::mul.Tensor", {scattered, 0.5}));
      GraphModule trial(graph.clone());
      trial.graph().output(*trial.graph().find(whole.back()->name()));
      try {
        trial.forward(torch::ones({4, 4}));
      } catch (const std::exception&) {  // a part of another shape
        graph.erase_node(*whole.back());
        whole.pop_back();
        if (!scattered.is_erased()) {
          graph.erase_node(scattered);
          whole.pop_back();
        }
        parts.pop_back();
      }
    }
    std::vector<Argument> results = {*whole.back()};
    if (!parts.empty() && random() % 2) results.emplace_back(*parts[random() % parts.size()]);
    graph.output(Argument::tuple(results));
    const auto result = reinplaced(std::move(graph), {kMatrix});
    if (HasFailure()) FAIL() << "seed " << seed;
    removed += result.removed.size();
    for (const std::string& name : result.changed) copies += name.starts_with("copy_");
  }
  EXPECT_GT(removed, 100u);
  EXPECT_GT(copies, 50u);
}

}  // namespace fx::reinplace_scatters_test
