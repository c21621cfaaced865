// Patterns find what called modules compute and what calls write for nobody but themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include <fxgraph/matchers/matcher.h>
#include <fxgraph/matchers/pattern_set.h>
#include "tests/support/match_texts.h"
#include "tests/support/short_graph.h"

namespace fx::reading_test {

using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::IsEmpty;

/// Modules by path; each graph takes `input`.
class Modules {
 public:
  Modules(std::initializer_list<std::pair<const char*, const char*>> bodies) {
    for (const auto& [path, body] : bodies)
      bodies_.emplace(path, std::make_shared<const Graph>(graph_of(body, "input")));
  }
  FindOptions options() const {
    FindOptions options;
    options.modules.evaluated = [this](std::string_view path) {
      const auto found = bodies_.find(std::string(path));
      return found == bodies_.end() ? nullptr : found->second;
    };
    options.modules.type = [](std::string_view path) {
      return std::string(path.starts_with("fc") ? "torch.nn.Linear" : "torch.nn.Other");
    };
    return options;
  }

 private:
  std::map<std::string, std::shared_ptr<const Graph>> bodies_;
};

std::vector<std::string> found(const Graph& graph, const Pattern& pattern, const FindOptions& options = {}) {
  return testing::texts_of(find(graph, pattern, options));
}

constexpr const char* kLinear =
    "w = get_attr[target=weight]()\nb = get_attr[target=bias]()\nl = aten::linear(%input, "
    "%w, %b)\nreturn l";
constexpr const char* kRelu = "r = aten::relu(%input)\nreturn r";

TEST(ModulesAreWhatTheyCompute, AcrossModulesAndCalls) {
  const Modules modules{{"fc1", kLinear}, {"fc2", kLinear}, {"act", kRelu}};
  const Graph graph = graph_of(
      "a = call_module[target=fc1](%x)\nb = call_module[target=act](%a)\nc = call_module[target=fc2](%b)\nd = "
      "torch.relu(%c)\nreturn d",
      "x");
  const Pattern pattern("aten::relu(l: aten::linear(x, w, b))");
  EXPECT_THAT(found(graph, pattern, modules.options()),
              ElementsAre("b {x: x, w: fc1_weight, b: fc1_bias, l: a}", "d {x: b, w: fc2_weight, b: fc2_bias, l: c}"));
  EXPECT_TRUE(matches(graph, pattern, *graph.find("b"), modules.options()));
  EXPECT_FALSE(matches(graph, pattern, *graph.find("a"), modules.options()));
  FindOptions leaves = modules.options();
  leaves.leaves = true;
  EXPECT_THAT(found(graph, pattern, leaves), IsEmpty());
}

TEST(ModulesAreWhatTheyCompute, AMatchNamesTheProgramsNodes) {
  const Modules modules{{"fc1", kLinear}, {"act", kRelu}};
  const Graph graph = graph_of("a = call_module[target=fc1](%x)\nb = call_module[target=act](%a)\nreturn b", "x");
  std::vector<Match> matches = find(graph, "aten::relu(l: aten::linear(x, w, ...))", modules.options());
  ASSERT_EQ(matches.size(), 1u);
  const Match match = std::move(matches[0]);
  matches.clear();
  EXPECT_EQ(&match.anchor(), graph.find("b"));
  EXPECT_EQ(&match["l"], graph.find("a"));
  EXPECT_THAT(match.nodes(), ElementsAre(graph.find("a"), graph.find("b")));
  EXPECT_TRUE(match.contains(*graph.find("a")));
  EXPECT_EQ(match.called("l"), "aten::linear");
  EXPECT_EQ(match["w"].target(), "fc1.weight");
}

TEST(ModulesAreWhatTheyCompute, InsideOneModuleAndBelowIt) {
  const Modules modules{{"net", "a = call_module[target=fc](%input)\nb = call_module[target=act](%a)\nreturn b"},
                        {"net.fc", kLinear},
                        {"net.act", kRelu}};
  const Graph graph = graph_of("a = call_module[target=net](%x)\nreturn a", "x");
  EXPECT_THAT(found(graph, "aten::relu(aten::linear(x, w, b))", modules.options()),
              ElementsAre("a {x: x, w: net_fc_weight, b: net_fc_bias}"));
  EXPECT_THAT(found(graph, "aten::linear(x, w, ...)", modules.options()), ElementsAre("a_a {x: x, w: net_fc_weight}"));
}

TEST(ModulesAreWhatTheyCompute, OneThatThePatternNamesIsAModule) {
  const Modules modules{{"fc1", kLinear}, {"act", kRelu}};
  const Graph graph = graph_of("a = call_module[target=fc1](%x)\nb = call_module[target=act](%a)\nreturn b", "x");
  EXPECT_THAT(found(graph, "aten::relu(call_module[fc1](x))", modules.options()), ElementsAre("b {x: x}"));
  EXPECT_THAT(found(graph, "aten::relu(call_module<Linear>(x))", modules.options()), ElementsAre("b {x: x}"));
  EXPECT_THAT(found(graph, "call_module(call_module(x))", modules.options()), ElementsAre("b {x: x}"));
}

TEST(ModulesAreWhatTheyCompute, OneThatGivesWhatItTakesOrSeveralValues) {
  const Modules modules{{"same", "return input"},
                        {"two", "a = aten::relu(%input)\nb = aten::tanh(%input)\nreturn (a, b)"}};
  const Graph graph = graph_of(
      "a = aten::sin(%x)\nb = call_module[target=same](%a)\nc = call_module[target=two](%b)\nd = "
      "operator.getitem(%c, 0)\ne = operator.getitem(%c, 1)\nf = aten::add.Tensor(%d, %e)\nreturn f",
      "x");
  EXPECT_THAT(found(graph, "aten::add.Tensor(r: aten::relu(s), aten::tanh(s: aten::sin(x)))", modules.options()),
              ElementsAre("f {x: x, s: a, r: d}"));
}

TEST(ModulesAreWhatTheyCompute, AnInnerValueThatIsUsedOutsideTheMatchIsNoPartOfOne) {
  const Modules modules{{"fc", kLinear},
                        {"both", "a = aten::relu(%input)\nb = aten::tanh(%a)\nc = aten::add.Tensor(%a, %b)\nreturn c"}};
  const Graph graph = graph_of(
      "a = call_module[target=fc](%x)\nb = aten::relu(%a)\nc = aten::neg(%a)\nd = call_module[target=both](%c)\nreturn "
      "(b, d)",
      "x");
  EXPECT_THAT(found(graph, "aten::relu(aten::linear(x, ...))", modules.options()), IsEmpty());
  EXPECT_THAT(found(graph, "aten::tanh(aten::relu(x))", modules.options()), IsEmpty());
  EXPECT_THAT(found(graph, "aten::add.Tensor(a: aten::relu(x), aten::tanh(a))", modules.options()),
              ElementsAre("d {x: c, a: d_a}"));
}

TEST(ModulesAreWhatTheyCompute, OfASetTogether) {
  const Modules modules{{"fc", kLinear}, {"act", kRelu}};
  const Graph graph =
      graph_of("a = call_module[target=fc](%x)\nb = call_module[target=act](%a)\nc = aten::neg(%b)\nreturn c", "x");
  const PatternSet set({"aten::relu(aten::linear(x, ...))", "aten::neg(x)", "aten::linear(x, ...)"});
  std::vector<std::string> texts;
  FindOptions options = modules.options();
  options.overlap = Overlap::largest;
  for (const SetMatch& found : set.find(graph, options)) {
    std::ostringstream text;
    text << found.pattern << " " << found.match;
    texts.push_back(text.str());
  }
  EXPECT_THAT(texts, ElementsAre("0 b {x: x}", "1 c {x: b}"));
}

TEST(WritesThatNobodySees, AreCallsThatMakeAValue) {
  const Graph graph = graph_of(
      "a = aten::sin(%x)\nb = aten::relu_(%a)\nc = aten::tanh_(%b)\nd = aten::relu_(%x)\ne = aten::add_.Tensor(%c, "
      "%d)\nreturn e",
      "x");
  EXPECT_THAT(found(graph, "aten::relu(x)"), ElementsAre("b {x: a}"));
  EXPECT_THAT(found(graph, "aten::add.Tensor(aten::tanh(aten::relu(x)), y)"), ElementsAre("e {x: a, y: d}"));
  EXPECT_THAT(found(graph, "aten::relu_(x)"), ElementsAre("b {x: a}", "d {x: x}"));
}

TEST(WritesThatNobodySees, NotWhereSomebodyDoes) {
  const Graph graph = graph_of(
      "a = aten::sin(%x)\nv = aten::view(%a, [4])\nb = aten::relu_(%a)\nc = aten::add.Tensor(%v, %b)\nreturn c", "x");
  EXPECT_THAT(found(graph, "aten::relu(x)"), IsEmpty());
  const Graph returned = graph_of("a = aten::sin(%x)\nb = aten::relu_(%a)\nreturn (a, b)", "x");
  EXPECT_THAT(found(returned, "aten::relu(x)"), IsEmpty());
}

TEST(WritesThatNobodySees, OfModulesToo) {
  const Modules modules{{"fc", kLinear}, {"act", "r = aten::relu_(%input)\nreturn r"}};
  const Graph graph = graph_of("a = call_module[target=fc](%x)\nb = call_module[target=act](%a)\nreturn b", "x");
  EXPECT_THAT(found(graph, "aten::relu(aten::linear(x, ...))", modules.options()), ElementsAre("b {x: x}"));
  const Graph of_input = graph_of("b = call_module[target=act](%x)\nreturn b", "x");
  EXPECT_THAT(found(of_input, "aten::relu(x)", modules.options()), IsEmpty());
}

TEST(WritesThatNobodySees, AnotherTypeIsKept) {
  const Graph graph = graph_of("a = aten::sin(%x)\nb = aten::add_.Tensor(%a, %y)\nreturn b", "x y");
  Shapes shapes(graph);
  const auto of = [](DType dtype) { return ValueInfo(TensorInfo{.dtype = dtype, .sizes = {2}}); };
  shapes[*graph.find("a")] = of(DType::float16);
  shapes[*graph.find("y")] = of(DType::float32);
  FindOptions options;
  options.shapes = &shapes;
  EXPECT_THAT(found(graph, "aten::add.Tensor(x, y)", options), IsEmpty());
  shapes[*graph.find("y")] = of(DType::float16);
  EXPECT_THAT(found(graph, "aten::add.Tensor(x, y)", options), ElementsAre("b {x: a, y: y}"));
}

TEST(Shapes, OfWhatLiesInsideModules) {
  const Modules modules{{"net", "a = aten::relu(%input)\nb = aten::view(%a, [6])\nc = aten::tanh(%b)\nreturn c"}};
  const Graph graph = graph_of("a = call_module[target=net](%x)\nreturn a", "x");
  Shapes shapes(graph);
  shapes[*graph.find("x")] = ValueInfo(TensorInfo{.dtype = DType::float32, .sizes = {2, 3}});
  shapes[*graph.find("a")] = ValueInfo(TensorInfo{.dtype = DType::float32, .sizes = {6}});
  FindOptions options = modules.options();
  options.shapes = &shapes;
  EXPECT_THAT(found(graph, "aten::tanh(v: f32[6])", options), ElementsAre("a {v: a_b}"));
  EXPECT_THAT(found(graph, "aten::view(r: f32[2, 3], _)", options), ElementsAre("a_b {r: a_a}"));
  EXPECT_THAT(found(graph, "aten::view(r: f32[3, 2], _)", options), IsEmpty());
}

}  // namespace fx::reading_test
