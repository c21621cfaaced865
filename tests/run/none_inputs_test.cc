// Calls that fail because an input is None name it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>

namespace fx::none_inputs_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

torch::Tensor sample() { return torch::ones({3, 4}); }

// LibTorch's messages of a None name no input, and some are assertions.
TEST(NoneInputs, AreNamed) {
  struct Case {
    const char *lines, *input;
  };
  const c10::IValue none, undefined = torch::Tensor();
  const auto holding = [](const c10::IValue& value) { return c10::ivalue::Tuple::create({sample(), value}); };
  for (const auto& [lines, input] : {Case{"%y = call_function[target=aten::relu](args = (%m,))", "m"},
                                     Case{"%y = call_function[target=aten::mul.Tensor](args = (%x, %m))", "m"},
                                     Case{"%y = call_function[target=aten::eq.int](args = (%m, 3))", "m"},
                                     Case{"%y = call_function[target=operator.eq](args = (%m, 3))", "m"},
                                     Case{"%y = call_function[target=operator.getitem](args = (%m, 3))", "m"},
                                     Case{"%g = call_function[target=operator.getitem](args = (%t, 1))\n"
                                          "%y = call_function[target=aten::mul.Tensor](args = (%x, %g))",
                                          "t[1]"}}) {
    GraphModule module(parse_graph(std::string("graph():\n"
                                               "%x = placeholder[target=x]\n%m = placeholder[target=m]\n"
                                               "%t = placeholder[target=t]\n") +
                                   lines + "\nreturn y"));
    for (const c10::IValue& missing : {none, undefined}) {
      const std::vector<c10::IValue> inputs{sample(), missing, holding(missing)};
      const std::string said = "the input '" + std::string(input) + "' is None";
      EXPECT_THAT([&] { module.run(inputs); }, ThrowsMessage<Error>(HasSubstr(said))) << lines;
      EXPECT_THAT([&] { Interpreter(module).run(inputs); }, ThrowsMessage<Error>(HasSubstr(said))) << lines;
    }
  }
}

}  // namespace fx::none_inputs_test
