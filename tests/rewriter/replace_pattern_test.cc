// replace_pattern beyond torch.fx's own cases, which are in subgraph_rewriter_test.cc.
#include <fxgraph/rewriter/replace_pattern.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/provenance.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "tests/support/error_of.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_pattern.h"
#include "tests/support/scalar_interpreter.h"
#include "tests/support/short_graph.h"
#include "tests/support/workloads.h"

namespace fx::replace_pattern_test {

using testing::calls_of;
using testing::error_of;
using testing::graph_of;
using ::testing::HasSubstr;
using testing::run_scalars;

TEST(ReplacePattern, UnusedResultsStayWhereTheyWere) {
  // The dead call is replaced in its place: before the write that follows it.
  Graph graph = graph_of("r = aten::relu(%x)\nz = aten::zero_(%x)\ns = aten::sin(%x)\nreturn s");
  const auto before = run_scalars(graph, {2});
  EXPECT_EQ(replace_pattern(graph, "aten::relu(x)", "aten::sigmoid(x)").applied, 1u);
  EXPECT_EQ(calls_of(graph), "sigmoid = aten::sigmoid(x)\nz = aten::zero_(x)\ns = aten::sin(x)\nreturn s\n");
  EXPECT_EQ(run_scalars(graph, {2}), before);
}

TEST(ReplacePattern, Methods) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(graph.call_method("relu", {x}));
  EXPECT_EQ(replace_pattern(graph, "call_method[relu](x)", "call_method[clamp](x, 0)").applied, 1u);
  EXPECT_EQ(calls_of(graph), "clamp = clamp(x, 0)\nreturn clamp\n");
}

TEST(ReplacePattern, KeywordPositionalAndDefaultAreOneCall) {
  for (const char* args : {"(%x, %y), kwargs = {}", "(%x,), kwargs = {other: %y}", "(%x, %y), kwargs = {alpha: 1}",
                           "(), kwargs = {other: %y, self: %x}"}) {
    Graph graph =
        parse_graph(std::string("graph():\n    %x : = placeholder[target=x]\n    %y : = placeholder[target=y]\n"
                                "    %a : = call_function[target=torch.ops.aten.add.Tensor](args = ") +
                    args + ")\n    return a\n");
    EXPECT_EQ(replace_pattern(graph, "aten::add.Tensor(x, y)", "aten::sub.Tensor(x, y)").applied, 1u) << args;
    EXPECT_EQ(calls_of(graph), "sub = aten::sub.Tensor(x, y)\nreturn sub\n");
  }
  Graph scaled = parse_graph(
      "graph():\n    %x : = placeholder[target=x]\n    %a : = call_function[target=torch.ops.aten.add.Tensor](args = "
      "(%x, %x), kwargs = {alpha: 2})\n    return a\n");
  EXPECT_EQ(replace_pattern(scaled, "aten::add.Tensor(x, y)", "aten::sub.Tensor(x, y)").applied, 0u);
}

TEST(ReplacePattern, AttributesMatchByKind) {
  Graph graph = graph_of("w = get_attr[target=layer.weight]()\nl = aten::linear(%x, %w)\nreturn l");
  EXPECT_EQ(replace_pattern(graph, graph_of("p = get_attr[target=other]()\nl = aten::linear(%x, %p)\nreturn l"),
                            graph_of("q = get_attr[target=fused]()\nl = aten::matmul(%x, %q)\nreturn l"))
                .applied,
            1u);
  EXPECT_EQ(calls_of(graph), "q = fused()\nl_1 = aten::matmul(x, q)\nreturn l_1\n");
}

TEST(ReplacePattern, AFunctionBuildsTheReplacement) {
  Graph graph = graph_of("a = aten::add.Tensor(%x, 3)\nb = aten::add.Tensor(%a, -1)\nreturn b");
  const auto build = [](const Match& match, Rewriter& rewriter) -> std::vector<Argument> {
    if (match.literal("c") < 0) return {};
    return {rewriter.call_function("aten::mul.Scalar", {match["x"], match.literal("c") * 2})};
  };
  const RewriteReport report = replace_pattern(graph, "aten::add.Tensor(x, c: literal)", build);
  EXPECT_EQ(report.applied, 1u);
  EXPECT_EQ(report.rules[0].filtered, 1u);
  EXPECT_EQ(calls_of(graph), "mul = aten::mul.Scalar(x, 6.0)\nb = aten::add.Tensor(mul, -1)\nreturn b\n");
}

TEST(ReplacePattern, AFunctionIsToldWhatWasSeenThrough) {
  Graph graph = graph_of(
      "n = aten::neg(%x)\nc = aten::clone(%n)\nr = aten::relu(%c)\n"
      "m = aten::neg(%r)\nd = aten::clone(%m)\ns = aten::relu(%d)\nreturn s");
  std::vector<std::string> seen;
  const auto build = [&](const Match& match, Rewriter& rewriter) -> std::vector<Argument> {
    for (const Node* node : match.skipped()) seen.push_back(node->name());
    return {rewriter.call_function("aten::clamp_max", {match["x"], 0})};
  };
  EXPECT_EQ(replace_pattern(graph, Pattern("aten::relu(aten::neg(x))").seeing_through(), build).applied, 2u);
  EXPECT_EQ(seen, (std::vector<std::string>{"c", "d"}));
}

TEST(ReplacePattern, LiteralsAreCapturedAndUsed) {
  Graph graph = graph_of("d = aten::div.Tensor(%x, 4.0)\nreturn d");
  const auto reciprocal = [](const Match& m, Rewriter& r) {
    return Argument(r.call_function("aten::mul.Tensor", {m["x"], 1 / m.literal("c")}));
  };
  EXPECT_EQ(replace_pattern(graph, "aten::div.Tensor(x, c: float)", reciprocal).applied, 1u);
  EXPECT_EQ(calls_of(graph), "mul = aten::mul.Tensor(x, 0.25)\nreturn mul\n");
  EXPECT_EQ(replace_pattern(graph, "aten::mul.Tensor(x, c: float)", "aten::clamp(x, c, max=c)").applied, 1u);
  EXPECT_EQ(calls_of(graph), "clamp = aten::clamp(x, 0.25, max=0.25)\nreturn clamp\n");
}

TEST(ReplacePattern, AResultMayBecomeALiteral) {
  Graph graph = graph_of("r = aten::relu(%x)\na = aten::add.Tensor(%x, %r)\nreturn a");
  EXPECT_EQ(replace_pattern(graph, "aten::relu(x)", "0").applied, 1u);
  EXPECT_EQ(calls_of(graph), "a = aten::add.Tensor(x, 0)\nreturn a\n");
}

TEST(ReplacePattern, NewNodesKnowWhereTheyComeFrom) {
  Graph graph = graph_of("a = aten::add.Tensor(%x, %x)\nr = aten::relu(%a)\nreturn r");
  graph.find("r")->meta().set(meta_key::kType, std::string("torch.Tensor"));
  graph.find("r")->meta().set(meta_key::kModuleStack, std::string("layer1"));
  replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y))", "aten::neg(aten::sub.Tensor(x, y))", {.name = "demo"});
  const Meta* last = graph.find("neg")->find_meta();
  ASSERT_TRUE(last);
  EXPECT_EQ(provenance_of(*graph.find("neg")), "demo: a, r");
  EXPECT_EQ(*last->get<std::string>(meta_key::kType), "torch.Tensor");
  EXPECT_EQ(*last->get<std::string>(meta_key::kModuleStack), "layer1");
  const Meta* inner = graph.find("sub")->find_meta();
  EXPECT_EQ(provenance_of(*graph.find("sub")), "demo: a, r");
  EXPECT_EQ(inner->get<Provenance>(meta_key::kProvenance)->sources().size(), 2u);
  EXPECT_EQ(inner->get<std::string>(meta_key::kType), nullptr);
}

TEST(ReplacePattern, NotesOutliveTheGraph) {
  std::vector<Provenance> notes;
  std::vector<std::string> texts;
  {
    Graph graph = testing::chain(500);
    replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y))", "aten::relu6(aten::sub.Tensor(x, y))",
                    {.name = "demo"});
    for (const Node& node : graph.nodes()) {
      if (node.target() != "aten::sub.Tensor" && node.target() != "aten::relu6") continue;
      notes.push_back(*node.find_meta()->get<Provenance>(meta_key::kProvenance));
      texts.push_back(provenance_of(node));
    }
  }
  ASSERT_EQ(notes.size(), 1000u);
  EXPECT_EQ(texts[0], "demo: add, relu");
  EXPECT_EQ(texts[999], "demo: add_499, relu_499");
  for (std::size_t i = 0; i < notes.size(); ++i) EXPECT_EQ(notes[i].str(), texts[i]);
  notes[0] = notes[999];
  EXPECT_EQ(notes[0].str(), texts[999]);
}

TEST(ReplacePattern, NotesOfAFunctionsNodesStay) {
  Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
  for (const Symbol key : {meta_key::kStackTrace, meta_key::kModuleStack})
    graph.find("r")->meta().set(key, std::string("old"));
  replace_pattern(graph, "aten::relu(x)", [](const Match& match, Rewriter& rewriter) {
    Node& made = rewriter.call_function("aten::neg", {match["x"]});
    made.meta().set(meta_key::kModuleStack, std::string("new"));
    return Argument(made);
  });
  EXPECT_EQ(*graph.find("neg")->find_meta()->get<std::string>(meta_key::kModuleStack), "new");
  EXPECT_EQ(*graph.find("neg")->find_meta()->get<std::string>(meta_key::kStackTrace), "old");
}

TEST(ReplacePattern, FiltersSeeWhatTheMatchesHold) {
  std::size_t seen = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    testing::RandomGraphOptions shape;
    shape.nodes = 4 + seed % 12;
    shape.vocabulary = &testing::copying_vocabulary();
    const Graph graph = testing::random_graph(seed, shape);
    const Pattern made = testing::random_pattern(seed, {.several_results = false, .constructs = true});
    const Pattern pattern = seed % 2 ? made.seeing_through() : made;
    const auto say = [](const Match& match) {
      std::ostringstream text;
      text << match;
      for (const Node* node : match.nodes()) text << " " << *node;
      return text.str();
    };
    std::vector<std::string> wanted, given;
    for (const Match& match : find(graph, pattern)) wanted.push_back(say(match));
    ReplaceOptions options;
    options.filters = {[&](const Match& match) {
      given.push_back(say(match));
      return false;
    }};
    Graph copy = graph.clone();
    replace_pattern(copy, pattern, "0", options);
    ASSERT_EQ(given, wanted) << seed << " " << pattern;
    seen += given.size();
  }
  EXPECT_GT(seen, 500u);
  Graph graph = graph_of("a = aten::cos(%x)\nb = aten::neg(%a)\nreturn b");
  ReplaceOptions options{.allow_output_aliases = true};
  options.filters = {[](const Match& match) { return match.alternative("v") == 1; }};
  EXPECT_EQ(replace_pattern(graph, "aten::neg(v: (aten::sin(x) | aten::cos(x)))", "x", options).applied, 1u);
}

TEST(ReplacePattern, AParameterThatIsOneAlternativeMayBeMissing) {
  for (const char* given : {"w = get_attr[target=w]()", "w = aten::relu(%y)"}) {
    Graph graph = graph_of(std::string(given) + "\na = aten::add.Tensor(%x, %w)\nreturn a", "x y");
    EXPECT_EQ(replace_pattern(graph, "aten::add.Tensor(x, (get_attr | aten::relu(y)))", "aten::neg(x)").applied, 1u);
    EXPECT_EQ(calls_of(graph), "neg = aten::neg(x)\nreturn neg\n");
  }
}

TEST(ReplacePattern, WhatWasThereBeforeKeepsItsOwnNotes) {
  const Pattern pattern(graph_of("a = aten::relu(%x)\nb = aten::sin(%x)\nreturn (a, b)"));
  for (const char* results : {"(x, n)", "(n, x)", "(0, n)", "(n, 0)", "(n, n)"}) {
    Graph graph = graph_of("r = aten::relu(%x)\nq = aten::sin(%x)\ns = aten::add.Tensor(%r, %q)\nreturn s");
    Shapes shapes(graph);
    for (const Node& node : graph.nodes()) shapes[node] = TensorInfo{.sizes = {2, 3}, .strides = {1, 2}};
    for (const char* name : {"r", "q"}) graph.find(name)->meta().set(meta_key::kType, std::string("torch.Tensor"));
    ReplaceOptions options;
    options.shapes = &shapes;
    const Replacement replacement(graph_of("n = aten::neg(%x)\nreturn " + std::string(results)));
    EXPECT_EQ(replace_pattern(graph, pattern, replacement, options).applied, 1u) << results;
    const Node &x = *graph.find("x"), &made = *graph.find("n");
    EXPECT_FALSE(x.find_meta() && x.find_meta()->get<std::string>(meta_key::kType)) << results;
    EXPECT_EQ(shapes[x].tensor()->strides.size(), 2u) << results;
    EXPECT_EQ(*made.find_meta()->get<std::string>(meta_key::kType), "torch.Tensor") << results;
    EXPECT_EQ(shapes[made].tensor()->sizes, (std::vector<std::int64_t>{2, 3})) << results;
    EXPECT_TRUE(shapes[made].tensor()->strides.empty()) << results << ": where it lies may have changed";
  }
}

TEST(ReplacePattern, WhatAnEarlierRewriteMadeFitsWhereAnyValueDoes) {
  // The second sin was found with the first as its input, which is a cos by then.
  struct Case {
    const char* input;
    bool any;
  };
  for (const Case& one : {Case{"v", true}, {"v.uses(1, 1)", false}, {"v.uses(1, *)", false}, {"v.uses(0, 1)", false}}) {
    Graph graph = graph_of("s = aten::sin(%x)\nt = aten::sin(%s)\nreturn t");
    const RewriteReport report = replace_pattern(graph, "aten::sin(" + std::string(one.input) + ")", "aten::cos(v)");
    EXPECT_EQ(report.applied, one.any ? 2u : 1u) << one.input;
    ASSERT_EQ(report.refused.size(), one.any ? 0u : 1u) << one.input;
    for (const auto& refusal : report.refused)
      EXPECT_THAT(refusal.reason, HasSubstr("an earlier rewrite replaced s, of which")) << one.input;
  }
}

TEST(ReplacePattern, WhatAnEarlierRewriteMadeFitsInListsAndAlternatives) {
  for (const auto& [pattern, any] :
       {std::pair("mine.f(v, ...)", true), std::pair("mine.f(v: node, ...)", true),
        std::pair("mine.f(v: f32, ...)", false), std::pair("mine.f(v.is(f32[...]), ...)", false),
        std::pair("mine.f(v.uses(1, 9), ...)", false), std::pair("mine.f((v | aten::neg(w)), ...)", true),
        std::pair("mine.f(_, [_, v])", true), std::pair("mine.f(_, [_, ...t])", true),
        std::pair("mine.f(_, unordered[_, ...t])", true), std::pair("mine.f(_, ...t)", true),
        std::pair("mine.f(!aten::neg(_), ...)", false), std::pair("mine.f(v.uses(1, 9), [_, w.uses(1, 9)])", false)}) {
    Graph graph = graph_of("s = aten::sin(%x)\nu = aten::sin(%x)\nf = mine.f(%s, [%x, %u])\nreturn f");
    Shapes shapes(graph);
    for (const Node& node : graph.nodes()) shapes[node] = TensorInfo{.sizes = {2}};
    DriverOptions options;
    options.shapes = &shapes;
    const RuleSet rules = {{.name = "first", .pattern = "aten::sin(x)", .replacement = "aten::cos(x)"},
                           {.name = "second", .pattern = Pattern(pattern), .replacement = "0"}};
    const RewriteReport report = rewrite_once(graph, rules, options);
    EXPECT_EQ(report.applied, any ? 3u : 2u) << pattern << " " << report;
    ASSERT_EQ(report.refused.size(), any ? 0u : 1u) << pattern;
    for (const auto& refusal : report.refused)
      EXPECT_THAT(refusal.reason, HasSubstr("an earlier rewrite replaced s, of which")) << pattern;
  }
}

TEST(ReplacePattern, AWriteBeforeTheMatchIsNoObstacle) {
  for (const char* write : {"aten::add_.Tensor(%x, 1)", "aten::relu_(%x)"}) {
    Graph graph = graph_of("z = " + std::string(write) + "\nc = aten::clone(%x)\ns = aten::sin(%c)\nreturn s");
    EXPECT_EQ(replace_pattern(graph, "aten::clone(x)", "x").applied, 1u) << write;
  }
}

TEST(ReplacePattern, GraphsAreBoundByPosition) {
  const Graph one = graph_of("r = aten::relu(%x)\nreturn r"),
              two = graph_of("r = aten::add.Tensor(%x, %y)\nreturn r", "x y");
  Graph graph = one.clone();
  try {
    replace_pattern(graph, one, two);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the pattern takes 1 inputs, the replacement 2"));
  }
  EXPECT_EQ(calls_of(graph), calls_of(one));
}

TEST(ReplacePattern, ReportsAreSummedByRule) {
  const auto part = [](RewriteStop stop, std::vector<RuleReport> rules) {
    RewriteReport report;
    report.stop = stop;
    report.rules = std::move(rules);
    for (const RuleReport& rule : report.rules) report.applied += rule.applied;
    return report;
  };
  RewriteReport sum =
      part(RewriteStop::complete, {{.rule = "a", .tried = 4, .matched = 3, .refused = 1, .applied = 2}});
  sum.add(part(RewriteStop::fixed_point,
               {{.rule = "b", .tried = 1}, {.rule = "a", .tried = 5, .filtered = 2, .applied = 3}}));
  ASSERT_EQ(sum.rules.size(), 2u);
  EXPECT_EQ(sum.rules[0].rule, "a");
  EXPECT_EQ(sum.rules[0].tried, 9u);
  EXPECT_EQ(sum.rules[0].matched, 3u);
  EXPECT_EQ(sum.rules[0].refused, 1u);
  EXPECT_EQ(sum.rules[0].filtered, 2u);
  EXPECT_EQ(sum.rules[0].applied, 5u);
  EXPECT_EQ(sum.rules[1].tried, 1u);
  EXPECT_EQ(sum.applied, 5u);
  RewriteReport refused;
  refused.refused.push_back({.rule = "a", .node = "n", .reason = "it is"});
  sum.add(refused);
  sum.add(refused);
  EXPECT_EQ(sum.refused.size(), 2u);
  // A limit that was met stays said.
  constexpr RewriteStop kAll[] = {RewriteStop::complete, RewriteStop::fixed_point, RewriteStop::max_rewrites,
                                  RewriteStop::max_time, RewriteStop::search_budget};
  for (const RewriteStop first : kAll) {
    for (const RewriteStop second : kAll) {
      RewriteReport both = part(first, {});
      both.add(part(second, {}));
      EXPECT_EQ(both.stop, second >= RewriteStop::max_rewrites || first < RewriteStop::max_rewrites ? second : first);
    }
  }
}

// Parameters go with the match when nothing else uses them, however often the pattern names one.
TEST(ReplacePattern, ParametersThatNothingUsesAnyMoreGo) {
  for (const char* pattern :
       {"aten::add.Tensor(get_attr, get_attr)", "aten::add.Tensor(v: get_attr, v)",
        "aten::add.Tensor(v: get_attr, w: get_attr)", "aten::add.Tensor(a: get_attr[w], get_attr)",
        "aten::add.Tensor(get_attr[w], get_attr[w])"}) {
    for (const char* made : {"%v, %v", "%v, %w", "%w, %v", "%v, %u", "%u, %v"}) {
      for (const char* result : {"a", "(a, v)", "(a, w)", "(a, u)", "(v, a, u, w)"}) {
        Graph graph = graph_of(
            "v = get_attr[target=w]()\nw = get_attr[target=w]()\nu = get_attr[target=other]()\n"
            "a = aten::add.Tensor(" +
                std::string(made) + ")\nreturn " + result,
            "x");
        std::set<std::string> unused;
        for (const Node& node : graph.nodes()) {
          if (!node.has_users()) unused.insert(node.name());
        }
        const std::size_t applied = replace_pattern(graph, pattern, "aten::zeros([2])").applied;
        for (const Node& node : graph.nodes()) {
          if (!node.is(Op::get_attr) || node.has_users()) continue;
          EXPECT_TRUE(applied == 0 || unused.contains(node.name())) << pattern << "\n" << node;
        }
        EXPECT_EQ(graph.find("a") != nullptr, applied == 0);
        EXPECT_TRUE(graph.check().empty());
      }
    }
  }
}

}  // namespace fx::replace_pattern_test
