// torch.fx's test/fx/test_net_min_base.py, each case by its name there, and programs with planted faults.
#include <fxgraph/rewriter/partition/minimizer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <set>

#include <fxgraph/text/parse.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/support/error_of.h"
#include "tests/support/names.h"
#include "tests/support/short_graph.h"
#include "tests/trace/torch_models.h"

namespace fx::minimizer_test {

using ::testing::ElementsAre;
using testing::graph_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names;
using Traverse = MinimizeOptions::Traverse;

std::shared_ptr<GraphModule> simple_module() {
  torch::nn::Sequential net(torch::nn::Linear(10, 5), torch::nn::Linear(5, 5), torch::nn::ReLU());
  const auto gm = symbolic_trace(net, {torch::randn({2, 10})}, {.sizes = Sizes::fixed});
  return gm;
}

/// A second way that is wrong wherever all of these nodes run together.
MinimizerFunctions wrong_with(std::set<std::string> culprits) {
  return {.run_b = [culprits](GraphModule& part, std::vector<c10::IValue> inputs) -> c10::IValue {
    std::size_t found = 0;
    for (const Node& node : part.graph().nodes()) found += !node.is(Op::placeholder) && culprits.contains(node.name());
    const c10::IValue result = part.run(std::move(inputs));
    if (culprits.empty() || found < culprits.size()) return result;
    return result.isTensor() ? c10::IValue(result.toTensor() + 1) : c10::IValue();
  }};
}

std::vector<std::string> calls_of(const GraphModule& module) {
  std::vector<std::string> all;
  for (const Node& node : module.graph().nodes()) {
    if (!node.is(Op::placeholder) && !node.is(Op::get_attr) && !node.is(Op::output)) all.push_back(node.name());
  }
  return all;
}

void expect_block(const std::vector<std::size_t>& places) {
  const auto gm = simple_module();
  const std::vector<std::string> calls = calls_of(*gm);
  ASSERT_EQ(calls.size(), 3u);
  std::vector<std::string> wanted;
  for (const std::size_t place : places) wanted.push_back(calls[place]);
  Minimizer minimizer(*gm, {torch::randn({2, 10})}, wrong_with({wanted.begin(), wanted.end()}));
  EXPECT_EQ(names(minimizer.minimize({.traverse = Traverse::block})), wanted) << minimizer.report();
}

TEST(NetMinBase, test_no_discrepancy) { expect_block({}); }
TEST(NetMinBase, test_all_nodes_discrepancy) { expect_block({0, 1, 2}); }
TEST(NetMinBase, test_first_node_discrepancy) { expect_block({0}); }
TEST(NetMinBase, test_last_node_discrepancy) { expect_block({2}); }
TEST(NetMinBase, test_middle_node_discrepancy) { expect_block({1}); }
TEST(NetMinBase, test_contiguous_partial_discrepancy_end) { expect_block({1, 2}); }
TEST(NetMinBase, test_contiguous_partial_discrepancy_beginning) { expect_block({0, 1}); }

/// Computes tanh a little wrong, as an approximation would.
c10::IValue run_with_wrong_tanh(GraphModule& part, std::vector<c10::IValue> inputs) {
  for (Node& node : part.graph().nodes()) {
    if (node.is_call("aten::tanh")) node.set_target("aten::sin");
  }
  return part.run(std::move(inputs));
}

std::shared_ptr<GraphModule> two_tanhs() {
  return std::make_shared<GraphModule>(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = call_function[target=aten::exp](args = (%x,))
    %b = call_function[target=aten::tanh](args = (%a,))
    %c = call_function[target=aten::mul.Tensor](args = (%b, %x))
    %w = call_function[target=aten::add_.Tensor](args = (%c, 1.0))
    %d = call_function[target=aten::tanh](args = (%w,))
    %e = call_function[target=aten::neg](args = (%d,))
    return (e, a))"));
}

TEST(Minimizer, FindsWrongOperatorsEachWay) {
  const auto gm = two_tanhs();
  Minimizer minimizer(*gm, {torch::rand({4})}, {.run_b = &run_with_wrong_tanh});
  for (const Traverse traverse : {Traverse::sequential, Traverse::binary, Traverse::accumulate}) {
    EXPECT_THAT(names(minimizer.minimize({.traverse = traverse})), ElementsAre("b")) << minimizer.report();
    EXPECT_THAT(names(minimizer.minimize({.traverse = traverse, .find_all = true})), ElementsAre("b", "d"))
        << minimizer.report();
  }
  const auto skip = [](const Node& node) { return node.name() == "b"; };
  EXPECT_THAT(names(minimizer.minimize({.skip = skip})), ElementsAre("d"));
  EXPECT_THAT(minimizer.report(), HasSubstr("node %d: "));
}

TEST(Minimizer, SearchesTheGraphFromItsResults) {
  const auto gm = two_tanhs();
  Minimizer minimizer(*gm, {torch::rand({4})}, {.run_b = &run_with_wrong_tanh});
  // %d is wrong, too, but what it is given is: the first on the way is at fault.
  EXPECT_THAT(names(minimizer.minimize({.traverse = Traverse::graph, .find_all = true})), ElementsAre("b"))
      << minimizer.report();
  EXPECT_THAT(minimizer.report(), HasSubstr("what leads to"));
  const auto two_ways = std::make_shared<GraphModule>(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = call_function[target=aten::tanh](args = (%x,))
    %b = call_function[target=aten::exp](args = (%x,))
    %c = call_function[target=aten::tanh](args = (%b,))
    %d = call_function[target=aten::neg](args = (%b,))
    return (a, [c, d]))"));
  Minimizer ways(*two_ways, {torch::rand({4})}, {.run_b = &run_with_wrong_tanh});
  EXPECT_THAT(names(ways.minimize({.traverse = Traverse::graph, .find_all = true})), ElementsAre("a", "c"));
  EXPECT_THAT(names(ways.minimize({.traverse = Traverse::graph})), ElementsAre("a"));
  Minimizer right(*two_ways, {torch::rand({4})}, wrong_with({}));
  EXPECT_THAT(right.minimize({.traverse = Traverse::graph}), IsEmpty());
}

TEST(Minimizer, ErrorsAddUpOnRequest) {
  // Each step is off by less than the tolerance.
  const auto off = [](GraphModule& part, std::vector<c10::IValue> inputs) -> c10::IValue {
    return part.run(std::move(inputs)).toTensor() * 1.0008;
  };
  const auto gm = std::make_shared<GraphModule>(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = call_function[target=aten::neg](args = (%x,))
    %b = call_function[target=aten::neg](args = (%a,))
    %c = call_function[target=aten::neg](args = (%b,))
    return c)"));
  Minimizer minimizer(*gm, {torch::ones({4})}, {.run_b = off});
  EXPECT_THAT(minimizer.minimize(), IsEmpty()) << minimizer.report();
  EXPECT_THAT(names(minimizer.minimize({.accumulate_error = true})), ElementsAre("b")) << minimizer.report();
}

TEST(Minimizer, WhatThrowsIsAMismatchAndAWayToRunIsNeeded) {
  const auto gm = two_tanhs();
  Minimizer minimizer(*gm, {torch::rand({4})},
                      {.run_b = [](GraphModule& part, std::vector<c10::IValue>) -> c10::IValue {
                        throw std::runtime_error("no kernel for " + part.graph().nodes().back().name());
                      }});
  EXPECT_THAT(names(minimizer.minimize()), ElementsAre("a"));
  EXPECT_THAT(minimizer.report(), HasSubstr("fails: no kernel"));
  EXPECT_THAT(testing::error_of([&] { Minimizer(*gm, {torch::rand({4})}, {}); }), HasSubstr("run_b says what"));
}

// The state before each part is put back, also where the elements of a parameter share memory.
TEST(Minimizer, PutsBackWhatIsExpanded) {
  GraphModule module(graph_of(R"(
    w = get_attr[target=w]()
    v = aten::select.int(%w, 0, 0)
    a = aten::add_.Scalar(%v, 1)
    b = aten::add.Tensor(%x, %w)
    return b)"));
  module.register_buffer("w", torch::ones({1, 2}).expand({3, 2}));
  const auto copy = module.clone_graph_module();
  Minimizer minimizer(module, {torch::ones({3, 2})},
                      {.run_b = [](GraphModule& part, std::vector<c10::IValue> values) { return part.run(values); }});
  for (const Traverse traverse : {Traverse::sequential, Traverse::binary, Traverse::accumulate, Traverse::block})
    EXPECT_TRUE(minimizer.minimize({.traverse = traverse}).empty());
  EXPECT_TRUE(module.find_attribute("w").equal(copy->find_attribute("w")));
}

}  // namespace fx::minimizer_test
