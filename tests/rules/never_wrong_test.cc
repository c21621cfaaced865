// Programs that a rewrite once changed: each kind of mistake by its smallest program. Run twice before and after, with
// the results written to in between, as a caller may; what comes out, what the inputs hold and the next call must
// agree.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx::rules {
namespace {

using Values = std::vector<c10::IValue>;

struct Case {
  const char* name;
  const char* graph;  ///< after `graph():`, one node a line
  std::vector<at::Tensor> inputs;
  GraphModule::Attributes attributes{};
  std::vector<std::string> rules{};
  bool shapes = true;               ///< optimize knows the inputs' shapes
  std::vector<at::Tensor> other{};  ///< inputs of other sizes to compare on too; a program may refuse them
};

at::Tensor numbers(std::vector<std::int64_t> sizes, double first = -1.5) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return (at::arange(count, at::kFloat) * 0.75 + first).reshape(sizes);
}

void write_to(const c10::IValue& value) {
  if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements()) write_to(each);
  } else if (value.isTensor() && value.toTensor().scalar_type() != at::kBool) {
    value.toTensor().add_(1);
  }
}

/// Everything that a caller can see in two calls, the results of the first written to.
Values observe(GraphModule& module, const std::vector<at::Tensor>& given) {
  Values inputs, seen;
  for (const at::Tensor& input : given) inputs.emplace_back(input.clone());
  for (int call = 0; call < 2; ++call) {
    at::manual_seed(3);
    const c10::IValue result = module.run(inputs);
    seen.push_back(copy_of(result));
    write_to(result);
    seen.push_back(copy_of(result));
    for (const c10::IValue& input : inputs) seen.push_back(copy_of(input));
  }
  return seen;
}

void compare(const Case& one, const GraphModule& before, const GraphModule& after,
             const std::vector<at::Tensor>& inputs, bool may_refuse) {
  const auto original = before.clone_graph_module(), changed = after.clone_graph_module();
  const Values expected = observe(*original, inputs);
  Values found;
  try {
    found = observe(*changed, inputs);
  } catch (const std::exception& error) {
    if (!may_refuse) ADD_FAILURE() << error.what() << "\n" << print_graph(after.graph());
    return;
  }
  ASSERT_EQ(expected.size(), found.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LE(relative_difference(expected[i], found[i], 1e-3), 2e-5)
        << one.name << ", observation " << i << ": " << expected[i] << "\nafterwards: " << found[i] << "\n"
        << print_graph(after.graph());
  }
}

void check(const Case& one, bool may_refuse_others = true) {
  SCOPED_TRACE(one.name);
  const GraphModule before(one.attributes, parse_graph(std::string("graph():\n") + one.graph, one.name));
  const auto after = before.clone_graph_module();
  OptimizeOptions options{.rules = one.rules};
  for (const at::Tensor& input : one.inputs) {
    if (one.shapes)
      options.inputs.push_back(TensorInfo{.dtype = to_dtype(input.scalar_type()), .sizes = input.sizes().vec()});
  }
  optimize(*after, options);
  compare(one, before, *after, one.inputs, false);
  if (!one.other.empty()) compare(one, before, *after, one.other, may_refuse_others);
}

const char* kX = "%x = placeholder[target=x]\n";

std::string with_inputs(const char* text) { return std::string(kX) + text; }

TEST(NeverWrong, CommutedOperandsWithAnAlpha) {
  const at::Tensor x = numbers({3}), y = numbers({3}, 4);
  check({"alpha",
         R"(%x = placeholder[target=x]
%y = placeholder[target=y]
%a = call_function[target=aten::add.Tensor](args = (%x, %y), kwargs = {alpha: 2})
%b = call_function[target=aten::add.Tensor](args = (%y, %x), kwargs = {alpha: 2})
%c = call_function[target=aten::sub.Tensor](args = (%a, %b))
return c)",
         {x, y}});
  check({"stored number",
         R"(%x = placeholder[target=x]
%c = get_attr[target=c]
%a = call_function[target=aten::add.Tensor](args = (%c, %x), kwargs = {alpha: 2})
return a)",
         {x},
         {{"c", at::tensor(1.5)}}});
  for (const char* operands : {"0, %x", "%x, 0"}) {
    check({"zero",
           (with_inputs("%a = call_function[target=aten::add.Tensor](args = (") + operands +
            "), kwargs = {alpha: 2})\nreturn a")
               .c_str(),
           {x}});
  }
}

TEST(NeverWrong, ReadsAndWritesStayInOrder) {
  const at::Tensor x = numbers({2, 4}), y = numbers({2, 4}, 1);
  check({"function reads more than it matched",
         R"(%x = placeholder[target=x]
%y = placeholder[target=y]
%c = call_function[target=aten::relu](args = (%y,))
%i = call_function[target=aten::cat](args = ([%c, %x],))
%w = call_function[target=aten::add_.Scalar](args = (%c, 1))
%o = call_function[target=aten::cat](args = ([%i, %x],))
return o)",
         {x, y}});
  const at::Tensor w = numbers({3, 4}, -2), v = numbers({3, 4}, 1);
  check({"linear layers over a write",
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
  check({"norm before a linear layer over a write",
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
  check({"written under its other name",
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
  check({"constant written under its other name",
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
  check({"a folded constant is returned",
         R"(%x = placeholder[target=x]
%w = get_attr[target=w]
%e = call_function[target=aten::exp](args = (%w,))
%t = call_function[target=aten::transpose.int](args = (%e, 0, 1))
%o = call_function[target=aten::add.Tensor](args = (%x, 1))
return (o, t))",
         {x},
         norm});
  check({"a weight is returned",
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
  check({"softplus of a negative slope",
         R"(%x = placeholder[target=x]
%s = call_function[target=aten::softplus](args = (%x, -1.0))
%r = call_function[target=aten::relu](args = (%s,))
return r)",
         {x}});
  check({"softplus below a negative threshold",
         R"(%x = placeholder[target=x]
%s = call_function[target=aten::softplus](args = (%x, 1.0, -20.0))
%r = call_function[target=aten::relu](args = (%s,))
return r)",
         {x}});
  const at::Tensor q = numbers({2, 3, 4}) * 0.2;
  check({"attention divides by operator.truediv",
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
  check({"silu of whole numbers",
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
  check({"unbatched",
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
  check({"reshape to its own shape",
         with_inputs(R"(%a = call_function[target=aten::reshape](args = (%x, [2, 3]))
%b = call_function[target=aten::exp](args = (%a,))
return b)")
             .c_str(),
         {x},
         {},
         {},
         true,
         {y}});
  check({"squeeze of no one",
         with_inputs(R"(%a = call_function[target=aten::squeeze.dim](args = (%x, 0))
%b = call_function[target=aten::exp](args = (%a,))
return b)")
             .c_str(),
         {x},
         {},
         {},
         true,
         {numbers({1, 3})}});
  check({"unsqueeze of squeeze",
         with_inputs(R"(%a = call_function[target=aten::squeeze.dim](args = (%x, 0))
%b = call_function[target=aten::unsqueeze](args = (%a, 0))
%c = call_function[target=aten::exp](args = (%b,))
return c)")
             .c_str(),
         {numbers({1, 3})},
         {},
         {},
         true,
         {x}});
  check({"group norm of another batch",
         with_inputs(
             R"(%a = call_function[target=aten::group_norm](args = (%x, 2))
return a)")
             .c_str(),
         {numbers({2, 4, 3})},
         {},
         {"decompose-group-norm"},
         true,
         {numbers({3, 4, 3}, 1)}});
}

TEST(NeverWrong, OfNoRowsTheLastIsNone) {
  const std::string last = with_inputs("%r = call_function[target=operator.getitem](args = (%x, slice(-1, None)))\n");
  const std::string graph = last + "%s = call_function[target=aten::softmax.int](args = (%r, 0))\nreturn s";
  check({"softmax", graph.c_str(), {numbers({2, 3})}, {}, {"decompose-softmax"}, true, {at::zeros({0, 3})}}, false);
}

TEST(NeverWrong, ResultsKeepTheirStorage) {
  const at::Tensor x = numbers({3, 3});
  for (const char* call : {"aten::clone](args = (%x,))", "aten::div.Scalar](args = (%x, 1.0))",
                           "aten::mul.Scalar](args = (%x, 1.0))", "aten::sub.Scalar](args = (%x, 0.0))"}) {
    const std::string made = with_inputs("%a = call_function[target=") + call;
    check({call, (made + "\nreturn a").c_str(), {x}});
    check({call, (made + "\n%b = call_function[target=aten::view](args = (%a, [9]))\nreturn (b, x)").c_str(), {x}});
    check(
        {call, (made + "\n%b = call_function[target=aten::transpose.int](args = (%a, 0, 1))\nreturn b").c_str(), {x}});
    check(
        {call, (made + "\n%b = call_function[target=aten::add_.Scalar](args = (%a, 2))\nreturn (a, x)").c_str(), {x}});
  }
  check({"reshape to its own shape",
         with_inputs(R"(%a = call_function[target=aten::reshape](args = (%x, [3, 3]))
return a)")
             .c_str(),
         {x}});
  check({"two results of one",
         with_inputs(R"(%a = call_function[target=aten::exp](args = (%x,))
%b = call_function[target=aten::clone](args = (%a,))
return (a, b))")
             .c_str(),
         {x}});
  const at::Tensor w = numbers({2, 3}, -2), v = numbers({4, 3}, 1);
  check({"merged linear layers are returned",
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

TEST(NeverWrong, TwoRewritesInARow) {
  const at::Tensor x = numbers({2, 3});
  check({"a product that becomes x",
         with_inputs(R"(%a = call_function[target=aten::mul.Scalar](args = (%x, 2.0))
%b = call_function[target=aten::mul.Scalar](args = (%a, 0.5))
%c = call_function[target=aten::add_.Scalar](args = (%b, 1))
return (c, x))")
             .c_str(),
         {x}});
  check({"a copy that becomes a view",
         with_inputs(R"(%t = call_function[target=aten::transpose.int](args = (%x, 0, 1))
%a = call_function[target=aten::reshape](args = (%t, [-1]))
%b = call_function[target=aten::reshape](args = (%a, [3, -1]))
%c = call_function[target=aten::add_.Scalar](args = (%b, 1))
return (c, x))")
             .c_str(),
         {x}});
  check({"another shape in place",
         with_inputs(R"(%a = call_function[target=aten::squeeze.dim](args = (%x, 1))
%b = call_function[target=aten::t_](args = (%a,))
%c = call_function[target=aten::exp](args = (%x,))
return (b, c))")
             .c_str(),
         {x}});
}

TEST(NeverWrong, WhatIsTakenInTheOrderOfMemory) {
  const at::Tensor x = numbers({2, 2, 2, 2}).permute({3, 2, 1, 0});
  check({"numbers drawn after two reshapes",
         with_inputs(R"(%t = call_function[target=aten::transpose.int](args = (%x, 0, 1))
%a = call_function[target=aten::reshape](args = (%t, [-1]))
%b = call_function[target=aten::reshape](args = (%a, [2, -1]))
%n = call_function[target=aten::normal_](args = (%b,))
return n)")
             .c_str(),
         {numbers({2, 2})}});
  check({"elements where a mask says",
         with_inputs(R"(%m = get_attr[target=m]
%v = get_attr[target=v]
%k = get_attr[target=k]
%n = call_function[target=aten::batch_norm](args = (%x, None, None, %m, %v, False, 0.1, 1e-05, True))
%s = call_function[target=aten::masked_scatter_](args = (%n, %k, %x))
return s)")
             .c_str(),
         {x},
         {{"m", at::zeros({2})}, {"v", at::ones({2})}, {"k", numbers({2, 2, 2, 2}) > 1}},
         {"decompose-batch-norm"}});
}

}  // namespace
}  // namespace fx::rules
