#include <fxgraph/report/report.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"

namespace fx::report_test {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// Planted: a dead chain, a dead store, an unused result, a write that is seen through a view, an unused input and
/// parameter.
constexpr const char* kPlanted = R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %unused : [num_users=0] = placeholder[target=unused]
    %w : [num_users=1] = get_attr[target=fc.weight]
    %h : [num_users=4] = call_function[target=torch.ops.aten.linear.default](args = (%x, %w), kwargs = {})
    %dead : [num_users=1] = call_function[target=torch.ops.aten.neg.default](args = (%h,), kwargs = {})
    %deader : [num_users=0] = call_function[target=torch.ops.aten.abs.default](args = (%dead,), kwargs = {})
    %scratch : [num_users=1] = call_function[target=torch.ops.aten.clone.default](args = (%h,), kwargs = {})
    %store : [num_users=0] = call_function[target=torch.ops.aten.add_.Tensor](args = (%scratch, 1), kwargs = {})
    %view : [num_users=1] = call_function[target=torch.ops.aten.view.default](args = (%h, [-1]), kwargs = {})
    %seen : [num_users=0] = call_function[target=torch.ops.aten.mul_.Tensor](args = (%view, 2), kwargs = {})
    %top : [num_users=1] = call_function[target=torch.ops.aten.max.dim](args = (%h, 1), kwargs = {})
    %values : [num_users=1] = call_function[target=operator.getitem](args = (%top, 0), kwargs = {})
    %e : [num_users=1] = call_function[target=torch.ops.aten.exp.default](args = (%values,), kwargs = {})
    %s : [num_users=1] = call_function[target=torch.ops.aten.sigmoid.default](args = (%e,), kwargs = {})
    return s
)";

struct Planted {
  Graph graph = parse_graph(kPlanted);
  Shapes shapes{graph};
  ReportInputs inputs;

  Planted() {
    const auto set = [&](const char* name, std::vector<std::int64_t> sizes) {
      shapes[*graph.find(name)] = TensorInfo{.sizes = std::move(sizes)};
    };
    set("x", {8, 100});
    set("w", {50, 100});
    for (const char* name : {"h", "dead", "deader", "scratch", "store"}) set(name, {8, 50});
    for (const char* name : {"view", "seen"}) set(name, {400});
    for (const char* name : {"values", "e", "s"}) set(name, {8});
    shapes[*graph.find("top")] =
        ValueInfo(std::vector<TensorInfo>{{.sizes = {8}}, {.dtype = DType::int64, .sizes = {8}}});
    inputs.name = "planted.fx";
    inputs.shapes = &shapes;
    inputs.attributes = {{"fc.weight", 20000}, {"fc.bias", 200}};
    inputs.machine = Machine{"test machine", 1e9, 1e9};
  }
};

TEST(Report, FindsExactlyWhatWasPlanted) {
  Planted p;
  const Report report = make_report(p.graph, p.inputs);
  std::vector<std::pair<std::string, std::string>> found;
  for (const Report::Finding& f : report.dead_code->findings) found.emplace_back(f.kind, f.name);
  EXPECT_THAT(found, ::testing::ElementsAre(std::pair("dead node", "dead"), std::pair("dead node", "deader"),
                                            std::pair("dead node", "scratch"), std::pair("dead store", "store"),
                                            std::pair("unused output", "top"), std::pair("unused input", "unused"),
                                            std::pair("unused attribute", "fc.bias")));
  EXPECT_EQ(report.dead_code->unused_bytes, 200);
  EXPECT_EQ(report.liveness->peak_bytes_at, "deader");
  EXPECT_EQ(report.liveness->peak_bytes, 3 * 1600);
  EXPECT_EQ(report.cost->total.macs, 8 * 50 * 100);
  EXPECT_EQ(report.dominance->fusion_groups, 2u);  // neg and abs; exp and sigmoid
  EXPECT_EQ(report.uses->critical_path.front(), "x");
}

TEST(Report, TextPutsWhatMattersFirstAndFitsTheTerminal) {
  Planted p;
  const std::string text = to_text(make_report(p.graph, p.inputs));
  EXPECT_THAT(text, ::testing::StartsWith("planted.fx: 15 nodes, 2 inputs, 1 attribute, 40.0 kMACs, peak 4.69 KiB\n"));
  EXPECT_THAT(text,
              HasSubstr("Dead code: 3 dead nodes, 1 dead store, 1 unused output, 1 unused input, 1 unused attribute"));
  EXPECT_THAT(text, HasSubstr("store: dead store because nothing reads what it writes"));
  EXPECT_THAT(text, HasSubstr("Liveness: peak 4.69 KiB at deader"));
  EXPECT_LT(text.find("Cost:"), text.find("Liveness:"));
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 124u) << line;
  EXPECT_LE(count, 50);
}

TEST(Report, JsonHasEveryPartAskedFor) {
  Planted p;
  const auto json = nlohmann::json::parse(to_json(make_report(p.graph, p.inputs)));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["dead_code"]["findings"].size(), 7u);
  EXPECT_EQ(json["liveness"]["peak_bytes"], 4800);
  EXPECT_EQ(json["liveness"]["at_peak"][0]["bytes"], 1600);
  EXPECT_EQ(json["cost"]["machine"], "test machine");
  EXPECT_GT(json["cost"]["total"]["seconds"], 0.0);
  EXPECT_EQ(json["dominance"]["fused_nodes"], 4);
  const auto less = nlohmann::json::parse(to_json(make_report(p.graph, {}, {.liveness = false, .cost = false})));
  EXPECT_FALSE(less.contains("liveness"));
  EXPECT_FALSE(less.contains("cost"));
  EXPECT_TRUE(less.contains("uses"));
}

// Modules are timed run by run, with all that lies in them; the slowest node comes first.
TEST(Report, MeasuredTimesStandBesideEstimates) {
  Planted p;
  NodeTimes times(p.graph);
  double last = 0;
  for (const Node& node : p.graph.nodes()) times[node] = {last += 1e-6, last, last};
  p.inputs.times = &times;
  const Report report = make_report(p.graph, p.inputs);
  ASSERT_TRUE(report.cost && report.cost->total.measured);
  EXPECT_EQ(report.cost->total.measured->runs, 3u);
  const auto nodes = static_cast<double>(p.graph.size());
  EXPECT_NEAR(report.cost->total.measured->seconds, nodes * (nodes + 1) / 2 * 1e-6, 1e-12);
  double before = 1;
  for (const Report::CostRow& row : report.cost->nodes) {
    EXPECT_LE(row.measured->seconds, before);
    before = row.measured->seconds;
  }
  EXPECT_THAT(to_text(report), HasSubstr("one node after the other: medians of 3 runs"));
}

TEST(Report, WithoutShapesThereAreNoBytes) {
  Planted p;
  const Report report = make_report(p.graph);
  EXPECT_FALSE(report.cost);
  EXPECT_FALSE(report.liveness->has_bytes);
  EXPECT_THAT(to_text(report), HasSubstr("give input shapes for bytes"));
  EXPECT_FALSE(nlohmann::json::parse(to_json(report))["liveness"].contains("peak_bytes"));
}

TEST(Report, EmptyGraph) {
  const Graph graph;
  const Shapes shapes(graph);
  const Report report = make_report(graph, {.shapes = &shapes});
  EXPECT_THAT(to_text(report), HasSubstr("0 nodes"));
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["nodes"], 0);
}

TEST(Report, ListsAreCutButCountsAreNot) {
  const Graph graph = [] {
    Graph chain = testing::chain(1000);
    chain.erase_node(*chain.output_node());
    chain.output(*chain.placeholders()[0]);
    return chain;
  }();
  const Report report = make_report(graph, {}, {.max_rows = 5});
  EXPECT_EQ(report.dead_code->dead_nodes, 3000u);
  EXPECT_THAT(report.dead_code->findings, SizeIs(6));  // and the unused input
  EXPECT_THAT(to_text(report), HasSubstr("… and 2995 more"));
}

TEST(Report, OfEveryCorpusGraph) {
  for (const char* name : {"torchfx113_resnet18", "torchfx113_densenet121", "torchfx214_googlenet",
                           "export214_resnet18", "export214_transformer", "torchfx113_operators"}) {
    const Graph graph = load_graph_text(std::string("tests/corpus/") + name + ".fx");
    const Report report = make_report(graph, {.name = name});
    EXPECT_EQ(report.nodes, graph.size());
    EXPECT_EQ(report.dead_code->dead_nodes, 0u) << name << to_text(report);
    EXPECT_GT(report.liveness->peak_values, 0u);
    EXPECT_FALSE(nlohmann::json::parse(to_json(report)).empty());
  }
}

TEST(Report, FormatsBytesAndCounts) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(24 * 1024 * 1024 + 100'000), "24.1 MiB");
  EXPECT_EQ(format_count(4.089e9), "4.09 G");
  EXPECT_EQ(format_count(118'013'952), "118 M");
  EXPECT_EQ(format_count(7), "7 ");
}

}  // namespace fx::report_test
