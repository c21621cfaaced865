// What upstream's tests of torch.fx check that no other test here does; docs/upstream-tests.md lists all of them.
#include <cmath>
#include <limits>
#include <sstream>

#include <fxgraph/codegen/python.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/retrace/transformer.h>
#include <fxgraph/text/parse.h>
#include "tests/trace/torch_models.h"
#include "tests/trace/trace_testing.h"

namespace fx::fx_parity_test {

using ::testing::HasSubstr;
using testing::same_value;
using torch::Tensor;

// test_print_readable_no_trailing_whitespace_with_inner_graph
TEST(FxParity, NoPrintoutHasTrailingBlanks) {
  const auto gm = symbolic_trace(testing::Mlp(), {torch::rand({2, 8})}, {.sizes = Sizes::fixed});
  for (const std::string& text : {gm->code(), print_graph(gm->graph())}) {
    EXPECT_EQ(text.find(" \n"), std::string::npos) << text;
    EXPECT_EQ(text.find("\t"), std::string::npos) << text;
  }
}

// test_pretty_print
TEST(FxParity, AGraphModulePrintsItsClassAndWhatItCalls) {
  auto gm = symbolic_trace(testing::Mlp(), {torch::rand({2, 8})}, {.sizes = Sizes::fixed});
  gm->set_class_name("Traced");
  std::ostringstream out;
  out << *gm;
  EXPECT_THAT(out.str(), ::testing::AllOf(HasSubstr("Traced"), HasSubstr("(fc1)"), HasSubstr("torch::nn::Linear")));
}

// test_symbolic_trace_assert
TEST(FxParity, AnAssertionIsRecordedKeptAndFires) {
  const auto gm = symbolic_trace([](Tensor x) {
    torch::_assert_async(x.sum() > 0);
    return x * 2;
  });
  EXPECT_EQ(eliminate_dead_code(gm->graph()), 0U);
  EXPECT_TRUE(same_value(gm->forward(torch::ones({2})), torch::full({2}, 2.0F)));
  EXPECT_FX_ERROR(gm->forward(-torch::ones({2})), execution, HasSubstr("%_assert_async"));
}

// test_sequential, test_deepcopy_with_submods_params
TEST(FxParity, ATracedSequentialIsCopiedDeeply) {
  torch::nn::Sequential module(torch::nn::Linear(2, 3), torch::nn::ReLU(), torch::nn::BatchNorm1d(3));
  module->eval();
  const auto gm = symbolic_trace(module);
  const auto copy = gm->clone_graph_module();
  EXPECT_NO_THROW(copy->graph().lint());
  const Tensor x = torch::rand({4, 2});
  EXPECT_TRUE(same_value(copy->forward(x), module->forward(x)));
  EXPECT_FALSE(copy->attribute("0.weight").is_alias_of(gm->attribute("0.weight")));
  EXPECT_EQ(copy->named_parameters().keys(), gm->named_parameters().keys());
}

// test_replace_uses
TEST(FxParity, ReluBecomesNegAcrossAResNet) {
  testing::ResNet18 net(8);
  net->eval();
  TraceOptions options;
  options.raise_leaf_modules = false;
  const auto gm = symbolic_trace(net, {torch::rand({2, 3, 32, 32})}, options);
  const std::vector<Node*> relus = gm->graph().find_nodes(Op::call_function, "aten::relu");
  ASSERT_EQ(relus.size(), 9U);
  for (Node* relu : relus) {
    const auto at = gm->graph().inserting_after(*relu);
    relu->replace_all_uses_with(gm->graph().call_function("aten::neg", {relu->arg(0)}));
    gm->graph().erase_node(*relu);
  }
  EXPECT_NO_THROW(gm->graph().lint());
  EXPECT_EQ(gm->graph().count(Op::call_function, "aten::neg"), 9U);
  EXPECT_NO_THROW(gm->forward(torch::rand({2, 3, 32, 32})));
}

// test_delete_unused_submodules_leaf
TEST(FxParity, WhatIsInsideACalledModuleIsUsed) {
  const std::shared_ptr<torch::nn::Module> block =
      torch::nn::Sequential(torch::nn::Linear(2, 2), torch::nn::Tanh()).ptr();
  GraphModule gm({{"block", block}}, parse_graph("graph():\n%x = placeholder[target=x]\n"
                                                 "%y = call_module[target=block](args = (%x,))\nreturn y"));
  EXPECT_EQ(gm.delete_all_unused_submodules(), 0U);
  EXPECT_EQ(gm.delete_all_unused_attributes(), 0U);
  EXPECT_NE(gm.find_submodule("block.0"), nullptr);
  EXPECT_NO_THROW(gm.forward(torch::rand({1, 2})));
}

// test_profiler_ranges_side_effect
TEST(FxParity, RangesForTheProfilerAreNoDeadCode) {
  Graph graph = parse_graph(R"(graph():
    %x = placeholder[target=x]
    %enter = call_function[target=torch.ops.profiler._record_function_enter.default](args = ('range',))
    %relu = call_function[target=torch.ops.aten.relu.default](args = (%x,))
    %leave = call_function[target=torch.ops.profiler._record_function_exit.default](args = (%enter,))
    %dead = call_function[target=torch.ops.aten.neg.default](args = (%x,))
    return relu)");
  EXPECT_EQ(eliminate_dead_code(graph), 1U);
  EXPECT_NE(graph.find("enter"), nullptr);
  EXPECT_NE(graph.find("leave"), nullptr);
}

// test_inf_nan_kwds
TEST(FxParity, NodesDoNotHideTheConstantsOfPython) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("operator.add", {x, std::numeric_limits<double>::infinity()}, {}, "inf");
  Node& b = graph.call_function("operator.add", {x, std::numeric_limits<double>::quiet_NaN()}, {}, "nan");
  graph.output(Argument::tuple({Argument(a), Argument(b)}));
  EXPECT_THAT(python_code(graph), ::testing::AllOf(HasSubstr("inf_1 = x + inf"), HasSubstr("nan_1 = x + nan")));
}

// test_nn_module_stack
TEST(FxParity, CallsOfModulesSayWhereTheyStand) {
  const auto gm = symbolic_trace(testing::ResNet18(8), {torch::rand({2, 3, 32, 32})});
  const Node& node = *gm->graph().find("layer1_0_conv1");
  EXPECT_EQ(*node.find_meta()->get<std::string>(meta_key::kModuleStack), "layer1.0.conv1");
  const auto again = Transformer(*gm).transform();
  EXPECT_EQ(*again->graph().find("layer1_0_conv1")->find_meta()->get<std::string>(meta_key::kModuleStack),
            "layer1.0.conv1");
}

// test_interpreter_gc_values, test_delete_unused_values: an impure call that nothing uses lets go of its result.
TEST(FxParity, ResultsThatNothingUsesAreReleasedInCode) {
  const Graph graph = parse_graph(R"(graph():
    %x = placeholder[target=x]
    %add_ = call_function[target=torch.ops.aten.add_.Tensor](args = (%x, 1))
    return x)");
  EXPECT_THAT(python_code(graph), HasSubstr("add_ = torch.ops.aten.add_.Tensor(x, 1);  add_ = None"));
}

// test_fx_stateless
TEST(FxParity, AGraphModuleRunsWithOtherParameters) {
  testing::Mlp mlp;
  TraceOptions options;
  options.raise_leaf_modules = false;
  const auto gm = symbolic_trace(mlp, {torch::rand({2, 8})}, options);
  const auto other = gm->clone_graph_module();
  for (const auto& item : gm->named_parameters()) other->set_parameter(item.key(), torch::zeros_like(item.value()));
  const Tensor x = torch::rand({2, 8});
  EXPECT_TRUE(other->forward(x).allclose(torch::full({2, 4}, -std::log(4.0F))));
  EXPECT_TRUE(same_value(gm->forward(x), mlp->forward(x), 1e-6));
}

}  // namespace fx::fx_parity_test
