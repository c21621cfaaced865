// Generated C++ counts, raises to powers, looks elements up and freezes as the graph does.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/code.h>
#include <fxgraph/text/parse.h>
#include "tests/trace/generated_cpp.h"

namespace fx::generated_numbers_test {

using Case = testing::GeneratedCase;

Case case_of(const std::string& name, const std::string& lines, const torch::Tensor& x,
             const GraphModule::Attributes& attributes = {}) {
  return {name,
          std::make_shared<GraphModule>(attributes, parse_graph("graph():\n%x = placeholder[target=x]\n" + lines)),
          {x}};
}

TEST(GeneratedNumbersNight, AreWhatTheGraphComputes) {
  const torch::Tensor x = torch::arange(12, torch::kFloat).view({3, 4});
  const std::vector<Case> cases = {
      case_of(
          "Powers",
          "%n = call_method[target=size](args = (%x, 0))\n%a = call_function[target=operator.pow](args = (%n, 35))\n"
          "%b = call_function[target=operator.pow](args = (%n, -1))\n"
          "%c = call_function[target=operator.pow](args = (-2.5, 2))\n"
          "%d = call_function[target=operator.ipow](args = (%n, 0))\n"
          "%z = call_function[target=operator.mul](args = (%x, %b))\nreturn (x, z, a, b, c, d)",
          x),
      case_of("Elements",
              "%c = call_function[target=aten::unbind.int](args = (%x,))\n"
              "%a = call_function[target=operator.getitem](args = (%c, -1))\n"
              "%s = call_function[target=aten::size](args = (%x,))\n"
              "%d = call_function[target=aten::__getitem__.t](args = (%s, -1))\n"
              "%e = call_function[target=operator.getitem](args = (%s, 1))\n"
              "%i = call_function[target=operator.sub](args = (%e, 5))\n"
              "%b = call_function[target=operator.getitem](args = (%c, %i))\n"
              "%f = call_function[target=aten::mul.int](args = (%d, 2))\nreturn (a, b, d, e, f)",
              x),
      case_of(
          "Methods",
          "%c = call_function[target=operator.lt](args = (%x, 5))\n%z = call_function[target=torch.neg](args = (%x,))\n"
          "%y = call_method[target=where](args = (%x, %c, %z))\n%w = call_function[target=operator.add](args = (%y, "
          "9.5))\n"
          "%p = call_method[target=polygamma](args = (%w, 1))\nreturn (y, p)",
          x),
      // Where C++ has overloads that take a bool, a list or nothing in the same place.
      case_of(
          "Overloads",
          "%n = call_function[target=aten::size.int](args = (%x, 0))\n"
          "%d = call_function[target=operator.truediv](args = (1.0, %n))\n"
          "%q = call_function[target=operator.gt](args = (%d, 0.25))\n"
          "%a = call_function[target=aten::argsort](args = (%x, 1))\n"
          "%b = call_function[target=aten::argsort.stable](args = (%x,), kwargs = {stable: True, dim: 1})\n"
          "%c = call_function[target=aten::count_nonzero](args = (%x, 1))\n"
          "%e = call_function[target=aten::count_nonzero.dim_IntList](args = (%x, [0, 1]))\n"
          "%i = call_function[target=aten::sub.int](args = (%n, 2))\n"
          "%f = call_function[target=aten::count_nonzero](args = (%x, %i))\n"
          "%g = call_function[target=aten::sum.dim_IntList](args = (%x, None, True))\n"
          "%h = call_function[target=aten::unsqueeze](args = (%x, 0))\n"
          "%u = call_function[target=aten::upsample_nearest1d](args = (%h, [8], 2.0))\n"
          "%l = call_function[target=aten::upsample_linear1d](args = (%h, [8], True, 2.0))\n"
          "%t = call_function[target=aten::mT](args = (%x,))\n%p = call_function[target=aten::numpy_T](args = (%x,))\n"
          "%o = call_function[target=aten::std](args = (%x, True))\n"
          "%r = call_function[target=aten::sort](args = (%x, 1, True))\n"
          "%z = call_function[target=aten::mul.Scalar](args = (%x, %d))\n"
          "return (a, b, c, e, f, g, u, l, t, p, o, r, z, d, q)",
          x),
      case_of("Frozen", "%w = get_attr[target=w]\n%y = call_function[target=operator.mul](args = (%x, %w))\nreturn y",
              x, {{"w", torch::full({4}, 2.0)}}),
  };
  const testing::Compiled compiled(cases);
  testing::expect_same_outputs(compiled, cases);
  ASSERT_TRUE(compiled.ok());
  EXPECT_ANY_THROW(compiled.run(cases[1], {torch::zeros({0, 4})}));
  EXPECT_ANY_THROW(compiled.run(cases[1], {torch::zeros({3, 9})}));
  EXPECT_ANY_THROW(compiled.run(cases[1], {torch::zeros({3, 0})}));
}

}  // namespace fx::generated_numbers_test
