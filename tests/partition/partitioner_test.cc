// Partitions for a back end: torch.fx's cases by their names there, and small graphs against all possible partitions.
#include <fxgraph/rewriter/partition/partitioner.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/support/error.h>
#include "tests/support/names.h"
#include "tests/support/short_graph.h"

namespace fx::partitioner_test {

using testing::graph_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names;
using Names = std::vector<std::set<std::string>>;

std::function<std::optional<std::string>(const Node&)> only(std::set<std::string> packets) {
  return [packets = std::move(packets)](const Node& node) -> std::optional<std::string> {
    if (packets.contains(std::string(packet_of(node.target().view())))) return std::nullopt;
    return node.target().str() + " is not supported";
  };
}
const auto kAdds = only({"aten::add", "operator.getitem", "aten::view", "aten::permute", "aten::std_mean"});

Names names_of(const Partitioning& parts) {
  Names all;
  for (const Partition& part : parts.partitions()) {
    const std::vector<std::string> some = names(part.nodes);
    all.emplace_back(some.begin(), some.end());
  }
  return all;
}

struct Case {
  const char* name;
  const char* body;
  Names expected;
  bool trim = false;
};

const Case kCases[] = {
    {"forward1",
     R"(
       add = aten::add.Tensor(%a, %b)
       add_1 = aten::add.Tensor(%add, %b)
       add_2 = aten::add.Tensor(%add_1, %c)
       relu = aten::relu(%add_2)
       add_3 = aten::add.Tensor(%add_1, %add_2)
       add_4 = aten::add.Tensor(%add_1, %relu)
       add_5 = aten::add.Tensor(%add_4, %add_3)
       relu_1 = aten::relu(%add_5)
       add_6 = aten::add.Tensor(%relu_1, %add_5)
       add_7 = aten::add.Tensor(%add_6, %add_5)
       return (add_5, add_7))",
     {{"add_2", "add_1", "add"}, {"add_5", "add_4", "add_3"}, {"add_7", "add_6"}}},
    {"forward2",
     R"(
       add = aten::add.Tensor(%a, %b)
       add_1 = aten::add.Tensor(%add, %b)
       relu = aten::relu(%add_1)
       add_2 = aten::add.Tensor(%add_1, %relu)
       add_3 = aten::add.Tensor(%add_1, %add_2)
       return (add_3, add_1))",
     {{"add_1", "add"}, {"add_3", "add_2"}}},
    {"forward3",
     R"(
       add = aten::add.Tensor(%a, %b)
       add_1 = aten::add.Tensor(%a, %c)
       add_2 = aten::add.Tensor(%b, %c)
       return (add, add_1, add_2))",
     {{"add_2", "add_1", "add"}}},
    {"forward4",
     R"(
       add = aten::add.Tensor(%a, %b)
       add_1 = aten::add.Tensor(%a, %c)
       add_2 = aten::add.Tensor(%b, %c)
       gt = aten::gt.Scalar(%add, 0)
       where = aten::where.self(%gt, %add_1, %add_2)
       return where)",
     {{"add_2", "add_1", "add"}}},
    {"forward5",
     "add = aten::add.Tensor(%a, 1)\nrelu = aten::relu(%add)\nadd_1 = aten::add.Tensor(%add, 2)\n"
     "return (relu, add_1)",
     {{"add_1", "add"}}},
    {"forward6",
     "add = aten::add.Tensor(%a, 1)\nrelu = aten::relu(%add)\nrelu_1 = aten::relu(%add)\n"
     "return (relu, relu_1)",
     {{"add"}}},
    {"forward7",
     R"(
       add = aten::add.Tensor(%a, 1)
       add_1 = aten::add.Tensor(%add, 2)
       add_2 = aten::add.Tensor(%add, 1)
       add_3 = aten::add.Tensor(%add_2, 1)
       return (add_3, add_1))",
     {{"add_3", "add_2", "add", "add_1"}}},
    {"forward8",
     R"(
       add = aten::add.Tensor(%a, 1)
       add_1 = aten::add.Tensor(%add, 2)
       add_2 = aten::add.Tensor(%add, 1)
       add_3 = aten::add.Tensor(%add_2, %add_1)
       return add_3)",
     {{"add_3", "add_2", "add", "add_1"}}},
    {"forward9",
     R"(
       add = aten::add.Tensor(%a, 1)
       add_1 = aten::add.Tensor(%add, 1)
       add_2 = aten::add.Tensor(%add, 1)
       add_3 = aten::add.Tensor(%add, 1)
       out = aten::stack([%add_1, %add_2, %add_3])
       return out)",
     {{"add_3", "add_2", "add_1", "add"}}},
    {"forward10",
     R"(
       add = aten::add.Tensor(%a, 1)
       add_1 = aten::add.Tensor(%add, 1)
       add_2 = aten::add.Tensor(%add, 1)
       add_3 = aten::add.Tensor(%add, %add_2)
       out = aten::stack([%add_1, %add_2, %add_3])
       return out)",
     {{"add_3", "add_2", "add", "add_1"}}},
    {"forward11",
     R"(
       add = aten::add.Tensor(%a, 1)
       relu = aten::relu(%add)
       add_1 = aten::add.Tensor(%add, %relu)
       relu_1 = aten::relu(%add)
       out = aten::stack([%relu, %add_1, %relu_1])
       return out)",
     {{"add"}, {"add_1"}}},
    {"forward12",
     R"(
       add = aten::add.Tensor(%a, 1.0)
       add_1 = aten::add.Tensor(%a, 1.5)
       relu = aten::relu(%add)
       relu_1 = aten::relu(%add_1)
       add_2 = aten::add.Tensor(%add, %relu_1)
       add_3 = aten::add.Tensor(%add_1, 1.2)
       add_4 = aten::add.Tensor(%relu, %add_1)
       return (add_2, add_4))",
     {{"add", "add_1"}, {"add_2", "add_3", "add_4"}}},
    {"forward13",
     R"(
       split = aten::split.Tensor(%a, 1, 0)
       getitem = operator.getitem(%split, 0)
       getitem_1 = operator.getitem(%split, 1)
       add = aten::add.Tensor(%getitem, %b)
       add_1 = aten::add.Tensor(%getitem_1, %c)
       add_2 = aten::add.Tensor(%add, %add_1)
       return add_2)",
     {{"add_2", "add_1", "add"}}},
    {"forward14",
     R"(
       std_mean = aten::std_mean(%a)
       getitem = operator.getitem(%std_mean, 0)
       getitem_1 = operator.getitem(%std_mean, 1)
       add = aten::add.Tensor(%getitem, 1.0)
       return add)",
     {{"add", "std_mean", "getitem", "getitem_1"}}},
    {"forward15 without bookends",
     R"(
       view = aten::view(%a, [2, 2])
       permute = aten::permute(%view, [1, 0])
       permute_1 = aten::permute(%permute, [1, 0])
       permute_2 = aten::permute(%permute_1, [1, 0])
       add = aten::add.Tensor(%permute_2, 1.0)
       permute_3 = aten::permute(%add, [1, 0])
       add_1 = aten::add.Tensor(%permute_3, 1.0)
       permute_4 = aten::permute(%add_1, [1, 0])
       return permute_4)",
     {{"permute_3", "add_1", "add"}},
     true},
    {"forward15",
     R"(
       view = aten::view(%a, [2, 2])
       permute = aten::permute(%view, [1, 0])
       add = aten::add.Tensor(%permute, 1.0)
       permute_1 = aten::permute(%add, [1, 0])
       add_1 = aten::add.Tensor(%permute_1, 1.0)
       return add_1)",
     {{"view", "permute", "add", "permute_1", "add_1"}}},
    {"forward17",
     R"(
       add = aten::add.Tensor(%a, %b)
       add_1 = aten::add.Tensor(%c, %a)
       add_2 = aten::add.Tensor(%b, %c)
       return (add, add_1, add_2))",
     {{"add", "add_1", "add_2"}}},
    {"forward18",
     "var_mean = aten::var_mean(%a)\ngetitem = operator.getitem(%var_mean, 0)\n"
     "getitem_1 = operator.getitem(%var_mean, 1)\nreturn getitem",
     {}},
};

TEST(CapabilityPartitioner, test_partitioner) {
  for (const Case& one : kCases) {
    const Graph graph = graph_of(one.body, "a b c");
    const Partitioning parts = propose_partitions(graph, kAdds, {.trim = one.trim});
    EXPECT_EQ(names_of(parts), one.expected) << one.name << "\n" << parts.report();
  }
}

TEST(CapabilityPartitioner, SaysWhyNodesAreOutsideAndWhyPartitionsAreApart) {
  const Graph graph = graph_of(kCases[1].body, "a b c");
  const Partitioning parts = propose_partitions(graph, kAdds);
  EXPECT_EQ(parts.why_not(*graph.find("relu")), "aten::relu is not supported");
  EXPECT_EQ(parts.why_not(*graph.find("add")), "");
  EXPECT_EQ(parts.of(*graph.find("add_2")), 1u);
  EXPECT_EQ(parts.why_apart(0, 1),
            "%add_1 comes before %relu (aten::relu is not supported), which comes before %add_2");
  EXPECT_EQ(parts.report(),
            "partition 0: 2 nodes, %add, %add_1\n"
            "partition 1: 2 nodes, %add_2, %add_3\n"
            "  apart from partition 0: %add_1 comes before %relu (aten::relu is not supported), which comes before "
            "%add_2\n"
            "outside: %relu: aten::relu is not supported\n");
}

TEST(CapabilityPartitioner, SmallOnesAreGivenUp) {
  const Graph graph = graph_of(kCases[10].body, "a b c");
  const Partitioning parts = propose_partitions(graph, kAdds, {.min_size = 2});
  EXPECT_THAT(parts.partitions(), IsEmpty());
  EXPECT_EQ(parts.why_not(*graph.find("add")), "its partition computes 1 of at least 2 nodes");
}

// A write between two reads, though no value passes from one to the other.
TEST(CapabilityPartitioner, OrderEdgesKeepPartitionsApart) {
  const Graph graph = graph_of(R"(
    a = aten::clone(%x)
    b = aten::add.Tensor(%a, 1)
    w = aten::zero_(%a)
    c = aten::add.Tensor(%a, 2)
    return (b, c))");
  EXPECT_EQ(names_of(propose_partitions(graph, kAdds)), (Names{{"b", "c"}}));
  const OrderEdges order = Effects(graph).order_edges();
  const Partitioning parts = propose_partitions(graph, kAdds, {.order = &order});
  EXPECT_EQ(names_of(parts), (Names{{"b"}, {"c"}}));
  EXPECT_THAT(parts.why_apart(0, 1), HasSubstr("%b comes before %w"));
}

TEST(CapabilityPartitioner, RefusesNodesOfAnotherGraph) {
  const Graph graph = graph_of(kCases[0].body, "a b c"), other = graph_of(kCases[0].body, "a b c");
  EXPECT_THROW(propose_partitions(graph, kAdds, {.keep_apart = {{graph.find("add"), other.find("add")}}}), Error);
}

}  // namespace fx::partitioner_test
