// Rules that look through any number of calls, and when the driver stops by the clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/rewriter/driver.h>
#include "tests/support/short_graph.h"

namespace fx::far_rules_test {

using testing::calls_of;
using testing::graph_of;
using ::testing::HasSubstr;

// What such a rule looks for is made after it was tried, so many calls away: only the last rule applies at first, then
// the one that this makes possible further up.
TEST(FarRules, FindWhatOthersMakeAtTheOtherEnd) {
  for (const auto& [pattern, between] :
       {std::pair("aten::sin(~aten::neg(x))", "aten::clone"), std::pair("aten::sin(~aten::neg(x))", "aten::detach"),
        std::pair("aten::sin(dominates(aten::neg(x), aten::sqrt))", "aten::sqrt")}) {
    for (const int length : {1, 2, 3, 20}) {
      std::string body = "t = aten::tanh(%x)\nv0 = aten::cos(%t)\n";
      for (int i = 0; i < length; ++i)
        body += "v" + std::to_string(i + 1) + " = " + between + "(%v" + std::to_string(i) + ")\n";
      Graph graph = graph_of(body + "s = aten::sin(%v" + std::to_string(length) +
                             ")\ne = aten::erf(%t)\nm = aten::mul.Tensor(%x, %e)\no = aten::exp(%m)\nreturn (s, o)");
      const RewriteReport report = rewrite_to_fixed_point(
          graph, RuleSet{{.name = "far", .pattern = pattern, .replacement = "aten::abs(x)"},
                         {.name = "makes", .pattern = "aten::cos(aten::tanh(x))", .replacement = "aten::neg(x)"},
                         {.name = "frees", .pattern = "aten::mul.Tensor(x, aten::erf(y))", .replacement = "x"}});
      EXPECT_EQ(report.applied, 3u) << pattern << " " << length << "\n" << report;
      EXPECT_THAT(calls_of(graph), HasSubstr("aten::abs(x)")) << pattern << " " << length;
    }
  }
}

TEST(TimeLimits, StopWhenTheyAreReachedAndNotBefore) {
  using namespace std::chrono_literals;
  const RuleSet rules = {{.name = "neg", .pattern = "aten::neg(x)", .replacement = "aten::sin(x)"}};
  for (const auto& [limit, reached] :
       {std::pair<std::chrono::nanoseconds, bool>(0ns, false), {1ns, true}, {1h, false}}) {
    for (const bool once : {true, false}) {
      Graph graph = graph_of("a = aten::neg(%x)\nb = aten::neg(%a)\nreturn b");
      const DriverOptions options{.max_time = limit};
      const RewriteReport report =
          once ? rewrite_once(graph, rules, options) : rewrite_to_fixed_point(graph, rules, options);
      EXPECT_EQ(report.stop == RewriteStop::max_time, reached) << limit.count();
      EXPECT_EQ(report.applied, reached ? 0u : 2u) << limit.count();
    }
  }
}

}  // namespace fx::far_rules_test
