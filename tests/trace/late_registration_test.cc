// Modules whose forward registers what it needs at the first call: refused by name, and traced when they have it.
#include "tests/trace/trace_testing.h"

namespace fx::late_registration_test {

using ::testing::HasSubstr;
using testing::same_value;
using torch::Tensor;

struct LazyLinear : torch::nn::Module {
  torch::nn::Linear l{nullptr};
  Tensor forward(const Tensor& x) {
    if (!l) l = register_module("l", torch::nn::Linear(x.size(-1), 2));
    return l(x);
  }
};

struct LazyLayers : torch::nn::Module {
  std::vector<torch::nn::Linear> layers;
  std::shared_ptr<torch::nn::LinearImpl> last;
  torch::nn::ModuleList list = register_module("list", torch::nn::ModuleList());
  LazyLayers() { layers.push_back(register_module("first", torch::nn::Linear(3, 3))); }
  Tensor forward(Tensor x) {
    while (layers.size() < 3)
      layers.push_back(register_module("l" + std::to_string(layers.size()), torch::nn::Linear(x.size(-1), 3)));
    if (list->is_empty()) list->push_back(torch::nn::Linear(3, 3));
    if (!last) last = register_module("last", std::make_shared<torch::nn::LinearImpl>(3, 2));
    for (torch::nn::Linear& layer : layers) x = layer(x);
    return last->forward(list[0]->as<torch::nn::LinearImpl>()->forward(x));
  }
};

struct LazyParameter : torch::nn::Module {
  Tensor w;
  Tensor forward(const Tensor& x) {
    if (!w.defined()) w = register_parameter("w", torch::ones({x.size(-1)}));
    return x * w;
  }
};

struct LazyBuffer : torch::nn::Module {
  Tensor w;
  Tensor forward(const Tensor& x) {
    if (!w.defined()) w = register_buffer("w", torch::ones({x.size(-1)}));
    return x * w;
  }
};

struct LazyInside : torch::nn::Module {
  std::shared_ptr<LazyLinear> inner = register_module("inner", std::make_shared<LazyLinear>());
  Tensor forward(const Tensor& x) { return inner->forward(x) + 1; }
};

// What it has registered stays: the module is as after a call.
template <typename Net>
void expect_refused_once(const char* message, const std::vector<c10::IValue>& examples) {
  const auto net = std::make_shared<Net>(), twin = std::make_shared<Net>();
  EXPECT_FX_ERROR(symbolic_trace(net, examples), trace, HasSubstr(message),
                  HasSubstr("run the module once before it is traced"));
  const Tensor x = torch::rand({2, 3});
  torch::NoGradGuard no_grad;
  twin->forward(x);
  EXPECT_EQ(net->named_parameters().keys(), twin->named_parameters().keys());
  EXPECT_EQ(net->named_buffers().keys(), twin->named_buffers().keys());
  EXPECT_EQ(net->named_modules().keys(), twin->named_modules().keys());
  for (std::size_t i = 0; i < net->parameters().size(); ++i) {
    EXPECT_TRUE(net->parameters()[i].requires_grad());
    net->parameters()[i].copy_(twin->parameters()[i]);
  }
  EXPECT_TRUE(same_value(net->forward(x), twin->forward(x)));
  const auto traced = symbolic_trace(net, examples);
  EXPECT_TRUE(same_value(traced->forward(x), twin->forward(x)));
}

TEST(LateRegistration, IsRefusedByName) {
  const std::vector<c10::IValue> example = {torch::rand({2, 3})};
  expect_refused_once<LazyLinear>("forward registers the module 'l' in the module", example);
  expect_refused_once<LazyParameter>("forward registers the parameter 'w' in the module", example);
  expect_refused_once<LazyBuffer>("forward registers the buffer 'w' in the module", example);
  expect_refused_once<LazyInside>("forward registers the module 'l' in inner", example);
  expect_refused_once<LazyLayers>("forward registers the module 'l1' in the module", example);
}

}  // namespace fx::late_registration_test
