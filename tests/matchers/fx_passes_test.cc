// torch.fx's test/test_fx_passes.py, test_subgraph_matcher: its sixteen pattern classes by their names there, with each
// set of options and the number of matches it expects. The partitioner and fuser cases of that file are about passes
// that are not here.
#include <gtest/gtest.h>

#include <algorithm>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/ops/schema.h>
#include "tests/support/short_graph.h"

namespace fx::fx_passes_test {

using testing::graph_of;

struct Expectation {
  bool match_output, match_placeholder;
  std::size_t matches;
  bool remove_overlapping_matches = true;
};

struct Case {
  const char* name;
  const char* inputs;
  const char* forward;
  const char* pattern_inputs;
  const char* pattern;
  std::vector<Expectation> expectations;
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

const Case kCases[] = {
    {"SingleNodePattern",
     "x",
     "val = aten::neg(%x)\nadd = aten::add.Tensor(%val, %val)\nreturn add",
     "a",
     "n = aten::neg(%a)\nreturn n",
     {{false, false, 1}, {true, false, 0}, {false, true, 1}, {true, true, 0}}},
    {"SimplePattern",
     "x w1 w2",
     R"(
       cat1 = aten::cat([%w1, %w2])
       m1 = aten::sum(%cat1)
       cat2 = aten::cat([%w2, %w1])
       m2 = aten::sum(%cat2)
       cat3 = aten::cat([%m1, %m2])
       m3 = aten::sum(%cat3)
       max1 = aten::max(%m1)
       a1 = aten::add.Tensor(%x, %max1)
       max2 = aten::max(%m2)
       a2 = aten::add.Tensor(%a1, %max2)
       a3 = aten::add.Tensor(%a2, %m3)
       return a3)",
     "a b",
     "cat = aten::cat([%a, %b])\nsum = aten::sum(%cat)\nreturn sum",
     {{false, false, 3}, {true, false, 0}, {false, true, 2}, {true, true, 0}}},
    {"SimpleFullGraphMatching",
     "x",
     "a = aten::neg(%x)\nadd = aten::add.Tensor(%a, %a)\nreturn add",
     "x",
     "a = aten::neg(%x)\nadd = aten::add.Tensor(%a, %a)\nreturn add",
     {{false, false, 1}, {true, false, 1}, {false, true, 1}, {true, true, 1}}},
    {"DiamondShapePatternTestCase",
     "x",
     R"(
       neg = aten::neg(%x)
       a = aten::relu(%neg)
       left = aten::sigmoid(%a)
       right = aten::relu(%a)
       out = aten::add.Tensor(%left, %right)
       return out)",
     "a",
     R"(
       r = aten::relu(%a)
       left = aten::sigmoid(%r)
       right = aten::relu(%r)
       out = aten::add.Tensor(%left, %right)
       return out)",
     {{false, false, 1}, {true, false, 1}, {false, true, 0}, {true, true, 0}}},
    // m3 leaks out of the second place; the uses of inputs are no leaks.
    {"NonFullyContainedMatches",
     "x w1 w2 b1 b2",
     R"(
       m1 = aten::cat([%w1, %w2])
       m2 = aten::cat([%x, %b2])
       m2t = aten::t(%m2)
       t0 = aten::addmm(%b1, %m1, %m2t)
       t0_sum = aten::sum(%t0)
       m3 = aten::cat([%w1, %w2])
       m4 = aten::cat([%x, %b2])
       m4t = aten::t(%m4)
       t1 = aten::addmm(%b1, %m3, %m4t)
       m3_sum = aten::sum(%m3)
       return (t0_sum, m3_sum))",
     "x w1 w2 b1 b2",
     R"(
       m1 = aten::cat([%w1, %w2])
       m2 = aten::cat([%x, %b2])
       t = aten::t(%m2)
       r = aten::addmm(%b1, %m1, %t)
       return r)",
     {{false, false, 1}, {true, false, 0}, {false, true, 1}}},
    {"ChainRepeatedPattern",
     "x",
     R"(
       a = aten::sigmoid(%x)
       b = aten::sigmoid(%a)
       c = aten::sigmoid(%b)
       d = aten::sigmoid(%c)
       return d)",
     "x",
     "a = aten::sigmoid(%x)\nb = aten::sigmoid(%a)\nreturn b",
     {{false, false, 3, false}, {false, false, 2}, {true, false, 1}, {false, true, 1}, {true, true, 0}}},
    {"QuantizationModel",
     "x",
     R"(
       y = aten::add_.Tensor(%x, 3)
       d = call_method[target=dequantize](%y)
       s = aten::sigmoid(%d)
       t = call_method[target=to](%s, torch.float16)
       return t)",
     "x",
     R"(
       d = call_method[target=dequantize](%x)
       s = aten::sigmoid(%d)
       t = call_method[target=to](%s, torch.float16)
       return t)",
     {{false, false, 1}, {true, false, 1}, {false, true, 0}, {true, true, 0}}},
    {"MultipleOutputsWithDependency",
     "x",
     "y = aten::relu(%x)\nz = aten::sigmoid(%y)\nreturn (z, y)",
     "a",
     "b = aten::relu(%a)\nc = aten::sigmoid(%b)\nreturn (b, c)",
     {{false, false, 1}, {true, false, 0}, {false, true, 1}, {true, true, 0}}},
    {"MultipleOutputsWithoutDependency",
     "x",
     R"(
       one = aten::add.Tensor(%x, 1)
       r = aten::relu(%one)
       z = aten::sum(%r)
       y = aten::sigmoid(%r)
       y2 = aten::sigmoid(%y)
       z2 = aten::sum(%z)
       out = aten::add.Tensor(%y2, %z2)
       return out)",
     "a",
     "r = aten::relu(%a)\nb = aten::sigmoid(%r)\nc = aten::sum(%r)\nreturn (b, c)",
     {{false, false, 1}, {true, false, 0}, {false, true, 0}, {true, true, 0}}},
    {"MultipleOutputsMultipleOverlappingMatches",
     "x",
     R"(
       one = aten::add.Tensor(%x, 1)
       r = aten::relu(%one)
       z = aten::sum(%r)
       z1 = aten::sum(%r)
       y = aten::sigmoid(%r)
       y1 = aten::sigmoid(%r)
       a = aten::add.Tensor(%z, %z1)
       b = aten::add.Tensor(%a, %y)
       c = aten::add.Tensor(%b, %y1)
       return c)",
     "a",
     "r = aten::relu(%a)\nb = aten::sigmoid(%r)\nc = aten::sum(%r)\nreturn (r, b, c)",
     {{false, false, 4, false}, {false, false, 1}}},
    {"MultipleOutputsMultipleNonOverlappingMatches",
     "x",
     R"(
       one = aten::add.Tensor(%x, 1)
       r = aten::relu(%one)
       z = aten::sum(%r)
       y = aten::sigmoid(%r)
       r1 = aten::relu(%r)
       z1 = aten::sum(%r1)
       y1 = aten::sigmoid(%r1)
       a = aten::add.Tensor(%z, %z1)
       b = aten::add.Tensor(%a, %y)
       c = aten::add.Tensor(%b, %y1)
       return c)",
     "a",
     "r = aten::relu(%a)\nb = aten::sigmoid(%r)\nc = aten::sum(%r)\nreturn (b, c)",
     {{false, false, 1}}},
    // Upstream finds two matches without the output, the second with the results exchanged, and notes that it should be
    // one; it is.
    {"MultipleOutputsIdenticalAnchor",
     "x",
     R"(
       one = aten::add.Tensor(%x, 1)
       r = aten::relu(%one)
       y = aten::sigmoid(%r)
       y1 = aten::sigmoid(%r)
       return (y, y1))",
     "a",
     "r = aten::relu(%a)\nb = aten::sigmoid(%r)\nb1 = aten::sigmoid(%r)\nreturn (b, b1)",
     {{false, false, 1}, {true, false, 1}, {false, true, 0}}},
    {"MultipleOutputsHorizontalPattern",
     "x",
     R"(
       one = aten::add.Tensor(%x, 1)
       y1 = aten::relu(%one)
       y2 = aten::sigmoid(%one)
       return (y1, y2))",
     "a",
     "b1 = aten::relu(%a)\nb2 = aten::sigmoid(%a)\nreturn (b1, b2)",
     {{false, false, 1}, {true, false, 1}, {false, true, 0}, {true, true, 0}}},
    // The first result comes back, through the sigmoid, as an input of the second.
    {"MultiOutputWithWithInvalidMatches",
     "x w",
     R"(
       res0 = aten::linear(%x, %w)
       res1 = aten::sigmoid(%res0)
       res2 = aten::mul.Tensor(%res0, %res1)
       res3 = aten::sum.dim_IntList(%res2, [1])
       return res3)",
     "a b c",
     "lin = aten::linear(%a, %b)\nmul = aten::mul.Tensor(%lin, %c)\nreturn (lin, mul)",
     {{false, false, 0}, {false, false, 0, false}, {true, false, 0}, {false, true, 0}}},
    {"QuantizationFp8Pattern",
     "arg0_1 arg1_1",
     R"(
       scale_0 = get_attr[target=_scale_0]()
       q = fp8::quantize(%arg0_1, 0, %scale_0)
       d = fp8::dequantize(%q, 0, %scale_0)
       scale_1 = get_attr[target=_scale_0]()
       q1 = fp8::quantize(%arg1_1, 0, %scale_1)
       d1 = fp8::dequantize(%q1, 0, %scale_1)
       add = aten::add.Tensor(%d, %d1)
       scale_2 = get_attr[target=_scale_0]()
       q2 = fp8::quantize(%add, 0, %scale_2)
       d2 = fp8::dequantize(%q2, 0, %scale_2)
       return d2)",
     "a a_dtype a_scale b b_dtype b_scale out_scale",
     R"(
       a1 = fp8::dequantize(%a, %a_dtype, %a_scale)
       b1 = fp8::dequantize(%b, %b_dtype, %b_scale)
       sum = aten::add.Tensor(%a1, %b1)
       out = fp8::quantize(%sum, %a_dtype, %out_scale)
       return out)",
     {{false, false, 1}}},
    {"NoAnchorFound",
     "x",
     "y = aten::add.Tensor(%x, 1)\nreturn y",
     "a",
     "b1 = aten::relu(%a)\nreturn b1",
     {{false, false, 0}, {true, false, 0}, {false, true, 0}, {true, true, 0}}},
};

class SubgraphMatcherCases : public ::testing::TestWithParam<Case> {
 public:
  static void SetUpTestSuite() {
    register_schema("fp8::quantize(Tensor self, int dtype, float scale) -> Tensor");
    register_schema("fp8::dequantize(Tensor self, int dtype, float scale) -> Tensor");
  }
};

TEST_P(SubgraphMatcherCases, test_subgraph_matcher) {
  const Graph graph = graph_of(GetParam().forward, GetParam().inputs);
  const Graph pattern_graph = graph_of(GetParam().pattern, GetParam().pattern_inputs);
  for (const Expectation& want : GetParam().expectations) {
    const Pattern pattern(pattern_graph,
                          {.match_output = want.match_output, .match_placeholder = want.match_placeholder});
    FindOptions options;
    options.overlap = want.remove_overlapping_matches ? Overlap::first : Overlap::all;
    options.convex = true;
    const std::vector<Match> found = find(graph, pattern, options);
    EXPECT_EQ(found.size(), want.matches)
        << "output " << want.match_output << ", placeholders " << want.match_placeholder << ", overlaps removed "
        << want.remove_overlapping_matches;
    for (const Match& match : found) {
      const auto nodes_map = internal_match(match).nodes_map;
      for (const Node& node : pattern_graph.nodes()) {
        if (node.is(Op::output)) continue;
        EXPECT_TRUE(std::any_of(nodes_map.begin(), nodes_map.end(),
                                [&](const auto& bound) { return bound.first == node.name(); }))
            << node.name() << " is not in the map";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Upstream, SubgraphMatcherCases, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::fx_passes_test
