// Numbers in generated code: what signs belong to, what `+=` does to other readers, indices, powers, frozen parameters.
// That the C++ compiles and computes the same is tests/trace/generated_numbers_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/codegen/cpp.h>
#include <fxgraph/codegen/python.h>
#include <fxgraph/codegen/torchscript.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>

namespace fx::numbers_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

Graph graph_of(const std::string& lines) { return parse_graph("graph():\n%x = placeholder[target=x]\n" + lines); }

TEST(Numbers, NegativeOnesAreWholeBasesAndReceivers) {
  const Graph graph = graph_of(
      "%a = call_function[target=operator.pow](args = (-2, %x))\n"
      "%b = call_function[target=operator.pow](args = (-2.5, 2))\n"
      "%c = call_function[target=operator.pow](args = (2, -2))\n"
      "%d = call_method[target=add](args = (-1, %x))\n"
      "%e = call_function[target=operator.sub](args = (-1, -2))\nreturn (a, b, c, d, e)");
  EXPECT_THAT(python_code(graph),
              AllOf(HasSubstr("a = (-2) ** x"), HasSubstr("b = (-2.5) ** 2"), HasSubstr("c = 2 ** -2"),
                    HasSubstr("d = (-1).add(x)"), HasSubstr("e = -1 - -2")));
  const Graph calls = graph_of(
      "%a = call_function[target=operator.pow](args = (-2.5, 2))\n"
      "%d = call_method[target=unknown](args = (-1, %x))\n"
      "%e = call_function[target=builtins.getattr](args = (-1, real))\nreturn (a, d, e)");
  EXPECT_THAT(torchscript_code(calls), AllOf(HasSubstr("d = (-1).unknown(x)"), HasSubstr("e = (-1).real")));
}

TEST(Numbers, WritesInPlaceLeaveWhatOthersRead) {
  // Of a number `n += 1` makes another; who reads n later means the first.
  EXPECT_THAT(
      python_code(graph_of("%n = call_method[target=size](args = (%x, 0))\n"
                           "%m = call_function[target=operator.iadd](args = (%n, 1))\n"
                           "%k = call_function[target=operator.imul](args = (%m, 2))\n"
                           "%l = call_function[target=operator.iadd](args = (3, %k))\nreturn (n, k, l)")),
      AllOf(HasSubstr("m = operator.iadd(n, 1)"), HasSubstr("m *= 2;  k = m"), HasSubstr("l = operator.iadd(3, k)")));
}

TEST(Numbers, PowersOfIntsInCppAndTorchScript) {
  const std::string lines = "%n = call_method[target=size](args = (%x, 0))\n";
  const Graph known = graph_of(lines +
                               "%a = call_function[target=operator.pow](args = (%n, 3))\n"
                               "%b = call_function[target=operator.pow](args = (%n, -1))\n"
                               "%c = call_function[target=operator.pow](args = (%n, 0.5))\nreturn (a, b, c)");
  EXPECT_THAT(cpp_code(known), AllOf(HasSubstr("int64_t a = int_pow(n, 3);"), HasSubstr("static int64_t int_pow("),
                                     HasSubstr("double b = std::pow(static_cast<double>(n), static_cast<double>(-1));"),
                                     HasSubstr("double c = std::pow(static_cast<double>(n), "
                                               "static_cast<double>(0.5));")));
  EXPECT_THAT(torchscript_code(graph_of(lines + "%a = call_function[target=operator.pow](args = (%n, 3))\nreturn a")),
              HasSubstr("a = 1 * n * n * n"));
  const Graph unknown = graph_of(lines + "%a = call_function[target=operator.pow](args = (2, %n))\nreturn a");
  EXPECT_THAT([&] { cpp_code(unknown); }, ThrowsMessage<Error>(HasSubstr("one type for a power")));
  EXPECT_THAT([&] { torchscript_code(unknown); }, ThrowsMessage<Error>(HasSubstr("one type for a power")));
}

TEST(Numbers, ElementsOfListsAreLookedUpAsPythonDoes) {
  const std::string source = cpp_code(graph_of(
      "%n = call_method[target=size](args = (%x, 0))\n%c = call_function[target=aten::unbind.int](args = (%x,))\n"
      "%a = call_function[target=operator.getitem](args = (%c, -1))\n"
      "%b = call_function[target=operator.getitem](args = (%c, %n))\n"
      "%s = call_function[target=aten::size](args = (%x,))\n"
      "%d = call_function[target=aten::__getitem__.t](args = (%s, -1))\nreturn (a, b, d)"));
  EXPECT_THAT(source, AllOf(HasSubstr("a = element(c, -1);"), HasSubstr("b = element(c, n);"),
                            HasSubstr("d = element(s, -1);"), HasSubstr("static typename List::value_type element(")));
  EXPECT_THAT(cpp_code(graph_of("return x")), Not(HasSubstr("element")));
}

TEST(Numbers, WhatCppHasNothingForIsRefusedWhenItIsWritten) {
  const auto cpp_of = [](const std::string& lines) { return cpp_code(graph_of(lines)); };
  EXPECT_THAT(cpp_of("%a = call_function[target=aten::add.Scalar](args = (%x, 50000000000))\nreturn a"),
              HasSubstr("torch::add(x, int64_t{50000000000})"));
  EXPECT_THAT([&] { cpp_of("%a = call_function[target=aten::floordiv.float](args = (7.5, 2.0))\nreturn (x, a)"); },
              ThrowsMessage<Error>(HasSubstr("aten.floordiv.float, which is of numbers")));
  EXPECT_THAT(
      [&] {
        cpp_of(
            "%a = call_function[target=aten::sum.dim_IntList](args = (%x, [1]), kwargs = {dim: [0]})\n"
            "return a");
      },
      ThrowsMessage<Error>(HasSubstr("the argument 'dim' is given twice")));
}

TEST(Numbers, FrozenParametersStayFrozen) {
  const Graph graph = graph_of("%w = get_attr[target=w]\n%v = get_attr[target=v]\nreturn (x, w, v)");
  EXPECT_THAT(cpp_code(graph, {.tensors = {{"w", {.sizes = {2}}, true, true}, {"v", {.sizes = {2}}, true}}}),
              AllOf(HasSubstr("w_ = add_tensor(\"w\", torch::zeros({2}, torch::kFloat), true).requires_grad_(false);"),
                    HasSubstr("v_ = add_tensor(\"v\", torch::zeros({2}, torch::kFloat), true);")));
}

}  // namespace fx::numbers_test
