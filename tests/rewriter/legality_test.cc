// What may not be rewritten, and why. torch.fx's replace_pattern looks at the edges of a graph only; these are the
// wrong results that come of it. Its other limits are in limits_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/print.h>
#include "tests/support/error_of.h"
#include "tests/support/random_graph.h"
#include "tests/support/scalar_interpreter.h"
#include "tests/support/short_graph.h"

namespace fx::legality_test {

using testing::calls_of;
using testing::error_of;
using testing::graph_of;
using ::testing::HasSubstr;
using testing::run_scalars;

std::string report_of(const RewriteReport& report) {
  std::ostringstream out;
  out << report;
  return out.str();
}

/// Expects that nothing is rewritten, that the graph stays as it was, and why.
void expect_refused(Graph& graph, const Pattern& pattern, const Replacement& replacement, const std::string& why,
                    ReplaceOptions options = {}) {
  const std::string before = print_graph(graph);
  const RewriteReport report = replace_pattern(graph, pattern, replacement, options);
  EXPECT_EQ(report_of(report), "applied 0; refused 1 (" + why + ")");
  EXPECT_EQ(print_graph(graph), before);
}

// ── Writes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Legality, AnIdentityRuleDoesNotCrossAWrite) {
  // sin(x); x.add_(1); relu(sin): torch.fx computes the sin after the write.
  const std::string body = "s = aten::sin(%x)\na = aten::add_.Tensor(%x, 1)\nr = aten::relu(%s)\nreturn r";
  Graph graph = graph_of(body);
  const Pattern pattern("aten::relu(aten::sin(x))");
  expect_refused(graph, pattern, "aten::relu(aten::sin(x))", "r: a writes in between to what the match reads");
  // A write to something else is no obstacle.
  Graph other = graph_of("s = aten::sin(%x)\na = aten::add_.Tensor(%y, 1)\nr = aten::relu(%s)\nreturn r", "x y");
  EXPECT_EQ(replace_pattern(other, pattern, "aten::sin(aten::relu(x))").applied, 1u);
}

TEST(Legality, AReplacementSaysWhatToCallAndWhatToTake) {
  for (const char* text : {"{aten::sin, aten::cos}(x)", "/aten::s.*/(x)"})
    EXPECT_THAT(error_of([&] { Replacement{text}; }), HasSubstr("a call needs one operator, not a set of them"))
        << text;
  EXPECT_THAT(error_of([&] { Replacement{"aten::add.Tensor(x, _)"}; }),
              HasSubstr("an input needs the name of something that the pattern binds"));
}

TEST(Legality, AUserInsideTheMatchIsNoReasonToMoveUp) {
  // s is a result and has a user in the match; before that user k, which draws, could not stand.
  const std::string results = "s = aten::sin(%x)\nm = aten::relu(%s)\n";
  Graph graph = graph_of(results + "k = aten::rand_like(%y)\nr = aten::add.Tensor(%m, %k)\nreturn (s, m, r)", "x y");
  const Pattern pattern(graph_of(results + "r = aten::add.Tensor(%m, %k)\nreturn (s, m, r)", "x k"));
  const Replacement replacement(graph_of(results + "r = aten::add.Tensor(%k, %m)\nreturn (s, m, r)", "x k"));
  EXPECT_EQ(replace_pattern(graph, pattern, replacement).applied, 1u);
}

TEST(Legality, AWriteThroughAViewIsSeen) {
  Graph graph =
      graph_of("v = aten::view(%x, [2])\ns = aten::sin(%x)\na = aten::zero_(%v)\nr = aten::relu(%s)\nreturn r");
  expect_refused(graph, "aten::relu(aten::sin(x))", "aten::neg(x)", "r: a writes in between to what the match reads");
}

TEST(Legality, AnUnknownOperatorMayWrite) {
  Graph graph = graph_of("s = aten::sin(%x)\na = my::op(%x)\nr = aten::relu(%s)\nreturn (r, a)");
  expect_refused(graph, "aten::relu(aten::sin(x))", "aten::neg(x)", "r: a writes in between to what the match reads");
}

TEST(Legality, ACopyMayNotBecomeAViewThatIsWrittenLater) {
  Graph graph = graph_of("c = aten::clone(%x)\nz = aten::zero_(%x)\nr = aten::relu(%c)\nreturn r");
  expect_refused(graph, "aten::clone(x)", "x",
                 "c: its replacement would share storage differently, and z writes to it");
  Graph copy = graph_of("n = aten::neg(%x)\nc = aten::clone(%n)\nz = aten::zero_(%c)\nr = aten::relu(%n)\nreturn r");
  expect_refused(copy, "aten::clone(x)", "x", "c: its replacement would share storage differently, and z writes to it");
}

TEST(Legality, AViewMayNotBecomeACopyThatIsWrittenLater) {
  Graph graph =
      graph_of("n = aten::neg(%x)\nv = aten::view(%n, [1])\nz = aten::zero_(%v)\nr = aten::relu(%n)\nreturn r");
  expect_refused(graph, "aten::view(x, s)", "aten::clone(x)",
                 "v: its replacement would share storage differently, and z writes to it");
}

TEST(Legality, AWriteIsKeptOrUnseen) {
  Graph seen = graph_of("a = aten::add_.Tensor(%x, 1)\nr = aten::relu(%a)\nreturn r");
  expect_refused(seen, "aten::add_.Tensor(x, y)", "aten::add.Tensor(x, y)",
                 "a: it writes to x, which the caller can see, and the replacement does not");
  Graph later = graph_of("n = aten::neg(%x)\na = aten::add_.Tensor(%n, 1)\nr = aten::relu(%n)\nreturn (a, r)");
  expect_refused(later, "aten::add_.Tensor(x, y)", "aten::add.Tensor(x, y)",
                 "a: it writes to n, which r reads later, and the replacement does not");
  // The storage is fresh and only the result is used: the write can go.
  Graph fresh = graph_of("n = aten::neg(%x)\na = aten::add_.Tensor(%n, 1)\nreturn a");
  EXPECT_EQ(replace_pattern(fresh, "aten::add_.Tensor(x, y)", "aten::add.Tensor(x, y)").applied, 1u);
  // The replacement writes too.
  Graph kept = graph_of("a = aten::add_.Tensor(%x, 1)\nreturn a");
  EXPECT_EQ(replace_pattern(kept, "aten::add_.Tensor(x, y)", "aten::sub_.Tensor(x, -1)").applied, 1u);
}

TEST(Legality, AWriteDoesNotMoveAcrossAReader) {
  Graph graph = graph_of(
      "n = aten::neg(%x)\nr = aten::relu_(%n)\ns = aten::sin(%n)\na = aten::add.Tensor(%r, %y)\nreturn (a, s)", "x y");
  expect_refused(graph, "aten::add.Tensor(aten::relu_(x), y)", "aten::add.Tensor(aten::copy_(x, aten::relu(x)), y)",
                 "r: it writes what s reads in between");
}

TEST(Legality, TheOrderOfAPatternThatWritesCounts) {
  const Pattern pattern(graph_of("r = aten::relu_(%x)\na = aten::add.Tensor(%x, %y)\nreturn (r, a)", "x y"));
  const Replacement replacement(graph_of("r = aten::relu_(%x)\na = aten::add.Tensor(%y, %x)\nreturn (r, a)", "x y"));
  Graph same = graph_of("n = aten::neg(%x)\nr = aten::relu_(%n)\na = aten::add.Tensor(%n, %y)\nreturn (r, a)", "x y");
  EXPECT_EQ(replace_pattern(same, pattern, replacement).applied, 1u);
  Graph other = graph_of("n = aten::neg(%x)\na = aten::add.Tensor(%n, %y)\nr = aten::relu_(%n)\nreturn (r, a)", "x y");
  expect_refused(other, pattern, replacement,
                 "a: it comes before r, in the pattern after it, and the match has effects");
}

TEST(Legality, TheOrderOfDrawsCounts) {
  const std::string draws = "r = aten::rand_like(%x)\nb = aten::bernoulli(%x)\nreturn (r, b)";
  const Pattern pattern(graph_of(draws));
  const Replacement replacement(graph_of(draws));
  Graph same = graph_of(draws);
  EXPECT_EQ(replace_pattern(same, pattern, replacement).applied, 1u);
  Graph other = graph_of("b = aten::bernoulli(%x)\nr = aten::rand_like(%x)\nreturn (r, b)");
  expect_refused(other, pattern, replacement,
                 "b: it comes before r, in the pattern after it, and the match has effects");
}

TEST(Legality, DrawsAreForElementsInTheOrderOfMemory) {
  // The elements of a sine lie as those of x, the others one after the other.
  Graph graph = graph_of("s = aten::sin(%x)\nr = aten::rand_like(%s)\nreturn r");
  expect_refused(graph, "aten::sin(x)", "aten::softmax.int(x, 0)",
                 "s: its replacement may lie in memory differently, and r depends on that");
  expect_refused(graph, "aten::sin(x)", "aten::linear(x, x)",
                 "s: its replacement may lie in memory differently, and r depends on that");
  Graph view = graph_of("s = aten::sin(%x)\nr = aten::view(%s, [-1])\nreturn r");
  EXPECT_EQ(replace_pattern(view, "aten::sin(x)", "aten::softmax.int(x, 0)").applied, 1u);
}

TEST(Legality, ConvolutionsAndNormsFollowTheMemoryFormatOfWhatTheyTake) {
  for (const char* between : {"s = aten::sin(%c)", "s = aten::group_norm(%c, 1)", "s = aten::cat([%c, %c])"}) {
    Graph graph = graph_of("c = aten::conv2d(%x, %x)\n" + std::string(between) + "\nr = aten::rand_like(%s)\nreturn r");
    expect_refused(graph, "aten::conv2d(x, w)", "aten::contiguous(aten::conv2d(x, w))",
                   "c: its replacement may lie in memory differently, and r depends on that");
    EXPECT_EQ(replace_pattern(graph, "aten::conv2d(x, w)", "aten::max_pool2d(x, 3)").applied, 1u);
  }
  Graph settled = graph_of("c = aten::conv2d(%x, %x)\ns = aten::softmax.int(%c, 0)\nr = aten::rand_like(%s)\nreturn r");
  EXPECT_EQ(replace_pattern(settled, "aten::conv2d(x, w)", "aten::contiguous(aten::conv2d(x, w))").applied, 1u);
  Graph formatted = graph_of("c = aten::contiguous(%x)\nr = aten::rand_like(%c)\nreturn r");
  expect_refused(formatted, "aten::contiguous(x)", "aten::contiguous(x, memory_format=2)",
                 "c: its replacement may lie in memory differently, and r depends on that");
}

TEST(Legality, AReshapeMayLieAsWhatItTakes) {
  Graph graph = graph_of("g = aten::group_norm(%x, 2)\nv = aten::view(%g, [4])\nn = aten::neg(%v)\nreturn n");
  expect_refused(graph, "aten::group_norm(x, n: int)", "aten::reshape(aten::neg(x), [2, 2])",
                 "g: its replacement may lie in memory differently, and v depends on that");
}

TEST(Legality, WhetherTheOneReaderCopiesShowsToNobody) {
  const auto graph = [](const std::string& rest) { return graph_of("c = aten::conv2d(%x, %x)\n" + rest); };
  for (const char* private_to_one :
       {"r = aten::reshape(%c, [4])\nreturn r",
        "d = aten::detach(%c)\nr = aten::reshape(%d, [4])\na = aten::add_(%r, 1)\nreturn a"}) {
    Graph one = graph(private_to_one);
    EXPECT_EQ(replace_pattern(one, "aten::conv2d(x, w)", "aten::contiguous(aten::conv2d(x, w))").applied, 1u)
        << private_to_one;
  }
  for (const char* shared : {"r = aten::reshape(%c, [4])\nreturn (r, c)",
                             "r = aten::reshape(%c, [4])\na = aten::add_(%r, 1)\ns = aten::sin(%c)\nreturn (a, s)"}) {
    Graph two = graph(shared);
    expect_refused(two, "aten::conv2d(x, w)", "aten::contiguous(aten::conv2d(x, w))",
                   "c: its replacement may lie in memory differently, and r depends on that");
  }
}

TEST(Legality, OneDrawIsNotTwo) {
  const std::string draws = "r = aten::rand_like(%x)\ns = aten::rand_like(%x)\nreturn (r, s)";
  Graph graph = graph_of("r = aten::rand_like(%x)\nreturn r");
  expect_refused(graph, Pattern(graph_of(draws)), Replacement(graph_of(draws)),
                 "r: it has effects once, and two calls of the pattern stand for it");
}

TEST(Legality, ANewWriteMustBeUnseen) {
  Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  expect_refused(graph, "aten::relu(x)", "aten::relu_(x)",
                 "r: the replacement's relu_ writes to x, which the caller can see");
  Graph inner = graph_of("n = aten::neg(%x)\nr = aten::relu(%n)\nreturn r");
  EXPECT_EQ(replace_pattern(inner, "aten::relu(x)", "aten::relu_(x)").applied, 1u);
  Graph read = graph_of("n = aten::neg(%x)\nr = aten::relu(%n)\ns = aten::sin(%n)\nreturn (r, s)");
  expect_refused(read, "aten::relu(x)", "aten::relu_(x)",
                 "r: the replacement's relu_ writes to n, which s reads later");
}

TEST(Legality, EffectsMatchedByAnExpressionAreNotTouched) {
  Graph graph = graph_of("n = aten::neg(%x)\na = aten::relu_(%n)\nreturn a");
  expect_refused(graph, "/aten::relu.*/(x)", "aten::sin(x)",
                 "a: it has effects, and the pattern does not name its operator");
}

TEST(Legality, RandomOrderIsKept) {
  Graph graph = graph_of(
      "a = aten::rand_like(%x)\nb = aten::rand_like(%x)\nc = aten::add.Tensor(%a, %b)\nr = aten::relu(%a)\nreturn (c, "
      "r)");
  const Graph pair = graph_of("a = aten::rand_like(%x)\nr = aten::relu(%a)\nreturn (r, a)");
  expect_refused(graph, pair, pair, "r: the order of random numbers would change: b draws some in between");
}

TEST(Legality, CopiesAreDenseWhereThatIsAskedFor) {
  Graph graph = graph_of(
      "c = aten::clone(%x)\nd = aten::contiguous(%c, memory_format=torch.preserve_format)\nn = aten::neg(%d)\n"
      "return n");
  expect_refused(graph, "aten::clone(v)", "v",
                 "c: its replacement may lie in memory differently, and d depends on that");
}

TEST(Legality, ReshapesMayNotStopCopyingWhereTheOrderInMemoryShows) {
  Graph graph = graph_of(
      "t = aten::t(%x)\na = aten::reshape(%t, [-1])\nb = aten::reshape(%a, [2, -1])\n"
      "r = aten::bernoulli(%b)\nreturn r");
  expect_refused(graph, "aten::reshape(aten::reshape(v, [-1]), s)", "aten::reshape(v, s)",
                 "b: its replacement may lie in memory differently, and r depends on that");
}

TEST(Legality, ReturnedValuesDoNotBecomeInputs) {
  Graph graph = graph_of("c = aten::clone(%x)\nreturn c");
  expect_refused(graph, "aten::clone(x)", "x",
                 "c: it is returned, and its replacement would share storage with x, an input; "
                 "ReplaceOptions::allow_output_aliases (--allow-output-aliases) permits it");
  EXPECT_EQ(replace_pattern(graph, "aten::clone(x)", "x", {.allow_output_aliases = true}).applied, 1u);
  EXPECT_EQ(calls_of(graph), "return x\n");
  Graph twice = graph_of("n = aten::neg(%x)\nc = aten::clone(%n)\nreturn (n, c)");
  expect_refused(twice, "aten::clone(x)", "x",
                 "c: it is returned, and its replacement would share storage with n, returned too; "
                 "ReplaceOptions::allow_output_aliases (--allow-output-aliases) permits it");
}

TEST(Legality, WhatIsWrittenThroughDetachKeepsIt) {
  for (const char* through : {"d", "v"}) {
    Graph graph = graph_of("d = aten::detach(%x)\nv = aten::view(%d, [-1])\nw = aten::zero_(%" + std::string(through) +
                           ")\nreturn %x");
    expect_refused(graph, "aten::detach(x)", "x", "d: w writes to it, which autograd allows where it is detached");
  }
  Graph read = graph_of("d = aten::detach(%x)\nw = aten::zero_(%x)\nn = aten::neg(%d)\nreturn n");
  EXPECT_EQ(replace_pattern(read, "aten::detach(x)", "x").applied, 1u);
  Graph other = graph_of("d = aten::detach(%x)\nn = aten::neg(%d)\nw = aten::add_.Tensor(%n, %d)\nreturn w");
  EXPECT_EQ(replace_pattern(other, "aten::detach(x)", "x").applied, 1u);
}

TEST(Legality, WhatMayBeWrittenThroughDetachKeepsIt) {
  std::string body = "d = aten::detach(%x)\n";
  for (int i = 0; i < 70; ++i) body += "v" + std::to_string(i) + " = aten::view(%d, [-1])\n";
  Graph graph = graph_of(body + "w = aten::zero_(%x)\nreturn (d, v1)");
  expect_refused(graph, "aten::detach(x)", "x", "d: too many values may be it, or a view of it, to look at");
}

// ── Place ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Legality, AnInputIsMovedUpForTheReplacement) {
  // torch.fx inserts before `u`, the first user, and reads `m` before its definition.
  Graph graph = graph_of(
      "a = aten::neg(%x)\nu = aten::sin(%a)\nm = aten::mul.Tensor(%x, %x)\nb = aten::add.Tensor(%a, %m)\nreturn (u, "
      "b)");
  const auto before = run_scalars(graph);
  const Pattern pattern(graph_of("a = aten::neg(%x)\nb = aten::add.Tensor(%a, %y)\nreturn (a, b)", "x y"));
  const Replacement replacement(
      graph_of("b = aten::add.Tensor(%y, %x)\nc = aten::neg(%x)\nd = aten::add.Tensor(%c, %y)\nreturn (c, d)", "x y"));
  EXPECT_EQ(replace_pattern(graph, pattern, replacement).applied, 1u);
  graph.lint();
  EXPECT_EQ(run_scalars(graph), before);
  EXPECT_THAT(calls_of(graph), HasSubstr("m = aten::mul.Tensor(x, x)\nb_1 = aten::add.Tensor(m, x)"));
}

TEST(Legality, AnInputIsMovedUpOnceHoweverManyWaysLeadToIt) {
  std::string body = "a = aten::neg(%x)\nu = aten::sin(%a)\nm0 = aten::exp(%x)\n";
  for (int i = 1; i <= 20; ++i) {
    const std::string now = std::to_string(i), before = std::to_string(i - 1);
    body += "n" + now + " = aten::abs(%m" + before + ")\nm" + now + " = aten::mul.Tensor(%n" + now + ", %m" + before +
            ")\n";
  }
  Graph graph = graph_of(body + "b = aten::add.Tensor(%a, %m20)\nreturn (u, b)");
  const Graph pattern = graph_of("a = aten::neg(%x)\nb = aten::add.Tensor(%a, %y)\nreturn (a, b)", "x y");
  const Replacement replacement(graph_of("c = aten::add.Tensor(%x, %y)\nd = aten::neg(%x)\nreturn (d, c)", "x y"));
  EXPECT_EQ(replace_pattern(graph, pattern, replacement).applied, 1u);
  graph.lint();
}

TEST(Legality, AnInputThatNeedsTheMatchCannotBeMoved) {
  Graph graph = graph_of("a = aten::neg(%x)\nu = aten::sin(%a)\nb = aten::add.Tensor(%x, %u)\nreturn (u, b)");
  const Graph pattern = graph_of("a = aten::neg(%x)\nb = aten::add.Tensor(%x, %y)\nreturn (a, b)", "x y");
  const std::string report = report_of(replace_pattern(graph, pattern, pattern));
  EXPECT_THAT(report, HasSubstr("refused 1 (a: "));
  EXPECT_THAT(report, ::testing::AnyOf(HasSubstr("comes back into the match, through u to b"), HasSubstr("takes u")));
}

TEST(Legality, AnInputIsNotMovedAcrossAWrite) {
  Graph graph = graph_of(
      "a = aten::neg(%x)\nu = aten::sin(%a)\nz = aten::add_.Tensor(%w, 1)\nm = aten::mul.Tensor(%w, %w)\nb = "
      "aten::add.Tensor(%a, %m)\nreturn (u, b)",
      "x w");
  const Graph pattern = graph_of("a = aten::neg(%x)\nb = aten::add.Tensor(%a, %y)\nreturn (a, b)", "x y");
  expect_refused(graph, pattern, pattern,
                 "a: no place for the replacement: it takes m, which is computed after u uses a result, and z writes "
                 "between them what m reads");
}

TEST(Legality, APathOutOfTheMatchAndBack) {
  // Without its overlap filter torch.fx returns such matches.
  Graph graph = graph_of("a = aten::neg(%x)\no = aten::sin(%a)\nb = aten::add.Tensor(%a, %o)\nreturn b");
  expect_refused(graph, graph_of("a = aten::neg(%x)\nb = aten::add.Tensor(%a, %y)\nreturn (a, b)", "x y"),
                 graph_of("a = aten::neg(%x)\nb = aten::add.Tensor(%a, %y)\nreturn (a, b)", "x y"),
                 "a: its value comes back into the match, through o to b");
}

// ── Transactions ─────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Transaction, AnExceptionUndoesEverything) {
  Graph graph = testing::chain(50);
  const std::string before = print_graph(graph);
  int calls = 0;
  const auto fail = [&](const Match& match, Rewriter& rewriter) -> Node& {
    Node& made = rewriter.call_function("aten::sub.Tensor", {match["x"], match["y"]});
    if (++calls == 30) throw std::runtime_error("no more");
    return made;
  };
  EXPECT_THROW(replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y))", fail), std::runtime_error);
  EXPECT_EQ(calls, 30);
  EXPECT_EQ(print_graph(graph), before);
  graph.lint();
}

TEST(Transaction, AWrongNumberOfResultsUndoesEverything) {
  Graph graph = testing::chain(3);
  const std::string before = print_graph(graph);
  const auto two = [](const Match& match, Rewriter& r) {
    return std::vector<Argument>{r.call_function("aten::neg", {match["x"]}),
                                 r.call_function("aten::neg", {match["x"]})};
  };
  EXPECT_THAT(error_of([&] { replace_pattern(graph, "aten::relu(x)", two, {.name = "two"}); }),
              HasSubstr("the pattern of two returns 1 values, its replacement function 2"));
  EXPECT_EQ(print_graph(graph), before);
}

TEST(Transaction, AFunctionThatTakesWhatComesLaterIsRefused) {
  Graph graph = graph_of("r = aten::relu(%x)\nm = aten::mul.Tensor(%x, %x)\na = aten::add.Tensor(%r, %m)\nreturn a");
  const auto late = [](const Match& match, Rewriter& r) {
    return Argument(r.call_function("aten::add.Tensor", {match["x"], *r.graph().find("m")}));
  };
  expect_refused(graph, "aten::relu(x)", late, "r: no place for the replacement: its add takes m, which comes later");
}

TEST(Transaction, ADryRunChangesNothing) {
  Graph graph = testing::chain(10);
  const std::string before = print_graph(graph);
  EXPECT_EQ(
      replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y))", "aten::mul.Tensor(x, y)", {.dry_run = true}).applied,
      10u);
  EXPECT_EQ(print_graph(graph), before);
}

TEST(Transaction, ARewriterUndoesSeveralRewrites) {
  Graph graph = testing::chain(20);
  const std::string before = print_graph(graph);
  Rewriter rewriter(graph);
  EXPECT_EQ(replace_pattern(rewriter, "aten::relu(aten::add.Tensor(x, y))", "aten::sub.Tensor(x, y)").applied, 20u);
  const Rewriter::Mark middle = rewriter.mark();
  const std::string between = print_graph(graph);
  EXPECT_EQ(
      replace_pattern(rewriter, "aten::mul.Tensor(aten::sub.Tensor(x, y), y)", "x", {.allow_output_aliases = true})
          .applied,
      20u);
  EXPECT_TRUE(rewriter.changed(middle));
  rewriter.rollback(middle);
  EXPECT_EQ(print_graph(graph), between);
  rewriter.rollback();
  EXPECT_FALSE(rewriter.changed());
  EXPECT_EQ(print_graph(graph), before);
  graph.lint();
}

TEST(Legality, AResultThatIsReturnedTwiceIsOneExit) {
  Graph graph = graph_of("a = aten::exp(%x)\nb = aten::add_.Tensor(%a, 1)\nc = aten::sin(%b)\nreturn c");
  const Graph pattern = graph_of("a = aten::exp(%x)\nb = aten::add_.Tensor(%a, 1)\nreturn (b, b)");
  const Graph made = graph_of("a = aten::exp(%x)\nb = aten::add.Tensor(%a, 1)\nreturn (b, b)");
  EXPECT_EQ(replace_pattern(graph, pattern, made).applied, 1u);
}

}  // namespace fx::legality_test
