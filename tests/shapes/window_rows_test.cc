// What rows of windows say of images, beside what LibTorch takes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fxgraph/contract/symbolic_shapes.h>
#include "tests/support/short_graph.h"

namespace fx::window_rows_test {

// Of no images LibTorch views the weight as one row.
TEST(WindowRows, SayWhichWeightsTakeNoImages) {
  using at::indexing::Slice;
  const at::Tensor square = at::ones({4, 4, 3, 3}), channels = at::ones({4, 1, 3, 3});
  const std::vector<at::Tensor> weights = {
      square,
      square.transpose(0, 1),
      square.transpose(2, 3),
      square.contiguous(at::MemoryFormat::ChannelsLast),
      at::ones({4, 4, 1, 1}).transpose(0, 1),
      at::ones({4, 4, 1, 1}).contiguous(at::MemoryFormat::ChannelsLast),
      at::ones({4, 4, 3, 6}).index({Slice(), Slice(), Slice(), Slice({}, {}, 2)}),
      at::ones({4, 8, 3, 3}).index({Slice(), Slice({}, {}, 2)}),
      at::ones({1, 4, 3, 3}).expand({4, 4, 3, 3}),
      channels.contiguous(at::MemoryFormat::ChannelsLast),
      channels.transpose(2, 3),
      channels.transpose(0, 1),
  };
  std::size_t taken = 0;
  for (const bool is_transposed : {false, true}) {
    for (const at::Tensor& weight : weights) {
      const std::int64_t count = weight.size(is_transposed ? 0 : 1);
      TensorType type = dims(weight.size(0), weight.size(1), weight.size(2), weight.size(3));
      type.strides.emplace(weight.strides().begin(), weight.strides().end());
      const at::Tensor images = at::ones({0, count, 8, 8});
      bool is_taken = true;
      try {
        is_transposed ? at::conv_transpose2d(images, weight) : at::conv2d(images, weight);
      } catch (const c10::Error&) {
        is_taken = false;
      }
      const char* line = is_transposed ? "aten::conv_transpose2d.input" : "aten::conv2d";
      const Graph graph = testing::graph_of(std::string("y = ") + line + "(%x, %w)\nreturn y", "x w");
      const SymbolicShapes of_any(graph, {dims("n", count, 8, 8), type});
      const SymbolicShapes of_none(graph, {dims(0, count, 8, 8), type});
      EXPECT_EQ(of_any.conditions().empty(), is_taken) << line << weight.sizes() << weight.strides();
      EXPECT_EQ(of_none.refused().empty(), is_taken) << line << weight.sizes() << weight.strides();
      EXPECT_TRUE(of_none.unknown().empty() && of_any.unsaid().empty());
      taken += is_taken;
    }
  }
  EXPECT_EQ(taken, 10U);
}

}  // namespace fx::window_rows_test
