// Rewrites on random graphs that write, alias and draw random numbers: whatever the checks let through keeps every
// output and every write. The rules below are right on values that nothing else writes; only the checks make them right
// here.
#include <gtest/gtest.h>

#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/print.h>
#include "tests/support/random_graph.h"
#include "tests/support/scalar_interpreter.h"

namespace fx::random_effects_test {

using testing::run_scalars;

struct Identity {
  const char* pattern;
  const char* replacement;
};

// Each is right on numbers that nothing else writes; only the checks make it right here.
constexpr Identity kIdentities[] = {
    {"aten::relu(x)", "aten::clamp_min(x, 0)"},
    {"aten::clone(x)", "x"},
    {"aten::view(x, s)", "x"},
    {"aten::transpose.int(x, 0, 1)", "aten::view(x, [1])"},
    {"aten::view(x, s)", "aten::clone(x)"},
    {"aten::add.Tensor(x, y)", "aten::add.Tensor(y, x)"},
    {"aten::relu(aten::add.Tensor(x, y))", "aten::relu(aten::add.Tensor(y, x))"},
    {"aten::add.Tensor(aten::clone(x), y)", "aten::add.Tensor(x, y)"},
    {"aten::relu_(x)", "aten::relu(x)"},
    {"aten::relu_(x)", "aten::copy_(x, aten::relu(x))"},
    {"aten::relu(x)", "aten::relu_(x)"},
    {"aten::add_.Tensor(x, y)", "aten::add.Tensor(x, y)"},
    {"aten::add.Tensor(x, y)", "aten::add_.Tensor(x, y)"},
    {"aten::add.Tensor(x, y)", "aten::add_.Tensor(aten::clone(x), y)"},
    {"aten::copy_(x, y)", "y"},
    {"aten::relu(aten::rand_like(x))", "aten::clamp_min(aten::rand_like(x), 0)"},
    {"a = aten::relu(x)\nb = aten::add.Tensor(x, y)\nreturn a, b",
     "a = aten::relu(x)\nb = aten::add.Tensor(y, x)\nreturn a, b"},
    {"a = aten::relu(x)\nb = aten::add.Tensor(a, y)\nreturn a, b",
     "a = aten::clamp_min(x, 0)\nb = aten::add.Tensor(y, a)\nreturn a, b"},
    {"a = aten::rand_like(x)\nb = aten::relu(a)\nreturn a, b",
     "a = aten::rand_like(x)\nb = aten::relu(a)\nreturn a, b"},
    {"aten::add.Tensor(aten::relu_(x), y)", "aten::add.Tensor(aten::copy_(x, aten::relu(x)), y)"},
    {"aten::add.Tensor(aten::relu_(x), y)", "aten::add.Tensor(y, aten::relu_(x))"},
    {"graph(%x, %y):\n    %a : = call_function[target=aten::relu_](args = (%x,))\n    %b : = "
     "call_function[target=aten::add.Tensor](args = (%x, %y))\n"
     "    return (a, b)",
     "graph(%x, %y):\n    %a : = call_function[target=aten::relu_](args = (%x,))\n    %b : = "
     "call_function[target=aten::add.Tensor](args = (%y, %x))\n"
     "    return (a, b)"},
    {"a = aten::view(x, s)\nb = aten::relu(a)\nreturn a, b",
     "a = aten::transpose.int(x, 0, 1)\nb = aten::relu(x)\nreturn a, b"},
};

TEST(RandomEffects, RewritesKeepEveryOutputAndEveryWrite) {
  std::size_t applied = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    testing::RandomGraphOptions options;
    options.nodes = 4 + seed % 22;
    options.inputs = 1 + seed % 3;
    options.shape = static_cast<testing::Shape>(seed / 5 % 4);
    options.vocabulary = &testing::mutating_vocabulary();
    const Graph original = testing::random_graph(seed, options);
    const auto expected = run_scalars(original);
    for (const Identity& rule : kIdentities) {
      Graph graph = original.clone();
      Rewriter rewriter(graph);
      const RewriteReport report =
          replace_pattern(rewriter, rule.pattern, rule.replacement, {.allow_output_aliases = true});
      applied += report.applied;
      refused += report.refused.size();
      ASSERT_TRUE(graph.check().empty()) << seed << " " << rule.pattern;
      ASSERT_EQ(run_scalars(graph), expected)
          << "seed " << seed << ": " << rule.pattern << " -> " << rule.replacement << "\n"
          << report << "\n"
          << print_graph(original) << print_graph(graph);
      rewriter.rollback();
      ASSERT_EQ(print_graph(graph), print_graph(original)) << seed << " " << rule.pattern;
    }
  }
  EXPECT_GT(applied, 20000u);
  EXPECT_GT(refused, 5000u);
}

}  // namespace fx::random_effects_test
