// torch.fx's test/fx/test_source_matcher_utils.py, each case by its name there: notes, or the operators themselves,
// stand for what its exporter writes. test_legalize_slice is not here: graphs are legal as they stand.
#include <fxgraph/rewriter/partition/source_partitions.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/matchers/expr.h>
#include "tests/support/names.h"
#include "tests/support/short_graph.h"

namespace fx::source_partitions_test {

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

/// What linear1, linear1 again, relu and linear2 become.
Graph linear_linear_relu_linear(const char* linear, const char* relu) {
  Graph graph = graph_of(R"(
    w1 = get_attr[target=linear1.weight]()
    w2 = get_attr[target=linear2.weight]()
    t1 = aten::t(%w1)
    m1 = aten::addmm(%b, %x, %t1)
    t2 = aten::t(%w1)
    m2 = aten::addmm(%b, %m1, %t2)
    r = aten::relu(%m2)
    t3 = aten::t(%w2)
    m3 = aten::addmm(%b, %r, %t3)
    return m3)",
                         "x b");
  note(graph, "t1 m1", "linear1", linear);
  note(graph, "t2 m2", "linear1_1", linear);
  note(graph, "r", "relu", relu);
  note(graph, "t3 m3", "linear2", linear);
  return graph;
}

void expect_linear_linear_relu_linear(const Graph& graph, const char* linear, const char* relu) {
  const std::vector<SourcePartition> linears = source_partitions(graph, linear);
  const std::vector<SourcePartition> relus = source_partitions(graph, relu);
  ASSERT_EQ(linears.size(), 3u) << "a partition for each call";
  ASSERT_EQ(relus.size(), 1u);
  EXPECT_FALSE(are_connected(linears[0], relus[0]));
  EXPECT_TRUE(are_connected(linears[1], relus[0]));
  EXPECT_FALSE(are_connected(linears[2], relus[0]));
  EXPECT_TRUE(are_connected(relus[0], linears[2]));
}

TEST(SourcePartitions, test_module_partitioner_linear_relu_linear) {
  const Graph graph = linear_linear_relu_linear("torch.nn.Linear", "torch.nn.ReLU");
  expect_linear_linear_relu_linear(graph, "Linear", "ReLU");
  const std::vector<SourcePartition> linears = source_partitions(graph, "torch.nn.Linear");
  ASSERT_EQ(linears.size(), 3u);
  EXPECT_THAT(names(linears[1].nodes), ElementsAre("t2", "m2"));
  EXPECT_THAT(names(linears[1].input_nodes), ElementsAre("b", "m1"));
  EXPECT_THAT(names(linears[1].output_nodes), ElementsAre("m2"));
  EXPECT_THAT(names(linears[1].params), ElementsAre("w1"));
}

// Strict or not, the exporter's notes name functions then.
TEST(SourcePartitions, test_module_partitioner_linear_relu_linear_torch_fn_export) {
  expect_linear_linear_relu_linear(linear_linear_relu_linear("torch.nn.functional.linear", "torch.nn.functional.relu"),
                                   "linear", "relu");
}

// a = conv1(x), b = conv2(a), c = a + constant, z = conv3(b + c), pool(relu(z)), as modules or as noted operators.
void expect_conv_relu_maxpool(const Graph& graph, const char* conv, const char* relu, const char* pool,
                              const SourceOptions& options = {}) {
  const std::vector<SourcePartition> convs = source_partitions(graph, conv, options);
  const std::vector<SourcePartition> relus = source_partitions(graph, relu, options);
  const std::vector<SourcePartition> pools = source_partitions(graph, pool, options);
  ASSERT_EQ(convs.size(), 3u);
  ASSERT_EQ(relus.size(), 1u);
  ASSERT_EQ(pools.size(), 1u);
  EXPECT_EQ(source_partitions(graph, {conv, relu, pool}, options).size(), 5u);
  EXPECT_FALSE(are_connected(convs[0], relus[0]));
  EXPECT_FALSE(are_connected(convs[1], relus[0]));
  EXPECT_TRUE(are_connected(convs[2], relus[0]));
  EXPECT_FALSE(are_connected(pools[0], relus[0]));
  EXPECT_TRUE(are_connected(relus[0], pools[0]));
}

TEST(SourcePartitions, test_module_partitioner_conv_relu_maxpool) {
  const Graph graph = graph_of(R"(
    constant = get_attr[target=constant_tensor]()
    a = call_module[target=conv1](%x)
    b = call_module[target=conv2](%a)
    c = aten::add.Tensor(%a, %constant)
    bc = aten::add.Tensor(%b, %c)
    z = call_module[target=conv3](%bc)
    r = call_module[target=relu](%z)
    p = call_module[target=maxpool](%r)
    return p)");
  SourceOptions options;
  options.modules.type = [](std::string_view path) {
    return std::string(path.starts_with("conv") ? "torch.nn.Conv2d"
                       : path == "relu"         ? "torch.nn.ReLU"
                                                : "torch.nn.MaxPool2d");
  };
  expect_conv_relu_maxpool(graph, "Conv2d", "ReLU", "MaxPool2d", options);
  const std::vector<SourcePartition> pools = source_partitions(graph, re(".*Pool2d"), options);
  ASSERT_EQ(pools.size(), 1u);
  EXPECT_EQ(pools[0].source, "torch.nn.MaxPool2d");
  EXPECT_EQ(source_partitions(graph, "conv1").size(), 1u) << "without types a module goes by its path";
}

TEST(SourcePartitions, test_module_partitioner_conv_relu_maxpool_torch_fn_export) {
  expect_conv_relu_maxpool(graph_of(R"(
    constant = get_attr[target=constant_tensor]()
    w = get_attr[target=w]()
    a = aten::conv2d(%x, %w)
    b = aten::conv2d(%a, %w)
    c = aten::add.Tensor(%a, %constant)
    bc = aten::add.Tensor(%b, %c)
    z = aten::conv2d(%bc, %w)
    r = aten::relu(%z)
    p = aten::max_pool2d(%r, [3, 3])
    return p)"),
                           "aten::conv2d", "aten::relu", "aten::max_pool2d");
}

TEST(SourcePartitions, test_module_partitioner_functional_conv_relu_conv) {
  const Graph graph = graph_of(R"(
    a = torch.nn.functional.conv2d(%x, %weight, %bias)
    r = torch.nn.functional.relu(%a)
    b = torch.nn.functional.conv2d(%r, %weight, %bias)
    return b)",
                               "x weight bias");
  const std::vector<SourcePartition> convs = source_partitions(graph, "torch.nn.functional.conv2d");
  ASSERT_EQ(convs.size(), 2u) << "a partition for each call";
  EXPECT_THAT(names(convs[1].nodes), ElementsAre("b"));
  EXPECT_EQ(source_partitions(graph, re("torch\\.nn\\.functional\\..*")).size(), 3u);
  EXPECT_THAT(source_partitions(graph, "conv3d"), IsEmpty());
}

TEST(SourcePartitions, test_module_partitioner_functional_conv_relu_conv_torch_fn_export) {
  Graph graph = graph_of("a = aten::conv2d(%x, %w)\nr = aten::relu(%a)\nb = aten::conv2d(%r, %w)\nreturn b", "x w");
  note(graph, "a", "conv2d", "torch.nn.functional.conv2d");
  note(graph, "r", "relu", "torch.nn.functional.relu");
  note(graph, "b", "conv2d_1", "torch.nn.functional.conv2d");
  EXPECT_EQ(source_partitions(graph, "conv2d").size(), 2u);
}

const char* const kLinearsAndRelus = R"(
    a = LINEAR(%x, %w)
    b = LINEAR(%a, %w)
    c = RELU(%b)
    d = LINEAR(%c, %w)
    e = LINEAR(%d, %w)
    f = RELU(%e)
    return f)";

std::string spelt(std::string body, const std::string& linear, const std::string& relu) {
  for (std::size_t at; (at = body.find("LINEAR")) != std::string::npos;) body.replace(at, 6, linear);
  for (std::size_t at; (at = body.find("RELU")) != std::string::npos;) body.replace(at, 4, relu);
  return body;
}

TEST(SourcePartitions, test_module_partitioner_functional_linear_relu_linear) {
  const Graph graph =
      graph_of(spelt(kLinearsAndRelus, "torch.nn.functional.linear", "torch.nn.functional.relu"), "x w");
  EXPECT_EQ(source_partitions(graph, "torch.nn.functional.linear").size(), 4u);
  EXPECT_EQ(source_partitions(graph, "torch.nn.functional.relu").size(), 2u);
}

TEST(SourcePartitions, test_module_partitioner_functional_linear_relu_linear_torch_fn_export) {
  const Graph graph = graph_of(spelt(kLinearsAndRelus, "aten::linear", "aten::relu"), "x w");
  EXPECT_EQ(source_partitions(graph, "aten::linear").size(), 4u);
  EXPECT_EQ(source_partitions(graph, "aten::relu").size(), 2u);
}

// A weight that is used outside too is neither input nor output of the layer.
TEST(SourcePartitions, test_module_partitioner_weight_tied) {
  Graph graph = graph_of(R"(
    w = get_attr[target=linear.weight]()
    bias = get_attr[target=linear.bias]()
    b = aten::add.Tensor(%w, 1)
    l = aten::linear(%x, %w, %bias)
    return (l, b))");
  note(graph, "l", "linear", "torch.nn.Linear");
  const std::vector<SourcePartition> linears = source_partitions(graph, "Linear");
  ASSERT_EQ(linears.size(), 1u);
  EXPECT_THAT(names(linears[0].input_nodes), ElementsAre("x"));
  EXPECT_THAT(names(linears[0].output_nodes), ElementsAre("l"));
  EXPECT_THAT(names(linears[0].params), ElementsAre("w", "bias"));
}

TEST(SourcePartitions, test_module_partitioner_linear_relu_linear_nn_module_stack) {
  Graph graph = graph_of("t = aten::t(%w)\nm = aten::matmul(%x, %t)\nr = aten::relu(%m)\nreturn r", "x w");
  for (const char* name : {"t", "m"}) graph.find(name)->meta().set(meta_key::kModuleStack, std::string("layer.0"));
  SourceOptions options;
  options.modules.type = [](std::string_view path) { return std::string(path == "layer.0" ? "Linear" : ""); };
  ASSERT_EQ(source_partitions(graph, "Linear", options).size(), 1u);
  EXPECT_THAT(names(source_partitions(graph, "Linear", options)[0].nodes), ElementsAre("t", "m"));
  options.filter = [](const Node& node) { return node.name() != "t"; };
  EXPECT_THAT(names(source_partitions(graph, "Linear", options)[0].nodes), ElementsAre("m"));
}

}  // namespace fx::source_partitions_test
