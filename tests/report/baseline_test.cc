#include <fxgraph/report/baseline.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"

namespace fx::baseline_test {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A chain of `live` nodes that are needed and `dead` that are not, each of 400 bytes.
Report report_of(int live, int dead, const ReportOptions& options = {}) {
  Graph graph;
  Node* value = &graph.placeholder("x");
  Node& x = *value;
  for (int i = 0; i < live; ++i) value = &graph.call_function("aten::exp", {*value});
  for (int i = 0; i < dead; ++i) graph.call_function("aten::neg", {x});
  graph.output(*value);
  Shapes shapes(graph);
  for (const Node& node : graph.nodes()) {
    if (!node.is(Op::output)) shapes[node] = TensorInfo{.sizes = {100}};
  }
  return make_report(graph, {.shapes = &shapes}, options);
}

std::vector<std::string> past_limit(const Report& now, const Report& old, double limit) {
  const Report::BaselinePart part = compare_with_baseline(now, to_json(old), limit);
  std::vector<std::string> names;
  for (const Report::Measured* measure : part.past_limit()) names.push_back(measure->name);
  return names;
}

TEST(Baseline, TheSameReportIsNotWorse) { EXPECT_THAT(past_limit(report_of(10, 2), report_of(10, 2), 0), IsEmpty()); }

TEST(Baseline, SaysExactlyWhatGotWorse) {
  EXPECT_THAT(
      past_limit(report_of(10, 1), report_of(10, 0), 0),
      ElementsAre("liveness.peak_values", "cost.total.flops", "cost.total.bytes", "nodes", "dead_code.dead_nodes"));
  EXPECT_THAT(past_limit(report_of(10, 0), report_of(10, 1), 0), IsEmpty()) << "better is not worse";
}

TEST(Baseline, TheLimitIsAShareOfWhatWas) {
  const Report old = report_of(98, 0);  // 100 nodes
  EXPECT_THAT(past_limit(report_of(102, 0), old, 0.04), ::testing::Not(::testing::Contains("nodes")));
  EXPECT_THAT(past_limit(report_of(103, 0), old, 0.04), ::testing::Contains("nodes"));
  EXPECT_THAT(past_limit(report_of(98, 1), old, 1000), ElementsAre("dead_code.dead_nodes"))
      << "from nothing to something is past every limit";
}

TEST(Baseline, TextAndJsonSayIt) {
  Report report = report_of(20, 3);
  report.baseline = compare_with_baseline(report, to_json(report_of(10, 3)), 0.5);
  report.baseline->file = "old.json";
  EXPECT_THAT(to_text(report), HasSubstr("Against old.json: 4 measures worse by more than 50 %"));
  EXPECT_THAT(to_text(report), HasSubstr("! nodes 15 -> 25 (+66.7 %)"));
  const json part = json::parse(to_json(report))["baseline"];
  EXPECT_EQ(part["worse"], 4);
  EXPECT_EQ(part["limit"], 0.5);
}

std::string message_of(const Report& report, std::string_view baseline) {
  try {
    compare_with_baseline(report, baseline, 0);
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(Baseline, RefusesWhatCannotBeCompared) {
  const Report report = report_of(3, 0);
  EXPECT_THAT(message_of(report, "{\"nodes\": "), HasSubstr("is no JSON (byte "));
  EXPECT_THAT(message_of(report, "[1]"), HasSubstr("no report of version 1"));
  EXPECT_THAT(message_of(report, "{\"version\": 2, \"nodes\": 1}"), HasSubstr("no report of version 1"));
  EXPECT_THAT(message_of(report, "{\"version\": 1}"), HasSubstr("nothing to compare"));
  EXPECT_THAT(message_of(report, "{\"version\": 1, \"nodes\": \"many\"}"), HasSubstr("baseline's nodes is no number"));
  EXPECT_THAT(message_of(report_of(3, 0, {.liveness = false}), to_json(report)),
              HasSubstr("the baseline has liveness.peak_bytes and this report has not"));
}

}  // namespace fx::baseline_test
