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

TEST(GeneratedNumbersSlow, AreWhatTheGraphComputes) {
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
