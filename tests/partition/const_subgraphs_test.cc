// torch.fx's test/fx/test_fx_const_fold.py, by its names there.
#include <fxgraph/rewriter/partition/const_subgraphs.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "tests/support/names.h"

namespace fx::const_subgraphs_test {

using ::testing::ElementsAre;
using testing::names;
using torch::Tensor;

GraphModule::Attributes weights() {
  torch::manual_seed(8);
  return {{"attr_1", torch::full({2}, -0.9)},    {"attr_2", torch::full({2}, 17.1)},
          {"sub.attr_3", torch::full({2}, 3.5)}, {"_FX_CONST_FOLDED_ATTRS", torch::full({2}, 0.25)},
          {"sub.relu", torch::nn::ReLU().ptr()}, {"lin", torch::nn::Linear(2, 2).ptr()}};
}

struct Folded {
  std::shared_ptr<GraphModule> before;
  ConstSplit split;
};

/// Folds, and checks that the results are equal, the second call's too.
Folded folded(const std::string& body, const std::string& inputs = "x", std::function<bool(const Node&)> skip = {}) {
  std::string text = "graph():\n";
  std::istringstream words(inputs);
  std::size_t count = 0;
  for (std::string word; words >> word; ++count) text += "    %" + word + " = placeholder[target=" + word + "]\n";
  auto before = std::make_shared<GraphModule>(weights(), parse_graph(text + body));
  Folded result{before, split_const_subgraphs(*before, skip)};
  result.split.fold();
  for (int call = 0; call < 2; ++call) {
    std::vector<c10::IValue> a, b;
    torch::manual_seed(call);
    for (std::size_t i = 0; i < count; ++i) {
      a.emplace_back(torch::rand({2}));
      b.emplace_back(a.back().toTensor().clone());
    }
    const c10::IValue x = before->run(a), y = result.split.module->run(b);
    EXPECT_LE(relative_difference(x, y), 1e-6) << before->graph() << result.split.module->graph();
    if (y.isTensor()) y.toTensor().add_(5);  // the caller's
  }
  return result;
}

TEST(ConstFold, test_const_fold_basic_one_attr_no_name_collision) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %add = call_function[target=aten::add.Tensor](args = (%a, %a))
    %y = call_function[target=aten::sub.Tensor](args = (%x, %add))
    return y)");
  EXPECT_THAT(names(result.split.module->graph().nodes()), ElementsAre("x", "_fx_const_folded_attrs", "y", "output"));
  EXPECT_THAT(result.split.paths, ElementsAre("_FX_CONST_FOLDED_ATTRS"));
}

TEST(ConstFold, test_const_fold_basic_one_attr_name_collision) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %taken = get_attr[target=_FX_CONST_FOLDED_ATTRS]
    %add = call_function[target=aten::add.Tensor](args = (%a, %a))
    %u = call_function[target=aten::sub.Tensor](args = (%x, %add))
    %y = call_function[target=aten::mul.Tensor](args = (%u, %taken))
    return y)");
  EXPECT_THAT(result.split.paths, ElementsAre("_FX_CONST_FOLDED_ATTRS_1"));
}

TEST(ConstFold, test_const_fold_basic_placeholder_reordered) {
  const Folded result = folded(R"(
    %u = call_function[target=aten::mul.Scalar](args = (%y, 2))
    %v = call_function[target=aten::add.Tensor](args = (%u, %x))
    return v)",
                               "x y");
  EXPECT_THAT(names(result.split.module->graph().placeholders()), ElementsAre("x", "y"));
}

TEST(ConstFold, test_const_fold_basic_two_attr) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %b = get_attr[target=attr_2]
    %add = call_function[target=aten::add.Tensor](args = (%a, %b))
    %y = call_function[target=aten::sub.Tensor](args = (%x, %add))
    return y)");
  EXPECT_EQ(result.split.paths.size(), 1u);
}

// FX: `def forward(self, x): a = self.attr + self.attr; return self.sub.relu(x - a)`.
TEST(ConstFold, test_const_fold_has_inlined_call_module_node) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %p = call_function[target=aten::add.Tensor](args = (%a, %a))
    %u = call_function[target=aten::sub.Tensor](args = (%x, %p))
    %y = call_module[target=sub.relu](args = (%u,))
    return y)");
  EXPECT_EQ(result.split.module->graph().find_nodes(Op::call_module).size(), 1u);
}

TEST(ConstFold, test_const_fold_module_attr) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %s = get_attr[target=sub.attr_3]
    %p = call_function[target=aten::add.Tensor](args = (%a, %s))
    %u = call_function[target=aten::add.Tensor](args = (%x, %p))
    %v = call_function[target=aten::add.Tensor](args = (%u, %y))
    return v)",
                               "x y");
  EXPECT_EQ(result.split.paths.size(), 1u);
}

TEST(ConstFold, test_retain_node_meta) {
  auto before = std::make_shared<GraphModule>(weights(), parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = get_attr[target=attr_1]
    %p = call_function[target=aten::add.Tensor](args = (%a, %a))
    %u = call_function[target=aten::sub.Tensor](args = (%x, %p))
    return u)"));
  for (Node& node : before->graph().nodes()) node.meta().set("meta_idx", std::string(node.name()));
  const ConstSplit split = split_const_subgraphs(*before);
  std::size_t kept = 0;
  for (Node& node : split.module->graph().nodes()) {
    const std::string* note = node.meta().get<std::string>("meta_idx");
    if (node.is(Op::get_attr)) continue;
    ASSERT_NE(note, nullptr) << node.name();
    EXPECT_EQ(*note, node.name());
    ++kept;
  }
  EXPECT_EQ(kept, 3u);
}

// test_dict_output, test_two_outputs, test_three_outputs, test_check_inline_non_const(_mult_return): what is returned
// beside the one that reads the constant.
class ConstFoldOutputs : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ConstFoldOutputs, AreThoseOfTheProgram) {
  const Folded result = folded(std::string(R"(
    %a = get_attr[target=attr_1]
    %p = call_function[target=aten::add.Tensor](args = (%a, %a))
    %u = call_function[target=aten::sub.Tensor](args = (%x, %p))
    %v = call_function[target=aten::div.Tensor](args = (%x, 2))
    %w = call_function[target=aten::mul.Tensor](args = (%u, %v))
    return )") + GetParam().second);
  EXPECT_EQ(result.split.paths.size(), 1u);
  EXPECT_TRUE(result.split.module->graph().find_nodes(Op::call_module).empty());
}

INSTANTIATE_TEST_SUITE_P(Upstream, ConstFoldOutputs,
                         ::testing::Values(std::pair("test_check_inline_non_const", "w"),
                                           std::pair("test_check_inline_non_const_mult_return", "(u, v)"),
                                           std::pair("test_dict_output", "{'result': w}"),
                                           std::pair("test_two_outputs", "(w, x)"),
                                           std::pair("test_three_outputs", "(w, u, x)")),
                         [](const auto& info) { return std::string(info.param.first); });

TEST(ConstFold, test_fold_module) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %l = call_module[target=lin](args = (%a,))
    %u = call_function[target=aten::add.Tensor](args = (%l, %x))
    return u)");
  EXPECT_EQ(result.split.paths.size(), 1u);
  EXPECT_TRUE(result.split.module->graph().find_nodes(Op::call_module).empty());
  EXPECT_EQ(result.split.module->find_submodule("lin"), nullptr) << "the file needs no weights of constants";
}

TEST(ConstFold, test_const_fold_tensor_meta) {
  for (const bool requires_grad : {false, true}) {
    GraphModule::Attributes attributes = {{"a", torch::full({2}, 0.5).set_requires_grad(requires_grad)}};
    const GraphModule before(attributes, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = get_attr[target=a]
    %p = call_function[target=aten::add.Tensor](args = (%a, %a))
    %y = call_function[target=aten::sub.Tensor](args = (%x, %p))
    return y)"));
    const ConstSplit split = split_const_subgraphs(before);
    split.fold();
    const Tensor constant = split.module->attribute(split.paths.at(0));
    EXPECT_EQ(constant.sizes(), c10::IntArrayRef({2}));
    EXPECT_EQ(constant.scalar_type(), torch::kFloat);
    EXPECT_FALSE(constant.requires_grad()) << "gradients do not reach the weights";
  }
}

TEST(ConstFold, test_const_fold_basic_two_attr_three_input) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %b = get_attr[target=attr_2]
    %add = call_function[target=aten::add.Tensor](args = (%a, %b))
    %u = call_function[target=aten::mul.Tensor](args = (%x, %y))
    %v = call_function[target=aten::sub.Tensor](args = (%add, %u))
    return v)",
                               "x y z");
  EXPECT_EQ(result.split.paths.size(), 1u);
}

TEST(ConstFold, test_const_fold_noop) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %y = call_function[target=aten::sub.Tensor](args = (%x, %a))
    return y)");
  EXPECT_EQ(result.split.constants, nullptr);
}

TEST(ConstFold, test_const_fold_multi_const_folded_attrs) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %b = get_attr[target=attr_2]
    %p = call_function[target=aten::exp](args = (%a,))
    %q = call_function[target=aten::add.Tensor](args = (%p, %b))
    %u = call_function[target=aten::mul.Tensor](args = (%x, %p))
    %v = call_function[target=aten::mul.Tensor](args = (%u, %q))
    return v)");
  EXPECT_EQ(result.split.paths.size(), 2u);
}

TEST(ConstFold, test_const_fold_submod_hierarchy) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %s = get_attr[target=sub.attr_3]
    %p = call_function[target=aten::mul.Tensor](args = (%a, %s))
    %u = call_function[target=aten::mul.Tensor](args = (%x, %p))
    return u)");
  EXPECT_EQ(result.split.paths.size(), 1u);
}

TEST(ConstFold, test_const_fold_unused_placeholder) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %p = call_function[target=aten::exp](args = (%a,))
    %u = call_function[target=aten::mul.Tensor](args = (%y, %p))
    return u)",
                               "x y z");
  EXPECT_EQ(result.split.module->graph().placeholders().size(), 3u);
}

TEST(ConstFold, test_check_skip_folding_quant_dequant_pattern) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %p = call_function[target=aten::exp](args = (%a,))
    %q = call_function[target=aten::neg](args = (%p,))
    %u = call_function[target=aten::mul.Tensor](args = (%x, %q))
    return u)",
                               "x", [](const Node& node) { return node.name() == "q"; });
  EXPECT_THAT(names(result.split.module->graph().nodes()),
              ElementsAre("x", "_fx_const_folded_attrs", "q", "u", "output"));
}

TEST(ConstFold, WhatCallersGetAndWhatIsWrittenIsComputedInEveryCall) {
  EXPECT_EQ(folded(R"(
    %a = get_attr[target=attr_1]
    %p = call_function[target=aten::exp](args = (%a,))
    %v = call_function[target=aten::view](args = (%p, [-1]))
    return v)")
                .split.constants,
            nullptr);
  EXPECT_EQ(folded(R"(
    %a = get_attr[target=attr_1]
    %p = call_function[target=aten::exp](args = (%a,))
    %w = call_function[target=aten::add_.Tensor](args = (%p, %x))
    %u = call_function[target=aten::mul.Tensor](args = (%x, %w))
    return u)")
                .split.constants,
            nullptr);
}

TEST(ConstFold, NumbersAndTuplesStayWithWhatReadsThem) {
  const Folded result = folded(R"(
    %a = get_attr[target=attr_1]
    %p = call_function[target=aten::exp](args = (%a,))
    %n = call_function[target=aten::size.int](args = (%p, 0))
    %s = call_function[target=aten::split.Tensor](args = (%p, 1))
    %g = call_function[target=operator.getitem](args = (%s, 1))
    %u = call_function[target=aten::mul.Tensor](args = (%x, %g))
    %v = call_function[target=aten::mul.Tensor](args = (%u, %n))
    return v)");
  EXPECT_GE(result.split.paths.size(), 1u);
}

}  // namespace fx::const_subgraphs_test
