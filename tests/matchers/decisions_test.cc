// One decision of the matcher each, on the smallest graph where it shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/matchers/explain.h>
#include <fxgraph/matchers/pattern_set.h>
#include "tests/support/error_of.h"
#include "tests/support/short_graph.h"

namespace fx::decisions_test {

using ::testing::ElementsAre;
using testing::error_of;
using testing::graph_of;
using ::testing::HasSubstr;

std::vector<std::string> found(const Graph& graph, std::string_view pattern, const FindOptions& options = {}) {
  std::vector<std::string> texts;
  for (const Match& m : fx::find(graph, Pattern(pattern), options)) texts.push_back((std::ostringstream() << m).str());
  return texts;
}

TEST(Calls, AnOperandBehindTheSwappedOnesKeepsItsPlace) {
  const char* pattern = "commutative(aten::add.Tensor(x, aten::relu(y), alpha=1))";
  for (const char* sum : {"%r, %p", "%p, %r", "%r, %p, alpha=1", "%p, %r, alpha=1"}) {
    const Graph graph = graph_of("r = aten::relu(%q)\ns = aten::add.Tensor(" + std::string(sum) + ")\nreturn s", "p q");
    EXPECT_THAT(found(graph, pattern), ElementsAre("s {x: p, y: q}")) << sum;
  }
}

TEST(Calls, WithoutASchemaKeywordsAreThoseOfThePattern) {
  const Graph graph =
      graph_of("a = mine.f(%x, mode=1)\nb = mine.f(%x, mode=1, more=2)\nc = mine.f(%x)\nreturn (a, b, c)");
  EXPECT_THAT(found(graph, "mine.f(v, mode=1)"), ElementsAre("a {v: x}"));
  EXPECT_THAT(found(graph, "mine.f(v, ...)"), ElementsAre("a {v: x}", "b {v: x}", "c {v: x}"));
}

TEST(Calls, NamedByAnExpressionHaveTheDefaultsOfWhatTheyTurnOutToBe) {
  const Graph graph =
      graph_of("a = aten::add.Tensor(%x, %x, alpha=1)\nb = aten::add.Tensor(%x, %x, alpha=2)\nreturn (a, b)");
  EXPECT_THAT(found(graph, "/aten::add.*/(v, v)"), ElementsAre("a {v: x}"));
}

TEST(Calls, AnEmptyListIsNoOtherLiteral) {
  const Graph graph = graph_of("a = mine.f(%x, 3)\nb = mine.f(%x, [])\nc = mine.f(%x, None)\nreturn (a, b, c)");
  EXPECT_THAT(found(graph, "mine.f(v, lit([]))"), ElementsAre("b {v: x}"));
  EXPECT_THAT(found(graph, "mine.f(v, 3)"), ElementsAre("a {v: x}"));
  EXPECT_THAT(found(graph, "mine.f(v, None)"), ElementsAre("c {v: x}"));
}

TEST(Calls, OperandsOfWhatNobodyKnowsCommuteToo) {
  const Graph graph = graph_of("n = aten::neg(%x)\nf = mine.f(%x, %n, 3)\nreturn f");
  EXPECT_THAT(found(graph, "commutative(mine.f(aten::neg(a), b, 3))"), ElementsAre("f {a: x, b: x}"));
  EXPECT_THAT(found(graph, "commutative(mine.f(aten::neg(a), b, 4))"), ElementsAre());
}

TEST(Calls, OfAnyNumberOfArguments) {
  const Graph graph = graph_of("a = aten::format('{}', %x)\nb = aten::format('{}', %x, %x)\nreturn (a, b)");
  EXPECT_THAT(found(graph, "aten::format(s, v)"), ElementsAre("a {s: '{}', v: x}"));
  EXPECT_THAT(found(graph, "aten::format(s, v, w)"), ElementsAre("b {s: '{}', v: x, w: x}"));
  EXPECT_THAT(found(graph, "aten::format(s, ...)"), ElementsAre("a {s: '{}'}", "b {s: '{}'}"));
  const Graph sublists = graph_of("a = aten::einsum.sublist(%x)\nb = aten::einsum.sublist(%x, [0], %x)\nreturn (a, b)");
  EXPECT_THAT(found(sublists, "aten::einsum.sublist(v)"), ElementsAre("a {v: x}"));
  EXPECT_THAT(found(sublists, "aten::einsum.sublist(v, l, w)"), ElementsAre("b {v: x, l: [0], w: x}"));
  EXPECT_THAT(found(sublists, "aten::einsum.sublist(v, ...)"), ElementsAre("a {v: x}", "b {v: x}"));
}

TEST(Calls, HaveWhatEachConditionAccepts) {
  using namespace match;
  const Graph graph =
      graph_of("w = get_attr[target=w]()\nn = aten::neg(%x)\nf = mine.f(%n, 3, [%x, %n], %w, [%n, %x])\nreturn f");
  const auto count = [&](bool accepted, std::size_t at) {
    std::vector<Expr> args = {op("aten::neg", any("x")), lit_int("i"), list({any("x"), any("n")}), parameter("w"),
                              unordered({any("x"), any("n")})};
    const Expr alternatives[] = {any("v"),
                                 value("v"),
                                 one_of(op("aten::neg"), op("aten::sin"))(any("v")),
                                 not_(op("aten::sin")),
                                 transparent(op("aten::neg", any("x"))),
                                 dominates(any("x"), op("aten::neg"))};
    Expr& changed = at < args.size() ? args[at] : args[0];
    if (at >= args.size()) changed = alternatives[at - args.size()];
    changed = changed.where([=](const Argument&) { return accepted; }, "whatever");
    return fx::find(graph, call(Op::call_function, "mine.f", args)).size();
  };
  for (std::size_t at = 0; at < 11; ++at) {
    EXPECT_EQ(count(true, at), 1u) << at;
    EXPECT_EQ(count(false, at), 0u) << at;
  }
}

TEST(Calls, OneThatLacksAnArgumentFitsNothing) {
  EXPECT_THAT(found(graph_of("t = aten::transpose.int(%x, 0)\nreturn t"), "aten::transpose.int(v, 0)"), ElementsAre());
  EXPECT_THAT(found(graph_of("t = aten::addcmul(%x, %x)\nreturn t"), "commutative(aten::addcmul(u, v, w))"),
              ElementsAre());
}

TEST(Alternatives, OfOneOperatorThatAllFit) {
  const Graph graph = graph_of("s = aten::add.Tensor(%x, 2)\nreturn s");
  const Pattern pattern("(aten::add.Tensor(v, 1) | aten::add.Tensor(v, 2))");
  EXPECT_EQ(fx::find(graph, pattern).size(), 1u);
  EXPECT_TRUE(NodeMatcher(graph, pattern).matches(*graph.find("s")));
}

TEST(Alternatives, OneThatWasLeftReturnsNothing) {
  // sin fits first and then lacks its second user; what it was bound to is no result of the match.
  const Graph graph =
      graph_of("s = aten::sin(%x)\nc = aten::cos(%x)\nr = aten::add.Tensor(%s, %c)\nk = aten::neg(%s)\nreturn (r, k)");
  EXPECT_THAT(found(graph, "aten::add.Tensor((aten::sin(v) | aten::cos(v)), aten::cos(v))"), ElementsAre());
}

TEST(Calls, OneNameIsOneTail) {
  const Graph graph = graph_of(
      "p = mine.f([%x, 1, 2])\nq = mine.f([%p, 1, 2])\nr = mine.f([%x, 2, 1])\na = mine.g(%p, %q)\nb = mine.g(%p, %r)\n"
      "return (a, b)");
  FindOptions options;
  options.contained = false;
  EXPECT_THAT(found(graph, "mine.g(mine.f([v, ...t]), mine.f([w, ...t]))", options),
              ElementsAre("a {v: x, t: [1, 2], w: p}"));
}

TEST(Modules, AreOfTheTypeThatIsKnown) {
  const Graph graph = graph_of("m = call_module[target=m](%x)\nreturn m");
  for (const auto& [type, wanted, fits] :
       {std::tuple("", "/.*/", false), std::tuple("", "Conv2d", false), std::tuple("Conv2d", "/.*/", true),
        std::tuple("Conv2d", "Conv2d", true), std::tuple("nn.Conv2d", "Conv2d", true),
        std::tuple("nn::Conv2d", "Conv2d", true), std::tuple("nn.Conv2d", "nn.Conv2d", true),
        std::tuple("nn.Conv2d", "nn", false), std::tuple("Conv2d", "nn.Conv2d", false)}) {
    FindOptions options;
    options.modules.type = [type = type](std::string_view) { return std::string(type); };
    EXPECT_EQ(found(graph, "call_module<" + std::string(wanted) + ">(v)", options).size(), fits ? 1u : 0u)
        << type << " " << wanted;
  }
}

TEST(Copies, OfAnotherTypeOrDeviceOrOfNobodyKnowsWhatAreNoCopies) {
  const Graph graph =
      graph_of("n = aten::neg(%x)\nt = aten::to.device(%n, 'cpu', torch.float32)\nr = aten::relu(%t)\nreturn r");
  const ValueInfo kinds[] = {ValueInfo(), TensorInfo{.sizes = {2}}, TensorInfo{.dtype = DType::float16, .sizes = {2}},
                             TensorInfo{.sizes = {2}, .device = *parse_device("cuda:0")}};
  for (std::size_t given = 0; given < std::size(kinds); ++given) {
    for (std::size_t made = 0; made < std::size(kinds); ++made) {
      Shapes shapes(graph);
      shapes[*graph.find("n")] = kinds[given];
      shapes[*graph.find("t")] = kinds[made];
      FindOptions options;
      options.shapes = &shapes;
      const bool copies = given == made && given > 0;
      EXPECT_EQ(found(graph, "aten::relu(~aten::neg(v))", options).size(), copies ? 1u : 0u) << given << " " << made;
    }
  }
}

TEST(Copies, DropoutIsOneWhenItSaysSo) {
  for (const char* name : {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"}) {
    for (const auto& [args, copies] : {std::pair("0.5, False", true), std::pair("0.5, True", false),
                                       std::pair("0.5, train=False", true), std::pair("0.5, train=%x", false)}) {
      const std::string call = "aten::" + std::string(name) + "(%n, " + args + ")";
      const Graph graph = graph_of("n = aten::neg(%x)\nd = " + call + "\nr = aten::relu(%d)\nreturn r");
      EXPECT_EQ(found(graph, "aten::relu(~aten::neg(v))").size(), copies ? 1u : 0u) << call;
    }
  }
}

TEST(Names, OneNameIsOneCall) {
  const std::string things[] = {"aten::relu(y)", "aten::relu(x)", "aten::neg(x)", "(aten::relu(x) | aten::neg(x))"};
  for (const std::string& first : things) {
    for (const std::string& second : things) {
      EXPECT_THAT(error_of([&] { Pattern("aten::add.Tensor(a: " + first + ", a: " + second + ")"); }),
                  HasSubstr("the name a stands for two different things"))
          << first << second;
    }
  }
  EXPECT_THAT(error_of([] { Pattern("aten::add(a: int, a: float)"); }), HasSubstr("stands for two different things"));
}

TEST(Copies, AndPathsLeadToNoLiteral) {
  const Graph graph = graph_of("n = aten::neg(%x)\nc = aten::clone(%n)\nr = aten::relu(%c)\nreturn r");
  for (const char* inner : {"3", "int", "literal", "[v]", "[v, ...]", "[v, ...t]", "unordered[v]", "None"}) {
    for (const std::string& pattern :
         {"aten::relu(~" + std::string(inner) + ")", "aten::relu(dominates(" + std::string(inner) + ", #pointwise))"}) {
      EXPECT_THAT(found(graph, pattern), ElementsAre()) << pattern;
      EXPECT_THAT(explain(graph, Pattern(pattern), *graph.find("r")), HasSubstr("wants")) << pattern;
    }
  }
}

TEST(Matches, OfTwoPatternsDiffer) {
  const Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  const Pattern pattern("aten::relu(v)");
  EXPECT_TRUE(fx::find(graph, pattern) == fx::find(graph, pattern));
  EXPECT_FALSE(fx::find(graph, pattern) == fx::find(graph, Pattern("aten::relu(w)")));
}

TEST(Matches, OnlyPathsHaveAPath) {
  const std::vector<Match> all = fx::find(graph_of("r = aten::relu(%x)\nreturn r"), Pattern("r: aten::relu(v)"));
  ASSERT_EQ(all.size(), 1u);
  for (const char* name : {"r", "v"})
    EXPECT_THAT(error_of([&] { all[0].path(name); }), HasSubstr("is no dominates(), it has no path")) << name;
}

TEST(Matches, AreConvexWhereThatIsAskedFor) {
  const Graph graph = graph_of("a = aten::neg(%x)\no = aten::sin(%a)\nb = aten::add.Tensor(%a, %o)\nreturn b");
  const Pattern pattern(graph_of("a = aten::neg(%x)\nb = aten::add.Tensor(%a, %y)\nreturn (a, b)", "x y"));
  for (const bool convex : {true, false}) {
    FindOptions options;
    options.convex = convex;
    EXPECT_EQ(fx::find(graph, pattern, options).size(), convex ? 0u : 1u);
    EXPECT_EQ(NodeMatcher(graph, pattern, options).matches(*graph.find("a")), !convex);
    EXPECT_TRUE(NodeMatcher(graph, "aten::neg(x)", options).matches(*graph.find("a")));
  }
}

TEST(Constants, AreNotWrittenThroughWhatOnlyLooksAtThem) {
  for (const auto& [call, constant] : {std::pair("expand_as(%x, %w)", true), std::pair("expand_as(%w, %x)", false),
                                       std::pair("view_as(%x, %w)", true), std::pair("view_as(%w, %x)", false)}) {
    const Graph graph = graph_of("w = get_attr[target=w]()\ns = aten::sin(%w)\nv = aten::" + std::string(call) +
                                 "\nz = aten::add_.Tensor(%v, 1)\nreturn s");
    EXPECT_EQ(found(graph, "aten::sin(c: constant)").size(), constant ? 1u : 0u) << call;
  }
}

TEST(Literals, EveryWordThatIsOne) {
  const Graph graph = graph_of("a = mine.f(%x, True)\nb = mine.f(%x, False)\nc = mine.f(%x, None)\nreturn (a, b, c)");
  EXPECT_THAT(found(graph, "mine.f(v, True)"), ElementsAre("a {v: x}"));
  EXPECT_THAT(found(graph, "mine.f(v, False)"), ElementsAre("b {v: x}"));
  EXPECT_THAT(found(graph, "mine.f(v, None)"), ElementsAre("c {v: x}"));
}

TEST(Literals, EveryNumberThatIsNone) {
  const Graph graph = graph_of(
      "a = mine.f(%x, inf)\nb = mine.f(%x, -inf)\nc = mine.f(%x, nan)\nd = mine.f(%x, 'inf')\nreturn (a, b, c, d)");
  EXPECT_THAT(found(graph, "mine.f(v, inf)"), ElementsAre("a {v: x}"));
  EXPECT_THAT(found(graph, "mine.f(v, -inf)"), ElementsAre("b {v: x}"));
  EXPECT_THAT(found(graph, "mine.f(v, nan)"), ElementsAre("c {v: x}"));
  const Graph near = graph_of(
      "a = mine.f(%x, inf)\nb = mine.f(%x, -inf)\nc = mine.f(%x, nan)\nd = mine.f(%x, 2.0)\nreturn (a, b, c, d)");
  EXPECT_THAT(found(near, "mine.f(v, near(inf, 0.5))"), ElementsAre("a {v: x}"));
  EXPECT_THAT(found(near, "mine.f(v, near(-inf, 0.5))"), ElementsAre("b {v: x}"));
  EXPECT_THAT(found(near, "mine.f(v, near(2.5, 0.5))"), ElementsAre("d {v: x}"));
}

TEST(Literals, NumbersInEachSpelling) {
  const Graph graph = graph_of("a = mine.f(%x, 150000.0)\nreturn a");
  for (const char* number : {"150000.0", "1.5e5", "1.5E5", "15E4", "1.5e+5", "+150000.", "15.e4"})
    EXPECT_THAT(found(graph, "mine.f(v, " + std::string(number) + ")"), ElementsAre("a {v: x}")) << number;
}

TEST(Names, WhatIsSaidOfAValueHoldsWhereverItIsSaid) {
  const Graph graph = graph_of("a = mine.f(2, 2)\nb = mine.f(%x, %x)\nc = mine.f(-2, -2)\nreturn (a, b, c)");
  for (const char* pattern : {"mine.f(v: any, v.if(> 0))", "mine.f(v.if(> 0.5), v.if(< 3))", "mine.f(v.if(> 0), v)",
                              "mine.f(v.if(> 0), v.if(> 0))"})
    EXPECT_THAT(found(graph, pattern), ElementsAre("a {v: 2}")) << pattern;
  for (const char* pattern : {"mine.f(v: node, v.if(> 0))", "mine.f(v.if(> 0), v: node)"})
    EXPECT_THAT(found(graph, pattern), ElementsAre()) << pattern;
  for (const char* pattern : {"mine.f(v: node, v)", "mine.f(v, v: node)", "mine.f(v: node, v.uses(1, 9))"})
    EXPECT_THAT(found(graph, pattern), ElementsAre("b {v: x}")) << pattern;
}

TEST(Matches, AtOneNodeMayLeaveTheMatch) {
  const Graph graph = graph_of("a = aten::neg(%x)\nb = aten::sin(%a)\nreturn (a, b)");
  for (const bool contained : {false, true}) {
    FindOptions options;
    options.contained = contained;
    EXPECT_EQ(matches(graph, "aten::sin(aten::neg(x))", *graph.find("b"), options), !contained);
  }
}

TEST(Paths, OfANamedOperatorAreRefused) {
  EXPECT_THAT(error_of([] { Pattern("aten::sum(dominates(aten::relu(x), n: aten::neg))"); }),
              HasSubstr("the path of dominates() is an operator without arguments or name"));
}

TEST(Paths, ABudgetThatIsEnoughStaysEnough) {
  std::string body = "a0 = aten::relu(%x)\n";
  for (int i = 1; i < 12; ++i) body += "a" + std::to_string(i) + " = aten::neg(%a" + std::to_string(i - 1) + ")\n";
  const Graph graph = graph_of(body + "r = aten::sum(%a11)\nreturn r");
  const Pattern pattern("aten::sum(dominates(aten::relu(x), #pointwise))");
  std::size_t enough = 0;
  for (std::uint64_t budget = 1; budget < 60; ++budget) {
    FindStats stats;
    FindOptions options;
    options.budget = budget;
    options.stats = &stats;
    const std::size_t matches = fx::find(graph, pattern, options).size();
    const bool whole = stats.stop != SearchStop::budget;
    EXPECT_TRUE(matches == 1 || !whole) << budget;
    EXPECT_TRUE(whole || enough == 0) << budget;
    enough += whole;
  }
  EXPECT_GT(enough, 0u);
  EXPECT_LT(enough, 58u);
}

TEST(Constants, ViewsOfViewsAreLookedAtOnce) {
  // Two views of two views each: 2^40 ways lead from the attribute to the end.
  std::string body = "w = get_attr[target=w]()\na0 = aten::view(%w, [2])\nb0 = aten::view(%w, [2])\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string now = std::to_string(i), before = std::to_string(i - 1);
    body += "t" + now + " = aten::broadcast_tensors([%a" + before + ", %b" + before + "])\n";
    body += "a" + now + " = operator.getitem(%t" + now + ", 0)\nb" + now + " = operator.getitem(%t" + now + ", 1)\n";
  }
  const Graph graph = graph_of(body + "r = aten::relu(%w)\ns = aten::sum(%a40)\nreturn (r, s)");
  EXPECT_THAT(found(graph, "aten::relu(c: constant)"), ElementsAre("r {c: w}"));
}

TEST(Sets, OneOperatorAtTwoPlacesIsTwoQuestions) {
  const Graph graph = graph_of("r = aten::relu(%x)\ns = aten::sub.Tensor(%y, %r)\nreturn s", "x y");
  const PatternSet set({"aten::sub.Tensor(aten::relu(u), v)", "aten::sub.Tensor(v, aten::relu(u))"});
  const std::vector<SetMatch> matches = set.find(graph);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].pattern, 1u);
}

TEST(PatternText, WordsThatAreCallsWhenTheyHaveArguments) {
  EXPECT_EQ(Pattern("aten::relu(get_attr(x))").str(), "return aten::relu(get_attr(x))\n");
  EXPECT_EQ(Pattern("aten::relu(get_attr)").str(), "return aten::relu(get_attr)\n");
}

TEST(PatternText, WhatIsSaidOfAPrefixedPartIsEnclosed) {
  for (const char* part : {"(~aten::neg(x)).is(f32)", "(!aten::neg(x)).used_once", "(~aten::neg(x)).uses(1, 2)"}) {
    const std::string text = "return aten::relu(" + std::string(part) + ")\n";
    EXPECT_EQ(Pattern(text).str(), text);
  }
}

TEST(PatternText, NobodyIsCalledUnderscore) {
  EXPECT_THAT(error_of([] { Pattern("_ = aten::relu(x)\nreturn aten::neg(x)"); }),
              HasSubstr("expected ',' or the end of the line, found '='"));
}

TEST(PatternText, ExpressionsInCodeNestSoDeep) {
  const auto nested = [](int depth) {
    match::Expr value = match::any("x");
    for (int i = 0; i < depth; ++i) value = match::op("aten::relu", value);
    return error_of([&] { Pattern{value}; });
  };
  EXPECT_EQ(nested(500), "no error");
  EXPECT_THAT(nested(501), HasSubstr("an expression nests at most 500 deep; write it as a graph"));
}

TEST(PatternText, UsesAreCountedInWholeNumbers) {
  EXPECT_EQ(Pattern("aten::relu(x.uses(2, *))").str(), "return aten::relu(x.uses(2, *))\n");
  EXPECT_EQ(Pattern("aten::relu(aten::neg(x).uses(2, *))").str(), "return aten::relu(aten::neg(x).uses(2, *))\n");
  for (const char* count : {"1.5", "x", "-1"})
    EXPECT_THAT(error_of([&] { Pattern("aten::relu(x.uses(" + std::string(count) + ", 3))"); }),
                HasSubstr("expected a whole number"))
        << count;
}

TEST(PatternText, ATensorIsDescribedOnce) {
  EXPECT_THAT(error_of([] { Pattern("aten::add.Tensor(x: f32[2], x: f16[2])"); }),
              HasSubstr("the tensor x is described in two ways"));
}

TEST(Explain, WhatACallIsBoundToAlready) {
  const Graph graph = graph_of("p = aten::relu(%x)\nq = aten::relu(%x)\ns = aten::add.Tensor(%p, %q)\nreturn s");
  EXPECT_THAT(explain(graph, "aten::add.Tensor(a: aten::relu(x), a)", *graph.find("s")),
              HasSubstr("wants p (aten::relu) again, as a, found q"));
}

TEST(Explain, WhereNothingWouldDo) {
  const Graph graph = graph_of("p = aten::sin(%x)\ns = aten::add.Tensor(%p, %p)\nf = mine.f(%s)\nreturn f");
  EXPECT_THAT(explain(graph, "mine.f(maybe(aten::add.Tensor(aten::neg(a), aten::cos(b))))", *graph.find("f")),
              HasSubstr("wants nothing, found s"));
}

TEST(Explain, NothingIsSaidOfWhatBelongsToAListThatIsNotThere) {
  const Graph graph = graph_of("p = mine.f([%x, %x])\ns = mine.g(3, %p)\nreturn s");
  const std::string why = explain(graph, "mine.g([y, ...t], mine.f([x, ...t]))", *graph.find("s"));
  EXPECT_THAT(why, HasSubstr("wants a list of at least 1, found 3"));
  EXPECT_THAT(why, ::testing::Not(HasSubstr("again"))) << why;
}

TEST(Explain, ADeviceIsNotAllThatIsWrong) {
  const Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  Shapes shapes(graph);
  shapes[*graph.find("x")] = TensorInfo{.sizes = {2, 3}, .device = *parse_device("cpu")};
  const std::string why = explain(graph, "aten::relu(x: f32[2, 4] on cuda)", *graph.find("r"), {.shapes = &shapes});
  EXPECT_THAT(why, HasSubstr("on cpu"));
  EXPECT_THAT(why, HasSubstr("wants 4, found 3"));
}

TEST(PatternText, ABracketInAStringClosesNothing) {
  for (const char* quoted : {"'a)b'", "\"a)b\"", "'a(b'", "'a]b'"}) {
    const std::string text = "aten::f(x, lit(" + std::string(quoted) + "))";
    EXPECT_EQ(Pattern(text).str(), Pattern(Pattern(text).str()).str());
    EXPECT_THAT(Pattern(text).str(), HasSubstr(std::string(quoted).substr(1, 3)));
  }
}

}  // namespace fx::decisions_test
