// The text of patterns: what reads, how it prints, and what is said about mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include <fxgraph/matchers/expr.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/text/parse.h>
#include "tests/support/error_of.h"
#include "tests/support/short_graph.h"

namespace fx::pattern_text_test {

using ::testing::ElementsAre;
using testing::graph_of;

std::string printed(std::string_view text) {
  const Pattern pattern(text);
  EXPECT_EQ(Pattern(pattern.str()).str(), pattern.str()) << "printing is stable";
  return pattern.str();
}

std::string error_of(std::string_view text) {
  try {
    const Pattern pattern(text);
    return "no error: " + pattern.str();
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(PatternText, EveryFormReadsAndPrints) {
  EXPECT_EQ(printed("aten::relu(x)"), "return aten::relu(x)\n");
  EXPECT_EQ(printed("aten::relu"), "return aten::relu\n");
  EXPECT_EQ(printed("aten::rand()"), "return aten::rand()\n");
  EXPECT_EQ(printed("return aten::add.Tensor(%x, 1, alpha=2)"), "return aten::add.Tensor(x, 1, alpha=2)\n");
  EXPECT_EQ(printed("a = aten::neg(x); aten::mul.Tensor(a, a)"), "a = aten::neg(x)\nreturn aten::mul.Tensor(a, a)\n");
  EXPECT_EQ(printed("aten::conv2d(x, w: get_attr, maybe(b: get_attr[conv.bias]), ...)"),
            "return aten::conv2d(x, w: get_attr, maybe(b: get_attr[conv.bias]), ...)\n");
  EXPECT_EQ(printed("(aten::relu(x) | aten::gelu(x))"), "return (aten::relu(x) | aten::gelu(x))\n");
  EXPECT_EQ(printed("/aten::.*relu/(x)"), "return /aten::.*relu/(x)\n");
  EXPECT_EQ(printed("#pointwise(x, ...)"), "return #pointwise(x, ...)\n");
  EXPECT_EQ(printed("{aten::relu, /aten::sig.*/, #view}(x)"), "return {aten::relu, /aten::sig.*/, #view}(x)\n");
  EXPECT_EQ(printed("commutative(aten::add.Tensor(x, _))"), "return commutative(aten::add.Tensor(x, _))\n");
  EXPECT_EQ(printed("aten::cat([x, y, ...], d: int)"), "return aten::cat([x, y, ...], d: int)\n");
  EXPECT_EQ(printed("aten::relu(c: aten::conv2d(x, w).used_once)"),
            "c = aten::conv2d(x, w).used_once\nreturn aten::relu(c)\n");
  EXPECT_EQ(printed("aten::relu(x.uses(1, 3))"), "return aten::relu(x.uses(1, 3))\n");
  EXPECT_EQ(printed("aten::to.dtype(x, lit(torch.float16))"), "return aten::to.dtype(x, lit(torch.float16))\n");
  EXPECT_EQ(printed("aten::mul.Tensor(x, near(0.7071, 0.001))"), "return aten::mul.Tensor(x, near(0.7071, 0.001))\n");
  EXPECT_EQ(printed("aten::mul.Tensor(x, near(2.5, 0.0))"), "return aten::mul.Tensor(x, near(2.5, 0.0))\n");
  EXPECT_EQ(printed("aten::div.Tensor_mode(x, c: literal, rounding_mode='floor')"),
            "return aten::div.Tensor_mode(x, c: literal, rounding_mode='floor')\n");
  EXPECT_EQ(printed("call_module[layer1.0](x)"), "return call_module[layer1.0](x)\n");
  EXPECT_EQ(printed("call_method[view](x, -1)"), "return call_method[view](x, -1)\n");
  EXPECT_EQ(printed("torch.relu(x)"), "return aten::relu(x)\n");
  EXPECT_EQ(printed("aten::relu(n: node), aten::neg(n)"), "return aten::relu(n: node), aten::neg(n)\n");
  EXPECT_EQ(printed("# what it is for\n\na = aten::relu(x) # and why\nreturn a\n"), "a = aten::relu(x)\nreturn a\n");
  EXPECT_EQ(printed("aten::clamp(x, -1.5e-3, None)"), "return aten::clamp(x, -0.0015, None)\n");
  EXPECT_EQ(printed("aten::clamp(x, -inf, inf)"), "return aten::clamp(x, -inf, inf)\n");
}

TEST(PatternText, FormulasAreReadWhereTheyAreUsed) {
  EXPECT_EQ(printed("let twice(v) = aten::add.Tensor(v, v)\nreturn twice(aten::relu(x))"),
            "_1 = aten::relu(x)\nreturn aten::add.Tensor(_1, _1)\n");
  EXPECT_EQ(
      printed("let f(v) = aten::neg(v)\nlet g(v, w) = aten::add.Tensor(f(v), f(w))\nreturn g(x, g(y, x)).used_once"),
      printed(
          "return aten::add.Tensor(aten::neg(x), aten::neg(aten::add.Tensor(aten::neg(y), aten::neg(x)))).used_once"));
  // A parameter that names a value.
  EXPECT_EQ(printed("let by(v, s) = aten::mul.Scalar(v, s: float)\nreturn by(by(x, a), b)"),
            "return aten::mul.Scalar(aten::mul.Scalar(x, a: float), b: float)\n");
  // What stands for a value stands for the same one everywhere.
  EXPECT_EQ(printed("let square(v) = aten::mul.Tensor(v, v)\nreturn square(n: node)"),
            "return aten::mul.Tensor(n: node, n)\n");
  // A body may take several lines; an own formula goes before that of the same name that is always there.
  EXPECT_EQ(printed("let act(v) = aten::relu(v)\n  | aten::gelu(v)\nreturn act(x)"),
            printed("return (aten::relu(x) | aten::gelu(x))"));
  EXPECT_EQ(printed("let plus(a, b) = my::plus(b, a)\nreturn plus(x, y)"), "return my::plus(y, x)\n");
  EXPECT_EQ(printed("plus(x, 1)"), "return commutative({aten::add.Tensor, aten::add.Scalar}(x, 1))\n");
  EXPECT_EQ(printed("let = aten::relu(x)\nreturn aten::neg(let)"), "let = aten::relu(x)\nreturn aten::neg(let)\n");
}

TEST(PatternText, MistakesInFormulasAreLocated) {
  EXPECT_EQ(error_of("let f(v) = aten::neg(,)\nreturn f(x)"), "<pattern>:1:22: expected a value, found ','");
  EXPECT_EQ(error_of("let f(v) = aten::neg(v) x\nreturn f(x)"),
            "<pattern>:1:25: expected the end of the line, found 'x'");
  EXPECT_EQ(error_of("let f(v, v) = aten::neg(v)\nreturn f(x)"), "<pattern>:1:10: two parameters have the name v");
  EXPECT_EQ(error_of("let f(v)\nreturn f(x)"),
            "<pattern>:1:9: expected '=' and what f stands for, found the end of the line");
  EXPECT_EQ(error_of("let f(v) = aten::neg(v)\nreturn f(x, y)"), "<pattern>:2:8: f takes 1 arguments, not 2");
  EXPECT_EQ(error_of("let f(v) = aten::neg(v)\nreturn f(...)"),
            "<pattern>:2:8: f takes values: '...' belongs into what it stands for");
  for (const char* const nameless : {"2", "_", "node", "aten::neg(y)", "k: node", "k: float", "k: aten::neg(y)", "[k]"})
    EXPECT_EQ(error_of("let by(v, s) = aten::mul.Scalar(v, s: float)\nreturn by(x, " + std::string(nameless) + ")"),
              "<pattern>:1:36: the parameter s names a value here: give a name for it")
        << nameless;
  std::string large = "let f0(v) = aten::neg(v)\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "f" + std::to_string(i - 1);
    large += "let f" + std::to_string(i) + "(v) = aten::add.Tensor(" + before + "(v), " + before + "(v))\n";
  }
  EXPECT_THAT(error_of(large + "return f39(x)"), ::testing::HasSubstr("its formulas use each other too often"));
}

TEST(PatternText, FxTextIsAPatternToo) {
  EXPECT_EQ(printed("graph(%x, %y):\n    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = "
                    "(%x, %y), kwargs = {})\n"
                    "    %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%add,), "
                    "kwargs = {})\n    return relu\n"),
            "add = aten::add.Tensor(x, y)\nrelu = aten::relu(add)\nreturn relu\n");
}

TEST(PatternText, MistakesAreLocated) {
  EXPECT_EQ(error_of("aten::relu(x"), "<pattern>:1:13: expected ')', found the end");
  EXPECT_EQ(error_of("aten::relu(x))"), "<pattern>:1:14: expected ',' or the end of the line, found ')'");
  EXPECT_EQ(error_of("a = aten::relu(x)\nb = aten::neg(,)\nreturn b"), "<pattern>:2:15: expected a value, found ','");
  EXPECT_EQ(error_of("aten::relu(..., x)"), "<pattern>:1:17: expected ')' after '...', found 'x'");
  EXPECT_EQ(error_of("#shiny(x)"),
            "<pattern>:1:2: expected pointwise, view, reduction, random or mutating after '#', found 'shiny'");
  EXPECT_THAT(error_of("a = aten::neg(x)\n{aten::relu, /aten::(/}(a)"),
              ::testing::StartsWith("<pattern>:2:14: bad regular expression"));
  EXPECT_EQ(error_of("/aten::relu(x)"), "<pattern>:1:1: the regular expression is not closed by '/'");
  EXPECT_EQ(error_of("aten::relu('x)"), "<pattern>:1:15: the string is not closed");
  EXPECT_EQ(error_of("a = aten::relu(x)\na = aten::neg(a)\nreturn a"), "<pattern>:2:1: the name a is bound twice");
  EXPECT_THAT(error_of("c = aten::neg(x)\nreturn aten::relu(x)"),
              ::testing::HasSubstr("<pattern>:1:1: nothing uses c: return it, remove it"));
  EXPECT_EQ(error_of("a = aten::relu(b)\nb = aten::relu(a)\nreturn a"),
            "<pattern>:2:1: the name b is used above its line; move the line up");
  EXPECT_EQ(error_of("True: aten::relu(x)"), "<pattern>:1:1: 'True' is a word of patterns; choose another name");
  EXPECT_EQ(error_of("float = aten::relu(x)\nreturn float"),
            "<pattern>:1:1: 'float' is a word of patterns; choose another name");
  EXPECT_EQ(error_of("x"),
            "pattern: it says no operator that must be there for x, so everything would match; a result is a call, or "
            "an input of one");
  EXPECT_THAT(error_of(""), ::testing::HasSubstr("expected a value, found the end"));
  std::string deep = "x";
  for (int i = 0; i < 300; ++i) deep = "aten::relu(" + deep + ")";
  EXPECT_THAT(error_of(deep), ::testing::HasSubstr("nests too deep"));
}

// At least so often, at most so often, in code and in text.
TEST(PatternText, HowOftenAValueIsUsed) {
  constexpr std::uint32_t kMany = std::numeric_limits<std::uint32_t>::max();
  for (std::uint32_t low = 0; low <= 3; ++low) {
    for (const std::uint32_t high : {0u, 1u, 2u, 3u, 4u, kMany}) {
      if (high < low || high == 0) continue;
      const Pattern made(match::op("aten::neg", match::op("aten::relu", match::any("x")).uses(low, high)));
      const Pattern read(made.str());
      EXPECT_EQ(read.str(), made.str());
      for (std::uint32_t uses = 1; uses <= 5; ++uses) {
        Graph graph = graph_of("a = aten::relu(%x)\nn = aten::neg(%a)\nreturn n");
        for (std::uint32_t i = 1; i < uses; ++i) graph.call_function("aten::sin", {*graph.find("a")});
        const std::size_t wanted = low <= uses && uses <= high ? 1 : 0;
        EXPECT_EQ(find(graph, made, {.contained = false}).size(), wanted) << made.str() << uses;
        EXPECT_EQ(find(graph, read, {.contained = false}).size(), wanted) << made.str() << uses;
      }
    }
  }
}

TEST(PatternText, NamesAreInputsInOrder) {
  const Pattern pattern("aten::addmm(b, aten::mul.Tensor(x, c: float), w: get_attr)");
  std::vector<std::string> names;
  for (const Symbol name : pattern.inputs()) names.push_back(name.str());
  EXPECT_THAT(names, ElementsAre("b", "x", "c", "w"));
  EXPECT_EQ(pattern.num_outputs(), 1u);
}

// What a pattern finds is an input when it has a name and is no call, nor made of calls.
TEST(PatternText, InputsAreWhatTheMatchDoesNotCompute) {
  for (const char* input : {"v", "v: node", "v: constant", "v: get_attr", "v: literal", "v: int", "v: float", "v: bool",
                            "v: str", "...v", "v: f32[2]"})
    EXPECT_THAT(Pattern("my::op(" + std::string(input) + ")").inputs(), ElementsAre(Symbol("v"))) << input;
  for (const char* made :
       {"v: aten::rand()", "v: call_module[a.b]", "v: (aten::rand() | node)", "v: [1, node]", "v: !aten::rand()",
        "v: ~aten::relu(node)", "v: dominates(aten::rand(), #pointwise)", "v: maybe(node)", "v: 1", "node", "..."})
    EXPECT_THAT(Pattern("my::op(" + std::string(made) + ")").inputs(), ElementsAre()) << made;
}

/// Where a part of a pattern may stand.
std::vector<match::Expr> positions_of(const match::Expr& part) {
  using namespace match;
  const auto sink = [](const Expr& arg) { return op("my::sink", arg, rest()); };
  return {part,
          part.used_once(),
          sink(part),
          sink(part.uses(1, 2)),
          sink(any_of({part, op("aten::neg", any("x"))})),
          sink(any_of({op("aten::neg", any("x")), part})),
          sink(maybe(part)),
          sink(not_(part)),
          sink(transparent(part)),
          sink(list({part, rest()})),
          sink(unordered({any("x"), part})),
          sink(dominates(any("x"), part)),
          sink(dominates(part, op(Tag::pointwise))),
          op("my::sink", any("x"), rest()).kwarg("k", part),
          commutative("my::sink", any("x"), part),
          op("my::sink", part.name("v"), part.name("v"))};
}

/// Calls of `name` and values, in all of those positions.
Graph graph_that_calls(const std::string& name) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& call = graph.call_function(name, {&x});
  Node& none = graph.call_function(name, {});
  for (Node* const value : {&x, &call, &none, &graph.call_function("aten::neg", {&x})}) {
    graph.call_function("my::sink", {value});
    graph.call_function("my::sink", {value, value});
    graph.call_function("my::sink", {&x, value});
    graph.call_function("my::sink", {Argument::list({&x, value})});
    graph.call_function("my::sink", {Argument::list({value, &x})});
    graph.call_function("my::sink", {&x}, {{"k", value}});
  }
  graph.output(x);
  return graph;
}

std::vector<std::string> found_in(const Graph& graph, const Pattern& pattern) {
  std::vector<std::string> anchors;
  for (const Match& match : find(graph, pattern, {.overlap = Overlap::all, .contained = false}))
    anchors.push_back(match.anchor().name());
  return anchors;
}

/// What is called keeps what it is in print: words of the language, formulas, values of the pattern, with arguments or
/// alone.
TEST(PatternText, FunctionsOfAnyNameReadBack) {
  std::size_t found = 0;
  for (const std::string name : {"my_fn",       "my::fn",      "torch.relu",    "x",
                                 "v",           "node",        "float",         "literal",
                                 "f16",         "None",        "True",          "inf",
                                 "_",           "return",      "let",           "graph",
                                 "get_attr",    "half",        "plus",          "cast",
                                 "maybe",       "lit",         "near",          "repeat",
                                 "commutative", "dominates",   "unordered",     "my::fn.if",
                                 "m.used_once", "call_method", "call_function", "my fn",
                                 "<my-fn>",     "call_module", "my::if",        "%x",
                                 "is",          "_1"}) {
    const Graph graph = graph_that_calls(name);
    std::vector<Pattern> patterns;
    for (const match::Expr& part : {match::op(name), match::op(name, match::any("x")), match::op(name, match::_)}) {
      for (const match::Expr& made : positions_of(part)) {
        const std::string refused = testing::error_of([&] { patterns.emplace_back(made); });
        EXPECT_TRUE(refused == "no error" || refused.find("the path of dominates()") != std::string::npos) << refused;
      }
    }
    for (const std::string& text :
         std::vector<std::string>{"let g(w) = my::sink(call_function[" + name + "](w))\nreturn g(x)",
                                  "let g(w) = my::sink(w | call_function[" + name + "], ...)\nreturn g(aten::neg)",
                                  "my::sink(call_function[" + name + "](), ...)",
                                  "let half(w) = my::sink(w)\nhalf(call_function[" + name + "])"})
      if (name[0] != '<' && name[0] != '%' && name != "my fn") patterns.emplace_back(text);
    for (const Pattern& pattern : patterns) {
      const Pattern read(pattern.str());
      EXPECT_EQ(read.str(), pattern.str());
      const std::vector<std::string> anchors = found_in(graph, pattern);
      EXPECT_EQ(found_in(graph, read), anchors) << pattern.str();
      found += anchors.size();
    }
  }
  EXPECT_GT(found, 5000u);
  EXPECT_EQ(printed("aten::relu(call_function[my_fn])"), "return aten::relu(call_function[my_fn])\n");
  EXPECT_EQ(printed("call_function[half](x)"), "return call_function[half](x)\n");
  EXPECT_EQ(printed("call_function[my_fn](x)"), "return my_fn(x)\n");
  EXPECT_EQ(printed("call_function[my::fn]"), "return my::fn\n");
  EXPECT_EQ(printed("node(float(x))"), "return node(float(x))\n");
}

/// Conditions print behind values of every kind, and are read there.
TEST(PatternText, ConditionsBehindEveryKindOfValue) {
  for (const match::Expr& made :
       {match::lit(2), match::lit(2.5), match::lit("a"), match::lit(Argument()), match::lit(true), match::near(2, 0.5),
        match::lit(DType::float16), match::op(TargetSet()), match::call(Op::call_method, {}, {}),
        match::call(Op::call_module, {}, {}), match::parameter(), match::constant(), match::any(), match::lit_int()}) {
    const Pattern pattern(match::op("my::op", made.used_once().where(">", 1)));
    EXPECT_EQ(Pattern(pattern.str()).str(), pattern.str());
    EXPECT_THAT(pattern.str(), ::testing::HasSubstr(".used_once.if(> 1)"));
  }
}

std::vector<std::string> dtypes_found(const Pattern& pattern) {
  const Graph graph = graph_of("a = my::op(%x)\nb = my::op(%y)\nc = my::op(%z)\nreturn (a, b, c)", "x y z");
  Shapes shapes(graph);
  for (const auto& [name, text] : {std::pair("x", "2x3:float16"), {"y", "2x3:bfloat16"}, {"z", "2x3:float32"}}) {
    TensorInfo info = *parse_tensor_info(text);
    info.device = *parse_device("cpu");
    shapes[*graph.find(name)] = info;
  }
  std::vector<std::string> found;
  for (const Match& match : find(graph, pattern, {.shapes = &shapes})) found.push_back(match.anchor().name());
  return found;
}

/// A type stands behind a name in short or in `.is(…)`, with other conditions before and after it.
TEST(PatternText, TypesBehindANameAreThoseOfIs) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> types = {
      {"f16", {"a"}},
      {"{f16}", {"a"}},
      {"{f16, bf16}", {"a", "b"}},
      {"{bool, f32}", {"c"}},
      {"floating", {"a", "b", "c"}},
      {"{f16, integral}", {"a"}},
      {"f32[2, 3]", {"c"}},
      {"{f16, bf16}[N, 2]", {}},
      {"{f16, bf16}[N, C]", {"a", "b"}},
      {"bf16 on cpu", {"b"}},
      {"{f16, f32}[...] on cuda:0", {}},
      {"{f16, f32} on cpu", {"a", "c"}},
      {"tensor on cuda:1", {}},
  };
  for (const auto& [type, finds] : types) {
    for (const char* const modifier : {"", ".used_once", ".uses(1, 3)", ".used_once.if(any)"}) {
      const auto find_by = [&](const std::string& text) {
        const Pattern pattern(text, {{"any", [](const Argument&) { return true; }}});
        EXPECT_EQ(dtypes_found(pattern), finds) << text << pattern.str();
        return pattern.str();
      };
      const std::string printed = find_by("my::op(x: node.is(" + type + ")" + modifier + ")");
      EXPECT_EQ(find_by("my::op(x: " + type + modifier + ")"), printed);
      EXPECT_EQ(find_by(printed), printed);
    }
  }
  EXPECT_EQ(printed("my::op(x: {f16, bf16}[N, *])"), "return my::op(x: {float16, bfloat16}[N, *])\n");
}

/// Braces that hold anything but dtypes are what is called, behind a name, too.
TEST(PatternText, OperatorsInBracesBehindAName) {
  EXPECT_EQ(printed("my::op(x: {f16, my::f})"), "x = {f16, my::f}\nreturn my::op(x)\n");
  EXPECT_EQ(printed("my::op(x: {f16, bf16}(y))"), "x = {f16, bf16}(y)\nreturn my::op(x)\n");
  EXPECT_EQ(printed("my::op(x: {#view})"), "x = #view\nreturn my::op(x)\n");
  EXPECT_EQ(printed("x = {f16, bf16}\nreturn my::op(x)"), "x = {f16, bf16}\nreturn my::op(x)\n");
  EXPECT_EQ(error_of("my::op(x: {f16, 2})"), "<pattern>:1:17: expected an operator, found '2'");
  EXPECT_EQ(error_of("my::op(x: f16.is(f32))"),
            "<pattern>:1:18: the tensor is described twice; say all of it in one place");
}

TEST(PatternText, StringsStandBetweenQuotesOfEitherKind) {
  for (const char quote : {'\'', '"'}) {
    for (const char* const content :
         {"", "floor", "two words", "a, b", ")", "[(", "it\\'s", "\\\"", "\\\\", "#", "a;b", "/"}) {
      const std::string text = "my::op(x, mode=" + (quote + std::string(content) + quote) + ")";
      Graph graph = parse_graph("graph(%x):\n    %a = call_function[target=my::op](args = (%x,), kwargs = {mode: " +
                                (quote + std::string(content) + quote) + "})\n    return a\n");
      EXPECT_EQ(find(graph, Pattern(text)).size(), 1u) << text;
      EXPECT_EQ(find(graph, Pattern(printed(text))).size(), 1u) << text;
      graph.find("a")->set_kwargs({{"mode", "another"}});
      EXPECT_EQ(find(graph, Pattern(text)).size(), 0u) << text;
    }
  }
}

TEST(PatternText, DeepGraphsAreReadWithoutRecursion) {
  Graph graph;
  Node* at = &graph.placeholder("x");
  for (int i = 0; i < 3000; ++i) at = &graph.call_function("aten::relu", {at});
  graph.output(*at);
  const Pattern pattern(graph);
  EXPECT_EQ(find(graph, pattern).size(), 1u);
  EXPECT_EQ(pattern.str().substr(0, 23), "relu = aten::relu(x)\nre");
}

TEST(PatternText, WhatALiteralIsNotComparedWithIsNamed) {
  for (const char* text : {"aten::mul.Scalar(x, c: literal.if(> 'a'))", "aten::mul.Scalar(x, c: literal.if(= 2))"})
    EXPECT_NE(error_of(text).find("compar"), std::string::npos) << text;
}

}  // namespace fx::pattern_text_test
