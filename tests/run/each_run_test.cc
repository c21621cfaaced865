// What belongs to one run and no other.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/parse.h>

namespace fx::each_run_test {

/// A module from lines of FX text; `attributes` are its tensors.
GraphModule module_of(const std::string& lines, const GraphModule::Attributes& attributes = {}) {
  return GraphModule(attributes, parse_graph("graph():\n" + lines));
}

torch::Tensor sample() { return torch::arange(12, torch::kFloat).view({3, 4}) - 5; }

// Whoever is given a list may change it: each run makes its own.
TEST(EachRun, ListsAndDictionariesAreThoseOfOneRun) {
  for (const char* lines :
       {"%x = placeholder[target=x]\nreturn [1, 2]", "%x = placeholder[target=x]\nreturn (x, [1, 2])",
        "%x = placeholder[target=x]\nreturn [x, [1, 2]]", "%x = placeholder[target=x]\nreturn {'a': [1, 2]}",
        "%x = placeholder[target=x]\n%k = placeholder[target=k](default=[1, 2])\nreturn k",
        "%x = placeholder[target=x]\n%l = call_function[target=torch.ops.aten.append.t](args = ([1], 2))\nreturn l"}) {
    GraphModule module = module_of(lines);
    const auto list_in = [](c10::IValue value) {
      while (!value.isIntList()) {
        const auto elements = elements_of(value);
        value = elements.back();
      }
      return value.toIntList();
    };
    for (int run = 0; run < 3; ++run) {
      c10::List<std::int64_t> list = list_in(module.run({sample()}));
      EXPECT_EQ(list.size(), 2u) << lines;
      list.push_back(3);
    }
  }
}

// The number that a tensor of the module stands for is that which it holds when the call is made.
TEST(EachRun, NumbersInAttributesAreReadInEachRun) {
  for (const char* call :
       {"torch.ops.aten.mul.Scalar](args = (%x, %c))", "torch.ops.aten.leaky_relu.default](args = (%x, %c))",
        "torch.ops.aten.add.Tensor](args = (%x, %x), kwargs = {alpha: %c})",
        "torch.ops.aten.expand.default](args = (%x, [%c, 3, 4]))",
        "torch.ops.aten.constant_pad_nd.default](args = (%x, [1, 1], %c))"}) {
    const std::string input = "%x = placeholder[target=x]\n", last = "%y = call_function[target=" + std::string(call);
    const bool whole = last.find("expand") != std::string::npos;
    GraphModule module = module_of(input +
                                       "%c = get_attr[target=c]\n"
                                       "%i = call_function[target=torch.ops.aten.add_.Scalar](args = (%c, 1))\n" +
                                       last + "\nreturn y",
                                   {{"c", whole ? torch::tensor(2) : torch::tensor(2.0f)}});
    for (const char* number : {"3", "4", "6"}) {
      if (*number == '6') module.attribute("c").fill_(5);
      std::string literal = last;
      literal.replace(literal.find("%c"), 2, number + std::string(whole ? "" : ".0"));
      const torch::Tensor found = module.run({sample()}).toTensor();
      const torch::Tensor expected = module_of(input + literal + "\nreturn y").run({sample()}).toTensor();
      EXPECT_TRUE(found.sizes() == expected.sizes() && found.equal(expected)) << call << " with " << number;
    }
  }
}

}  // namespace fx::each_run_test
