// Building into existing graphs with C++ functions, and decompositions.
#include <fxgraph/trace/graph_appending_tracer.h>

#include <fxgraph/text/parse.h>
#include <fxgraph/trace/decompose.h>
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

TEST(Decompose, ReluOfTheSeeds) {
  const auto gm = symbolic_trace([](Tensor x) { return torch::relu(x - 1); });
  Decompositions table;
  table["aten::relu"] = [](auto x) { return (x > 0) * x; };
  const auto decomposed = decompose(*gm, table);
  EXPECT_THAT(calls(decomposed->graph()),
              ElementsAre("aten::sub.Scalar(x, 1)", "aten::gt.Scalar(sub, 0)", "aten::mul.Tensor(gt, sub)"));
  const Tensor x = torch::randn({5});
  EXPECT_TRUE(torch::equal(decomposed->forward(x), gm->forward(x)));  // but for the sign of zeros
}

TEST(Decompose, LiteralsDefaultsAndSeveralResults) {
  Decompositions table;
  table["aten::clamp"] = [](Tensor x, double low, double high) {
    return torch::minimum(torch::maximum(x, torch::full_like(x, low)), torch::full_like(x, high));
  };
  table["torch.ops.aten.add.Tensor"] = [](Tensor x, Tensor y) { return x - (-y); };
  table["aten::max.dim"] = [](Tensor x, std::int64_t dim, bool keep) {
    return std::make_tuple(x.amax(dim, keep), x.argmax(dim, keep));
  };
  const auto program = [](Tensor x) {
    auto [values, indices] = torch::max(torch::clamp(x, -0.5, 0.5), 1);
    return torch::add(values, indices);
  };
  const auto gm = symbolic_trace(program);
  const auto decomposed = decompose(*gm, table);
  decomposed->graph().lint();
  for (const Node& node : decomposed->graph().nodes()) {
    EXPECT_FALSE(node.is(Op::call_function) && table.contains(node.target())) << node;
  }
  const Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(same_value(decomposed->forward(x), program(x)));
}

TEST(Decompose, AppliesToWhatFunctionsMake) {
  Decompositions table;
  table["aten::silu"] = [](Tensor x) { return x * torch::sigmoid(x); };
  table["aten::sigmoid"] = [](Tensor x) { return 1 / (1 + torch::exp(-x)); };
  const auto decomposed = decompose(*symbolic_trace([](Tensor x) { return torch::silu(x); }), table);
  const Tensor x = torch::randn({5});
  EXPECT_EQ(decomposed->graph().count(Op::call_function, "aten::sigmoid"), 0U);
  EXPECT_TRUE(same_value(decomposed->forward(x), torch::silu(x), 1e-6));
}

TEST(Decompose, CapturesTensorsAndKeepsAttributes) {
  const Tensor two = torch::full({1}, 2.0F);
  const auto gm = symbolic_trace([](Tensor x) { return torch::relu(x) + torch::tensor({1.0F}); });
  Decompositions table;
  table["aten::relu"] = [&](Tensor x) { return x * two; };
  const Tensor x = torch::rand({3});
  EXPECT_TRUE(same_value(decompose(*gm, table)->forward(x), x * 2 + 1));
  EXPECT_FX_ERROR(decompose(gm->graph(), table), invalid_argument, HasSubstr("attributes"));
}

TEST(Decompose, Misfits) {
  Decompositions table;
  table["aten::add.Tensor"] = [](Tensor x, Tensor y) { return x - y; };
  EXPECT_FX_ERROR(decompose(*symbolic_trace([](Tensor x) { return torch::add(x, x, 2); }), table), invalid_argument,
                  HasSubstr("%add"), HasSubstr("alpha=2"));
  Decompositions endless;
  endless["aten::relu"] = [](Tensor x) { return torch::relu(x) * 1; };
  EXPECT_FX_ERROR(decompose(*symbolic_trace([](Tensor x) { return torch::relu(x); }), endless), invalid_argument,
                  HasSubstr("64 rounds"));
}

TEST(Decompose, WhatWritesIsDecomposedByWhatWrites) {
  const auto gm = symbolic_trace([](Tensor x) {
    const Tensor y = x * 2;
    y.select(0, 0).relu_();
    return y;
  });
  Decompositions table;
  table["aten::relu_"] = [](Tensor x) { return torch::relu(x); };
  EXPECT_FX_ERROR(decompose(*gm, table), invalid_argument, HasSubstr("%relu_"), HasSubstr("writes to its argument"));
  table["aten::relu_"] = [](Tensor x) { return x.copy_(torch::relu(x)); };
  const Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(decompose(*gm, table)->forward(x).equal(gm->forward(x)));
}

TEST(Decompose, MayAskForSizesWithShapes) {
  Tracer tracer;
  Trace trace = tracer.trace([](Tensor x) { return x.mean(); }, {torch::rand({2, 3})});
  Decompositions table;
  table["aten::mean"] = [](Tensor x) { return x.sum() / x.numel(); };
  EXPECT_THAT(calls(decompose(trace.graph, table, nullptr, &trace.shapes)),
              ElementsAre("aten::sum(x)", "aten::div.Scalar(sum_1, 6)"));
  EXPECT_FX_ERROR(decompose(trace.graph, table), trace, HasSubstr("numel()"), HasSubstr("%mean"));
}

}  // namespace fx::graph_appending_tracer_test
