// Packed weights in files: saved, loaded by LibTorch, copied, read back as calls.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <sstream>

#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/import.h>

#include "tests/torchscript/saved_and_loaded.h"

namespace fx::packed_test {

/// Two packed convolutions; the bias of the first is read by a plain operator, too.
std::shared_ptr<GraphModule> program() {
  at::manual_seed(3);
  const GraphModule::Attributes weights = {{"a.weight", at::randn({6, 4, 3, 3})},
                                           {"a.bias", at::randn({6})},
                                           {"b.weight", at::randn({5, 6, 1, 1}).requires_grad_()}};
  return std::make_shared<GraphModule>(weights, parse_graph(R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %a_weight : [num_users=1] = get_attr[target=a.weight]
    %a_bias : [num_users=2] = get_attr[target=a.bias]
    %b_weight : [num_users=1] = get_attr[target=b.weight]
    %pack_a : [num_users=1] = call_function[target=torch.ops.mkldnn_prepacked.conv2d_prepack.default](args = (%a_weight, %a_bias, [1, 1], [1, 1], [1, 1], 1, [1, 4, 8, 8], 'relu'), kwargs = {})
    %run_a : [num_users=1] = call_function[target=torch.ops.mkldnn_prepacked.conv2d_run.default](args = (%x, %pack_a), kwargs = {})
    %pack_b : [num_users=1] = call_function[target=torch.ops.prepacked.conv2d_clamp_prepack.default](args = (%b_weight, None, [1, 1], [0, 0], [1, 1], 1, 0.0, 6.0), kwargs = {})
    %run_b : [num_users=1] = call_function[target=torch.ops.prepacked.conv2d_clamp_run.default](args = (%run_a, %pack_b), kwargs = {})
    %sum : [num_users=1] = call_function[target=torch.ops.aten.sum.default](args = (%a_bias,), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%run_b, %sum), kwargs = {})
    return add
)"));
}

std::size_t packing_calls(const Graph& graph) {
  return graph.count(Op::call_function, "mkldnn_prepacked::conv2d_prepack") +
         graph.count(Op::call_function, "prepacked::conv2d_clamp_prepack");
}

class Packed : public ::testing::Test {
 protected:
  void SetUp() override {
    expected_ = module_->forward(x_);
    std::ostringstream file;
    to_torchscript(*module_).save(file);
    bytes_ = file.str();
  }
  torch::jit::Module loaded() const {
    std::istringstream file(bytes_);
    return torch::jit::load(file);
  }

  const at::NoGradGuard no_grad_;
  std::shared_ptr<GraphModule> module_ = program();
  at::Tensor x_ = at::randn({2, 4, 8, 8});
  at::Tensor expected_;
  std::string bytes_;
};

TEST_F(Packed, LibTorchLoadsAndRunsIt) {
  torch::jit::Module script = loaded();
  EXPECT_TRUE(at::allclose(script.forward({x_}).toTensor(), expected_));
  // Packing is done when the file is loaded, not when it runs.
  EXPECT_EQ(script.get_method("forward").graph()->toString().find("prepack("), std::string::npos);
}

TEST_F(Packed, CopiesAndSecondFilesPackAnew) {
  const torch::jit::Module copy = loaded().deepcopy();
  EXPECT_TRUE(at::allclose(torch::jit::Module(copy).forward({x_}).toTensor(), expected_));
  EXPECT_TRUE(at::allclose(testing::saved_and_loaded(copy).forward({x_}).toTensor(), expected_));
}

TEST_F(Packed, ComesBackAsCalls) {
  const std::shared_ptr<GraphModule> again = from_torchscript(loaded());
  EXPECT_EQ(packing_calls(again->graph()), 2u) << print_graph(again->graph());
  again->graph().lint();
  EXPECT_TRUE(at::allclose(again->forward(x_), expected_));
  // Weights are there, and what they are: parameters stay parameters.
  EXPECT_EQ(again->parameters().size(), 1u);
  EXPECT_TRUE(at::allclose(testing::saved_and_loaded(*again).forward({x_}).toTensor(), expected_));
}

TEST_F(Packed, WeightsAreStoredOnce) {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : module_->parameters()) bytes += static_cast<std::int64_t>(tensor.nbytes());
  for (const at::Tensor& tensor : module_->buffers()) bytes += static_cast<std::int64_t>(tensor.nbytes());
  EXPECT_LT(static_cast<std::int64_t>(bytes_.size()), bytes + 20000);
}

}  // namespace fx::packed_test
