// torch.fx's test/fx/test_fx_const_fold.py, by its names there.
#include <fxgraph/rewriter/partition/const_subgraphs.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "tests/support/names.h"

namespace fx {
namespace {

using ::testing::ElementsAre;
using testing::names;
using torch::Tensor;

GraphModule::Attributes weights() {
  return {
      {"attr_1", torch::full({2}, -0.9)}, {"attr_2", torch::full({2}, 17.1)}, {"sub.attr_3", torch::full({2}, 3.5)}};
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
    const Tensor x = before->run(a).toTensor(), y = result.split.module->run(b).toTensor();
    EXPECT_TRUE(torch::allclose(x, y)) << before->graph() << result.split.module->graph();
    y.add_(5);  // the caller's
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

}  // namespace
}  // namespace fx
