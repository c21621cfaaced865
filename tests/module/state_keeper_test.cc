// Runs that leave no trace: what a program writes to is put back.
#include <fxgraph/module/state_keeper.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace fx {
namespace {

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

}  // namespace
}  // namespace fx
