// Building into existing graphs with C++ functions.
#include <fxgraph/retrace/graph_appending_tracer.h>

#include <fxgraph/text/parse.h>
#include "tests/trace/trace_testing.h"

namespace fx::graph_appending_tracer_test {

using testing::calls;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::same_value;
using ::testing::SizeIs;
using torch::Tensor;

TEST(GraphAppendingTracer, AppendsAtTheInsertionPoint) {
  Graph graph = parse_graph(
      "graph():\n    %x = placeholder[target=x]\n    %relu = call_function[target=aten::relu](args = (%x,), kwargs = "
      "{})\n    return relu\n");
  GraphAppendingTracer tracer(graph);
  Node& x = *graph.find("x");
  Node& relu = *graph.find("relu");
  {
    const auto at = graph.inserting_before(relu);
    Node& scaled = tracer.append([](Tensor v) { return v * 2 + 1; }, x);
    relu.replace_input_with(x, scaled);
  }
  graph.lint();
  EXPECT_THAT(calls(graph), ElementsAre("aten::mul.Scalar(x, 2)", "aten::add.Scalar(mul, 1)", "aten::relu(add)"));
}

TEST(GraphAppendingTracer, ProxiesAreTensors) {
  Graph graph;
  Node& x = graph.placeholder("x");
  GraphAppendingTracer tracer(graph);
  const Tensor y = torch::neg(tracer.proxy(x));
  EXPECT_EQ(&tracer.node(y), graph.find("neg"));
  graph.output(tracer.node(y + y));
  EXPECT_THAT(calls(graph), ElementsAre("aten::neg(x)", "aten::add.Tensor(neg, neg)"));
}

TEST(GraphAppendingTracer, ContinuesACopiedGraph) {
  Tracer tracer;
  const Trace first = tracer.trace([](Tensor x) { return x + 1; });
  Graph graph;
  Graph::ValueMap values;
  const Argument output = *graph.graph_copy(first.graph, values);
  GraphAppendingTracer appending(graph);
  graph.output(appending.append([](Tensor y) { return y.sigmoid(); }, output.node()));
  graph.lint();
  EXPECT_THAT(calls(graph), ElementsAre("aten::add.Scalar(x, 1)", "aten::sigmoid(add)"));
}

TEST(GraphAppendingTracer, CapturedTensorsBecomeAttributesOfTheModule) {
  const auto gm = symbolic_trace([](Tensor x) { return x + torch::tensor({1.0F, 2.0F}); });
  const Tensor captured = torch::rand({2});
  GraphAppendingTracer tracer(*gm);
  Node& add = *gm->graph().find("add");
  const auto at = gm->graph().inserting_after(add);
  Node& scaled = tracer.append([&](Tensor x) { return x * captured + gm->attribute("_tensor_constant0"); }, add);
  add.replace_all_uses_with(scaled, [&](const Node& user) { return user.is(Op::output); });
  gm->graph().lint();
  ASSERT_THAT(tracer.attributes(), SizeIs(1));
  EXPECT_EQ(tracer.attributes()[0].first, "_tensor_constant1");
  const Tensor x = torch::rand({2}), constant = torch::tensor({1.0F, 2.0F});
  EXPECT_TRUE(same_value(gm->forward(x), (x + constant) * captured + constant));
}

TEST(GraphAppendingTracer, ShapesWhereTheyAreKnown) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Shapes shapes(graph);
  shapes[x] = TensorInfo{DType::float32, {2, 3}, {}, *parse_device("cpu")};
  GraphAppendingTracer tracer(graph, &shapes);
  EXPECT_EQ(tracer.proxy(x).size(1), 3);
  EXPECT_FX_ERROR(GraphAppendingTracer(graph).proxy(x).size(1), trace, HasSubstr("%x"));
}

TEST(GraphAppendingTracer, ProxiesDieWithTheirTracer) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Tensor kept;
  { kept = GraphAppendingTracer(graph).proxy(x); }
  EXPECT_FX_ERROR(kept + 1, trace, HasSubstr("ended"));
  EXPECT_EQ(graph.size(), 1U);
}

TEST(GraphAppendingTracer, RefusesForeignNodes) {
  Graph graph, other;
  GraphAppendingTracer tracer(graph);
  EXPECT_FX_ERROR(tracer.proxy(other.placeholder("y")), invalid_argument, HasSubstr("%y"), HasSubstr("another graph"));
  EXPECT_FX_ERROR(tracer.node(Tensor()), invalid_argument, HasSubstr("undefined"));
}

TEST(GraphAppendingTracer, RefusesErasedNodes) {
  Graph graph;
  GraphAppendingTracer tracer(graph);
  Node& x = graph.placeholder("x");
  const Tensor proxy = tracer.proxy(x);
  graph.erase_node(x);
  EXPECT_FX_ERROR(proxy + 1, trace, HasSubstr("erased"));
}

// ── Decompositions
// ─────────────────────────────────────────────────────────────────────────────────────────────────────

}  // namespace fx::graph_appending_tracer_test
