// Patterns find what a value is defined as, and what adds up to it.
#include <fxgraph/matchers/definitions.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/matchers/explain.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_set.h>
#include "tests/support/match_texts.h"
#include "tests/support/short_graph.h"

namespace fx::definitions_test {

using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::IsEmpty;

/// Sizes of values, by name.
using Known = std::vector<std::pair<const char*, std::vector<std::int64_t>>>;

std::vector<std::string> found(const Graph& graph, const Pattern& pattern, const Known& known = {}) {
  Shapes shapes(graph);
  for (const auto& [name, sizes] : known)
    shapes[*graph.find(name)] = ValueInfo(TensorInfo{.dtype = DType::float32, .sizes = sizes});
  FindOptions options;
  options.definitions = true;
  if (!known.empty()) options.shapes = &shapes;
  return testing::texts_of(find(graph, pattern, options));
}

TEST(Definitions, AreOffByDefault) {
  const Graph graph = graph_of("s = aten::sigmoid(%x)\nm = aten::mul.Tensor(%x, %s)\nreturn m");
  EXPECT_THAT(find(graph, "aten::silu(x)"), IsEmpty());
  EXPECT_THAT(found(graph, "aten::silu(x)"), ElementsAre("m {x: x} by silu"));
}

TEST(Definitions, ACallIsWhatItIsDefinedAs) {
  const Graph graph = graph_of("a = aten::silu(%x)\nb = aten::neg(%a)\nreturn b");
  EXPECT_THAT(found(graph, "aten::neg(aten::mul.Tensor(y, aten::sigmoid(z)))"), ElementsAre("b {y: x, z: x} by silu"));
  EXPECT_THAT(found(graph, "aten::silu(x)"), ElementsAre("a {x: x}"));
}

TEST(Definitions, RowsBuildOnEachOther) {
  for (const char* text : {"r = aten::relu6(%x)\nreturn r", "r = aten::hardtanh(%x, 0.0, 6.0)\nreturn r",
                           "r = aten::hardtanh(%x, 0, 6)\nreturn r", "r = aten::clamp(%x, 0, 6)\nreturn r",
                           "a = aten::clamp(%x, 0)\nr = aten::clamp(%a, None, 6)\nreturn r",
                           "a = aten::clamp_min(%x, 0.0)\nr = aten::clamp_max(%a, 6.0)\nreturn r"}) {
    const Graph graph = graph_of(text);
    for (const char* pattern : {"aten::relu6(x)", "aten::hardtanh(x, 0, 6)", "aten::hardtanh(x, 0.0, 6.0)",
                                "aten::clamp(x, 0.0, 6.0)", "aten::clamp(aten::clamp(x, 0), None, 6)"})
      EXPECT_EQ(found(graph, pattern).size(), 1u) << text << "\n" << pattern;
    EXPECT_THAT(found(graph, "aten::relu6(aten::neg(x))"), IsEmpty());
    EXPECT_THAT(found(graph, "aten::hardtanh(x, 0, 5)"), IsEmpty());
  }
}

TEST(Definitions, APartOfWhatCountsAsOneIsNotCounted) {
  const Graph graph = graph_of(
      "a = aten::add.Tensor(%x, 3)\nb = aten::clamp(%a, 0)\nc = aten::clamp(%b, None, 6)\nd = aten::mul.Tensor(%x, "
      "%c)\ne = aten::div.Tensor(%d, 6)\nreturn e");
  EXPECT_THAT(found(graph, "aten::hardswish(x)"), ElementsAre("e {x: x} by hardswish"));
  EXPECT_THAT(found(graph, "aten::relu6(x)"), IsEmpty());
  const Graph whole = graph_of("a = aten::hardswish(%x)\nreturn a");
  EXPECT_THAT(found(whole, "aten::relu6(x)"), IsEmpty());
  EXPECT_THAT(found(whole, "aten::add.Tensor(x, 3)"), IsEmpty());
}

TEST(Definitions, AnInnerValueThatIsUsedElsewhereKeepsItsPlace) {
  const Graph graph = graph_of("s = aten::sigmoid(%x)\nm = aten::mul.Tensor(%x, %s)\nreturn (m, s)");
  EXPECT_THAT(found(graph, "aten::silu(x)"), IsEmpty());
}

TEST(Definitions, OfUnknownRankOnlyWhatCountsFromTheEndIsKnown) {
  for (const char* turned : {"aten::transpose.int(%x, 0, 1)", "aten::transpose.int(%x, 1, 2)",
                             "aten::transpose.int(%x, -1, 1)", "aten::permute(%x, [0, 2, 1, 3])"}) {
    const Graph graph = graph_of("k = " + std::string(turned) + "\nreturn k");
    for (const char* pattern : {"aten::transpose.int(x, -2, -1)", "aten::mT(x)", "aten::t(x)"})
      EXPECT_THAT(found(graph, pattern), IsEmpty()) << turned << pattern;
  }
  const Graph graph = graph_of("k = aten::transpose.int(%x, -1, -2)\nreturn k");
  EXPECT_THAT(found(graph, "aten::mT(x)"), ElementsAre("k {x: x} by transpose"));
}

TEST(Definitions, WhatStandsThereCountsBeforeWhatElseItIs) {
  const Graph graph = graph_of("c = aten::clamp(%x, 0, 6)\nreturn c");
  EXPECT_THAT(found(graph, "aten::clamp(x, 0, 6)"), ElementsAre("c {x: x}"));
  FindOptions options;
  options.definitions = true;
  const auto in_set = PatternSet({Pattern("aten::clamp(x, 0, 6)")}).find(graph, options);
  ASSERT_EQ(in_set.size(), 1u);
  EXPECT_THAT(in_set[0].match.definitions(), IsEmpty());
}

TEST(Definitions, WhatIsWrittenInBetweenIsNoneOfThem) {
  for (const char* written : {"%x", "%s", "%v"}) {
    const Graph graph = graph_of("v = aten::view.default(%x, [-1])\ns = aten::sigmoid(%x)\nw = aten::add_.Scalar(" +
                                 std::string(written) + ", 1)\nm = aten::mul.Tensor(%x, %s)\nreturn m");
    EXPECT_THAT(found(graph, "aten::silu(x)"), IsEmpty()) << written;
    EXPECT_THAT(find(graph, "aten::mul.Tensor(x, aten::sigmoid(x))"), IsEmpty()) << written;
    EXPECT_THAT(found(graph, "aten::sigmoid(x)"), ElementsAre("s {x: x}"));
  }
  const Graph before =
      graph_of("w = aten::add_.Scalar(%x, 1)\ns = aten::sigmoid(%x)\nm = aten::mul.Tensor(%x, %s)\nreturn m");
  EXPECT_THAT(found(before, "aten::silu(x)"), ElementsAre("m {x: x} by silu"));
  const Graph of_other = graph_of(
      "s = aten::sigmoid(%x)\nn = aten::neg(%x)\nw = aten::add_.Scalar(%n, 1)\nm = aten::mul.Tensor(%x, %s)\nreturn "
      "(m, w)");
  EXPECT_THAT(found(of_other, "aten::silu(x)"), ElementsAre("m {x: x} by silu"));
  const Graph read_once = graph_of("s = aten::sigmoid(%x)\nw = aten::add_.Scalar(%x, 1)\nm = aten::neg(%s)\nreturn m");
  EXPECT_THAT(find(read_once, "aten::neg(aten::sigmoid(x))").size(), 1u);
}

TEST(Definitions, GeluHoweverItsProductsAreGrouped) {
  for (const char* third :
       {"c = aten::pow.Tensor_Scalar(%x, 3)\nd = aten::mul.Tensor(%c, 0.044715)",
        "a = aten::mul.Tensor(%x, 0.044715)\nc = aten::mul.Tensor(%a, %x)\nd = aten::mul.Tensor(%c, %x)",
        "a = aten::mul.Tensor(%x, %x)\nc = aten::mul.Tensor(%a, %x)\nd = aten::mul.Tensor(%c, 0.044715)",
        "a = aten::mul.Tensor(%x, %x)\nc = aten::mul.Tensor(%a, 0.044715)\nd = aten::mul.Tensor(%c, %x)"}) {
    const Graph graph = graph_of(std::string(third) +
                                 "\ne = aten::add.Tensor(%x, %d)\nf = aten::mul.Tensor(%e, 0.7978845608028654)\ng = "
                                 "aten::tanh(%f)\nh = aten::add.Tensor(%g, 1)\ni = aten::mul.Tensor(%x, 0.5)\nj = "
                                 "aten::mul.Tensor(%i, %h)\nreturn j");
    EXPECT_THAT(found(graph, "aten::gelu(x, approximate='tanh')"), ElementsAre("j {x: x} by gelu-tanh")) << third;
    EXPECT_THAT(found(graph, "aten::gelu(x)"), IsEmpty());
  }
}

constexpr const char* kLinear =
    "w = get_attr[target=w]()\nb = get_attr[target=b]()\nt = aten::permute(%w, [1, 0])\nv = aten::view(%x, [10, 4])\na "
    "= aten::addmm(%b, %v, %t)\nu = aten::view(%a, [2, 5, 3])\nr = aten::relu(%u)\nreturn r";

TEST(Definitions, ALinearOfRows) {
  const Known known{{"x", {2, 5, 4}}, {"w", {3, 4}},  {"b", {3}},       {"t", {4, 3}},
                    {"v", {10, 4}},   {"a", {10, 3}}, {"u", {2, 5, 3}}, {"r", {2, 5, 3}}};
  const Graph graph = graph_of(kLinear);
  EXPECT_THAT(found(graph, "aten::relu(aten::linear(x, w, b))", known),
              ElementsAre("r {x: x, w: w, b: b} by linear-of-rows"));
  EXPECT_THAT(found(graph, "aten::linear(x, w, b)", known), ElementsAre("u {x: x, w: w, b: b} by linear-of-rows"));
  EXPECT_THAT(found(graph, "aten::linear(x, w, b)"), IsEmpty());
}

TEST(Definitions, ALinearOfRowsThatArePutBackOtherwiseIsNone) {
  const Known known{{"x", {5, 2, 4}}, {"w", {3, 4}},  {"b", {3}},       {"t", {4, 3}},
                    {"v", {10, 4}},   {"a", {10, 3}}, {"u", {2, 5, 3}}, {"r", {2, 5, 3}}};
  EXPECT_THAT(found(graph_of(kLinear), "aten::relu(aten::linear(x, w, b))", known), IsEmpty());
}

constexpr const char* kAttention =
    "t = aten::permute(%k, [0, 1, 3, 2])\nq1 = aten::expand(%q, [2, 3, 5, 4])\nq2 = aten::view(%q1, [6, 5, 4])\nk1 = "
    "aten::expand(%t, [2, 3, 4, 5])\nk2 = aten::view(%k1, [6, 4, 5])\ns = aten::bmm(%q2, %k2)\ns1 = aten::view(%s, [2, "
    "3, 5, 5])\nd = aten::div.Tensor(%s1, 2.0)\np = aten::_softmax(%d, -1, False)\np1 = aten::expand(%p, [2, 3, 5, "
    "5])\np2 = aten::view(%p1, [6, 5, 5])\nv1 = aten::expand(%v, [2, 3, 5, 4])\nv2 = aten::view(%v1, [6, 5, 4])\nr = "
    "aten::bmm(%p2, %v2)\no = aten::view(%r, [2, 3, 5, 4])\nreturn o";

Known sizes_of_attention() {
  return {{"q", {2, 3, 5, 4}}, {"k", {2, 3, 5, 4}},  {"v", {2, 3, 5, 4}},  {"t", {2, 3, 4, 5}}, {"q1", {2, 3, 5, 4}},
          {"q2", {6, 5, 4}},   {"k1", {2, 3, 4, 5}}, {"k2", {6, 4, 5}},    {"s", {6, 5, 5}},    {"s1", {2, 3, 5, 5}},
          {"d", {2, 3, 5, 5}}, {"p", {2, 3, 5, 5}},  {"p1", {2, 3, 5, 5}}, {"p2", {6, 5, 5}},   {"v1", {2, 3, 5, 4}},
          {"v2", {6, 5, 4}},   {"r", {6, 5, 4}},     {"o", {2, 3, 5, 4}}};
}

TEST(Definitions, AttentionAsCoreAtenSpellsIt) {
  const Graph graph = graph_of(kAttention, "q k v");
  EXPECT_EQ(found(graph,
                  "aten::matmul(aten::softmax(aten::div(aten::matmul(q, aten::transpose(k, -2, -1)), s: literal), -1), "
                  "v)",
                  sizes_of_attention())
                .size(),
            1u);
  EXPECT_EQ(found(graph, "aten::matmul(a, b)", sizes_of_attention()).size(), 2u);
}

TEST(Definitions, AFlattenIsAViewOfMergedSizes) {
  const Graph graph = graph_of("v = aten::view(%x, [2, -1])\nreturn v");
  EXPECT_THAT(found(graph, "aten::flatten(x, 1)", {{"x", {2, 3, 4}}, {"v", {2, 12}}}),
              ElementsAre("v {x: x} by flatten"));
  EXPECT_THAT(found(graph, "aten::flatten(x, 1)", {{"x", {3, 2, 4}}, {"v", {2, 12}}}), IsEmpty());
  EXPECT_THAT(found(graph, "aten::flatten(x, 1)", {{"x", {2, 12}}, {"v", {2, 12}}}), IsEmpty());
}

TEST(Definitions, AreAskedOfOneNodeAndExplained) {
  const Graph graph = graph_of("s = aten::sigmoid(%x)\nm = aten::mul.Tensor(%x, %s)\nn = aten::neg(%m)\nreturn n");
  FindOptions options;
  EXPECT_FALSE(matches(graph, "aten::silu(x)", *graph.find("m"), options));
  options.definitions = true;
  EXPECT_TRUE(matches(graph, "aten::silu(x)", *graph.find("m"), options));
  EXPECT_FALSE(matches(graph, "aten::silu(x)", *graph.find("n"), options));
  EXPECT_EQ(explain(graph, "aten::neg(aten::silu(x))", *graph.find("n"), options), "n: fits; x is x");
  EXPECT_EQ(explain(graph, "aten::silu(x)", *graph.find("m"), options), "m: fits; x is x");
}

TEST(Definitions, ThoseOfASetTogether) {
  const Graph graph =
      graph_of("s = aten::sigmoid(%x)\nm = aten::mul.Tensor(%x, %s)\nr = aten::hardtanh(%m, 0, 6)\nreturn r");
  FindOptions options;
  options.definitions = true;
  const PatternSet set({"aten::silu(x)", "aten::relu6(x)"});
  std::vector<std::string> texts;
  for (const SetMatch& one : set.find(graph, options)) {
    std::ostringstream text;
    text << one.pattern << " " << one.match;
    texts.push_back(text.str());
  }
  EXPECT_THAT(texts, ElementsAre("0 m {x: x} by silu", "1 r {x: m} by relu6"));
}

}  // namespace fx::definitions_test
