// Operators that write what they return: LibTorch reads several such results when it has let go of their last owner.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/text/parse.h>

namespace fx::written_results_test {

TEST(WrittenResults, LiveUntilTheCallIsDone) {
  GraphModule module(
      GraphModule::Attributes(),
      parse_graph(
          "graph():\n"
          "%x = placeholder[target=x]\n%v = call_function[target=torch.ops.aten.empty.memory_format](args = ([0],))\n"
          "%i = call_function[target=torch.ops.aten.empty.memory_format](args = ([0],), kwargs = {dtype: "
          "torch.int64})\n"
          "%m = call_function[target=torch.ops.aten.max.dim_max](args = (%x, 0), kwargs = {max: %v, max_values: %i})\n"
          "return m"));
  const torch::Tensor x = torch::rand({3, 4});
  for (int i = 0; i < 3; ++i) {
    const auto result = module.run({x}).toTuple();
    const auto [values, indices] = x.max(0);
    EXPECT_TRUE(result->elements()[0].toTensor().equal(values));
    EXPECT_TRUE(result->elements()[1].toTensor().equal(indices));
  }
}

}  // namespace fx::written_results_test
