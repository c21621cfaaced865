// Runs that leave no trace: what a program writes to is put back.
#include <fxgraph/module/state_keeper.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>

#include <functional>

namespace fx::state_keeper_test {

TEST(StateKeeper, PutsBackWhatARunWrites) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& calls = graph.call_function("aten::add_.Scalar", {graph.get_attr("calls"), 1});
  graph.output(graph.call_function("aten::mul.Tensor", {x, calls}));
  GraphModule module({{"calls", at::zeros({1})}}, std::move(graph));
  {
    const StateKeeper keeper(module);
    module.forward(at::ones({2}));
    EXPECT_EQ(module.attribute("calls").item<float>(), 1);
  }
  EXPECT_EQ(module.attribute("calls").item<float>(), 0);
  module.forward(at::ones({2}));
  EXPECT_EQ(module.attribute("calls").item<float>(), 1) << "only while it is kept";
}

TEST(StateKeeper, PutsBackSizesAndTensorsThatOverlap) {
  Graph graph;
  graph.call_function("aten::t_", {graph.get_attr("matrix")});
  graph.output(
      graph.call_function("aten::neg_", {graph.call_function("aten::select.int", {graph.get_attr("row"), 0, 0})}));
  const at::Tensor row = at::ones({3}).expand({2, 3});
  GraphModule module({{"matrix", at::zeros({2, 3})}, {"row", row}}, std::move(graph));
  {
    const StateKeeper keeper(module);
    module.forward();
    EXPECT_EQ(module.attribute("matrix").size(0), 3);
    EXPECT_EQ(row.sum().item<float>(), -6);
  }
  EXPECT_EQ(module.attribute("matrix").size(0), 2);
  EXPECT_EQ(row.sum().item<float>(), 6);
}

/// True when a keeper of the program with these calls on the weight `w` and the input `x` holds on to the weight.
bool keeps(const std::function<Node&(Graph&, Node& x, Node& w)>& body, const GraphModule::Attributes& modules = {}) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(body(graph, x, graph.get_attr("w")));
  const at::Tensor w = at::ones({2});
  GraphModule::Attributes attributes = modules;
  attributes.insert(attributes.end(), {"w", w});
  GraphModule module(attributes, std::move(graph));
  const auto before = w.storage().use_count();
  const StateKeeper keeper(module);
  return w.storage().use_count() > before;
}

TEST(StateKeeper, CopiesNothingWhereOnlyNewValuesAreWritten) {
  EXPECT_FALSE(keeps([](Graph& g, Node& x, Node& w) -> Node& {
    return g.call_function("aten::relu_", {g.call_function("aten::mul.Tensor", {x, w})});
  }));
  EXPECT_TRUE(keeps([](Graph& g, Node&, Node& w) -> Node& {
    return g.call_function("aten::relu_", {g.call_function("aten::view", {w, Argument::list({-1})})});
  }));
  EXPECT_TRUE(keeps([](Graph& g, Node& x, Node& w) -> Node& {
    Node& parts = g.call_function("aten::broadcast_tensors", {Argument::list({Argument(x), Argument(w)})});
    return g.call_function("aten::relu_", {g.call_function("operator.getitem", {parts, 1})});
  }));
  EXPECT_TRUE(keeps([](Graph& g, Node& x, Node& w) -> Node& { return g.call_function("mine::f", {x, w}); }));
}

TEST(StateKeeper, CopiesNothingForModulesThatWriteToNewValuesAndHoldNothing) {
  const torch::nn::ReLU relu(torch::nn::ReLUOptions(/*inplace=*/true));
  EXPECT_FALSE(keeps(
      [](Graph& g, Node& x, Node& w) -> Node& {
        return g.call_module("relu", {g.call_function("aten::mul.Tensor", {x, w})});
      },
      {{"relu", relu.ptr()}}));
  EXPECT_TRUE(
      keeps([](Graph& g, Node&, Node& w) -> Node& { return g.call_module("relu", {w}); }, {{"relu", relu.ptr()}}));
  const torch::nn::BatchNorm1d norm(2);
  EXPECT_TRUE(keeps(
      [](Graph& g, Node& x, Node& w) -> Node& {
        return g.call_module("norm", {g.call_function("aten::mul.Tensor", {x, w})});
      },
      {{"norm", norm.ptr()}}));
}

// Only where it begins in its memory is another then.
TEST(StateKeeper, PutsBackWhereATensorBegins) {
  GraphModule module({{"w", at::arange(8).narrow(0, 2, 4)}}, parse_graph(R"(graph():
    %w = get_attr[target=w]
    %moved = call_function[target=aten::as_strided_](args = (%w, [4], [1], 4))
    return moved
)"));
  {
    const StateKeeper keeper(module);
    module.run({});
  }
  EXPECT_TRUE(at::equal(module.attribute("w"), at::arange(2, 6)));
}

}  // namespace fx::state_keeper_test
