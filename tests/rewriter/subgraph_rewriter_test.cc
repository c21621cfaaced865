// torch.fx's test/fx/test_subgraph_rewriter.py, each case by its name there (most are in subgraph_rewriter_cases.cc).
// What its cases check by running both graphs is checked here by the text of the result, and by running it. Cases with
// submodules and tensors of their own are in tests/program/subgraph_rewriter_test.cc.
// test_subgraph_rewriter_annotations_int is not here: it is about Python's annotations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/ops/call.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/print.h>
#include "tests/rewriter/subgraph_rewriter_cases.h"
#include "tests/support/names.h"
#include "tests/support/scalar_interpreter.h"
#include "tests/support/short_graph.h"

namespace fx::subgraph_rewriter_test {

using testing::calls_of;
using testing::Computes;
using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::IsEmpty;
using testing::names;
using testing::run_scalars;
using testing::SubgraphRewriterCase;

class SubgraphRewriter : public ::testing::TestWithParam<SubgraphRewriterCase> {
 public:
  static void SetUpTestSuite() {
    register_schema("my::gemm_bias_mul(Tensor a, Tensor b, Tensor bias) -> (Tensor, Tensor)");
    register_schema("my::gemm_bias_mul_with_c(Tensor a, Tensor b, Tensor bias, Tensor c) -> (Tensor, Tensor)");
  }
};

/// False when an operator is of no known schema, or has results that only getitem tells apart.
bool can_run(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    const Call call = call_of(node);
    if (node.is(Op::call_function) && (!call || call.schema().returns.size() != 1)) return false;
  }
  return true;
}

TEST_P(SubgraphRewriter, Case) {
  const SubgraphRewriterCase& one = GetParam();
  Graph graph = one.graph.graph();
  const Graph before = graph.clone();
  const RewriteReport report = replace_pattern(graph, one.pattern.graph(), one.replacement.graph(),
                                               {.allow_output_aliases = one.allow_output_aliases});
  graph.lint();
  EXPECT_EQ(report.applied, one.applied) << report;
  const Graph expected = graph_of(one.expected, one.graph.inputs);
  EXPECT_EQ(calls_of(graph), calls_of(expected));
  if (can_run(graph)) {
    EXPECT_EQ(run_scalars(graph), run_scalars(expected));
  }
  if (one.result == Computes::same) {
    EXPECT_EQ(run_scalars(graph), run_scalars(before));
  }
}

INSTANTIATE_TEST_SUITE_P(Upstream, SubgraphRewriter, ::testing::ValuesIn(testing::subgraph_rewriter_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// ── What the functions return ────────────────────────────────────────────────────────────────────────────────────────

TEST(SubgraphRewriterResults, test_subgraph_rewriter_with_trivial_replacement) {
  Graph graph = graph_of("n = aten::neg(%x)\nm = aten::neg(%n)\na = aten::add.Tensor(%m, %m)\nreturn a");
  const auto replaced = replace_pattern_with_filters(graph, "aten::neg(x)", "x", {});
  ASSERT_EQ(replaced.size(), 2u);
  for (const ReplacedPattern& one : replaced) EXPECT_THAT(one.replacements, IsEmpty());
}

TEST(SubgraphRewriterResults, test_subgraph_rewriter_internal_pattern_nodes_cannot_have_users_that_are_not_matched) {
  Graph graph = graph_of("m = aten::matmul(%x, %x)\nr = aten::relu(%m)\na = aten::add.Tensor(%r, %m)\nreturn a");
  const std::string before = print_graph(graph);
  RewriteReport report;
  EXPECT_THAT(
      replace_pattern_with_filters(graph, "aten::relu(aten::matmul(x, w))", "aten::mul.Tensor(x, w)", {}, {}, &report),
      IsEmpty());
  std::ostringstream told;
  told << report;
  EXPECT_EQ(told.str(), "applied 0; refused 1 (m: its value is also used by a)");
  EXPECT_EQ(report.rules[0].matched, 1u);
  EXPECT_EQ(report.rules[0].refused, 1u);
  EXPECT_EQ(print_graph(graph), before);
}

/// Twice dequantize, add, relu, quantize: with a number, then with a value.
Graph quantized() {
  return graph_of(R"(
    dequantize = aten::dequantize.self(%x)
    add = aten::add.Tensor(%dequantize, 2)
    relu = aten::relu(%add)
    quantize = aten::quantize_per_tensor(%relu, %scale, %zero_point, torch.quint8)
    y = aten::add.Tensor(%quantize, 1)
    dequantize_1 = aten::dequantize.self(%quantize)
    add_1 = aten::add.Tensor(%dequantize_1, %y)
    relu_1 = aten::relu(%add_1)
    quantize_1 = aten::quantize_per_tensor(%relu_1, %scale, %zero_point, torch.quint8)
    return quantize_1)",
                  "x scale zero_point");
}

TEST(SubgraphRewriterResults, test_replace_pattern_with_filters) {
  register_schema("aten::quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor");
  const Graph pattern = graph_of(R"(
    d = aten::dequantize.self(%x)
    a = aten::add.Tensor(%d, %num)
    r = aten::relu(%a)
    q = aten::quantize_per_tensor(%r, %scale, %zero_point, torch.quint8)
    return q)",
                                 "x num scale zero_point");
  const Graph replacement = graph_of("mul = aten::mul.Tensor(%x, %num)\nreturn mul", "x num scale zero_point");
  Graph all = quantized();
  RewriteReport told;
  const auto both = replace_pattern_with_filters(all, pattern, replacement, {}, {}, &told);
  ASSERT_EQ(both.size(), 2u) << told;
  EXPECT_EQ(calls_of(all),
            "mul = aten::mul.Tensor(x, 2)\ny = aten::add.Tensor(mul, 1)\nmul_1 = aten::mul.Tensor(mul, y)\nreturn "
            "mul_1\n");
  EXPECT_THAT(names(both[0].replacements), ElementsAre("mul"));
  EXPECT_THAT(names(both[1].replacements), ElementsAre("mul_1"));

  Graph some = quantized();
  std::size_t asked = 0;
  RewriteReport report;
  const auto second_input_is_scalar = [&](const Match& match) { return ++asked, match.argument("num").is_number(); };
  const auto one = replace_pattern_with_filters(some, pattern, replacement, {second_input_is_scalar}, {}, &report);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(asked, 2u) << "every match is asked about before the first is rewritten";
  EXPECT_EQ(report.rules[0].filtered, 1u);
  EXPECT_THAT(names(one[0].replacements), ElementsAre("mul"));
  EXPECT_EQ(one[0].nodes_map.size(), 8u);
  EXPECT_EQ(some.count(Op::call_function, "aten::mul.Tensor"), 1u);
  EXPECT_EQ(some.count(Op::call_function, "aten::quantize_per_tensor"), 1u);
}

TEST(SubgraphRewriterResults, test_replaced_nodes) {
  Graph graph = graph_of("add = aten::add.Tensor(%x, %y)\nreturn add", "x y");
  const auto replaced =
      replace_pattern_with_filters(graph, "aten::add.Tensor(x, y)", "aten::sub.Tensor(aten::mul.Tensor(x, y), y)", {});
  ASSERT_EQ(replaced.size(), 1u);
  EXPECT_THAT(names(replaced[0].replacements), ElementsAre("mul", "sub")) << "in graph order";
  EXPECT_EQ(calls_of(graph), "mul = aten::mul.Tensor(x, y)\nsub = aten::sub.Tensor(mul, y)\nreturn sub\n");
}

TEST(SubgraphRewriterResults, test_replace_pattern_with_callback) {
  Graph graph = graph_of("add = aten::add.Tensor(%x, %y)\nadd_1 = aten::add.Tensor(%add, %y)\nreturn add_1", "x y");
  std::vector<std::string> seen;
  const auto build = [&](const Match& match, Rewriter& rewriter) -> Node& {
    seen.push_back(match.anchor().name());
    Node& mul = rewriter.call_function("aten::mul.Tensor", {match["x"], match["y"]});
    return rewriter.call_function("aten::sub.Tensor", {mul, match["y"]});
  };
  const auto replaced = replace_pattern_with_filters(graph, "aten::add.Tensor(x, y)", Replacement(build), {});
  EXPECT_THAT(seen, ElementsAre("add", "add_1")) << "called for each match";
  ASSERT_EQ(replaced.size(), 2u);
  EXPECT_THAT(names(replaced[0].replacements), ElementsAre("mul", "sub"));
  EXPECT_EQ(calls_of(graph),
            "mul = aten::mul.Tensor(x, y)\nsub = aten::sub.Tensor(mul, y)\nmul_1 = aten::mul.Tensor(sub, y)\n"
            "sub_1 = aten::sub.Tensor(mul_1, y)\nreturn sub_1\n");
}

}  // namespace fx::subgraph_rewriter_test
