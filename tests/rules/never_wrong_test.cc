// Programs that a rewrite once changed: each kind of mistake by its smallest program.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>

#include <memory>
#include <string>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/text/parse.h>

#include "tests/rules/never_wrong.h"

namespace fx::rules::never_wrong_test {

using testing::check_never_wrong;
using testing::numbers;
using testing::with_inputs;

TEST(NeverWrong, CommutedOperandsWithAnAlpha) {
  const at::Tensor x = numbers({3}), y = numbers({3}, 4);
  check_never_wrong({"alpha",
                     R"(%x = placeholder[target=x]
%y = placeholder[target=y]
%a = call_function[target=aten::add.Tensor](args = (%x, %y), kwargs = {alpha: 2})
%b = call_function[target=aten::add.Tensor](args = (%y, %x), kwargs = {alpha: 2})
%c = call_function[target=aten::sub.Tensor](args = (%a, %b))
return c)",
                     {x, y}});
  check_never_wrong({"alpha of a call without overload",
                     R"(%x = placeholder[target=x]
%y = placeholder[target=y]
%a = call_function[target=aten::add](args = (%y, %x), kwargs = {alpha: 2})
%b = call_function[target=aten::add](args = (%x, %y), kwargs = {alpha: 2})
%c = call_function[target=aten::sub.Tensor](args = (%a, %b))
return c)",
                     {x, y}});
  check_never_wrong({"stored number",
                     R"(%x = placeholder[target=x]
%c = get_attr[target=c]
%a = call_function[target=aten::add.Tensor](args = (%c, %x), kwargs = {alpha: 2})
return a)",
                     {x},
                     {{"c", at::tensor(1.5)}}});
  for (const char* operands : {"0, %x", "%x, 0"}) {
    check_never_wrong({"zero",
                       (with_inputs("%a = call_function[target=aten::add.Tensor](args = (") + operands +
                        "), kwargs = {alpha: 2})\nreturn a"),
                       {x}});
  }
}

TEST(NeverWrong, ReadsAndWritesStayInOrder) {
  const at::Tensor x = numbers({2, 4}), y = numbers({2, 4}, 1);
  check_never_wrong({"function reads more than it matched",
                     R"(%x = placeholder[target=x]
%y = placeholder[target=y]
%c = call_function[target=aten::relu](args = (%y,))
%i = call_function[target=aten::cat](args = ([%c, %x],))
%w = call_function[target=aten::add_.Scalar](args = (%c, 1))
%o = call_function[target=aten::cat](args = ([%i, %x],))
return o)",
                     {x, y}});
  const at::Tensor w = numbers({3, 4}, -2), v = numbers({3, 4}, 1);
  check_never_wrong({"linear layers over a write",
                     R"(%x = placeholder[target=x]
%y = call_function[target=aten::mul.Scalar](args = (%x, 2))
%w = get_attr[target=w]
%v = get_attr[target=v]
%a = call_function[target=aten::linear](args = (%y, %w))
%n = call_function[target=aten::neg_](args = (%y,))
%b = call_function[target=aten::linear](args = (%y, %v))
%c = call_function[target=aten::add.Tensor](args = (%a, %b))
return c)",
                     {x},
                     {{"w", w}, {"v", v}},
                     {"merge-linears"}});
  check_never_wrong({"norm before a linear layer over a write",
                     R"(%x = placeholder[target=x]
%y = call_function[target=aten::mul.Scalar](args = (%x, 2))
%m = get_attr[target=m]
%s = get_attr[target=s]
%w = get_attr[target=w]
%n = call_function[target=aten::batch_norm](args = (%y, None, None, %m, %s, False, 0.1, 1e-05, False))
%k = call_function[target=aten::neg_](args = (%y,))
%a = call_function[target=aten::linear](args = (%n, %w))
return a)",
                     {x},
                     {{"w", w}, {"m", numbers({4})}, {"s", numbers({4}, 2)}}});
}

TEST(NeverWrong, WeightsThatChange) {
  const at::Tensor x = numbers({2, 3, 5, 5}), w = numbers({3, 3, 2, 2}, -8) * 0.1;
  const GraphModule::Attributes norm = {{"w", w}, {"v", w}, {"m", numbers({3})}, {"s", numbers({3}, 2)}};
  check_never_wrong({"written under its other name",
                     R"(%x = placeholder[target=x]
%v = get_attr[target=v]
%k = call_function[target=aten::mul_.Scalar](args = (%v, 1.5))
%w = get_attr[target=w]
%m = get_attr[target=m]
%s = get_attr[target=s]
%c = call_function[target=aten::conv2d](args = (%x, %w))
%n = call_function[target=aten::batch_norm](args = (%c, None, None, %m, %s, False, 0.1, 1e-05, False))
return n)",
                     {x},
                     norm});
  check_never_wrong({"constant written under its other name",
                     R"(%x = placeholder[target=x]
%v = get_attr[target=v]
%k = call_function[target=aten::mul_.Scalar](args = (%v, 1.5))
%w = get_attr[target=w]
%e = call_function[target=aten::exp](args = (%w,))
%f = call_function[target=aten::sum](args = (%e,))
%o = call_function[target=aten::mul.Tensor](args = (%x, %f))
return o)",
                     {x},
                     norm});
  check_never_wrong({"a folded constant is returned",
                     R"(%x = placeholder[target=x]
%w = get_attr[target=w]
%e = call_function[target=aten::exp](args = (%w,))
%t = call_function[target=aten::transpose.int](args = (%e, 0, 1))
%o = call_function[target=aten::add.Tensor](args = (%x, 1))
return (o, t))",
                     {x},
                     norm});
  check_never_wrong({"a weight is returned",
                     R"(%x = placeholder[target=x]
%w = get_attr[target=w]
%t = call_function[target=aten::transpose.int](args = (%w, 0, 1))
%e = call_function[target=aten::sum](args = (%w,))
%o = call_function[target=aten::mul.Tensor](args = (%x, %e))
return (o, t))",
                     {x},
                     norm});
}

TEST(NeverWrong, FunctionsOfNumbers) {
  const at::Tensor x = numbers({6}, -2);
  check_never_wrong({"softplus of a negative slope",
                     R"(%x = placeholder[target=x]
%s = call_function[target=aten::softplus](args = (%x, -1.0))
%r = call_function[target=aten::relu](args = (%s,))
return r)",
                     {x}});
  check_never_wrong({"softplus below a negative threshold",
                     R"(%x = placeholder[target=x]
%s = call_function[target=aten::softplus](args = (%x, 1.0, -20.0))
%r = call_function[target=aten::relu](args = (%s,))
return r)",
                     {x}});
  const at::Tensor q = numbers({2, 3, 4}) * 0.2;
  check_never_wrong({"attention divides by operator.truediv",
                     R"(%q = placeholder[target=q]
%k = placeholder[target=k]
%v = placeholder[target=v]
%t = call_function[target=aten::transpose.int](args = (%k, -2, -1))
%s = call_function[target=aten::matmul](args = (%q, %t))
%d = call_function[target=operator.truediv](args = (%s, 4.0))
%p = call_function[target=aten::softmax.int](args = (%d, -1))
%o = call_function[target=aten::matmul](args = (%p, %v))
return o)",
                     {q, q + 0.5, q * 0.5},
                     {},
                     {"recognise-attention"}});
  check_never_wrong({"silu of whole numbers",
                     R"(%x = placeholder[target=x]
%s = call_function[target=aten::sigmoid](args = (%x,))
%o = call_function[target=aten::mul.Tensor](args = (%x, %s))
return o)",
                     {at::arange(5)},
                     {},
                     {},
                     false});
}

TEST(NeverWrong, AConvolutionWithoutBatch) {
  // Three channels and three rows: batch_norm works on dimension 1, the rows.
  check_never_wrong({"unbatched",
                     R"(%x = placeholder[target=x]
%w = get_attr[target=w]
%m = get_attr[target=m]
%s = get_attr[target=s]
%c = call_function[target=aten::conv2d](args = (%x, %w))
%n = call_function[target=aten::batch_norm](args = (%c, None, None, %m, %s, False, 0.1, 1e-05, False))
return n)",
                     {numbers({2, 4, 4})},
                     {{"w", numbers({3, 2, 2, 2}, -4) * 0.1}, {"m", numbers({3})}, {"s", numbers({3}, 2)}},
                     {},
                     false});
}

TEST(NeverWrong, ShapesOfTheExampleAreNotThoseOfTheNextCall) {
  const at::Tensor x = numbers({2, 3}), y = numbers({3, 2});
  check_never_wrong({"reshape to its own shape",
                     with_inputs(R"(%a = call_function[target=aten::reshape](args = (%x, [2, 3]))
%b = call_function[target=aten::exp](args = (%a,))
return b)"),
                     {x},
                     {},
                     {},
                     true,
                     {y}});
  check_never_wrong({"squeeze of no one",
                     with_inputs(R"(%a = call_function[target=aten::squeeze.dim](args = (%x, 0))
%b = call_function[target=aten::exp](args = (%a,))
return b)"),
                     {x},
                     {},
                     {},
                     true,
                     {numbers({1, 3})}});
  check_never_wrong({"unsqueeze of squeeze",
                     with_inputs(R"(%a = call_function[target=aten::squeeze.dim](args = (%x, 0))
%b = call_function[target=aten::unsqueeze](args = (%a, 0))
%c = call_function[target=aten::exp](args = (%b,))
return c)"),
                     {numbers({1, 3})},
                     {},
                     {},
                     true,
                     {x}});
  check_never_wrong({"group norm of another batch",
                     with_inputs(
                         R"(%a = call_function[target=aten::group_norm](args = (%x, 2))
return a)"),
                     {numbers({2, 4, 3})},
                     {},
                     {"decompose-group-norm"},
                     true,
                     {numbers({3, 4, 3}, 1)}});
}

TEST(NeverWrong, ShapesThatNumbersDecide) {
  const at::Tensor x = numbers({3}, 1);
  const auto nested = [](const char* text) {
    return std::make_shared<GraphModule>(GraphModule::Attributes{}, parse_graph(std::string("graph():\n") + text));
  };
  const char* program = R"(%x = placeholder[target=x]
%p = call_function[target=aten::sum](args = (%x,))
%yes = get_attr[target=yes]
%no = get_attr[target=no]
%c = call_function[target=higher_order::cond](args = (%p, %yes, %no, (%x,)))
%s = call_function[target=aten::squeeze.dim](args = (%c, -1))
%u = call_function[target=aten::unsqueeze](args = (%s, -1))
%e = call_function[target=aten::exp](args = (%u,))
return e)";
  GraphModule before;
  before.add_submodule("yes", nested(with_inputs(R"(%r = call_function[target=aten::sum](args = (%x,))
return r)")
                                         .c_str()));
  before.add_submodule("no", nested(with_inputs(R"(%r = call_function[target=aten::reshape](args = (%x, [3, 1]))
return r)")
                                        .c_str()));
  before.set_graph(parse_graph(std::string("graph():\n") + program));
  check_never_wrong({"the rank of what a branch gives", program, {x}, {}, {}, true, {x * 0}}, before, false);
  struct Counted {
    const char* call;
    bool is_tuple;
    at::Tensor one, several;  // inputs for which there is one, and for which there are more
  };
  const at::Tensor single = at::tensor({0.0, 2.0, 0.0});
  for (const Counted& one : {Counted{"call_function[target=aten::unique_consecutive]", true, x * 0, x},
                             Counted{"call_function[target=aten::_unique2]", true, x * 0, x},
                             Counted{"call_function[target=torch.unique_consecutive]", false, x * 0, x},
                             Counted{"call_method[target=unique_consecutive]", false, x * 0, x},
                             Counted{"call_function[target=torch.unique]", false, x * 0, x},
                             Counted{"call_method[target=unique]", false, x * 0, x},
                             Counted{"call_function[target=torch.nonzero]", false, single, x},
                             Counted{"call_method[target=nonzero]", false, single, x}}) {
    const std::string element = one.is_tuple ? "%b = call_function[target=operator.getitem](args = (%a, 0))\n" : "";
    check_never_wrong({one.call,
                       with_inputs(("%a = " + std::string(one.call) + "(args = (%x,))\n" + element +
                                    "%s = call_method[target=squeeze](args = (%" + (one.is_tuple ? "b" : "a") +
                                    ", 0))\n" + R"(%u = call_method[target=unsqueeze](args = (%s, 0))
%e = call_function[target=torch.exp](args = (%u,))
return e)")
                                       .c_str()),
                       {one.one},
                       {},
                       {},
                       true,
                       {one.several}},
                      true);
  }
}

TEST(NeverWrong, SizesThatNoKernelIsAskedFor) {
  GraphModule before;
  before.add_submodule("m", torch::nn::Hardtanh().ptr());
  const std::string program = with_inputs(R"(%a = call_function[target=aten::view](args = (%x, [0, 0]))
%m = call_module[target=m](args = (%a,))
%b = call_function[target=aten::exp](args = (%a,))
return (b, m))");
  before.set_graph(parse_graph("graph():\n" + program));
  before.eval();
  check_never_wrong({"a view of nothing", program, {at::zeros({0, 0})}, {}, {}, true, {at::zeros({3, 0})}}, before,
                    false);
}

TEST(NeverWrong, OfNoRowsTheLastIsNone) {
  const std::string last = with_inputs("%r = call_function[target=operator.getitem](args = (%x, slice(-1, None)))\n");
  const std::string graph = last + "%s = call_function[target=aten::softmax.int](args = (%r, 0))\nreturn s";
  check_never_wrong({"softmax", graph, {numbers({2, 3})}, {}, {"decompose-softmax"}, true, {at::zeros({0, 3})}}, false);
}

// Two rows and three have one; of one there is none.
TEST(NeverWrong, OfAllRowsButTheLastEverySecond) {
  GraphModule before;
  before.add_submodule("m", torch::nn::Hardtanh().ptr());  // which is not asked for nothing
  const std::string program = with_inputs(R"(%m = call_module[target=m](args = (%x,))
%r = call_function[target=operator.getitem](args = (%m, slice(None, -1, 2)))
%mean = call_function[target=aten::mean.dim](args = (%r, [-2, -1], True))
%s = call_function[target=aten::sub.Tensor](args = (%r, %mean))
%var = call_function[target=aten::var.dim](args = (%r, [-2, -1], False, True))
%e = call_function[target=aten::add.Scalar](args = (%var, 0.01))
%q = call_function[target=aten::rsqrt](args = (%e,))
%o = call_function[target=aten::mul.Tensor](args = (%s, %q))
return o)");
  before.set_graph(parse_graph("graph():\n" + program));
  before.eval();
  check_never_wrong({"layer norm", program, {numbers({2, 2})}, {}, {"recognise-layer-norm"}, true, {numbers({1, 2})}},
                    before, false);
}

TEST(NeverWrong, TypesThatABranchDecides) {
  const auto nested = [](const char* text) {
    return std::make_shared<GraphModule>(GraphModule::Attributes{},
                                         parse_graph(with_inputs(text).insert(0, "graph():\n")));
  };
  GraphModule before;
  before.add_submodule("yes", nested("return x"));
  before.add_submodule("no", nested("%r = call_function[target=aten::mul.Tensor](args = (%x, 0.5))\nreturn r"));
  const std::string program = with_inputs(R"(%p = placeholder[target=p]
%yes = get_attr[target=yes]
%no = get_attr[target=no]
%c = call_function[target=higher_order::cond](args = (%p, %yes, %no, (%x,)))
%m = call_function[target=aten::mul.Tensor](args = (%c, 2.0))
%n = call_function[target=aten::mul.Tensor](args = (%m, 0.5))
return n)");
  before.set_graph(parse_graph("graph():\n" + program));
  const at::Tensor two = at::tensor(2), no = at::zeros({}, at::kBool), yes = at::ones({}, at::kBool);
  check_never_wrong({"the type of what a branch gives", program, {two, no}, {}, {}, true, {two, yes}}, before, false);
}

}  // namespace fx::rules::never_wrong_test
