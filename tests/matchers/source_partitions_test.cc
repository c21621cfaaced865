// torch.fx's test_source_matcher_utils.py, case by case: notes stand for what its exporter writes.
#include "matchers/source_partitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "matchers/expr.h"
#include "tests/support/names.h"
#include "tests/support/short_graph.h"
#include "text/parse.h"

namespace fx {
namespace {

using match::re;
using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::IsEmpty;
using testing::names;

/// Says of nodes, separated by spaces, which call they came from.
void note(Graph& graph, const std::string& nodes, const std::string& call, const std::string& source) {
  std::istringstream words(nodes);
  for (std::string name; words >> name;)
    graph.find(name)->meta().set(meta_key::kSourceFn, SourceFnStack{{"model", "Model"}, {call, source}});
}

Graph linear_relu_linear() {
  Graph graph = graph_of(
      "w1 = get_attr[target=l1.weight]()\nw2 = get_attr[target=l2.weight]()\nt1 = aten::t(%w1)\nm1 = aten::addmm(%b, "
      "%x, "
      "%t1)\nr = aten::relu(%m1)\nt2 = aten::t(%w2)\nm2 = aten::addmm(%b, %r, %t2)\nreturn m2",
      "x b");
  note(graph, "t1 m1", "l1", "torch.nn.Linear");
  note(graph, "r", "act", "torch.nn.ReLU");
  note(graph, "t2 m2", "l2", "torch.nn.Linear");
  return graph;
}

TEST(SourcePartitions, ModulePartitionerLinearReluLinear) {
  const Graph graph = linear_relu_linear();
  const std::vector<SourcePartition> linears = source_partitions(graph, "Linear");
  ASSERT_EQ(linears.size(), 2u);
  EXPECT_THAT(names(linears[0].nodes), ElementsAre("t1", "m1"));
  EXPECT_THAT(names(linears[0].input_nodes), ElementsAre("b", "x"));
  EXPECT_THAT(names(linears[0].output_nodes), ElementsAre("m1"));
  EXPECT_THAT(names(linears[0].params), ElementsAre("w1"));
  const std::vector<SourcePartition> relus = source_partitions(graph, "torch.nn.ReLU");
  ASSERT_EQ(relus.size(), 1u);
  EXPECT_TRUE(are_connected(linears[0], relus[0]));
  EXPECT_TRUE(are_connected(relus[0], linears[1]));
  EXPECT_FALSE(are_connected(linears[0], linears[1]));
  EXPECT_FALSE(are_connected(relus[0], linears[0]));
}

TEST(SourcePartitions, ModulePartitionerConvReluMaxpool) {
  const Graph graph = parse_graph(
      "graph():\n    %x : = placeholder[target=x]\n    %a : = call_module[target=conv](args = (%x,), kwargs = {})\n    "
      "%b : "
      "= call_module[target=relu](args = (%a,), kwargs = {})\n    %c : = call_module[target=pool](args = (%b,), kwargs "
      "= "
      "{})\n    return c\n");
  SourceOptions options;
  options.module_type = [](std::string_view path) {
    return std::string(path == "conv" ? "torch.nn.Conv2d" : path == "relu" ? "torch.nn.ReLU" : "torch.nn.MaxPool2d");
  };
  const std::vector<SourcePartition> found = source_partitions(graph, {"Conv2d", re(".*Pool2d")}, options);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(names(found[0].nodes), ElementsAre("a"));
  EXPECT_EQ(found[1].source, "torch.nn.MaxPool2d");
  EXPECT_FALSE(are_connected(found[0], found[1]));
  EXPECT_EQ(source_partitions(graph, "conv").size(), 1u) << "without types a module goes by its path";
}

TEST(SourcePartitions, FunctionalConvReluConv) {
  const Graph graph = graph_of(
      "w = get_attr[target=w]()\na = torch.nn.functional.conv2d(%x, %w)\nr = torch.nn.functional.relu(%a)\nb = "
      "torch.nn.functional.conv2d(%r, %w)\nreturn b");
  const std::vector<SourcePartition> convs = source_partitions(graph, "torch.nn.functional.conv2d");
  ASSERT_EQ(convs.size(), 2u) << "a partition for each call";
  EXPECT_THAT(names(convs[1].nodes), ElementsAre("b"));
  EXPECT_EQ(source_partitions(graph, re("torch\\.nn\\.functional\\..*")).size(), 3u);
  EXPECT_THAT(source_partitions(graph, "conv3d"), IsEmpty());
}

TEST(SourcePartitions, FunctionalLinearReluLinear) {
  Graph graph = linear_relu_linear();
  note(graph, "t1 m1", "linear", "torch.nn.functional.linear");
  note(graph, "t2 m2", "linear_1", "torch.nn.functional.linear");
  EXPECT_EQ(source_partitions(graph, "torch.nn.functional.linear").size(), 2u);
}

TEST(SourcePartitions, WeightTied) {
  Graph graph = graph_of(
      "w = get_attr[target=embedding.weight]()\ne = aten::embedding(%w, %x)\nt = aten::t(%w)\nm = aten::matmul(%e, "
      "%t)\nreturn m");
  note(graph, "t m", "head", "torch.nn.Linear");
  const std::vector<SourcePartition> heads = source_partitions(graph, "Linear");
  ASSERT_EQ(heads.size(), 1u);
  EXPECT_THAT(names(heads[0].input_nodes), ElementsAre("e")) << "the weight is no input, though others use it";
  EXPECT_THAT(names(heads[0].output_nodes), ElementsAre("m"));
  EXPECT_THAT(names(heads[0].params), ElementsAre("w"));
}

TEST(SourcePartitions, ModuleStack) {
  Graph graph = graph_of("t = aten::t(%w)\nm = aten::matmul(%x, %t)\nr = aten::relu(%m)\nreturn r", "x w");
  for (const char* name : {"t", "m"}) graph.find(name)->meta().set(meta_key::kModuleStack, std::string("layer.0"));
  SourceOptions options;
  options.module_type = [](std::string_view path) { return std::string(path == "layer.0" ? "Linear" : ""); };
  ASSERT_EQ(source_partitions(graph, "Linear", options).size(), 1u);
  EXPECT_THAT(names(source_partitions(graph, "Linear", options)[0].nodes), ElementsAre("t", "m"));
  options.filter = [](const Node& node) { return node.name() != "t"; };
  EXPECT_THAT(names(source_partitions(graph, "Linear", options)[0].nodes), ElementsAre("m"));
}

}  // namespace
}  // namespace fx
