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

}  // namespace
}  // namespace fx
