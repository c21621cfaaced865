// Positional ints where an operator takes lists: those of a fixed length (`int[2]`) are numbers each, the others are
// the elements of one list, as Python has it.
#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/parse.h>

namespace fx::number_lists_test {

struct Case {
  const char *function, *numbers, *lists;
};

TEST(NumberLists, OfAFixedLengthAreOneNumberEach) {
  const Case cases[] = {
      {"torch.conv1d", "%x3, %w3, None, 2, 1", "%x3, %w3, None, [2], [1]"},
      {"torch.conv2d", "%x4, %w4, None, 1, 1", "%x4, %w4, None, [1, 1], [1, 1]"},
      {"torch.conv2d", "%x4, %w4, None, 2, 1, 1", "%x4, %w4, None, [2, 2], [1, 1], [1, 1]"},
      {"torch.conv2d", "%x4, %w4, None, 2, 1, 1, 1", "%x4, %w4, None, [2, 2], [1, 1], [1, 1], 1"},
      {"torch.nn.functional.conv2d", "%x4, %w4, None, 1, 1", "%x4, %w4, None, [1, 1], [1, 1]"},
      {"torch.conv_transpose2d", "%x4, %w4, None, 2, 1, 1", "%x4, %w4, None, [2, 2], [1, 1], [1, 1]"},
      {"aten::conv2d", "%x4, %w4, None, 1, 1", "%x4, %w4, None, [1, 1], [1, 1]"},
      {"torch.max_pool2d", "%x4, 3, 2, 1", "%x4, [3, 3], [2, 2], [1, 1]"},
      {"torch.nn.functional.max_pool2d", "%x4, 3, 1, 1", "%x4, [3, 3], [1, 1], [1, 1]"},
      {"torch.nn.functional.avg_pool2d", "%x4, 3, 1, 1", "%x4, [3, 3], [1, 1], [1, 1]"},
      {"torch.avg_pool1d", "%x3, 2, 1, 1", "%x3, [2], [1], [1]"},
      {"torch.roll", "%x4, 1, 0", "%x4, [1], [0]"},
      {"torch.sum", "%x4, 1, True", "%x4, [1], True"},
  };
  for (const Case& each : cases) {
    const auto result = [&](const char* args, bool planned) {
      GraphModule gm(parse_graph(std::string("graph():\n%x3 = placeholder[target=x3]\n%w3 = placeholder[target=w3]\n"
                                             "%x4 = placeholder[target=x4]\n%w4 = placeholder[target=w4]\n"
                                             "%y = call_function[target=") +
                                 each.function + "](args = (" + args + "))\nreturn y"));
      const std::vector<c10::IValue> inputs{torch::arange(16, torch::kFloat).view({1, 2, 8}), torch::ones({2, 2, 3}),
                                            torch::arange(72, torch::kFloat).view({1, 2, 6, 6}),
                                            torch::ones({2, 2, 3, 3})};
      return planned ? gm.run(inputs).toTensor() : Interpreter(gm).run(inputs).toTensor();
    };
    for (const bool planned : {true, false}) {
      const torch::Tensor expected = result(each.lists, planned), found = result(each.numbers, planned);
      EXPECT_TRUE(expected.sizes() == found.sizes() && expected.equal(found))
          << each.function << "(" << each.numbers << "): " << found.sizes() << ", expected " << expected.sizes();
    }
  }
}

TEST(NumberLists, OfAnyLengthAreTheElements) {
  for (const char* line :
       {"call_method[target=view](args = (%x, 3, -1))", "call_method[target=permute](args = (%x, 1, 0))",
        "call_method[target=reshape](args = (%x, -1))", "call_method[target=expand](args = (%x, 2, 3))",
        "call_method[target=repeat](args = (%x, 1, 2))", "call_method[target=flip](args = (%x, 0, 1))"}) {
    GraphModule gm(parse_graph(std::string("graph():\n%x = placeholder[target=x]\n%y = ") + line + "\nreturn y"));
    EXPECT_NO_THROW(gm.run({torch::ones({2, 3})})) << line;
  }
}

// Some kernels of operators that are declared with SymInts take lists of ints and no others.
TEST(NumberLists, OfSymbolicIntsAreListsOfInts) {
  int declared = 0;
  for (const std::shared_ptr<torch::jit::Operator>& each : torch::jit::getAllOperators()) {
    for (const c10::Argument& parameter : each->schema().arguments()) {
      if (parameter.real_type()->str().find("SymInt[") == std::string::npos) continue;
      ++declared;
      for (const Argument& given : {Argument::list({Argument(2), Argument(3)}), Argument::list({}),
                                    Argument::tuple({Argument(2)}), Argument(2)}) {
        c10::IValue value = to_ivalue(given, value_type(parameter));
        coerce(value, *value_type(parameter), parameter.N().value_or(1));
        EXPECT_TRUE(value.isIntList()) << each->schema();
      }
    }
  }
  EXPECT_GT(declared, 20);
}

TEST(NumberLists, OfSizesReachEveryKernel) {
  for (const char* call :
       {"call_method[target=resize_](args = (%x, [2]))", "call_method[target=resize_](args = (%x, 2))",
        "call_method[target=resize_](args = (%x, [%n]))", "call_method[target=resize_](args = (%x, (%n, 1)))",
        "call_function[target=torch.ops.aten.resize_.default](args = (%x, [2]))",
        "call_function[target=aten::resize](args = (%x, [2]))",
        "call_function[target=aten::set_.source_Tensor_storage_offset](args = (%x, %x, 1, [2], [1]))"}) {
    GraphModule gm(parse_graph(std::string("graph():\n%x = placeholder[target=x]\n"
                                           "%n = call_method[target=size](args = (%x, 1))\n%y = ") +
                               call + "\nreturn y"));
    EXPECT_EQ(gm.run({torch::rand({3, 2})}).toTensor().numel(), 2) << call;
    EXPECT_EQ(Interpreter(gm).run({torch::rand({3, 2})}).toTensor().numel(), 2) << call;
  }
}

}  // namespace fx::number_lists_test
