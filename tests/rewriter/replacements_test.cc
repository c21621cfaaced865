// What stands for a match: what functions may return, how inputs are bound, results that are no calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/ops/schema.h>
#include <fxgraph/rewriter/replace_pattern.h>
#include <fxgraph/text/print.h>
#include "tests/support/error_of.h"
#include "tests/support/short_graph.h"

namespace fx::replacements_test {

using testing::calls_of;
using testing::error_of;
using testing::graph_of;
using ::testing::HasSubstr;

/// What a function returns, for a pattern of two results: a call, and an input that stays what it is.
TEST(Replacements, WhatAFunctionReturns) {
  using Build = std::function<std::vector<Argument>(const Match&, Rewriter&)>;
  struct Case {
    const char* what;
    Build build;
    const char* refused;
  };
  const auto made = [](const Match& match, Rewriter& rewriter) -> Node& {
    return rewriter.call_function("aten::neg", {match["v"]});
  };
  const std::vector<Case> cases = {
      {"a new node",
       [&](const Match& m, Rewriter& r) {
         return std::vector<Argument>{made(m, r), m.argument("w")};
       },
       ""},
      {"what it took",
       [&](const Match& m, Rewriter&) {
         return std::vector<Argument>{m["v"], m.argument("w")};
       },
       ""},
      {"a new node for the input",
       [&](const Match& m, Rewriter& r) {
         return std::vector<Argument>{m["v"], made(m, r)};
       },
       ""},
      {"nothing, after it made something",
       [&](const Match& m, Rewriter& r) {
         made(m, r);
         return std::vector<Argument>();
       },
       ""},
      {"a node that it made right behind",
       [&](const Match& m, Rewriter& r) {
         const auto scope = r.inserting_after(m.anchor());
         return std::vector<Argument>{made(m, r), m.argument("w")};
       },
       ""},
      {"a node that it made further on",
       [&](const Match& m, Rewriter& r) {
         const auto scope = r.inserting_after(*r.graph().find("last"));
         return std::vector<Argument>{made(m, r), m.argument("w")};
       },
       "the replacement returns neg, which comes later"},
      {"a node that comes later",
       [&](const Match& m, Rewriter& r) {
         return std::vector<Argument>{*r.graph().find("other"), m.argument("w")};
       },
       "the replacement returns other, which comes later"},
      {"what it replaces",
       [&](const Match& m, Rewriter&) {
         return std::vector<Argument>{m["a"], m.argument("w")};
       },
       "the replacement returns what it replaces"},
      {"an input of the whole graph",
       [&](const Match& m, Rewriter& r) {
         return std::vector<Argument>{r.create_node(Op::placeholder, "late"), m.argument("w")};
       },
       "the replacement makes late, an input of the whole graph; it may make calls and get_attr only"},
  };
  const Pattern pattern("a = aten::add.Tensor(v, w)\nreturn a, w");
  for (const char* operand : {"%y", "2"}) {
    for (const Case& one : cases) {
      Graph graph = graph_of("q = aten::exp(%x)\na = aten::add.Tensor(%q, " + std::string(operand) +
                                 ")\nb = aten::sin(%a)\nother = aten::cos(%y)\nlast = aten::mul.Tensor(%b, %other)\n"
                                 "return last",
                             "x y");
      const std::string before = calls_of(graph);
      const RewriteReport report =
          replace_pattern(graph, pattern, Replacement(one.build), {.allow_output_aliases = true});
      EXPECT_TRUE(graph.check().empty()) << one.what << "\n" << print_graph(graph);
      EXPECT_EQ(report.refused.empty() ? "" : report.refused[0].reason, one.refused) << one.what;
      const bool declined = std::string_view(one.what).starts_with("nothing");
      EXPECT_EQ(report.applied, *one.refused || declined ? 0u : 1u) << one.what;
      EXPECT_EQ(calls_of(graph) == before, report.applied == 0) << one.what;
      EXPECT_TRUE(graph.find("other")->arg(0) == Argument(*graph.find("y"))) << one.what << ": it stays what it is";
    }
  }
}

TEST(Replacements, InputsOfAGraphAreBoundByPositionOthersByName) {
  const Graph graph_pattern = graph_of("r = aten::sub.Tensor(%x, %y)\nreturn r", "x y");
  const Graph exchanged = graph_of("r = aten::add.Tensor(%y, %x)\nreturn r", "y x");
  const Graph one = graph_of("r = aten::neg(%y)\nreturn r", "y");
  for (const auto& [pattern, replacement, made] :
       {std::tuple(Pattern(graph_pattern), Replacement(exchanged), "aten::add.Tensor(p, q)"),
        std::tuple(Pattern("aten::sub.Tensor(x, y)"), Replacement(exchanged), "aten::add.Tensor(q, p)"),
        std::tuple(Pattern(graph_pattern), Replacement("aten::add.Tensor(y, x)"), "aten::add.Tensor(q, p)"),
        std::tuple(Pattern(graph_pattern), Replacement("aten::neg(y)"), "aten::neg(q)"),
        std::tuple(Pattern("aten::sub.Tensor(x, y)"), Replacement(one), "aten::neg(q)")}) {
    Graph graph = graph_of("s = aten::sub.Tensor(%p, %q)\nreturn s", "p q");
    EXPECT_EQ(replace_pattern(graph, pattern, replacement).applied, 1u) << pattern;
    EXPECT_THAT(calls_of(graph), HasSubstr(made)) << pattern;
  }
}

TEST(Replacements, CallOneOperatorEach) {
  for (const char* text : {"{aten::relu, aten::sin}(x)", "{aten::relu, #view}(x)", "#view(x)", "/aten::relu/(x)"})
    EXPECT_THAT(error_of([&] { Replacement{text}; }), HasSubstr("a call needs one operator, not a set of them"))
        << text;
}

TEST(Replacements, CallOperatorsAsTheyAreCalled) {
  for (const char* text :
       {"aten::relu(x, x)", "aten::add.Tensor(x, y, gamma=2)", "aten::add.Tensor(x)", "aten::add(x, y, z, w)",
        "graph(x):\n    %x = placeholder[target=x]\n"
        "    %r = call_function[target=torch.ops.aten.relu.default](args = (%x, %x))\n    return r\n"})
    EXPECT_THAT(error_of([&] { Replacement{text}; }), HasSubstr("replacement: ")) << text;
  for (const char* text : {"aten::sum(x, [1])", "aten::add(x, 2)", "aten::clamp(x, lo, hi)", "mine::f(x, x, x)"})
    EXPECT_NO_THROW(Replacement{text}) << text;
}

/// What belongs to patterns is named, not something else that does.
TEST(Replacements, SayOneThing) {
  constexpr const char *kChoice = "alternatives and optional parts belong", *kTest = "`dominates` say what a value";
  for (const auto& [text, message] : {std::pair("aten::cat([x, ...r], 1)", "a rest, `...r`, belongs to patterns"),
                                      {"aten::cat([x, ...], 1)", "`...` belongs to patterns"},
                                      {"mine::f(x, ...r)", "a rest, `...r`, belongs to patterns"},
                                      {"mine::f(x, ...)", "`...` belongs to patterns"},
                                      {"aten::relu(aten::sin(x) | x)", kChoice},
                                      {"mine::f(maybe(x))", kChoice},
                                      {"mine::f(!aten::relu(x))", kTest},
                                      {"mine::f(~aten::relu(x))", kTest},
                                      {"mine::f(k: constant)", kTest},
                                      {"mine::f(dominates(x, aten::relu))", kTest}}) {
    const std::string error = error_of([&] { Replacement{text}; });
    EXPECT_THAT(error, HasSubstr(message)) << text;
    EXPECT_EQ(error.find("alternatives") != std::string::npos, message == kChoice) << text << error;
  }
}

TEST(Replacements, DropNoStatement) {
  EXPECT_THAT(error_of([&] { Replacement{"y = aten::add_.Scalar(x, 1)\nreturn aten::neg(x)"}; }),
              HasSubstr("nothing uses y"));
}

TEST(Replacements, TakeWhatThePatternBindsWhateverItIs) {
  struct Case {
    const char *pattern, *replacement, *made;
  };
  for (const Case& c :
       {Case{"aten::mm(x, w)", "aten::matmul(w, x)", "aten::matmul(w, p)"},
        Case{"aten::mm(x: node, w: node)", "aten::matmul(w: node, x: node)", "aten::matmul(w, p)"},
        Case{"aten::mm(x, w: get_attr)", "aten::matmul(w: get_attr, x)", "aten::matmul(w, p)"},
        Case{"aten::clamp(x, low: float)", "aten::mul.Scalar(x, low: float)", "aten::mul.Scalar(p, 0.5)"},
        Case{"aten::clamp(x, low: float)", "aten::mul.Scalar(x, low)", "aten::mul.Scalar(p, 0.5)"},
        Case{"aten::clamp(x, low)", "aten::mul.Scalar(x, 2)", "aten::mul.Scalar(p, 2)"}}) {
    Graph graph;
    Node &p = graph.placeholder("p"), &w = graph.get_attr("w");
    graph.output(
        Argument::list({graph.call_function("aten::mm", {p, w}), graph.call_function("aten::clamp", {p, 0.5})}));
    EXPECT_EQ(replace_pattern(graph, c.pattern, c.replacement).applied, 1u) << c.pattern;
    EXPECT_THAT(calls_of(graph), HasSubstr(c.made)) << c.pattern;
  }
  for (const char* unnamed : {"aten::neg(_)", "aten::mul.Scalar(x, float)", "aten::mm(x, get_attr)"})
    EXPECT_THAT(error_of([&] { Replacement{unnamed}; }), HasSubstr("an input needs the name of something")) << unnamed;
}

/// Of matches that overlap the one that the options ask for, seen with the shapes and effects that they name.
TEST(Replacements, OfTheMatchesThatTheOptionsAskFor) {
  for (const auto& [overlap, made] : {std::pair(Overlap::largest, "aten::sin(x)"), {Overlap::first, "aten::sin(r)"}}) {
    Graph graph = graph_of("r = aten::relu(%x)\nn = aten::neg(%r)\nreturn n");
    ReplaceOptions options;
    options.find.overlap = overlap;
    EXPECT_EQ(replace_pattern(graph, "aten::neg(v) | aten::neg(aten::relu(v))", "aten::sin(v)", options).applied, 1u);
    EXPECT_THAT(calls_of(graph), HasSubstr(made));
  }
  for (const bool to_search : {false, true}) {
    Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
    Shapes shapes(graph);
    for (const Node& node : graph.nodes()) shapes[node] = TensorInfo{.dtype = DType::float32, .sizes = {2}};
    ReplaceOptions options;
    if (to_search) options.find.shapes = &shapes;
    if (!to_search) options.shapes = &shapes;
    EXPECT_EQ(replace_pattern(graph, "aten::relu(x: f32[2])", "aten::sin(x)", options).applied, 1u) << to_search;
  }
  const ModuleInfo reads{.effects = [](const Node&) { return NodeEffects(); }};
  ModuleInfo writes{.effects = [](const Node&) { return NodeEffects{.writes = true}; }};
  writes.state = [](Symbol, const auto& visit) { visit(Symbol("bn.mean")); };
  for (const auto& [modules, applied] : {std::pair(reads, 1u), std::pair(writes, 0u)}) {
    Graph graph;
    Node& x = graph.placeholder("x");
    Node& added = graph.call_function("aten::add.Tensor", {x, graph.get_attr("bn.mean")});
    graph.output(Argument::list({added, graph.call_module("bn", {x})}));
    ReplaceOptions options;
    options.find.modules = modules;
    EXPECT_EQ(replace_pattern(graph, "aten::add.Tensor(x, w: constant)", "aten::sin(x)", options).applied, applied);
  }
}

/// What is made is known to the next rewrite: two that draw random numbers, or do what is seen, keep their order.
TEST(Replacements, ThatDrawDoNotPassEachOther) {
  const Pattern pattern("a = aten::relu(x)\nb = aten::neg(y)\nreturn a, b");
  const Replacement function([](const Match& m, Rewriter& r) {
    return std::vector<Argument>{r.call_function("aten::rand_like", {m["x"]}), r.call_function("aten::sin", {m["y"]})};
  });
  register_schema("replacements_test::tell(Tensor x) -> Tensor", {.side_effect = true});
  for (const Replacement& replacement : {Replacement("aten::rand_like(x), aten::sin(y)"), function,
                                         Replacement("replacements_test::tell(x), aten::sin(y)")}) {
    Graph graph =
        graph_of("p = aten::relu(%x)\nq = aten::relu(%x)\ns = aten::neg(%x)\nt = aten::neg(%x)\nreturn (p, q, s, t)");
    const RewriteReport report = replace_pattern(graph, pattern, replacement);
    EXPECT_EQ(report.applied, 1u);
    ASSERT_EQ(report.refused.size(), 1u);
    EXPECT_THAT(report.refused[0].reason, HasSubstr("the order of "));
    EXPECT_THAT(report.refused[0].reason, HasSubstr(" would change"));
  }
}

TEST(Replacements, ResultsThatAreListsAndInputs) {
  Graph sizes = graph_of("s = aten::size(%x)\nv = aten::view(%x, %s)\nreturn v");
  Graph list;
  list.placeholder("x");
  list.output(Argument::list({2, 3}));
  EXPECT_EQ(replace_pattern(sizes, "aten::size(x)", list).applied, 1u);
  EXPECT_EQ(calls_of(sizes), "v = aten::view(x, [2, 3])\nreturn v\n");
  Graph input = graph_of("a = aten::relu(%x)\nreturn a");
  EXPECT_EQ(replace_pattern(input, graph_of("a = aten::relu(%x)\nreturn (a, x)"),
                            graph_of("a = aten::sigmoid(%x)\nreturn (a, x)"))
                .applied,
            1u);
  EXPECT_EQ(error_of([&] { replace_pattern(input, "r: aten::sigmoid(x)", "aten::neg(r)"); }),
            "the replacement takes 'r', the result that it replaces");
}

TEST(Replacements, OneValueReturnedTwiceIsReplacedByOne) {
  const Graph pattern = graph_of("a = aten::relu(%x)\nreturn (a, a)");
  for (const auto& [results, fits] : {std::pair("(m, m)", true), std::pair("(m, n)", false), std::pair("(x, x)", true),
                                      std::pair("(x, m)", false), std::pair("(m, x)", false), std::pair("(1, 1)", true),
                                      std::pair("(1, 2)", false), std::pair("(1, m)", false)}) {
    Graph graph = graph_of("r = aten::relu(%x)\nreturn r");
    const Graph replacement = graph_of("m = aten::sin(%x)\nn = aten::sin(%x)\nreturn " + std::string(results));
    const std::string error = error_of([&] {
      EXPECT_EQ(replace_pattern(graph, pattern, replacement, {.allow_output_aliases = true}).applied, 1u) << results;
    });
    EXPECT_THAT(error, HasSubstr(fits ? "no error" : "the pattern returns one value as results 0 and 1")) << results;
  }
}

// What a pattern names is taken at its author's word where it is rewritten, and nowhere else.
TEST(Replacements, RefusedOnesLeaveNoNoteAtTheirMatch) {
  const auto trusted = [](const Graph& graph) {
    return std::ranges::count_if(graph.nodes(), [](const Node& node) {
      return node.find_meta() && node.find_meta()->get<bool>(meta_key::kTrusted);
    });
  };
  const Pattern pattern("aten::relu(mylib::nobody_knows(x))");
  const Graph graph = graph_of("a = mylib::nobody_knows(%x)\nr = aten::relu(%a)\nn = aten::neg(%r)\nreturn n");
  Graph dry = graph.clone();
  EXPECT_EQ(replace_pattern(dry, pattern, "mylib::other(x)", {.dry_run = true}).applied, 1u);
  EXPECT_EQ(trusted(dry), 0);
  EXPECT_EQ(print_graph(dry), print_graph(graph));
  Graph kept = graph_of("a = mylib::nobody_knows(%x)\nr = aten::relu(%a)\nreturn (r, r)");
  EXPECT_EQ(replace_pattern(kept, pattern, "x").applied, 0u);  // the caller would get the input
  EXPECT_EQ(trusted(kept), 0);
  Graph thrown = graph.clone();
  const Replacement throws([](const Match&, Rewriter&) -> std::vector<Argument> { throw std::runtime_error("no"); });
  EXPECT_THROW(replace_pattern(thrown, pattern, throws), std::runtime_error);
  EXPECT_EQ(trusted(thrown), 0);
  Graph applied = graph.clone();
  EXPECT_EQ(replace_pattern(applied, pattern, "mylib::other(x)").applied, 1u);
  EXPECT_EQ(trusted(applied), 1) << "what was made";
}

}  // namespace fx::replacements_test
