#include <fxgraph/report/page.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include <fxgraph/text/parse.h>
#include "tests/support/random_graph.h"

namespace fx::page_test {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

json data_of(const std::string& page) {
  const std::string mark = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(mark) + mark.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Page, IsOneFileWithoutLinks) {
  const std::string page = to_html(load_graph_text("tests/corpus/torchfx113_resnet18.fx"), {.name = "resnet18"});
  EXPECT_THAT(page, ::testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(page, ::testing::EndsWith("</html>\n"));
  EXPECT_THAT(page, HasSubstr("<title>resnet18</title>"));
  for (const char* mark : {"@style@", "@scripts@", "@title@", "@data@"}) EXPECT_THAT(page, Not(HasSubstr(mark)));
  const std::regex link(R"(\b(src|href)\s*=\s*["']?(?!#)|@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg))");
  std::smatch found;
  EXPECT_FALSE(std::regex_search(page, found, link)) << found.str();
}

TEST(Page, HasEveryNodeOnceColumnByColumn) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Graph graph = testing::random_graph(seed, testing::random_options(seed, 60));
    const json data = data_of(to_html(graph));
    for (const auto& [name, column] : data["graph"]["nodes"].items()) ASSERT_EQ(column.size(), graph.size()) << name;
    EXPECT_EQ(data["graph"]["dominator"].size(), graph.size());
    EXPECT_EQ(data["graph"]["dead"].size(), graph.size());
    EXPECT_EQ(data["graph"]["memory"]["curve"].size(), graph.size());
    EXPECT_EQ(data["report"]["nodes"], graph.size());
    for (std::size_t place = 0; place < graph.size(); ++place) {
      for (const std::size_t input : data["graph"]["nodes"]["inputs"][place]) ASSERT_LT(input, place);
      ASSERT_LT(data["graph"]["dominator"][place], static_cast<std::int64_t>(place));
    }
  }
}

/// The places of the nodes that a layout of the page shows, sorted.
std::vector<std::int64_t> nodes_shown(const json& layout) {
  std::vector<std::int64_t> shown;
  for (const json& part : layout) {
    for (std::size_t i = 0; i < part[2].size(); i += 4)
      if (part[2][i] >= 0) shown.push_back(part[2][i]);
  }
  std::sort(shown.begin(), shown.end());
  return shown;
}

TEST(Page, HasOneLayoutWithoutParametersAndOneWithThem) {
  const auto layouts = [](const Graph& graph) { return data_of(to_html(graph))["graph"]["layouts"]; };
  const json both = layouts(parse_graph(R"(graph():
    %p_fc_weight : [num_users=1] = placeholder[target=p_fc_weight]
    %p : [num_users=1] = placeholder[target=p]
    %bias : [num_users=1] = get_attr[target=fc.bias]
    %y : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%p, %p_fc_weight, %bias), kwargs = {})
    return y
)"));
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(nodes_shown(both[0]), (std::vector<std::int64_t>{1, 3, 4}));
  EXPECT_EQ(nodes_shown(both[1]), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(layouts(load_graph_text("tests/corpus/torchfx113_resnet18.fx")).size(), 1u) << "no parameters to show";
}

TEST(Page, TheCurveIsThatOfLiveness) {
  const Graph graph = testing::random_graph(7, testing::random_options(7, 80));
  const Liveness live(graph);
  const json memory = data_of(to_html(graph))["graph"]["memory"];
  EXPECT_FALSE(memory["bytes"]);
  std::uint32_t most = 0;
  for (const std::uint32_t count : memory["curve"]) most = std::max(most, count);
  EXPECT_EQ(most, live.peak_live());
  EXPECT_EQ(memory["curve"][live.place(*live.peak_live_node())], live.peak_live());
}

TEST(Page, WithShapesThereAreBytesAndCost) {
  const Graph graph = parse_graph(R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %a : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})
    %b : [num_users=1] = call_function[target=torch.ops.aten.exp.default](args = (%a,), kwargs = {})
    return b
)");
  Shapes shapes(graph);
  for (const char* name : {"x", "a", "b"}) shapes[*graph.find(name)] = TensorInfo{.sizes = {32}};
  const json data = data_of(to_html(graph, {.shapes = &shapes}))["graph"];
  EXPECT_TRUE(data["memory"]["bytes"]);
  EXPECT_EQ(data["memory"]["curve"], json({0, 128, 256, 128}));
  EXPECT_EQ(data["memory"]["bars"], json::parse("[[1, 1, 2, 128, 0], [2, 2, 3, 128, 128]]"));
  EXPECT_EQ(data["cost"]["flops"], json({0.0, 32.0, 32.0, 0.0}));
  EXPECT_EQ(data["nodes"]["tensor"][1], "float32[32]");
}

TEST(Page, LeavesOutWhatWasNotAskedFor) {
  const Graph graph = testing::chain(3);
  const json data = data_of(to_html(graph, {}, {.dead_code = false, .liveness = false, .dominance = false}));
  for (const char* part : {"dead", "memory", "dominator", "cost"}) EXPECT_FALSE(data["graph"].contains(part)) << part;
  for (const char* part : {"dead_code", "liveness", "dominance"}) EXPECT_FALSE(data["report"].contains(part)) << part;
}

TEST(Page, NamesCannotBreakOut) {
  Graph graph;
  graph.output(graph.call_function("</script><script>alert(1)</script>", {"<!-- @title@ @data@"}));
  const std::string page = to_html(graph, {.name = "</title><script>alert(2)</script>"});
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("<title>&lt;/title&gt;"));
  EXPECT_EQ(data_of(page)["graph"]["nodes"]["target"][0], "</script><script>alert(1)</script>");
}

TEST(Page, EmptyGraph) { EXPECT_EQ(data_of(to_html(Graph()))["report"]["nodes"], 0); }

}  // namespace fx::page_test
