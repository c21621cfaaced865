// Programs that a rewrite once changed: who shares storage with whom, how values lie in it, and in what order they are
// read and written.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/instancenorm.h>  // which modules.h uses without including it
#include <torch/nn/modules/instancenorm.h>

#include <string>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/rules/optimize.h>

#include "tests/rules/never_wrong.h"

namespace fx::rules::never_wrong_storage_test {

using testing::check_never_wrong;
using testing::numbers;
using testing::with_inputs;

TEST(NeverWrongStorage, ResultsKeepTheirStorage) {
  const at::Tensor x = numbers({3, 3});
  for (const char* call : {"aten::clone](args = (%x,))", "aten::div.Scalar](args = (%x, 1.0))",
                           "aten::mul.Scalar](args = (%x, 1.0))", "aten::sub.Scalar](args = (%x, 0.0))"}) {
    const std::string made = with_inputs("%a = call_function[target=") + call;
    check_never_wrong({call, (made + "\nreturn a"), {x}});
    check_never_wrong({call, (made + "\n%b = call_function[target=aten::view](args = (%a, [9]))\nreturn (b, x)"), {x}});
    check_never_wrong(
        {call, (made + "\n%b = call_function[target=aten::transpose.int](args = (%a, 0, 1))\nreturn b"), {x}});
    check_never_wrong(
        {call, (made + "\n%b = call_function[target=aten::add_.Scalar](args = (%a, 2))\nreturn (a, x)"), {x}});
  }
  check_never_wrong({"reshape to its own shape",
                     with_inputs(R"(%a = call_function[target=aten::reshape](args = (%x, [3, 3]))
return a)"),
                     {x}});
  check_never_wrong({"two results of one",
                     with_inputs(R"(%a = call_function[target=aten::exp](args = (%x,))
%b = call_function[target=aten::clone](args = (%a,))
return (a, b))"),
                     {x}});
  const at::Tensor w = numbers({2, 3}, -2), v = numbers({4, 3}, 1);
  check_never_wrong({"merged linear layers are returned",
                     R"(%x = placeholder[target=x]
%w = get_attr[target=w]
%v = get_attr[target=v]
%a = call_function[target=aten::linear](args = (%x, %w))
%b = call_function[target=aten::linear](args = (%x, %v))
return (a, b))",
                     {x},
                     {{"w", w}, {"v", v}},
                     {"merge-linears"}});
}

TEST(NeverWrongStorage, TwoRewritesInARow) {
  const at::Tensor x = numbers({2, 3});
  check_never_wrong({"a product that becomes x",
                     with_inputs(R"(%a = call_function[target=aten::mul.Scalar](args = (%x, 2.0))
%b = call_function[target=aten::mul.Scalar](args = (%a, 0.5))
%c = call_function[target=aten::add_.Scalar](args = (%b, 1))
return (c, x))"),
                     {x}});
  check_never_wrong({"a copy that becomes a view",
                     with_inputs(R"(%t = call_function[target=aten::transpose.int](args = (%x, 0, 1))
%a = call_function[target=aten::reshape](args = (%t, [-1]))
%b = call_function[target=aten::reshape](args = (%a, [3, -1]))
%c = call_function[target=aten::add_.Scalar](args = (%b, 1))
return (c, x))"),
                     {x}});
  check_never_wrong({"another shape in place",
                     with_inputs(R"(%a = call_function[target=aten::squeeze.dim](args = (%x, 1))
%b = call_function[target=aten::t_](args = (%a,))
%c = call_function[target=aten::exp](args = (%x,))
return (b, c))"),
                     {x}});
}

TEST(NeverWrongStorage, WhatIsTakenInTheOrderOfMemory) {
  const at::Tensor x = numbers({2, 2, 2, 2}).permute({3, 2, 1, 0});
  check_never_wrong({"numbers drawn after two reshapes",
                     with_inputs(R"(%t = call_function[target=aten::transpose.int](args = (%x, 0, 1))
%a = call_function[target=aten::reshape](args = (%t, [-1]))
%b = call_function[target=aten::reshape](args = (%a, [2, -1]))
%n = call_function[target=aten::normal_](args = (%b,))
return n)"),
                     {numbers({2, 2})}});
  check_never_wrong({"elements where a mask says",
                     with_inputs(R"(%m = get_attr[target=m]
%v = get_attr[target=v]
%k = get_attr[target=k]
%n = call_function[target=aten::batch_norm](args = (%x, None, None, %m, %v, False, 0.1, 1e-05, True))
%s = call_function[target=aten::masked_scatter_](args = (%n, %k, %x))
return s)"),
                     {x},
                     {{"m", at::zeros({2})}, {"v", at::ones({2})}, {"k", numbers({2, 2, 2, 2}) > 1}},
                     {"decompose-batch-norm"}});
}

TEST(NeverWrongStorage, StridesOfWhatIsTakenInstead) {
  const at::Tensor x = numbers({2, 2}).t();
  check_never_wrong({"the one part of a concatenation, filled in the order of memory",
                     with_inputs(R"(%d = call_function[target=aten::div.Tensor](args = (%x, 2))
%c = call_function[target=aten::cat](args = ([%d], 1))
%k = get_attr[target=k]
%v = get_attr[target=v]
%s = call_function[target=aten::masked_scatter_](args = (%c, %k, %v))
return s)"),
                     {x},
                     {{"k", at::ones({2, 2}, at::kBool)}, {"v", numbers({2, 2}, 4)}}});
  check_never_wrong({"the one part of a concatenation, returned with a view of it",
                     with_inputs(R"(%d = call_function[target=aten::div.Tensor](args = (%x, 2))
%c = call_function[target=aten::cat](args = ([%d], 0))
%r = call_function[target=aten::reshape](args = (%c, [-1]))
return (c, r))"),
                     {x}});
}

TEST(NeverWrongStorage, ReadsOnBothSidesOfTheLastWrite) {
  check_never_wrong({"written before and after the inner concatenation",
                     with_inputs(R"(%a = call_function[target=aten::mul_.Scalar](args = (%x, 2))
%i = call_function[target=aten::cat](args = ([%x, %x],))
%e = call_function[target=aten::exp_](args = (%x,))
%o = call_function[target=aten::cat](args = ([%i, %x],))
return o)"),
                     {numbers({2})}});
}

TEST(NeverWrongStorage, WhatHandsOnTheTensorThatIsWritten) {
  check_never_wrong({"a slice of everything, through dropout, into the tensor itself",
                     with_inputs(R"(%w = get_attr[target=w]
%s = call_function[target=aten::slice.Tensor](args = (%w, 0, 0, 9223372036854775807, 1))
%d = call_function[target=aten::alpha_dropout](args = (%s, 0.1, False))
%p = call_function[target=aten::index_put_](args = (%w, [%x, None], %d))
return w)"),
                     {at::zeros({0, 0, 0}, at::kLong)},
                     {{"w", at::zeros({0, 0, 0})}}});
}

TEST(NeverWrongStorage, AWeightThatEachCallTransposes) {
  check_never_wrong({"squeezed where it was of one row",
                     with_inputs(R"(%w = get_attr[target=w]
%t = call_function[target=aten::t_](args = (%w,))
%a = call_function[target=aten::sub.Scalar](args = (%t, 1))
%s = call_function[target=aten::squeeze.dim](args = (%a, -2))
return (x, a, s))"),
                     {numbers({3})},
                     {{"w", numbers({1, 3})}}});
}

TEST(NeverWrongStorage, StatisticsThatRoundInEvaluation) {
  const torch::nn::InstanceNorm2d norm(torch::nn::InstanceNorm2dOptions(2).track_running_stats(true));
  GraphModule module;
  module.add_submodule("norm", norm.ptr());
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.call_module("norm", {x});
  graph.output(x);
  module.set_graph(std::move(graph));
  module.eval();
  optimize(module);
  EXPECT_EQ(module.graph().count(Op::call_module, "norm"), 1u);
}

}  // namespace fx::rules::never_wrong_storage_test
