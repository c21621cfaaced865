// Hugging Face optimum's transformations: equal results, and back to the letter, on all kinds of models and after
// edits.
#include <fxgraph/rewriter/rules/transformations.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <sstream>

#include <fxgraph/run/value.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/import.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/support/error_of.h"
#include "tests/support/names.h"
#include "tests/torchscript/model_files.h"
#include "tests/trace/torch_models.h"
#include "tests/trace/trace_testing.h"

namespace fx::transformations_test {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names;
using testing::same_value;
using torch::Tensor;

/// Attention with three linear layers on one input, a division, and norms behind and before linear layers.
struct MixedImpl : torch::nn::Module {
  MixedImpl() {
    query = register_module("query", torch::nn::Linear(8, 8));
    key = register_module("key", torch::nn::Linear(8, 8));
    value = register_module("value", torch::nn::Linear(8, 4));
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    out = register_module("out", torch::nn::Linear(4, 3));
    for (const Tensor& buffer : norm->buffers()) {
      if (buffer.is_floating_point()) torch::nn::init::uniform_(buffer, 0.5, 1.5);
    }
  }
  Tensor forward(const Tensor& x) {
    const Tensor scores = torch::softmax(torch::matmul(query(x), key(x).t()) / 2.8, -1);
    return out(norm(torch::matmul(scores, value(x)))) / 3;
  }
  torch::nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, out{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Mixed);

struct Program {
  const char* name;
  std::shared_ptr<GraphModule> module;
  std::vector<c10::IValue> inputs;
};

std::vector<Program> programs() {
  torch::manual_seed(5);
  std::vector<Program> all;
  const auto add = [&](const char* name, auto net, std::vector<c10::IValue> inputs) {
    net->eval();
    for (const Tensor& buffer : net->buffers()) {
      if (buffer.is_floating_point()) torch::nn::init::uniform_(buffer, 0.5, 1.5);
    }
    all.push_back({name, symbolic_trace(net, inputs), inputs});
  };
  add("mixed", Mixed(), {torch::randn({5, 8})});
  add("mlp", testing::Mlp(), {torch::randn({2, 8})});
  add("lenet", testing::LeNet(), {torch::randn({2, 1, 28, 28})});
  add("resnet", testing::ResNet18(4), {torch::randn({2, 3, 32, 32})});
  add("unet", testing::UNet(), {torch::randn({1, 1, 16, 16})});
  return all;
}

std::vector<Transformation> transformations(const Program& program) {
  std::vector<TensorInfo> inputs;
  for (const c10::IValue& input : program.inputs) inputs.push_back(tensor_info(input.toTensor()));
  return {MergeLinears(), FuseBiasInLinear(), ChangeTrueDivToMulByInverse(), FuseBatchNorm2dInConv2d(),
          FuseBatchNorm1dInLinear(inputs)};
}

/// Everything that a program is, in words; equal words, equal programs, the same tensors.
std::string to_the_letter(const GraphModule& module) {
  std::ostringstream text;
  text << print_graph(module.graph()) << module.code();
  for (const auto& item : module.named_parameters())
    text << item.key() << " " << item.value().unsafeGetTensorImpl() << "\n";
  for (const auto& item : module.named_buffers())
    text << item.key() << " " << item.value().unsafeGetTensorImpl() << "\n";
  for (const auto& item : module.named_modules()) text << item.key() << " " << item.value()->is_training() << "\n";
  return text.str();
}

/// Calls a Sequential, and a module of it by itself.
struct Parts : torch::nn::Module {
  explicit Parts(torch::nn::Sequential parts) {
    register_module("features", parts);
    register_module("alias", parts);
    register_module("bn", torch::nn::BatchNorm2d(4));
  }
};

TEST(Transformations, LeaveAModuleWhereAnotherCallRunsItToo) {
  torch::NoGradGuard inference;
  namespace nn = torch::nn;
  for (const bool linear : {true, false}) {
    for (const char* called : {"features", "alias"}) {
      torch::manual_seed(3);
      Parts root(linear ? nn::Sequential(nn::Linear(4, 4), nn::ReLU())
                        : nn::Sequential(nn::Conv2d(4, 4, 1), nn::ReLU()));
      root.eval();
      for (const Tensor& buffer : root.buffers()) {
        if (buffer.is_floating_point()) nn::init::uniform_(buffer, 0.5, 1.5);
      }
      const std::string last = linear ? "%c" : "%b";
      GraphModule module(
          root,
          parse_graph("graph():\n%x = placeholder[target=x]\n%f = call_module[target=" + std::string(called) +
                      "](args = (%x,))\n%c = call_module[target=features.0](args = (%x,))\n" +
                      (linear ? "" : "%b = call_module[target=bn](args = (%c,))\n") +
                      "%s = call_function[target=torch.ops.aten.add.Tensor](args = (%f, " + last + "))\nreturn s"));
      const Tensor x = torch::randn({2, 4, 4, 4}), expected = module.run({x}).toTensor();
      const Transformation change = linear ? FuseBiasInLinear() : FuseBatchNorm2dInConv2d();
      change(module);
      EXPECT_TRUE(torch::allclose(module.run({x}).toTensor(), expected, 1e-4, 1e-5)) << called << linear;
      EXPECT_EQ(module.graph().count(Op::call_module, "bn"), 0u) << "still folded";
    }
  }
}

TEST(Transformations, ComputeTheSameAndAreTakenBackToTheLetter) {
  torch::NoGradGuard inference;
  std::map<std::string, std::size_t> changed;
  for (const Program& program : programs()) {
    const std::string before = to_the_letter(*program.module);
    const c10::IValue expected = program.module->run(program.inputs);
    for (const Transformation& transformation : transformations(program)) {
      const std::size_t count = transformation(*program.module);
      changed[transformation.name()] += count;
      EXPECT_TRUE(same_value(program.module->run(program.inputs), expected, 1e-3))
          << program.name << transformation.name();
      EXPECT_NO_THROW(program.module->graph().lint());
      EXPECT_EQ(count == 0, to_the_letter(*program.module) == before) << transformation.name();
      EXPECT_EQ(transformation.reverse(*program.module), count);
      ASSERT_EQ(to_the_letter(*program.module), before) << program.name << transformation.name();
      EXPECT_THAT(transformed_nodes(*program.module), IsEmpty());
      EXPECT_TRUE(same_value(program.module->run(program.inputs), expected)) << program.name;
    }
  }
  EXPECT_EQ(changed.size(), 5u);
  for (const auto& [name, count] : changed) EXPECT_GT(count, 0u) << name;
}

TEST(Transformations, ComposedInAnyOrder) {
  torch::NoGradGuard inference;
  for (const Program& program : programs()) {
    const std::string before = to_the_letter(*program.module);
    const c10::IValue expected = program.module->run(program.inputs);
    std::vector<Transformation> parts = transformations(program);
    for (std::size_t shift = 0; shift < parts.size(); ++shift) {
      std::rotate(parts.begin(), parts.begin() + 1, parts.end());
      const Transformation all = compose(parts);
      EXPECT_GT(all(*program.module), 0u);
      EXPECT_TRUE(same_value(program.module->run(program.inputs), expected, 1e-3)) << program.name << shift;
      // Another object, on a copy, too.
      const auto copy = program.module->clone_graph_module();
      compose(parts).reverse(*copy);
      EXPECT_EQ(print_graph(copy->graph()), before.substr(0, print_graph(copy->graph()).size()));
      EXPECT_TRUE(same_value(copy->run(program.inputs), expected)) << program.name;
      all.reverse(*program.module);
      ASSERT_EQ(to_the_letter(*program.module), before) << program.name << shift;
    }
  }
}

TEST(Transformations, MarkWhatTheyChangedAndKeepEditsElsewhere) {
  Mixed net;
  net->eval();
  const auto gm = symbolic_trace(net, {torch::randn({5, 8})});
  const std::string before = print_graph(gm->graph());
  ChangeTrueDivToMulByInverse()(*gm);
  // The two products, and what takes them.
  EXPECT_EQ(transformed_nodes(*gm, "ChangeTrueDivToMulByInverse").size(), 4u);
  EXPECT_THAT(transformed_nodes(*gm, "MergeLinears"), IsEmpty());
  const std::string edited = gm->graph().find_nodes(Op::call_function, "aten::matmul").back()->name();
  gm->graph().find(edited)->set_target("aten::mm");
  ChangeTrueDivToMulByInverse().reverse(*gm);
  EXPECT_EQ(gm->graph().find(edited)->target(), Symbol("aten::mm"));
  gm->graph().find(edited)->set_target("aten::matmul");
  EXPECT_EQ(print_graph(gm->graph()), before);
}

TEST(Transformations, WhatWasChangedSinceIsTakenBackFirst) {
  Mixed net;
  net->eval();
  const auto gm = symbolic_trace(net, {torch::randn({5, 8})});
  ChangeTrueDivToMulByInverse()(*gm);
  Node& changed = *transformed_nodes(*gm).at(0);
  changed.update_arg(1, 0.125);
  const std::string now = print_graph(gm->graph());
  EXPECT_THAT(error_of([&] { ChangeTrueDivToMulByInverse().reverse(*gm); }),
              HasSubstr("is no longer what ChangeTrueDivToMulByInverse made it; take back first what was done since"));
  EXPECT_EQ(print_graph(gm->graph()), now);

  const auto twice = symbolic_trace(net, {torch::randn({5, 8})});
  const Transformation other("Other", [](GraphModule& module) {
    for (Node& node : module.graph().nodes()) {
      if (node.is_call("aten::mul.Tensor") || node.is_call("aten::mul.Scalar")) node.update_arg(1, 2.0);
    }
  });
  ChangeTrueDivToMulByInverse()(*twice);
  other(*twice);
  EXPECT_THAT(error_of([&] { ChangeTrueDivToMulByInverse().reverse(*twice); }),
              HasSubstr("was changed by Other after ChangeTrueDivToMulByInverse; take that back first"));
  other.reverse(*twice);
  EXPECT_GT(ChangeTrueDivToMulByInverse().reverse(*twice), 0u);
}

TEST(TransformationsNight, OfAllModelsAreTakenBackToTheLetter) {
  if (testing::models_folder().empty()) GTEST_SKIP() << "FXGRAPH_TEST_MODELS is not set: no models to test with";
  torch::NoGradGuard inference;
  std::map<std::string, std::size_t> changed;
  std::size_t models = 0;
  for (const nlohmann::json& entry : testing::entries(true)) {
    const std::string file = testing::models_folder() + "/" + entry["file"].get<std::string>();
    SCOPED_TRACE(file);
    std::shared_ptr<GraphModule> loaded;
    try {
      loaded = load(file);
    } catch (const Error&) {
      continue;  // control flow that depends on data
    }
    const Program program{"", loaded, testing::read_example(entry).inputs};
    const bool tensors = std::ranges::all_of(program.inputs, [](const c10::IValue& input) { return input.isTensor(); });
    const std::string before = to_the_letter(*program.module);
    std::vector<Transformation> all = transformations(tensors ? program : Program{"", program.module, {}});
    all.push_back(compose(all));
    all.push_back(reversible_rules("inference", {"inference"}));
    for (const Transformation& transformation : all) {
      const std::size_t count = transformation(*program.module);
      changed[transformation.name()] += count > 0;
      EXPECT_NO_THROW(program.module->graph().lint());
      EXPECT_EQ(transformed_nodes(*program.module).empty(), count == 0) << transformation.name();
      EXPECT_EQ(transformation.reverse(*program.module), count) << transformation.name();
      ASSERT_EQ(to_the_letter(*program.module), before) << transformation.name();
      EXPECT_THAT(transformed_nodes(*program.module), IsEmpty());
    }
    ++models;
  }
  EXPECT_GT(models, 100u);
  for (const auto& [name, times] : changed) std::printf("%s changed %zu of %zu models\n", name.c_str(), times, models);
}

// Taken back in a copy, what comes back is the copy's own: nothing written there reaches the original.
TEST(Transformation, ACopyGetsWeightsOfItsOwn) {
  torch::nn::Sequential net(torch::nn::Conv2d(3, 4, 3), torch::nn::BatchNorm2d(4));
  net->eval();
  const Tensor x = torch::randn({2, 3, 8, 8});
  const auto gm = symbolic_trace(net, {x});
  gm->set_parameter("tied", gm->attribute("0.weight"));
  {
    const auto at_end = gm->graph().inserting_before(*gm->graph().output_node());
    Node &tied = gm->graph().get_attr("tied"), &value = *gm->graph().output_node()->arg(0).node_or_null();
    Node& sum = gm->graph().call_function("aten::add.Tensor", {value, gm->graph().call_function("aten::sum", {tied})});
    gm->graph().output_node()->set_args({sum});
  }
  const Tensor expected = gm->forward(x);
  const Transformation fold = FuseBatchNorm2dInConv2d();
  ASSERT_GT(fold(*gm), 0u);
  const auto copy = gm->clone_graph_module();
  fold.reverse(*copy);
  fold.reverse(*gm);
  EXPECT_TRUE(torch::allclose(copy->forward(x), expected, 1e-5, 1e-5));
  {
    const torch::NoGradGuard guard;
    for (Tensor& parameter : copy->parameters()) parameter.zero_();
    for (Tensor& buffer : copy->buffers()) buffer.zero_();
  }
  EXPECT_TRUE(gm->forward(x).equal(expected));
  // What was tied is tied in the copy, too.
  EXPECT_TRUE(copy->attribute("tied").is_same(copy->attribute("0.weight")) ||
              copy->attribute("tied").data_ptr() == copy->attribute("0.weight").data_ptr());
}

// A module of C++ that nothing calls any more and of which a tensor is read is copied, and comes back.
TEST(Transformation, ModulesOfWhichATensorIsReadComeBackWhole) {
  torch::nn::GroupNorm norm(1, 3);
  norm->eval();
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& bias = graph.get_attr("norm.bias");
  graph.call_module("norm", {x});  // dead
  graph.output(graph.call_function("aten::add.Tensor", {x, bias}));
  GraphModule gm(GraphModule::Attributes{{"norm", norm.ptr()}}, std::move(graph));
  const Transformation clean = reversible_rules("inference", {"inference"});
  ASSERT_GT(clean(gm), 0u);
  const Tensor input = torch::randn({2, 3});
  EXPECT_TRUE(gm.clone_graph_module()->forward(input).equal(gm.forward(input)));
  clean.reverse(gm);
  EXPECT_EQ(gm.named_parameters().size(), 2u);
  EXPECT_EQ(gm.submodule("norm").get(), norm.ptr().get());
  EXPECT_TRUE(gm.clone_graph_module()->forward(input).equal(gm.forward(input)));
}

}  // namespace fx::transformations_test
