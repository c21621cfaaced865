// Whole models in plain C++: traced, run, compared with eager; buffers end as eager leaves them.
#include "tests/trace/torch_models.h"

#include "tests/trace/trace_testing.h"

namespace fx::models_test {

using testing::same_value;
using torch::Tensor;

// Two models made after the same seed are equal.
template <typename Make>
auto made_equal(Make&& make, bool training) {
  torch::manual_seed(5);
  auto model = make();
  model->train(training);
  return model;
}

template <typename Make>
void expect_same(Make&& make, const Tensor& example, const Tensor& input, double tolerance = 1e-4) {
  torch::NoGradGuard no_grad;
  for (const bool training : {false, true}) {
    for (const bool raised : {false, true}) {
      SCOPED_TRACE(std::string(training ? "training" : "evaluating") + (raised ? ", leaf modules" : ", operators"));
      auto eager = made_equal(make, training);
      TraceOptions options;
      options.raise_leaf_modules = raised;
      const auto gm = symbolic_trace(made_equal(make, training), {example}, options);
      EXPECT_NO_THROW(gm->graph().lint());
      EXPECT_TRUE(same_value(gm->forward(input), eager->forward(input), tolerance));
      for (const auto& buffer : eager->named_buffers()) {
        const Tensor traced = gm->find_attribute(buffer.key());
        EXPECT_TRUE(!traced.defined() || same_value(traced, buffer.value(), tolerance)) << buffer.key();
      }
    }
  }
}

TEST(Models, Mlp) {
  expect_same([] { return testing::Mlp(); }, torch::rand({2, 8}), torch::rand({5, 8}));
}
TEST(Models, LeNet) {
  expect_same([] { return testing::LeNet(); }, torch::rand({2, 1, 28, 28}), torch::rand({2, 1, 28, 28}));
}
TEST(Models, ResNet18) {
  expect_same([] { return testing::ResNet18(8); }, torch::rand({2, 3, 64, 64}), torch::rand({2, 3, 64, 64}));
}
TEST(Models, UNet) {
  expect_same([] { return testing::UNet(); }, torch::rand({2, 1, 16, 16}), torch::rand({2, 1, 16, 16}));
}

TEST(Models, GradientsFlowThroughTheTracedModule) {
  testing::Mlp mlp;
  TraceOptions options;
  options.raise_leaf_modules = false;
  const auto gm = symbolic_trace(mlp, {torch::rand({2, 8})}, options);
  const Tensor x = torch::rand({3, 8});
  gm->forward(x).sum().backward();
  const Tensor traced = mlp->fc1->weight.grad().clone();
  mlp->zero_grad();
  mlp->forward(x).sum().backward();
  EXPECT_TRUE(same_value(traced, mlp->fc1->weight.grad(), 1e-6));
}

}  // namespace fx::models_test
