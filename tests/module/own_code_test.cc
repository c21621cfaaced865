// Modules that run by their own code: other tensors reach it, and what it does beside is known, or not taken to be
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <memory>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>

namespace fx::own_code_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Root : torch::nn::Module {
  explicit Root(std::shared_ptr<torch::nn::Module> module) { register_module("m", std::move(module)); }
};

std::unique_ptr<GraphModule> program_of(std::shared_ptr<torch::nn::Module> module, const std::string& args = "%x,") {
  return std::make_unique<GraphModule>(
      Root(std::move(module)),
      parse_graph("graph():\n%x = placeholder[target=x]\n%y = call_module[target=m](args = (" + args + "))\nreturn y"));
}

torch::Tensor first_of(c10::IValue value) {
  while (!value.isTensor()) value = elements_of(value)[0];
  return value.toTensor();
}

std::shared_ptr<LeafModule> scaling_script() {
  torch::jit::Module script("Scaling");
  script.register_parameter("scale", torch::full({3}, 2.0f), /*is_buffer=*/false);
  script.define("def forward(self, x):\n  return x * self.scale\n");
  auto leaf = std::make_shared<LeafModule>("mine.Scaling",
                                           std::vector<NamedTensor>{{"scale", script.attr("scale").toTensor(), true}});
  leaf->set_script(script, "forward");
  return leaf;
}

struct Case {
  const char* name;
  std::shared_ptr<torch::nn::Module> module;
  const char* args;
  std::vector<std::int64_t> sizes;
};

TEST(OwnCode, ReadsTheTensorsThatAreSet) {
  namespace nn = torch::nn;
  const Case cases[] = {
      {"PReLU", nn::PReLU().ptr(), "%x,", {2, 3}},
      {"LSTM", nn::LSTM(3, 4).ptr(), "%x,", {5, 1, 3}},
      {"GRU", nn::GRU(3, 4).ptr(), "%x,", {5, 1, 3}},
      {"Bilinear", nn::Bilinear(3, 3, 2).ptr(), "%x, %x", {2, 3}},
      {"BatchNorm1d", nn::BatchNorm1d(3).ptr(), "%x,", {4, 3}},
      {"Linear", nn::Linear(3, 3).ptr(), "%x,", {4, 3}},
      {"script", scaling_script(), "%x,", {4, 3}},
  };
  for (const Case& c : cases) {
    torch::manual_seed(0);
    const torch::Tensor x = torch::randn(c.sizes);
    for (const auto& item : c.module->named_parameters()) {
      const std::string path = "m." + item.key();
      torch::manual_seed(1);
      const auto set = program_of(c.module->clone(), c.args), written = program_of(c.module->clone(), c.args);
      const torch::Tensor before = first_of(set->run({x}));
      const torch::Tensor other = torch::randn(item.value().sizes());
      set->set_attribute(path, other.clone().set_requires_grad(true));
      {
        const torch::NoGradGuard guard;
        written->attribute(path).copy_(other);
      }
      const torch::Tensor found = first_of(set->run({x})), expected = first_of(written->run({x}));
      EXPECT_TRUE(found.equal(expected)) << c.name << " " << path;
      EXPECT_FALSE(found.equal(before)) << c.name << " " << path;
      EXPECT_TRUE(set->attribute(path).equal(other)) << c.name << " " << path;
    }
  }
}

struct UnknownImpl : torch::nn::Module {
  UnknownImpl() : scale(register_parameter("scale", torch::ones({3}))) {}
  torch::Tensor forward(const torch::Tensor& x) { return x * scale; }
  torch::Tensor scale;
};

TEST(OwnCode, ThatKeepsItsTensorsIsNotGivenOthers) {
  register_module_type<UnknownImpl>("mine.Unknown");
  const auto gm = program_of(std::make_shared<UnknownImpl>());
  EXPECT_THAT([&] { gm->set_parameter("m.scale", torch::zeros({3})); },
              ThrowsMessage<Error>(HasSubstr("cannot put another tensor at 'm.scale': mine.Unknown keeps its own")));
  gm->set_parameter("m.scale", gm->attribute("m.scale"));
  EXPECT_TRUE(first_of(gm->run({torch::ones({3})})).equal(torch::ones({3})));
}

// What scripts of torch.nn's modules do in evaluation stands in their options, attributes or constants.
TEST(OwnCode, OfScriptsIsKnownByTheirOptions) {
  struct Script {
    const char *type, *option;
    c10::IValue value;
    bool writes, random;
  };
  for (const Script& c : {Script{"torch.nn.modules.sparse.EmbeddingBag", "max_norm", 1.0, true, false},
                          Script{"torch.nn.modules.sparse.EmbeddingBag", "max_norm", {}, false, false},
                          Script{"torch.nn.modules.sparse.EmbeddingBag", nullptr, {}, true, false},
                          Script{"torch.nn.modules.activation.ELU", "inplace", true, true, false},
                          Script{"torch.nn.modules.activation.ELU", "inplace", false, false, false},
                          Script{"torch.nn.modules.activation.ELU", nullptr, {}, false, false},
                          Script{"torch.nn.modules.pooling.FractionalMaxPool2d", nullptr, {}, false, true},
                          Script{"torch.nn.modules.pooling.MaxPool2d", nullptr, {}, false, false}}) {
    for (const bool constant : {true, false}) {
      torch::jit::Module script("Script");
      if (c.option && constant) script.type()->addConstant(c.option, c.value);
      if (c.option && !constant)
        script.register_attribute(c.option, c.value.isNone() ? c10::TypePtr(c10::NoneType::get()) : c.value.type(),
                                  c.value);
      script.define("def forward(self, x):\n  return x\n");
      script.eval();
      auto leaf = std::make_shared<LeafModule>(c.type, std::vector<NamedTensor>());
      leaf->set_script(script, "forward");
      leaf->eval();
      const auto gm = program_of(leaf);
      const NodeEffects effects = effects_of(*gm->graph().find("y"), module_info(*gm));
      EXPECT_EQ(effects.writes || effects.unknown, c.writes) << c.type << " " << c.value << constant;
      EXPECT_EQ(effects.random, c.random) << c.type;
    }
  }
}

}  // namespace fx::own_code_test
