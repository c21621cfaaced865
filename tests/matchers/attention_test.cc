// One pattern for scaled dot-product attention, and the ways in which models write it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/matchers/explain.h>
#include "tests/support/short_graph.h"

namespace fx::attention_test {

using testing::graph_of;

/// Written once. Each part may be there or not; copies may stand anywhere.
const Pattern& attention() {
  static const Pattern pattern(R"(
    keys = {aten::mul, aten::div}(k, k_scale: literal) | k
    turned = aten::transpose.int(~keys, -2, -1) | aten::transpose.int(~keys, -1, -2) | aten::transpose.int(~keys, 2, 3)
           | aten::permute(~keys, [0, 1, 3, 2]) | aten::mT(~keys) | aten::transpose.int(~keys, 1, 2)
    right = {aten::mul, aten::div}(~turned, right_scale: literal) | ~turned
    left = {aten::mul, aten::div}(q, q_scale: literal) | q
    scores = {aten::matmul, aten::bmm}(~left, ~right)
    scaled = {aten::mul, aten::div}(~scores, scale: literal) | ~scores
    masked = commutative(aten::add.Tensor(~scaled, mask: node)) | aten::masked_fill(~scaled, mask, fill: literal)
           | aten::where.ScalarOther(mask, ~scaled, fill) | ~scaled
    probs = {aten::softmax.int, aten::_softmax}(repeat(/aten::(to|_to_copy)\..*/(_, ...), 0, 1, ~masked), -1, ...)
    kept = aten::dropout(repeat(/aten::(to|_to_copy)\..*/(_, ...), 0, 1, ~probs), p: float, training: bool)
         | repeat(/aten::(to|_to_copy)\..*/(_, ...), 0, 1, ~probs)
    return {aten::matmul, aten::bmm}(~kept, v)
  )");
  return pattern;
}

struct Spelling {
  const char* name;
  const char* body;
};

constexpr Spelling kSpellings[] = {
    {"Plain",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\np = aten::softmax.int(%s, -1)\no = "
     "aten::matmul(%p, %v)\nreturn o"},
    {"ScoresTimesScale",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\nm = aten::mul.Tensor(%s, 0.125)\n"
     "p = aten::softmax.int(%m, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"ScoresByScale",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\nm = aten::div.Tensor(%s, 8.0)\n"
     "p = aten::softmax.int(%m, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"ScalarOverload",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\nm = aten::mul.Scalar(%s, 0.125)\n"
     "p = aten::softmax.int(%m, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"QueryByScale",
     "d = aten::div.Tensor(%q, 8.0)\nt = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%d, %t)\n"
     "p = aten::softmax.int(%s, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"QueryTimesScale",
     "d = aten::mul.Tensor(%q, 0.125)\nt = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%d, %t)\n"
     "p = aten::softmax.int(%s, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"KeyTimesScale",
     "d = aten::mul.Tensor(%k, 0.125)\nt = aten::transpose.int(%d, -2, -1)\ns = aten::matmul(%q, %t)\n"
     "p = aten::softmax.int(%s, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"TurnedKeyTimesScale",
     "t = aten::transpose.int(%k, -2, -1)\nd = aten::mul.Tensor(%t, 0.125)\ns = aten::matmul(%q, %d)\n"
     "p = aten::softmax.int(%s, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"RootOfScaleOnBoth",
     "a = aten::mul.Tensor(%q, 0.35)\nt = aten::transpose.int(%k, -2, -1)\nb = aten::mul.Tensor(%t, "
     "0.35)\ns = aten::matmul(%a, %b)\np = aten::softmax.int(%s, -1)\no = aten::matmul(%p, %v)\n"
     "return o"},
    {"MaskAdded",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\na = aten::add.Tensor(%s, %mask)\n"
     "p = aten::softmax.int(%a, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"MaskAddedFirst",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\na = aten::add.Tensor(%mask, %s)\n"
     "p = aten::softmax.int(%a, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"MaskFilled",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\na = aten::masked_fill.Scalar(%s, %mask, "
     "-1000000000.0)\np = aten::softmax.int(%a, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"MaskSelects",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\na = aten::where.ScalarOther(%mask, %s, "
     "-1000000000.0)\np = aten::softmax.int(%a, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"DropoutInTraining",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\np = aten::softmax.int(%s, -1)\n"
     "d = aten::dropout(%p, 0.1, True)\no = aten::matmul(%d, %v)\nreturn o"},
    {"DropoutInEval",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\np = aten::softmax.int(%s, -1)\n"
     "d = aten::dropout(%p, 0.1, False)\no = aten::matmul(%d, %v)\nreturn o"},
    {"ScaleMaskAndDropout",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\nm = aten::div.Tensor(%s, 8.0)\n"
     "a = aten::add.Tensor(%m, %mask)\np = aten::softmax.int(%a, -1)\nd = aten::dropout(%p, 0.1, "
     "True)\no = aten::matmul(%d, %v)\nreturn o"},
    {"CastAroundSoftmax",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\nf = aten::to.dtype(%s, 6)\n"
     "p = aten::softmax.int(%f, -1)\nh = aten::to.dtype(%p, 5)\no = aten::matmul(%h, %v)\nreturn o"},
    {"CastBeforeDropout",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\na = aten::add.Tensor(%s, %mask)\n"
     "f = aten::to.dtype(%a, 6)\np = aten::softmax.int(%f, -1)\nh = aten::to.dtype(%p, 5)\n"
     "d = aten::dropout(%h, 0.1, True)\no = aten::matmul(%d, %v)\nreturn o"},
    {"SoftmaxInAnotherType",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\np = aten::softmax.int(%s, -1, 6)\n"
     "o = aten::matmul(%p, %v)\nreturn o"},
    {"InnerSoftmax",
     "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\np = aten::_softmax(%s, -1, False)\n"
     "o = aten::matmul(%p, %v)\nreturn o"},
    {"PermuteInside",
     "t = aten::permute(%k, [0, 1, 3, 2])\ns = aten::matmul(%q, %t)\nm = aten::mul.Tensor(%s, 0.125)\np = "
     "aten::softmax.int(%m, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"PositiveDimensions",
     "t = aten::transpose.int(%k, 2, 3)\ns = aten::matmul(%q, %t)\np = aten::softmax.int(%s, -1)\no = "
     "aten::matmul(%p, %v)\nreturn o"},
    {"DimensionsSwapped",
     "t = aten::transpose.int(%k, -1, -2)\ns = aten::matmul(%q, %t)\np = aten::softmax.int(%s, -1)\no = "
     "aten::matmul(%p, %v)\nreturn o"},
    {"MatrixTranspose",
     "t = aten::mT(%k)\ns = aten::matmul(%q, %t)\np = aten::softmax.int(%s, -1)\no = aten::matmul(%p, "
     "%v)\nreturn o"},
    {"Batched",
     "t = aten::transpose.int(%k, 1, 2)\ns = aten::bmm(%q, %t)\nm = aten::mul.Tensor(%s, 0.125)\np = "
     "aten::softmax.int(%m, -1)\no = aten::bmm(%p, %v)\nreturn o"},
    {"ContiguousKey",
     "t = aten::transpose.int(%k, -2, -1)\nc = aten::contiguous(%t)\ns = aten::matmul(%q, %c)\np = "
     "aten::softmax.int(%s, -1)\no = aten::matmul(%p, %v)\nreturn o"},
    {"CopiesEverywhere",
     "t = aten::transpose.int(%k, -2, -1)\nc = aten::contiguous(%t)\ns = aten::matmul(%q, %c)\nx = "
     "aten::clone(%s)\nm = aten::mul.Tensor(%x, 0.125)\ny = aten::detach(%m)\np = aten::softmax.int(%y, "
     "-1)\nz = aten::clone(%p)\no = aten::matmul(%z, %v)\nreturn o"},
    {"Everything",
     "a = aten::mul.Tensor(%q, 0.35)\nt = aten::transpose.int(%k, -2, -1)\nc = aten::contiguous(%t)\nb = "
     "aten::mul.Tensor(%c, 0.35)\ns = aten::matmul(%a, %b)\nm = aten::masked_fill.Scalar(%s, %mask, -10000.0)\n"
     "f = aten::to.dtype(%m, 6)\np = aten::softmax.int(%f, -1)\nh = aten::to.dtype(%p, 5)\nd = "
     "aten::dropout(%h, 0.1, True)\no = aten::matmul(%d, %v)\nreturn o"},
};

class AttentionSpelling : public ::testing::TestWithParam<Spelling> {};

TEST_P(AttentionSpelling, IsFound) {
  const Graph graph = graph_of(GetParam().body, "q k v mask");
  const std::vector<Match> matches = find(graph, attention());
  ASSERT_EQ(matches.size(), 1u) << near_misses(graph, attention());
  EXPECT_EQ(matches[0]["q"].name(), "q");
  EXPECT_EQ(matches[0]["k"].name(), "k");
  EXPECT_EQ(matches[0]["v"].name(), "v");
  const bool has_mask = graph.find("mask")->has_users();
  EXPECT_EQ(matches[0].has("mask"), has_mask);
  const std::size_t calls = graph.size() - graph.placeholders().size() - 1;
  EXPECT_EQ(matches[0].nodes().size(), calls) << "nothing is left over";
}

std::string spelling_name(const ::testing::TestParamInfo<Spelling>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Spellings, AttentionSpelling, ::testing::ValuesIn(kSpellings), spelling_name);

TEST(Attention, WhatIsNoAttentionIsNotFound) {
  constexpr Spelling kOthers[] = {
      {"softmax over another dimension",
       "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\np = "
       "aten::softmax.int(%s, 1)\no = aten::matmul(%p, %v)\nreturn o"},
      {"keys not turned",
       "s = aten::matmul(%q, %k)\np = aten::softmax.int(%s, -1)\no = aten::matmul(%p, %v)\nreturn o"},
      {"scores used elsewhere",
       "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\np = aten::softmax.int(%s, "
       "-1)\no = aten::matmul(%p, %v)\nreturn (o, s)"},
      {"scaled by a tensor",
       "t = aten::transpose.int(%k, -2, -1)\ns = aten::matmul(%q, %t)\nm = aten::mul.Tensor(%s, "
       "%mask)\np = aten::softmax.int(%m, -1)\no = aten::matmul(%p, %v)\nreturn o"},
  };
  for (const Spelling& other : kOthers)
    EXPECT_TRUE(find(graph_of(other.body, "q k v mask"), attention()).empty()) << other.name;
}

TEST(Attention, ReadsBack) { EXPECT_EQ(Pattern(attention().str()).str(), attention().str()); }

}  // namespace fx::attention_test
