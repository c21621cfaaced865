// Combinators and text say the same: each construct, written with one, prints as the other and reads back.
#include <fxgraph/matchers/expr.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <sstream>

#include <fxgraph/matchers/expr_node.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_set.h>
#include <fxgraph/ops/schema.h>
#include "tests/support/error_of.h"
#include "tests/support/short_graph.h"

namespace fx::expr_test {

using namespace match;
using testing::graph_of;

// Sets of targets are equal when all that they are made of is.
TEST(TargetSets, AreComparedPartByPart) {
  const std::vector<TargetSet> sets = {TargetSet("aten::relu"),
                                       TargetSet("aten::neg"),
                                       TargetSet(Tag::view),
                                       TargetSet(Tag::random),
                                       TargetSet(re("a.*")),
                                       TargetSet(re("b.*")),
                                       TargetSet{"aten::relu", "aten::neg"}};
  for (std::size_t i = 0; i < sets.size(); ++i) {
    for (std::size_t j = 0; j < sets.size(); ++j) EXPECT_EQ(sets[i] == sets[j], i == j) << i << " " << j;
  }
}

TEST(Matches, OfNoPatternBindNothing) {
  const Match match;
  std::ostringstream out;
  out << match;
  EXPECT_EQ(out.str(), "no match");
  EXPECT_TRUE(match.outputs().empty());
  EXPECT_THROW(match.anchor(), Error);
}

TEST(Matches, AreComparedAndAskedByName) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(Argument::tuple({graph.call_function("aten::f", {x, true}), graph.call_function("aten::f", {x, 2}),
                                graph.call_function("aten::f", {x, 2})}));
  const std::vector<Match> found = find(graph, "aten::f(_, c)", {.overlap = Overlap::all});
  ASSERT_EQ(found.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].literal("c"), i == 0 ? 1 : 2);
    EXPECT_FALSE(found[i].has(""));
    EXPECT_THROW(found[i].argument(""), Error);
    for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(found[i] == found[j], i == j) << i << " " << j;
  }
}

// What a graph returns as a pattern, and what it computes for nothing.
TEST(PatternsOfGraphs, SayWhatCannotBeReturned) {
  const auto said = [](const std::function<Argument(Graph&, Node&)>& returned) {
    Graph graph;
    Node& x = graph.placeholder("x");
    graph.output(returned(graph, graph.call_function("aten::relu", {x})));
    return testing::error_of([&] { Pattern{graph}; });
  };
  const std::string no_value = "; only values that the graph computes can be returned";
  EXPECT_EQ(said([](Graph&, Node& relu) { return Argument::list({relu, Argument::tuple({relu})}); }), "no error");
  EXPECT_EQ(said([](Graph&, Node&) { return Argument::list({1, 2}); }), "pattern: it returns [1, 2]" + no_value);
  EXPECT_EQ(said([](Graph&, Node& relu) {
              return Argument::list({relu, Argument::list({1})});
            }),
            "pattern: it returns [1]" + no_value);
  EXPECT_EQ(said([](Graph&, Node& relu) {
              return Argument::dict({"k", relu});
            }),
            "pattern: it returns {'k': %relu}" + no_value);
  EXPECT_EQ(said([](Graph& graph, Node& relu) {
              graph.call_function("mine.f", {relu});
              return Argument(relu);
            }),
            "pattern: nothing uses mine_f; remove it, it would never take part");
  EXPECT_EQ(said([](Graph& graph, Node& relu) {
              graph.call_function("aten::neg", {relu});
              return Argument(relu);
            }),
            "pattern: nothing uses neg; remove it, it would never take part");
  EXPECT_EQ(said([](Graph& graph, Node& relu) {
              graph.call_function("aten::relu_", {relu});
              return Argument(relu);
            }),
            "no error");
}

// An attribute is constant unless a module that is called writes it: it says which are its own.
TEST(Constants, OfModulesThatWriteTheirState) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.call_module("bn", {x});
  graph.output(graph.call_function("aten::add.Tensor", {x, graph.get_attr("bn.mean")}));
  struct Case {
    NodeEffects effects;
    const char* state;
    std::size_t found;
  };
  for (const Case& c :
       {Case{{}, "bn.mean", 1}, Case{{.writes = true}, "bn.mean", 0}, Case{{.unknown = true}, "bn.mean", 0},
        Case{{.random = true}, "bn.mean", 1}, Case{{.writes = true}, "bn.var", 1}}) {
    FindOptions options;
    options.modules.effects = [&](const Node&) { return c.effects; };
    options.modules.state = [&](Symbol module, const std::function<void(Symbol)>& visit) {
      if (module == "bn") visit(c.state);
    };
    EXPECT_EQ(find(graph, "aten::add.Tensor(x, w: constant)", options).size(), c.found) << c.state;
    options.modules.state = {};
    EXPECT_EQ(find(graph, "aten::add.Tensor(x, w: constant)", options).size(),
              c.effects.writes || c.effects.unknown ? 0u : 1u)
        << "it does not say what it holds: what is below its path";
  }
}

TEST(Constants, OfModulesThatDraw) {
  Graph graph;
  Node& drawn = graph.call_module("dropout", {graph.get_attr("w")});
  graph.output(graph.call_function("aten::add.Tensor", {graph.placeholder("x"), drawn}));
  for (const NodeEffects& effects : {NodeEffects{}, NodeEffects{.random = true}}) {
    FindOptions options;
    options.modules.effects = [&](const Node&) { return effects; };
    EXPECT_EQ(find(graph, "aten::add.Tensor(x, w: constant)", options).size(), effects.random ? 0u : 1u);
  }
}

// Whatever a call lacks, it is looked at as it is.
TEST(SeeingThrough, CallsThatLackArguments) {
  Graph graph;
  Node& x = graph.placeholder("x");
  for (const Symbol target : builtin_targets()) {
    Node& lacking = graph.call_function(target, {x});
    graph.call_function("aten::relu", {lacking});
    graph.call_function("aten::relu", {graph.call_function(target, {})});
  }
  const std::size_t all = find(graph, Pattern("aten::relu(x)").seeing_through(), {.contained = false}).size();
  EXPECT_GE(all, 2 * builtin_targets().size());
}

bool even(const Argument& n) { return n.is_int() && n.as_int() % 2 == 0; }

struct Construct {
  const char* name;
  Expr expr;
  const char* text;
};

std::vector<Construct> constructs() {
  const Expr relu = op("aten::relu", any("x"));
  return {
      {"TagPointwise", op(Tag::pointwise, any("x"), rest()), "#pointwise(x, ...)"},
      {"TagView", op(Tag::view, any("x"), rest()), "#view(x, ...)"},
      {"TagReduction", op(Tag::reduction, any("x"), rest()), "#reduction(x, ...)"},
      {"TagRandom", op(Tag::random, any("x"), rest()), "#random(x, ...)"},
      {"TagMutating", op(Tag::mutating, any("x"), rest()), "#mutating(x, ...)"},
      {"ModuleByPath", module(re("layer\\d+"), any("x")), "call_module[/layer\\d+/](x)"},
      {"ModuleByType", module_of("torch.nn.Conv2d", any("x")), "call_module<torch.nn.Conv2d>(x)"},
      {"ModuleByBoth", module("a.b", any("x")).of_type(re(".*Linear")), "call_module[a.b]</.*Linear/>(x)"},
      {"ModuleByTypes", module_of({"Conv1d", "Conv2d"}, any("x")), "call_module<{Conv1d, Conv2d}>(x)"},
      {"AnyModuleOfType", module_of("ReLU"), "call_module<ReLU>"},
      {"MethodByExpression", method(re("view|reshape"), any("x"), rest()), "call_method[/view|reshape/](x, ...)"},
      {"LiteralCompared", op("aten::mul.Tensor", any("x"), lit_float("c").where(">", 0).where("<=", 0.5)),
       "aten::mul.Tensor(x, c: float.if(> 0, <= 0.5))"},
      {"Holes", op("my::op", lit_int("a"), lit_float("b"), lit_bool("c"), lit_string("d"), lit_any("e")),
       "my::op(a: int, b: float, c: bool, d: str, e: literal)"},
      {"LiteralByPredicate", op("aten::mul.Tensor", any("x"), lit_int("c").where(even, "even")),
       "aten::mul.Tensor(x, c: int.if(even))"},
      {"PredicateInWords", op("aten::relu", any("x").where(even, "is even")), "aten::relu(x.if('is even'))"},
      {"Negation", op("aten::relu", not_(op("aten::neg", _))), "aten::relu(!aten::neg(_))"},
      {"NegationWithUses", op("aten::relu", not_(op("aten::neg", _)).used_once()),
       "aten::relu((!aten::neg(_)).used_once)"},
      {"NegationNamed", op("aten::relu", not_(op("aten::neg", _)).name("v")),
       "v = !aten::neg(_)\nreturn aten::relu(v)"},
      {"Transparent", op("aten::neg", transparent(relu)), "aten::neg(~aten::relu(x))"},
      {"OneAlternativeApplied", any_of({op("aten::relu"), op("aten::neg")})(any("x")),
       "(aten::relu(x) | aten::neg(x))"},
      {"OptionalFirst", op("aten::sin", any_of({maybe(relu), op("aten::neg", any("x"))})),
       "aten::sin((maybe(aten::relu(x)) | aten::neg(x)))"},
      {"Repeat", repeat(op("aten::relu"), 2, 2, any("x")), "aten::relu(aten::relu(x))"},
      {"RepeatOptional", op("aten::neg", repeat(op("aten::relu"), 0, 1, any("x"))), "aten::neg((aten::relu(x) | x))"},
      {"Dominates", op("aten::neg", dominates(relu, op(Tag::pointwise))),
       "aten::neg(dominates(aten::relu(x), #pointwise))"},
      {"Unordered", op("aten::cat", unordered({any("x"), relu, rest()}), rest()),
       "aten::cat(unordered[x, aten::relu(x), ...], ...)"},
      {"TailOfAList", op("aten::cat", list({any("x"), rest("others")})), "aten::cat([x, ...others])"},
      {"TailOfACall", op("my::op", any("x"), rest("others")), "my::op(x, ...others)"},
      {"Uses", op("aten::relu", any("x").uses(2, 3)), "aten::relu(x.uses(2, 3))"},
      {"UsesAtLeast", op("aten::relu", any("x").uses(2, internal::kManyUses)), "aten::relu(x.uses(2, *))"},
      {"Dtype", op("aten::relu", value("x").is("f32")), "aten::relu(x: f32)"},
      {"DtypeBool", op("aten::relu", value("x").is("boolean")), "aten::relu(x: boolean)"},
      {"DtypeSpeltAsPythonDoes", op("aten::relu", value("x").is("float32")), "aten::relu(x: f32)"},
      {"Dtypes", op("aten::relu", value("x").is("{f16, bfloat16}")), "aten::relu(x: {float16, bfloat16})"},
      {"Sizes", op("aten::relu", value("x").is("f32[N, C, *, 3]")), "aten::relu(x: f32[N, C, *, 3])"},
      {"Rank", op("aten::relu", value("x").is("tensor[*, *]")), "aten::relu(x: tensor[*, *])"},
      {"Scalar", op("aten::relu", value("x").is("floating[]")), "aten::relu(x: floating[])"},
      {"OpenSizes", op("aten::relu", value("x").is("tensor[N, ..., C]")), "aten::relu(x: tensor[N, ..., C])"},
      {"Device", op("aten::relu", value("x").is("integral[N] on cuda:1")), "aten::relu(x: integral[N] on cuda:1)"},
      {"TypeOfACall", op("aten::neg", relu.is("f32[N]").used_once()), "aten::neg(aten::relu(x).used_once.is(f32[N]))"},
      {"SizeAsAnArgument", op("aten::view", value("x").is("tensor[N, C]"), list({lit_int("N"), -1})),
       "aten::view(x: tensor[N, C], [N: int, -1])"},
      {"Constant", op("aten::relu", constant("k")), "aten::relu(k: constant)"},
      {"Attribute", op("aten::relu", parameter("w", re(".*weight"))), "aten::relu(w: get_attr[/.*weight/])"},
      {"KindWithUses", op("aten::relu", value("x").used_once()), "aten::relu(x: node.used_once)"},
      {"UnnamedKindWithUses", op("aten::relu", value().used_once()), "aten::relu(node.used_once)"},
      {"Roots", op("aten::neg", any("x")), "aten::neg(x)"},
  };
}

TEST(Expr, PrintsAsTextAndReadsBack) {
  const Predicates predicates = {{"even", even}, {"is even", even}};
  for (const Construct& construct : constructs()) {
    std::string text = construct.text;
    if (text.find("return") == std::string::npos) text = "return " + text;
    text += "\n";
    EXPECT_EQ(Pattern(construct.expr).str(), text) << construct.name;
    EXPECT_EQ(Pattern(text, predicates).str(), text) << construct.name;
  }
}

TEST(Expr, MistakesAreSaid) {
  const auto error = [](auto&& make) -> std::string {
    try {
      make();
      return "no error";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(error([] { Pattern("aten::neg(repeat(aten::relu, 3, 2, x))"); }),
              ::testing::HasSubstr("a step is repeated `low` to `high` times, at most 64"));
  EXPECT_THAT(error([] { Pattern("aten::neg(repeat(aten::relu, 3, 2, x))"); }), ::testing::HasSubstr("1:18"));
  EXPECT_EQ(error([] { lit_int().where("=<", 3); }), "'=<' is no comparison; write <, <=, >, >=, == or !=");
  EXPECT_EQ(error([] { lit_int().where("<", "a"); }), "a literal is compared with an int or a float, not with 'a'");
  EXPECT_EQ(error([] { op("aten::relu").of_type("ReLU"); }), "of_type() belongs to a call of a module");
  EXPECT_EQ(error([] { value().is("f33[N]"); }),
            "<pattern>:1:1: expected tensor, floating, integral or a dtype such as f32, found 'f33'");
  for (const char* const again : {"f32[N]", "tensor", "f16[N, 3]", "f32[N] on cpu"}) {
    EXPECT_EQ(error([&] { value().is("f32[N]").is(again); }),
              "<pattern>:1:1: the tensor is described twice; say all of it in one place");
    EXPECT_EQ(error([&] { Pattern("aten::relu(x: f32[N].is(" + std::string(again) + "))"); }),
              "<pattern>:1:25: the tensor is described twice; say all of it in one place");
  }
  EXPECT_EQ(error([] { Pattern(op("aten::relu", dominates(any(), op("aten::neg", any("x"))))); }),
            "pattern: the path of dominates() is an operator without arguments or name, or alternatives of those");
  EXPECT_EQ(error([] { repeat(op("aten::relu").name("r"), 1, 2, any()); }),
            "the step of a repetition stands for several values, it cannot have a name");
  for (const auto& [low, high] : {std::pair(3u, 2u), {0u, 0u}, {1u, 65u}, {65u, 65u}})
    EXPECT_EQ(error([&] { repeat(op("aten::relu"), low, high, any()); }),
              "a step is repeated `low` to `high` times, at most 64");
  EXPECT_EQ(error([] { repeat(op("aten::relu"), 64, 64, any()); }), "no error");
}

TEST(Expr, ComparisonsAreThoseOfNumbers) {
  const double values[] = {
      -1.5, 0, 2, 2.5, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
  const std::pair<const char*, std::function<bool(double, double)>> comparisons[] = {
      {"<", std::less<>()},           {"<=", std::less_equal<>()}, {">", std::greater<>()},
      {">=", std::greater_equal<>()}, {"==", std::equal_to<>()},   {"!=", std::not_equal_to<>()}};
  for (const auto& [text, holds] : comparisons) {
    for (const double bound : values) {
      const Pattern pattern(op("aten::mul.Tensor", any("x"), lit_float("c").where(text, bound)));
      for (const double value : values) {
        Graph graph;
        graph.output(graph.call_function("aten::mul.Tensor", {graph.placeholder("x"), value}));
        EXPECT_EQ(!find(graph, pattern).empty(), holds(value, bound)) << value << text << bound;
      }
    }
  }
}

TEST(Expr, CallsWithoutASchemaAreComparedAsTheyAreWritten) {
  const Graph graph = graph_of("a = my::op(%x, 1, k=2)\nreturn a");
  for (const char* const same : {"my::op(x, 1, k=2)", "my::op(x, n, k=m)", "my::op(x, ...)", "my::op(x, 1, ...)"})
    EXPECT_EQ(find(graph, Pattern(same)).size(), 1u) << same;
  for (const char* const other : {"my::op(x, 1)", "my::op(x, 1, 2)", "my::op(x, 1, j=2)", "my::op(x, k=2)",
                                  "my::op(x, 1, k=3)", "my::op(x, 1, k=2, j=2)"})
    EXPECT_EQ(find(graph, Pattern(other)).size(), 0u) << other;
}

TEST(Expr, FactsThatAreNotGivenAreAskedFor) {
  const Graph graph = graph_of("a = aten::relu(%x)\nreturn a");
  const auto error = [&](const Pattern& pattern) -> std::string {
    try {
      return "no error: " + std::to_string(find(graph, pattern).size());
    } catch (const Error& error) {
      return std::string(to_string(error.kind())) + ": " + error.what();
    }
  };
  EXPECT_EQ(error("aten::relu(x: f32)"),
            "invalid_argument: pattern: it says what tensors must be, and no shapes are known; give them as "
            "FindOptions::shapes");
  EXPECT_EQ(error("call_module<ReLU>(x)"),
            "invalid_argument: pattern: it names types of modules, and none are known; search the GraphModule, or give "
            "them as "
            "FindOptions::modules");
}

TEST(Expr, ConstantsEndAtWhatChanges) {
  const Graph graph = graph_of(
      "w = get_attr[target=w]()\nv = get_attr[target=v]()\nt = aten::t(%w)\nu = aten::relu_(%v)\nr = "
      "aten::rand_like(%w)\n"
      "a = aten::neg(%t)\nb = aten::neg(%v)\nc = aten::neg(%r)\nd = aten::neg(%x)\n"
      "copy = aten::clone(%w)\nview = aten::t(%copy)\ne = aten::neg(%copy)\nf = aten::neg(%view)\n"
      "other = aten::clone(%w)\ng = aten::neg(%other)\n"
      "written = aten::add_.Tensor(%view, %x)\nreturn (a, b, c, d, e, f, g, u)");
  std::string anchors;
  for (const Match& match : find(graph, "aten::neg(k: constant)", {.contained = false}))
    anchors += match.anchor().name();
  EXPECT_EQ(anchors, "ag") << "b is written in place, c is random, d is an input, e and f are written later";
}

TEST(Expr, BestBenefitKeepsWhatIsWorthMost) {
  const Graph graph = graph_of("a = aten::relu(%x)\nb = aten::neg(%a)\nc = aten::sin(%b)\nd = aten::cos(%c)\nreturn d");
  const PatternSet set({"aten::neg(aten::relu(x))", "aten::sin(aten::neg(x))", "aten::cos(aten::sin(x))"});
  FindOptions options{.overlap = Overlap::best_benefit};
  options.benefit = [](const Match& match) { return match.anchor().name() == "c" ? 5.0 : 1.0; };
  ASSERT_EQ(set.find(graph, options).size(), 1u) << "the one in the middle is worth more than both";
  EXPECT_EQ(set.find(graph, options)[0].match.anchor().name(), "c");
  options.benefit = nullptr;
  EXPECT_EQ(set.find(graph, options).size(), 2u) << "all are worth their nodes: the first wins";
}

}  // namespace fx::expr_test
