// A program that holds for one mode stays one, whatever is made of it: train() and eval() are refused there, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <vector>

#include <fxgraph/retrace/transformer.h>
#include <fxgraph/rewriter/partition/const_subgraphs.h>
#include <fxgraph/rewriter/partition/inline_submodules.h>
#include <fxgraph/rewriter/partition/lower.h>
#include <fxgraph/rewriter/partition/split_module.h>
#include <fxgraph/rewriter/program/decompose.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/support/error_of.h"

namespace fx::fixed_modes_test {

using testing::error_of;
using ::testing::HasSubstr;
using torch::Tensor;

struct DoublesInTraining : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 4));
  Tensor forward(Tensor x) {
    const Tensor y = linear(x).relu() + linear->weight.sum();
    return is_training() ? y * 2 : y;
  }
};

struct Derivation {
  const char* name;
  std::function<std::shared_ptr<GraphModule>(const GraphModule&)> make;
};

/// Gives its parts back as they are.
struct Same : Backend {
  std::string name() const override { return "same"; }
  bool supports(const CallFacts&) const override { return true; }
  std::shared_ptr<torch::nn::Module> compile(std::shared_ptr<GraphModule> part) const override { return part; }
};

std::vector<Node*> calls_of(const GraphModule& module) {
  std::vector<Node*> calls;
  for (const Node& node : module.graph().nodes()) {
    if (node.is_callable()) calls.push_back(module.graph().find(node.name()));
  }
  return calls;
}

const std::vector<Derivation> kDerivations = {
    {"clone", [](const GraphModule& m) { return m.clone_graph_module(); }},
    {"of_its_graph", [](const GraphModule& m) { return std::make_shared<GraphModule>(m, m.graph().clone()); }},
    {"split", [](const GraphModule& m) { return split_module(m, [](const Node&) { return 0; }); }},
    {"split_and_inlined",
     [](const GraphModule& m) {
       return inline_submodules(*split_module(m, [](const Node&) { return 0; }), {"submod_0"});
     }},
    {"part",
     [](const GraphModule& m) {
       const auto split = split_module(m, [](const Node&) { return 0; });
       return std::dynamic_pointer_cast<GraphModule>(split->submodule("submod_0"));
     }},
    {"lifted", [](const GraphModule& m) { return lift_submodule(m, {calls_of(m)[1]}, "lifted"); }},
    {"fused", [](const GraphModule& m) { return fuse_by_partitions(m, {calls_of(m)}); }},
    {"constants",
     [](const GraphModule& m) {
       const ConstSplit split = split_const_subgraphs(m);
       split.fold();
       return split.module;
     }},
    {"lowered", [](const GraphModule& m) { return lower(*m.clone_graph_module(), Same()).module(); }},
    {"inlined", [](const GraphModule& m) { return lower(*m.clone_graph_module(), Same()).inlined(); }},
    {"decomposed", [](const GraphModule& m) { return decompose(m, Decompositions()); }},
    {"transformed", [](const GraphModule& m) { return Transformer(*m.clone_graph_module()).transform(); }},
};

class FixedModes : public ::testing::TestWithParam<Derivation> {};

TEST_P(FixedModes, StayFixed) {
  const Tensor x = torch::randn({2, 4});
  for (const bool training : {false, true}) {
    const auto net = std::make_shared<DoublesInTraining>();
    net->train(training);
    const auto traced = symbolic_trace(net, {x});
    ASSERT_FALSE(traced->fixed_mode().empty());
    const auto made = GetParam().make(*traced);
    EXPECT_EQ(made->is_training(), training);
    EXPECT_EQ(made->fixed_mode(), traced->fixed_mode());
    EXPECT_THAT(error_of([&] { made->train(!training); }), HasSubstr("the graph does not follow"));
    EXPECT_NO_THROW(made->train(training));
    EXPECT_TRUE(made->forward(x).allclose(net->forward(x)));
  }
}

INSTANTIATE_TEST_SUITE_P(Derived, FixedModes, ::testing::ValuesIn(kDerivations),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::fixed_modes_test
