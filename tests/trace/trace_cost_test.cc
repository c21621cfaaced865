// What a trace that holds for every size costs beside one for the sizes of its examples, in operators that LibTorch
// dispatches in this thread. tools/bench has the times.
#include <ATen/record_function.h>

#include <memory>

#include "tests/support/allocations.h"
#include "tests/trace/cost_models.h"
#include "tests/trace/size_models.h"
#include "tests/trace/torch_models.h"
#include "tests/trace/trace_testing.h"

namespace fx::trace_cost_test {

using torch::Tensor;

thread_local std::size_t dispatched = 0;

std::size_t operators_of(const std::function<void()>& work) {
  const at::CallbackHandle handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
        ++dispatched;
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  const std::size_t before = dispatched;
  work();
  at::removeCallback(handle);
  return dispatched - before;
}

double ratio(const std::function<void()>& work, const std::function<void()>& beside) {
  work();  // what is asked once in the process is known afterwards
  return static_cast<double>(operators_of(work)) / static_cast<double>(operators_of(beside));
}

TraceOptions plain() {
  TraceOptions options;
  options.sizes = Sizes::fixed;
  return options;
}

TEST(TraceCost, IsLinear) {
  const auto cost = [](int count) {
    const auto nodes = [count](Tensor x) {
      for (int i = 0; i < count; ++i) x = (x * 2).view({x.size(1), -1}) + x.size(0);
      return x;
    };
    symbolic_trace(nodes, {torch::rand({4, 4})});
    return testing::allocations_of([&] { symbolic_trace(nodes, {torch::rand({4, 4})}); });
  };
  EXPECT_LT(cost(4000), 9 * cost(500));
}

// What BM_TraceSizes and BM_TraceShapes measure: four dimensions that are tied in two pairs.
TEST(TraceCost, OfAChain) {
  const std::vector<c10::IValue> examples = {torch::rand({2, 3}), torch::rand({2, 3})};
  for (const int blocks : {111, 1111, 3333}) {
    const auto chain = [blocks](Tensor x, Tensor y) {
      for (int i = 0; i < blocks; ++i) x = torch::mul(torch::relu(torch::add(x, y)), y);
      return x;
    };
    const double found =
        ratio([&] { Tracer().trace(chain, examples); }, [&] { Tracer(plain()).trace(chain, examples); });
    std::cout << "generic over plain, chain of " << 3 * blocks << ": " << found << "\n";
    EXPECT_LE(found, 20) << blocks;
  }
}

TEST(TraceCost, OfAModule) {
  torch::nn::Sequential net;
  for (int i = 0; i < 300; ++i) {
    net->push_back(torch::nn::Linear(8, 8));
    net->push_back(torch::nn::ReLU());
  }
  const Tensor example = torch::rand({4, 8});
  const double found = ratio([&] { symbolic_trace(net, {example}); }, [&] { symbolic_trace(net, {example}, plain()); });
  std::cout << "generic over plain, module: " << found << "\n";
  EXPECT_LE(found, 20);
}

template <typename Net>
double ratio_of(const Net& net, const Tensor& example) {
  return ratio([&] { symbolic_trace(net, {example}); }, [&] { symbolic_trace(net, {example}, plain()); });
}

template <typename Net>
void expect_cheap(const std::string& name, const Net& net, const Tensor& example) {
  const double found = ratio_of(net, example);
  std::cout << "generic over plain, " << name << ": " << found << "\n";
  EXPECT_LE(found, 20) << name;
}

TEST(TraceCost, OfModelsThatPeopleHave) {
  expect_cheap("resnet18", testing::ResNet18(), torch::rand({2, 3, 64, 64}));
  expect_cheap("lstm", testing::LstmTagger(), torch::randint(1000, {4, 12}));
  expect_cheap("encoder", testing::TransformerClassifier(), torch::randint(1000, {12, 4}));
  expect_cheap("lstm over long texts", testing::LstmTagger(), torch::randint(1000, {8, 60}));
  expect_cheap("gpt", testing::Gpt(), torch::randint(10, {2, 8}));
}

// Rows tell what convolutions make of inputs of any type and layout: none runs on data, which costs a whole run each.
TEST(TraceCost, OfConvolutionsIsNoneOnData) {
  static thread_local int kernels;
  kernels = 0;
  const at::CallbackHandle handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
        const std::string_view name = call.name();
        kernels += name.find("_conv2d_forward") != name.npos || name.find("mkldnn_convolution") != name.npos ? 1 : 0;
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  symbolic_trace(testing::ResNet18(), {torch::rand({2, 3, 64, 64})});
  at::removeCallback(handle);
  EXPECT_EQ(kernels, 0);
}

}  // namespace fx::trace_cost_test
