// The JSON of reports is what docs/report.schema.json says it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include <fxgraph/report/baseline.h>
#include <fxgraph/report/report.h>
#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"

namespace fx::report_schema_test {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// As much of JSON Schema as the document uses; a keyword that it does not know is itself a violation.
class Schema {
 public:
  explicit Schema(json schema) : schema_(std::move(schema)) {}

  std::vector<std::string> violations(const json& value) const {
    std::vector<std::string> found;
    check(schema_, value, "report", found);
    return found;
  }

 private:
  using Violations = std::vector<std::string>;

  void check(const json& rule, const json& value, const std::string& path, Violations& found) const {
    for (const auto& [keyword, wanted] : rule.items()) {
      if (keyword == "$ref") {
        check(schema_.at(json::json_pointer(wanted.get<std::string>().substr(1))), value, path, found);
      } else if (keyword == "type") {
        if (!is(value, wanted)) found.push_back(path + ": not of type " + wanted.get<std::string>());
      } else if (keyword == "const") {
        if (value != wanted) found.push_back(path + ": not " + wanted.dump());
      } else if (keyword == "enum") {
        if (std::find(wanted.begin(), wanted.end(), value) == wanted.end())
          found.push_back(path + ": not one of the enum");
      } else if (keyword == "minimum") {
        if (value.is_number() && value < wanted) found.push_back(path + ": too small");
      } else if (keyword == "required") {
        for (const std::string key : wanted) {
          if (!value.contains(key)) found.push_back(path + ": lacks " + key);
        }
      } else if (keyword == "properties") {
        check_properties(rule, value, path, found);
      } else if (keyword == "items") {
        for (std::size_t i = 0; value.is_array() && i < value.size(); ++i)
          check(wanted, value[i], path + "[" + std::to_string(i) + "]", found);
      } else if (keyword != "description" && keyword != "title" && keyword != "$schema" && keyword != "$defs" &&
                 keyword != "additionalProperties") {
        found.push_back(path + ": the schema has the keyword " + keyword);
      }
    }
  }

  void check_properties(const json& rule, const json& value, const std::string& path, Violations& found) const {
    if (!value.is_object()) return;
    for (const auto& [key, inner] : value.items()) {
      if (rule["properties"].contains(key)) {
        check(rule["properties"][key], inner, path + "." + key, found);
      } else if (rule.value("additionalProperties", true) == false) {
        found.push_back(path + ": has the undocumented key " + key);
      }
    }
  }

  static bool is(const json& value, const std::string& type) {
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "integer" && value.is_number_integer()) || (type == "number" && value.is_number());
  }

  json schema_;
};

const Schema& schema() {
  static const Schema kSchema(json::parse(std::ifstream("docs/report.schema.json")));
  return kSchema;
}

/// A report with every part and every list filled.
Report full_report() {
  static const Graph kGraph = parse_graph(R"(graph():
    %x : [num_users=2] = placeholder[target=x]
    %unused : [num_users=0] = placeholder[target=unused]
    %w : [num_users=1] = get_attr[target=fc.weight]
    %h : [num_users=2] = call_function[target=torch.ops.aten.linear.default](args = (%x, %w), kwargs = {})
    %dead : [num_users=0] = call_function[target=torch.ops.aten.neg.default](args = (%h,), kwargs = {})
    %e : [num_users=1] = call_function[target=torch.ops.aten.exp.default](args = (%h,), kwargs = {})
    %s : [num_users=1] = call_function[target=torch.ops.aten.sigmoid.default](args = (%e,), kwargs = {})
    return s
)");
  Shapes shapes(kGraph);
  shapes[*kGraph.find("x")] = TensorInfo{.sizes = {8, 100}};
  shapes[*kGraph.find("w")] = TensorInfo{.sizes = {50, 100}};
  for (const char* name : {"h", "dead", "e", "s"}) shapes[*kGraph.find(name)] = TensorInfo{.sizes = {8, 50}};
  const NodeTimes times(kGraph, {1e-6, 2e-6, 3e-6});
  Report report = make_report(kGraph, {.name = "full",
                                       .shapes = &shapes,
                                       .attributes = {{"fc.weight", 20000}, {"fc.bias", 200}},
                                       .machine = Machine{"a machine", 1e9, 1e9},
                                       .times = &times});
  report.sizes = Report::SizesPart{{"x[0]"}, {{"peak at e", "400*x[0] B"}, {"MACs", ""}}, {{"e", "", "float32[?]"}}};
  report.baseline = compare_with_baseline(report, to_json(report), 0.05);
  return report;
}

TEST(ReportSchema, FullReportsKeepIt) {
  const json report = json::parse(to_json(full_report()));
  EXPECT_THAT(schema().violations(report), IsEmpty());
  for (const char* part : {"baseline", "dead_code", "liveness", "uses", "dominance", "cost", "sizes"})
    EXPECT_TRUE(report.contains(part)) << part;
  for (const char* list :
       {"/operators", "/dead_code/findings", "/liveness/at_peak", "/uses/most_used", "/uses/critical_path",
        "/dominance/bottlenecks", "/dominance/largest_groups", "/cost/nodes", "/baseline/measures", "/sizes/at_peak"}) {
    EXPECT_GT(report.at(json::json_pointer(list)).size(), 0u) << list;
  }
}

TEST(ReportSchema, ReportsOfRandomGraphsKeepIt) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = testing::random_graph(seed, testing::random_options(seed, 50));
    EXPECT_THAT(schema().violations(json::parse(to_json(make_report(graph)))), IsEmpty()) << seed;
  }
  EXPECT_THAT(schema().violations(json::parse(to_json(make_report(Graph())))), IsEmpty());
}

TEST(ReportSchema, TheCheckFindsWhatIsWrong) {
  const json report = json::parse(to_json(full_report()));
  const auto broken = [&](const char* path, const json& value) {
    json changed = report;
    changed[json::json_pointer(path)] = value;
    return schema().violations(changed);
  };
  EXPECT_THAT(broken("/version", 2), Contains("report.version: not 1"));
  EXPECT_THAT(broken("/nodes", "8"), Contains("report.nodes: not of type integer"));
  EXPECT_THAT(broken("/nodes", -1), Contains("report.nodes: too small"));
  EXPECT_THAT(broken("/extra", 1), Contains("report: has the undocumented key extra"));
  EXPECT_THAT(broken("/dead_code/findings/0/kind", "zombie"),
              Contains("report.dead_code.findings[0].kind: not one of the enum"));
  json less = report;
  less["liveness"].erase("peak_values");
  EXPECT_THAT(schema().violations(less), Contains("report.liveness: lacks peak_values"));
}

TEST(ReportSchema, EveryKeyOfAFullReportIsDocumentedAndEveryDocumentedKeyIsThere) {
  const json documented = json::parse(std::ifstream("docs/report.schema.json"))["properties"];
  const json report = json::parse(to_json(full_report()));
  for (const auto& [part, rule] : documented.items()) {
    ASSERT_TRUE(report.contains(part)) << part;
    if (!rule.contains("properties")) continue;
    for (const auto& [key, inner] : rule["properties"].items())
      EXPECT_TRUE(report[part].contains(key)) << part << "." << key;
  }
}

}  // namespace fx::report_schema_test
