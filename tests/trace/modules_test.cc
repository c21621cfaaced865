// Modules: parameters, buffers, leaves, retracing.
#include <fxgraph/nn/nn_modules.h>
#include "tests/trace/torch_models.h"
#include "tests/trace/trace_testing.h"

namespace fx::modules_test {

using testing::calls;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::same_value;
using testing::targets;
using torch::Tensor;

Trace trace_flat(auto&& program, std::vector<c10::IValue> examples = {}) {
  TraceOptions options;
  options.raise_leaf_modules = false;
  options.sizes = Sizes::fixed;
  Tracer tracer(options);
  return tracer.trace(program, std::move(examples));
}

std::vector<std::string> paths(const Trace& trace) {
  std::vector<std::string> result;
  for (const TracedAttribute& attribute : trace.attributes) result.push_back(attribute.path);
  return result;
}

struct Scale : torch::nn::Module {
  Scale() {
    weight = register_parameter("weight", torch::rand({3}));
    offset = register_buffer("offset", torch::rand({3}));
  }
  Tensor forward(Tensor x) { return x * weight + offset + plain; }
  Tensor weight, offset, plain = torch::rand({3});
};

struct Outer : torch::nn::Module {
  Outer() {
    inner = register_module("inner", std::make_shared<Scale>());
    again = register_module("again", inner);
  }
  Tensor forward(Tensor x) {
    x = again->forward(inner->forward(x)) + inner->weight.data();
    return x + inner->weight.detach();
  }
  std::shared_ptr<Scale> inner, again;
};

TEST(TraceModules, ParametersAndBuffersAreQualifiedAttributes) {
  auto module = std::make_shared<Outer>();
  const Trace trace = trace_flat(module);
  EXPECT_THAT(paths(trace), ElementsAre("inner.weight", "inner.offset", "_tensor_constant0"));
  EXPECT_TRUE(trace.attributes[0].tensor.is_same(module->inner->weight));
  EXPECT_THAT(calls(trace.graph),
              ElementsAre("aten::mul.Tensor(x, inner_weight)", "aten::add.Tensor(mul, inner_offset)",
                          "aten::add.Tensor(add, _tensor_constant0)", "aten::mul.Tensor(add_1, inner_weight)",
                          "aten::add.Tensor(mul_1, inner_offset)", "aten::add.Tensor(add_2, _tensor_constant0)",
                          "aten::detach(inner_weight)", "aten::add.Tensor(add_3, detach)", "aten::detach(inner_weight)",
                          "aten::add.Tensor(add_4, detach_1)"));
}

TEST(TraceModules, ConstantsAvoidTheNamesOfTheModule) {
  struct Clash : torch::nn::Module {
    Clash() { register_buffer("_tensor_constant0", torch::rand({1})); }
    Tensor forward(Tensor x) { return x + other; }
    Tensor other = torch::rand({1});
  };
  EXPECT_THAT(paths(trace_flat(std::make_shared<Clash>())), ElementsAre("_tensor_constant1"));
}

TEST(TraceModules, OperatorsOnParametersAloneAreRecorded) {
  auto module = std::make_shared<Scale>();
  Tracer tracer({.sizes = Sizes::fixed});
  const Trace trace = tracer.trace_with_root(module, [&](Tensor x) { return x * module->weight.exp(); });
  EXPECT_THAT(calls(trace.graph), ElementsAre("aten::exp(weight)", "aten::mul.Tensor(x, exp)"));
}

TEST(TraceModules, TheModuleIsUntouched) {
  torch::nn::BatchNorm2d bn(3);
  const Tensor mean = bn->running_mean.clone();
  trace_flat(bn, {torch::rand({2, 3, 4, 4})});
  EXPECT_TRUE(bn->running_mean.equal(mean));
  EXPECT_EQ(bn->num_batches_tracked.item<std::int64_t>(), 0);
}

TEST(TraceModules, HoldersReferencesAndConstForward) {
  struct Const : torch::nn::Module {
    Tensor forward(const Tensor& x) const { return x + 1; }
  };
  torch::nn::ReLU relu;
  EXPECT_THAT(calls(trace_flat(relu).graph), ElementsAre("aten::relu(x)"));
  EXPECT_THAT(calls(trace_flat(*relu).graph), ElementsAre("aten::relu(x)"));
  EXPECT_THAT(calls(trace_flat(torch::nn::AnyModule(relu)).graph), ElementsAre("aten::relu(x)"));
  EXPECT_THAT(calls(trace_flat(std::make_shared<Const>()).graph), ElementsAre("aten::add.Scalar(x, 1)"));
}

TEST(TraceModules, DefaultArgumentsOfForward) {
  EXPECT_THAT(trace_flat(torch::nn::LSTM(2, 3), {torch::rand({4, 1, 2})}).graph.placeholders(), ::testing::SizeIs(1));
  EXPECT_THAT(trace_flat(torch::nn::LSTM(2, 3),
                         {torch::rand({4, 1, 2}), std::make_tuple(torch::rand({1, 1, 3}), torch::rand({1, 1, 3}))})
                  .graph.placeholders(),
              ::testing::SizeIs(2));
}

TEST(TraceModules, LinearAndBatchNormNeedNoShapes) {
  torch::nn::Sequential module(torch::nn::Conv2d(1, 2, 3), torch::nn::BatchNorm2d(2), torch::nn::ReLU(),
                               torch::nn::Flatten(), torch::nn::Linear(8, 3));
  module->eval();
  const auto gm = symbolic_trace(module);
  const Tensor x = torch::rand({2, 1, 4, 4});
  EXPECT_TRUE(same_value(gm->forward(x), module->forward(x), 1e-6));
}

// ── Leaves
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST(LeafModules, AreRaised) {
  testing::Mlp mlp;
  Tracer tracer({.sizes = Sizes::fixed});
  const Trace trace = tracer.trace(mlp, {torch::rand({2, 8})});
  EXPECT_THAT(calls(trace.graph),
              ElementsAre("fc1(x)", "aten::relu(fc1)", "fc2(relu)", "aten::log_softmax.int(fc2, 1)"));
  EXPECT_THAT(trace.attributes, IsEmpty());
  ASSERT_EQ(trace.modules.size(), 2U);
  EXPECT_EQ(trace.modules[0].second, mlp->fc1.ptr());
  EXPECT_THAT(trace.shapes[*trace.graph.find("fc1")].tensor()->sizes, ElementsAre(2, 16));
}

TEST(LeafModules, WithoutShapesToo) {
  Tracer tracer({.sizes = Sizes::fixed});
  EXPECT_THAT(calls(tracer.trace(testing::Mlp()).graph),
              ElementsAre("fc1(x)", "aten::relu(fc1)", "fc2(relu)", "aten::log_softmax.int(fc2, 1)"));
}

TEST(LeafModules, ResNetIsAllModules) {
  testing::ResNet18 net(8);
  for (const bool training : {false, true}) {
    net->train(training);
    Tracer tracer({.sizes = Sizes::fixed});
    const Trace trace = tracer.trace(net, {torch::rand({2, 3, 32, 32})});
    EXPECT_THAT(trace.attributes, IsEmpty());
    std::size_t modules = 0;
    for (const Node& node : trace.graph.nodes()) modules += node.is(Op::call_module);
    EXPECT_EQ(modules, 20U + 20U + 1U);
    EXPECT_EQ(trace.graph.count(Op::call_function, "aten::conv2d"), 0U);
    EXPECT_NE(trace.graph.find("layer1_0_conv1"), nullptr);
  }
}

TEST(LeafModules, WithoutTensorsAreRaisedInSequentials) {
  torch::nn::Sequential module(torch::nn::Linear(2, 3), torch::nn::ReLU(), torch::nn::Dropout(0.5),
                               torch::nn::Linear(3, 3), torch::nn::Tanh());
  Tracer tracer({.sizes = Sizes::fixed});
  EXPECT_THAT(targets(tracer.trace(module).graph), ElementsAre("0", "1", "2", "3", "4"));
}

TEST(LeafModules, SharedModulesAreCalledTwice) {
  struct Twice : torch::nn::Module {
    Twice() { bn = register_module("bn", torch::nn::BatchNorm1d(3)); }
    Tensor forward(Tensor x) { return bn(torch::relu(bn(x))); }
    torch::nn::BatchNorm1d bn{nullptr};
  };
  Tracer tracer({.sizes = Sizes::fixed});
  EXPECT_THAT(calls(tracer.trace(std::make_shared<Twice>(), {torch::rand({4, 3})}).graph),
              ElementsAre("bn(x)", "aten::relu(bn)", "bn(relu)"));
}

TEST(LeafModules, RecurrentAndAttention) {
  struct Net : torch::nn::Module {
    Net() {
      lstm = register_module("lstm", torch::nn::LSTM(4, 4));
      attention = register_module("attention", torch::nn::MultiheadAttention(4, 2));
      gru = register_module("gru", torch::nn::GRUCell(4, 4));
    }
    Tensor forward(Tensor x, Tensor memory) {
      x = std::get<0>(lstm->forward(x));
      x = std::get<0>(attention->forward(x, x, x));
      x = std::get<0>(attention->forward(x, memory, memory));
      return gru->forward(x[0], memory[0]);
    }
    torch::nn::LSTM lstm{nullptr};
    torch::nn::MultiheadAttention attention{nullptr};
    torch::nn::GRUCell gru{nullptr};
  };
  auto net = std::make_shared<Net>();
  net->eval();
  const Tensor x = torch::rand({5, 2, 4}), memory = torch::rand({3, 2, 4});
  const auto gm = symbolic_trace(net, {x, memory}, {.sizes = Sizes::fixed});
  EXPECT_THAT(targets(gm->graph()),
              ElementsAre("lstm", "operator.getitem", "attention", "operator.getitem", "attention", "operator.getitem",
                          "aten::select.int", "aten::select.int", "gru"))
      << gm->graph();
  EXPECT_TRUE(same_value(gm->forward(x, memory), net->forward(x, memory), 1e-5));
}

// FX names calls after the path; the operators inside, which it never sees, take no numbers.
TEST(LeafModules, AreNamedAsFxNamesThem) {
  struct Net : torch::nn::Module {
    Net() {
      lstm = register_module("lstm", torch::nn::LSTM(4, 4));
      blocks = register_module("Blocks", torch::nn::Sequential(torch::nn::Linear(4, 4),
                                                               torch::nn::LayerNorm(torch::nn::LayerNormOptions({4}))));
    }
    Tensor forward(Tensor x) {
      const auto [out, state] = lstm->forward(x);
      const auto [more, last] = lstm->forward(out, state);
      const Tensor mixed = blocks->forward(more);
      const Tensor state_now = torch::relu(std::get<0>(last));
      const Tensor sum = mixed + state_now;
      return sum + torch::relu(x).sum();
    }
    torch::nn::LSTM lstm{nullptr};
    torch::nn::Sequential blocks{nullptr};
  };
  std::vector<std::string> names;
  const auto gm = symbolic_trace(std::make_shared<Net>(), {torch::rand({5, 2, 4})}, {.sizes = Sizes::fixed});
  for (const Node& node : gm->graph().nodes()) names.push_back(node.name());
  EXPECT_THAT(names, ElementsAre("x", "lstm", "getitem", "getitem_1", "getitem_2", "getitem_3", "lstm_1", "getitem_4",
                                 "getitem_5", "getitem_6", "blocks_0", "blocks_1", "relu", "add", "relu_1", "sum_1",
                                 "add_1", "output"))
      << gm->graph();

  struct Named : Tracer {
    Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view) override {
      return Tracer::create_node(op, target, args, kwargs, target == Symbol("aten::relu") ? "relu_1" : "");
    }
  } tracer;
  testing::Mlp mlp;
  const Trace trace = tracer.trace(mlp, {torch::rand({2, 8})});
  EXPECT_THAT(calls(trace.graph), Contains("aten::log_softmax.int(fc2, 1)"));
  EXPECT_NE(trace.graph.find("relu_1"), nullptr);
}

TEST(LeafModules, AreOverridable) {
  struct NoLeaves : Tracer {
    bool is_leaf_module(const torch::nn::Module&, const std::string&) const override { return false; }
  } none;
  const Trace trace = none.trace(testing::Mlp());
  for (const Node& node : trace.graph.nodes()) EXPECT_FALSE(node.is(Op::call_module));

  struct OnlyFirst : Tracer {
    bool is_leaf_module(const torch::nn::Module&, const std::string& path) const override { return path == "fc1"; }
  } first;
  EXPECT_THAT(calls(first.trace(testing::Mlp(), {torch::rand({2, 8})}).graph), Contains("fc1(x)"));
}

struct OwnLeafImpl : torch::nn::Module {
  OwnLeafImpl() { weight = register_parameter("weight", torch::rand({3})); }
  Tensor forward(const Tensor& x) { return torch::relu(x * weight + 1); }
  Tensor weight;
};
TORCH_MODULE(OwnLeaf);

TEST(LeafModules, OwnTypes) {
  register_module_type<OwnLeafImpl>("tests.OwnLeaf");
  struct Net : torch::nn::Module {
    Net() { leaf = register_module("leaf", OwnLeaf()); }
    Tensor forward(Tensor x) {
      const Tensor once = leaf(x);
      return once + leaf(x * 2);
    }
    OwnLeaf leaf{nullptr};
  };
  struct OwnLeaves : Tracer {
    bool is_leaf_module(const torch::nn::Module& module, const std::string&) const override {
      return dynamic_cast<const OwnLeafImpl*>(&module) != nullptr;
    }
  } tracer;
  EXPECT_THAT(targets(tracer.trace(std::make_shared<Net>()).graph),
              ElementsAre("leaf", "aten::mul.Scalar", "leaf", "aten::add.Tensor"));
}

TEST(LeafModules, StayOperatorsWhereTheInsideIsUsed) {
  struct Peeks : torch::nn::Module {
    Peeks() { fc = register_module("fc", torch::nn::Linear(3, 3)); }
    Tensor forward(Tensor x) {
      const Tensor w = fc->weight.t();
      return x.matmul(w) + fc->bias;
    }
    torch::nn::Linear fc{nullptr};
  };
  Tracer tracer({.sizes = Sizes::fixed});
  EXPECT_THAT(calls(tracer.trace(std::make_shared<Peeks>()).graph), Not(Contains(HasSubstr("fc("))));
}

TEST(LeafModules, StayOperatorsWhereAWriteComesBetween) {
  struct WrittenOut : torch::nn::Module {
    WrittenOut() { fc = register_module("fc", torch::nn::Linear(3, 3)); }
    Tensor forward(Tensor x) {
      const Tensor weight = fc->weight.t();
      Tensor y = torch::matmul(x, weight);
      if (writes) x.add_(1);
      return y.add_(fc->bias);
    }
    bool writes = false;
    torch::nn::Linear fc{nullptr};
  };
  auto module = std::make_shared<WrittenOut>();
  const auto traced = [&] {
    Tracer tracer({.sizes = Sizes::fixed});
    return calls(tracer.trace(module, {torch::rand({2, 2, 3})}).graph);
  };
  EXPECT_THAT(traced(), ElementsAre("fc(x)"));
  module->writes = true;
  EXPECT_THAT(traced(), ::testing::SizeIs(4));
}

TEST(TraceModules, GraphModulesAreTracedAgain) {
  testing::Mlp mlp;
  const auto once = symbolic_trace(mlp, {torch::rand({2, 8})});
  const auto twice = symbolic_trace(once, {torch::rand({2, 8})});
  const Tensor x = torch::rand({2, 8});
  EXPECT_TRUE(same_value(twice->forward(x), mlp->forward(x), 1e-6));
}

TEST(TraceModules, PathOfModule) {
  struct Asks : Tracer {
    using Tracer::Tracer;
    Node& create_node(Op op, Symbol target, ArgumentSpan args, KwargSpan kwargs, std::string_view name) override {
      if (path.empty() && mlp) path = path_of_module(*mlp->fc2);
      return Tracer::create_node(op, target, args, kwargs, name);
    }
    testing::Mlp mlp{nullptr};
    std::string path;
  } tracer;
  tracer.mlp = testing::Mlp();
  tracer.trace(tracer.mlp);
  EXPECT_EQ(tracer.path, "fc2");
  EXPECT_FX_ERROR(tracer.path_of_module(*torch::nn::ReLU()), not_found, HasSubstr("register_module"));
}

}  // namespace fx::modules_test
