// torch.fx's test/fx/test_cse_pass.py, each case by its name there: how many nodes go, that a second run finds nothing,
// and that the results are equal.
#include <gtest/gtest.h>

#include <fxgraph/rewriter/common_subexpression.h>
#include <fxgraph/text/print.h>
#include "tests/support/random.h"
#include "tests/support/scalar_interpreter.h"
#include "tests/support/short_graph.h"

namespace fx::cse_pass_test {

using testing::graph_of;
using testing::run_scalars;

struct Case {
  const char* name;
  const char* body;
  std::size_t removed;
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

const Case kCases[] = {
    {"test_nochange", R"(
      a = aten::add.Tensor(%x, 1)
      b = aten::add.Tensor(%x, %a)
      d = aten::add.Tensor(%x, %x)
      s = aten::add.Tensor(%b, %d)
      return s)",
     0},
    {"test_empty", "return None", 0},
    {"test_immutable_list_type", R"(
      a = aten::sum.dim_IntList(%x, [1])
      b = aten::sum.dim_IntList(%x, [1])
      c = aten::sum(%x)
      d = aten::sum(%x)
      ab = aten::add.Tensor(%a, %b)
      abc = aten::add.Tensor(%ab, %c)
      abcd = aten::add.Tensor(%abc, %d)
      return abcd)",
     2},
    {"test_immutable_list_multiple_entries", R"(
      a = aten::sum.dim_IntList(%x, [0, 1])
      b = aten::sum.dim_IntList(%x, [0, 1])
      c = aten::sum.dim_IntList(%x, [1])
      d = aten::sum.dim_IntList(%x, [1])
      ab = aten::add.Tensor(%a, %b)
      abc = aten::add.Tensor(%ab, %c)
      abcd = aten::add.Tensor(%abc, %d)
      return abcd)",
     2},
    {"test_simple", R"(
      a = aten::cos(%x)
      b = aten::cos(%x)
      c = aten::add.Tensor(%a, %a)
      d = aten::add.Tensor(%b, %b)
      s = aten::add.Tensor(%c, %d)
      return s)",
     2},
    {"test_simple_2", R"(
      a = aten::cos(%x)
      a1 = aten::sin(%a)
      b = aten::cos(%x)
      b1 = aten::sin(%b)
      c = aten::add.Tensor(%a1, %a1)
      d = aten::add.Tensor(%b1, %b1)
      s = aten::add.Tensor(%c, %d)
      return s)",
     3},
    {"test_two_args_default", R"(
      a = aten::sum.dim_IntList(%x, [1])
      b = aten::sum.dim_IntList(%x, [1], False)
      c = aten::sum.dim_IntList(%x, [1], keepdim=False)
      d = aten::sum.dim_IntList(%x, [1])
      ab = aten::add.Tensor(%a, %b)
      abc = aten::add.Tensor(%ab, %c)
      abcd = aten::add.Tensor(%abc, %d)
      return abcd)",
     3},
    {"test_two_args", R"(
      a = aten::sum.dim_IntList(%x, [1])
      b = aten::sum.dim_IntList(%x, [1], keepdim=True)
      c = aten::sum.dim_IntList(%x, [1], True)
      d = aten::sum.dim_IntList(%x, [1])
      ab = aten::add.Tensor(%a, %b)
      abc = aten::add.Tensor(%ab, %c)
      abcd = aten::add.Tensor(%abc, %d)
      return abcd)",
     2},
    {"test_simple_multiple_same_ops", R"(
      a = aten::sum(%x)
      b = aten::sum(%x)
      c = aten::sum(%x)
      d = aten::sum(%x)
      ab = aten::add.Tensor(%a, %b)
      abc = aten::add.Tensor(%ab, %c)
      abcd = aten::add.Tensor(%abc, %d)
      return abcd)",
     3},
    {"test_nested_immutable_list_type", R"(
      a = aten::cat([%x, %x])
      b = aten::cat([%x, %x])
      s = aten::add.Tensor(%a, %b)
      return s)",
     1},
    {"test_kwarg", R"(
      a = aten::ones_like(%x, pin_memory=False)
      b = aten::ones_like(%x, pin_memory=False)
      s = aten::add.Tensor(%a, %b)
      return s)",
     1},
    {"test_rand_like", R"(
      a = aten::rand_like(%x)
      b = aten::rand_like(%x)
      s = aten::add.Tensor(%a, %b)
      return s)",
     0},
    {"test_rand_n", R"(
      a = aten::randn([4])
      b = aten::randn([4])
      s = aten::add.Tensor(%a, %b)
      return s)",
     0},
};

class CsePass : public ::testing::TestWithParam<Case> {};

TEST_P(CsePass, Case) {
  Graph graph = graph_of(GetParam().body);
  const Graph before = graph.clone();
  EXPECT_EQ(eliminate_common_subexpressions(graph), GetParam().removed) << print_graph(graph);
  graph.lint();
  EXPECT_EQ(graph.size() + GetParam().removed, before.size());
  EXPECT_EQ(eliminate_common_subexpressions(graph), 0u) << "a second run";
  if (graph.count(Op::call_function, "aten::randn") == 0) {
    EXPECT_EQ(run_scalars(graph), run_scalars(before));
  }
}

INSTANTIATE_TEST_SUITE_P(Upstream, CsePass, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CsePassOptions, test_banned_list) {
  const char* const body =
      "a = aten::add.Tensor(%x, 1)\nb = aten::add.Tensor(%x, 1)\ns = aten::mul.Tensor(%a, %b)\nreturn s";
  Graph banned = graph_of(body);
  EXPECT_EQ(eliminate_common_subexpressions(
                banned, {}, [](const Node& node) { return packet_of(node.target().view()) == "aten::add"; }),
            0u);
  Graph one = graph_of(body);
  EXPECT_EQ(eliminate_common_subexpressions(one, {}, [](const Node& node) { return node.name() == "a"; }), 0u)
      << "what is banned takes no part in a merge";
  Graph free = graph_of(body);
  EXPECT_EQ(eliminate_common_subexpressions(free), 1u);
}

TEST(CsePassRandom, test_random) {
  static const char* const kOperators[] = {"aten::clone", "aten::cos", "aten::tanh", "aten::gelu"};
  testing::Random random(17);
  for (int run = 0; run < 30; ++run) {
    Graph graph;
    std::vector<Node*> values = {&graph.placeholder("x")};
    for (int i = 0; i < 100; ++i)
      values.push_back(&graph.call_function(kOperators[random.below(4)], {*values[random.below(values.size())]}));
    graph.output(*values.back());
    eliminate_dead_code(graph);
    const Graph before = graph.clone();
    const std::size_t removed = eliminate_common_subexpressions(graph);
    graph.lint();
    EXPECT_EQ(graph.size() + removed, before.size());
    EXPECT_EQ(eliminate_common_subexpressions(graph), 0u);
    EXPECT_EQ(run_scalars(graph), run_scalars(before)) << run << "\n" << print_graph(before);
  }
}

}  // namespace fx::cse_pass_test
