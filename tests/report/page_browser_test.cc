// The page in a browser without a window. A script at the top of the page collects every error, one at its end clicks
// and looks, and leaves what it saw in an element that Chromium prints. Skipped where there is no Chromium
// (tools/install-deps --with-browser).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <fxgraph/report/page.h>
#include <fxgraph/text/parse.h>
#include "tests/support/file_text.h"
#include "tests/support/random_graph.h"
#include "tests/support/scratch_folder.h"

namespace fx::page_browser_test {

using nlohmann::json;
using ::testing::HasSubstr;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  for (std::size_t n; pipe && (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    text.append(buffer.data(), n);
  if (pipe) pclose(pipe);
  return text;
}

std::string find_browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    std::string path = output_of("command -v " + std::string(name));
    if (!path.empty()) return path.substr(0, path.find('\n'));
  }
  return "";
}

constexpr const char* kWatch = R"js(<script>
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
console.error = console.warn = (...what) => errors.push(what.join(" "));
</script>)js";

class PageBrowser : public ::testing::Test {
 protected:
  void SetUp() override {
    browser_ = find_browser();
    if (browser_.empty()) GTEST_SKIP() << "no Chromium here; tools/install-deps --with-browser installs it";
  }

  /// Opens the page, runs `script`, which returns an object, and returns that with `errors` added.
  json visit(std::string page, const std::string& script) {
    page.insert(page.find("<title>"), kWatch);
    page.insert(page.rfind("</body>"),
                "<script>let outcome; try { outcome = (() => {" + script +
                    "})(); } catch (error) { outcome = {}; errors.push(String(error)); } outcome.errors = errors;"
                    "document.title = 'done'; document.body.replaceChildren('[[[' + JSON.stringify(outcome) + ']]]');"
                    "</script>");
    const std::filesystem::path file = folder_ / "page.html";
    std::ofstream(file) << page;
    const std::string found =
        output_of("timeout 60 '" + browser_ + "' --headless --no-sandbox --disable-gpu --user-data-dir='" +
                  (folder_ / "profile").string() + "' --window-size=1400,900 --dump-dom 'file://" + file.string() +
                  "' 2>/dev/null");
    const std::size_t begin = found.find("[[["), end = found.rfind("]]]");
    if (begin == found.npos || end == found.npos) {
      ADD_FAILURE() << "the browser printed no outcome: " << found.substr(0, 2000);
      return json::object();
    }
    std::string text = found.substr(begin + 3, end - begin - 3);
    for (const auto& [escaped, plain] : {std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&amp;", "&")}) {
      for (std::size_t at; (at = text.find(escaped)) != text.npos;)
        text.replace(at, std::string(escaped).size(), plain);
    }
    return json::parse(text);
  }

  std::string browser_;
  testing::ScratchFolder folder_;
};
struct PageBrowserNight : PageBrowser {};

Shapes all_of_one_size(const Graph& graph) {
  Shapes shapes(graph);
  for (const Node& node : graph.nodes()) {
    if (!node.is(Op::output)) shapes[node] = TensorInfo{.sizes = {1, 64, 56, 56}};
  }
  return shapes;
}

TEST_F(PageBrowser, OpensClicksAndMarks) {
  const Graph graph = load_graph_text("tests/corpus/torchfx113_resnet18.fx");
  const Shapes shapes = all_of_one_size(graph);
  const Liveness live(graph, shapes);
  const json seen =
      visit(to_html(graph, {.name = "resnet18", .shapes = &shapes}), testing::file_text("tests/report/page_clicks.js"));
  EXPECT_EQ(seen["errors"], json::array());
  EXPECT_EQ(seen["title"], "resnet18");
  EXPECT_EQ(seen["block"], 1);
  EXPECT_EQ(seen["opened"]["boxes"], seen["boxes"].get<int>() + 7) << "7 nodes and the closed downsample for the block";
  EXPECT_EQ(seen["opened"]["frame"], 1);
  EXPECT_EQ(seen["opened"]["conv"], 1);
  EXPECT_EQ(seen["closed"], seen["boxes"]);
  EXPECT_EQ(seen["all"]["boxes"], graph.size());
  EXPECT_GE(seen["all"]["edges"], 78);
  EXPECT_EQ(seen["peak"], json({live.peak().node->name()}));
  EXPECT_THAT(seen["label"].get<std::string>(), HasSubstr("MiB at " + live.peak().node->name()));
  EXPECT_EQ(seen["bars"], live.storages().size() - 1) << "all but the input";
  EXPECT_EQ(seen["packed"], seen["bars"]);
  EXPECT_THAT(seen["detail"].get<std::string>(), HasSubstr("call_module[target=layer1.0.bn1]"));
  EXPECT_GE(seen["near"], 4) << "an input, a user and the edges to them";
  EXPECT_EQ(seen["path"], 6)
      << "out of layer1.1 and layer1, over to layer2, into it and layer2.0; the result's one edge";
  EXPECT_EQ(seen["filtered"], json({"layer2_0_downsample_0", "layer2_0_downsample_1"}));
  EXPECT_EQ(seen["most"], "2");
}

TEST_F(PageBrowserNight, StrikesDeadCodeThrough) {
  const json seen = visit(to_html(parse_graph(R"(graph():
    %x : [num_users=2] = placeholder[target=x]
    %dead : [num_users=0] = call_function[target=torch.ops.aten.neg.default](args = (%x,), kwargs = {})
    %y : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})
    return y
)")),
                          R"js(
    const struck = (what) => getComputedStyle(document.querySelector(what)).textDecorationLine;
    return {box: struck("[data-node=dead] text"), live: struck("[data-node=y] text"), line: struck("#listing .dead"),
            lines: document.querySelectorAll("#listing .dead").length, found: document.querySelector("#findings tbody:nth-of-type(2)")
                                                                      .textContent};)js");
  EXPECT_EQ(seen["errors"], json::array());
  EXPECT_EQ(seen["box"], "line-through");
  EXPECT_EQ(seen["live"], "none");
  EXPECT_EQ(seen["line"], "line-through");
  EXPECT_EQ(seen["lines"], 1);
  EXPECT_THAT(seen["found"].get<std::string>(), HasSubstr("nothing uses it"));
}

/// In a page: what is wrong with the boxes in sight: their texts do not fit, or they stand on each other.
constexpr const char* kFaults = R"js(
    const faults = () => {
      const found = [], boxes = [...document.querySelectorAll(".box")].map((box) => ({name: box.textContent, rect: box.querySelector("rect").getBBox(),
        texts: [...box.querySelectorAll("text")].map((text) => text.getBBox())}));
      boxes.forEach(({name, rect, texts}, i) => {
        texts.forEach((text) => { if (text.x < rect.x || text.x + text.width > rect.x + rect.width) found.push(name + " is cut"); });
        boxes.slice(i + 1).forEach((other) => {
          const apart = (from, size) => rect[from] + rect[size] <= other.rect[from] || other.rect[from] + other.rect[size] <= rect[from];
          if (!apart("x", "width") && !apart("y", "height")) found.push(name + " on " + other.name);
        });
      });
      return found;
    };)js";

TEST_F(PageBrowserNight, BoxesAreApartAndTextsFitInThemWhateverIsOpen) {
  for (const char* name : {"torchfx113_resnet18", "torchfx214_googlenet", "export214_transformer"}) {
    const Graph graph = load_graph_text(std::string("tests/corpus/") + name + ".fx");
    const Shapes shapes = all_of_one_size(graph);
    const json seen = visit(to_html(graph, {.shapes = &shapes}), std::string(kFaults) + R"js(
      const click = (made) => made.dispatchEvent(new MouseEvent("click", {bubbles: true})), seen = {first: faults()};
      document.querySelector("#close-all").click();
      for (let opened = 0; opened < 12; ++opened) {
        const groups = document.querySelectorAll(".box.group");
        if (groups.length === 0) break;
        click(groups[opened * 7 % groups.length]);
        seen["opened" + opened] = faults();
      }
      document.querySelector("#open-all").click();
      seen.all = faults();
      document.querySelector("#show-parameters").click();
      seen.parameters = faults();
      return seen;)js");
    for (const auto& [state, faults] : seen.items()) EXPECT_EQ(faults, json::array()) << name << " " << state;
  }
}

TEST_F(PageBrowserNight, ParametersAreShownOnDemandAndWhenTheyAreChosen) {
  const Graph graph = load_graph_text("tests/corpus/export214_transformer.fx");
  const json seen = visit(to_html(graph), R"js(
    const shown = () => document.querySelectorAll(".box[data-node]").length, seen = {first: shown()};
    document.querySelector("#show-parameters").click();
    seen.all = shown();
    document.querySelector("#show-parameters").click();
    seen.again = shown();
    document.querySelector("#find").value = "p_layers_0_norm1_bias";
    document.querySelector("#find").dispatchEvent(new Event("change"));
    seen.chosen = document.querySelector(".chosen").dataset.node;
    return seen;)js");
  EXPECT_EQ(seen["errors"], json::array());
  EXPECT_EQ(seen["all"], graph.size());
  EXPECT_LT(seen["first"], graph.size());
  EXPECT_EQ(seen["again"], seen["first"]);
  EXPECT_EQ(seen["chosen"], "p_layers_0_norm1_bias");
}

TEST_F(PageBrowserNight, FiveThousandNodesOpen) {
  const Graph graph = testing::random_graph(1, {.nodes = 5000});
  const Shapes shapes = all_of_one_size(graph);
  const json seen = visit(to_html(graph, {.shapes = &shapes}), R"js(
    const first = document.querySelectorAll(".box").length;
    document.querySelector("#open-all").click();
    return {first, all: document.querySelectorAll(".box").length};)js");
  EXPECT_EQ(seen["errors"], json::array());
  EXPECT_LE(seen["first"], 150) << "closed at first";
  EXPECT_GT(seen["all"], 4000);
}

TEST_F(PageBrowserNight, GraphsOfAllKindsOpenWithoutErrors) {
  for (const char* name : {"export214_transformer", "torchfx214_googlenet", "torchfx113_densenet121"}) {
    const Graph graph = load_graph_text(std::string("tests/corpus/") + name + ".fx");
    const json seen = visit(to_html(graph), R"js(document.querySelector("#open-all").click();
      return {boxes: document.querySelectorAll(".box").length};)js");
    EXPECT_EQ(seen["errors"], json::array()) << name;
    EXPECT_GT(seen["boxes"], 50) << name;
  }
  EXPECT_EQ(visit(to_html(Graph()), "return {};")["errors"], json::array());
}

}  // namespace fx::page_browser_test
