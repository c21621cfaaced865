// Names that TorchScript files cannot say, or use themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <limits>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/export.h>

#include "tests/torchscript/saved_and_loaded.h"

namespace fx::script_names_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

torch::Tensor sample() { return torch::arange(12, torch::kFloat).view({3, 4}) - 5; }

TEST(ScriptNames, InputsAndValuesMayHaveNamesThatFilesCall) {
  for (const std::string name :
       {"annotate", "bool", "complex", "float", "int", "isinstance", "print", "range", "str", "torch"}) {
    Graph graph;
    Node& x = graph.placeholder(name);
    Node& infinite = graph.call_function("aten::mul.Scalar", {x, std::numeric_limits<double>::infinity()}, {}, name);
    Node& sum = graph.call_function("aten::sum.default", {infinite});
    Node& whole = graph.call_function("aten::Int.Tensor", {graph.call_function("aten::sign", {sum})});
    graph.output(graph.call_function("aten::add.Scalar", {x, whole}));
    const GraphModule module(std::move(graph));
    torch::jit::Module loaded = testing::saved_and_loaded(module);
    EXPECT_TRUE(loaded.forward({sample()}).toTensor().equal(GraphModule(module.graph().clone()).forward(sample())))
        << name;
  }
}

TEST(ScriptNames, ANestedModulesInputMayBeGivenByANameThatFilesCall) {
  auto inner = std::make_shared<GraphModule>(parse_graph(
      "graph():\n%t = placeholder[target=torch]\n%y = call_function[target=aten::neg](args = (%t,))\nreturn y"));
  const GraphModule module({{"inner", inner}},
                           parse_graph("graph():\n%x = placeholder[target=x]\n"
                                       "%y = call_module[target=inner](args = (), kwargs = {torch: %x})\n"
                                       "return y"));
  EXPECT_TRUE(testing::saved_and_loaded(module).forward({sample()}).toTensor().equal(-sample()));
}

TEST(ScriptNames, NamesOfAttributesThatFilesCannotSayAreRefused) {
  for (const auto& [name, told] : {std::pair("a\"b", "'a\"b'"), std::pair("a\nb", "'a\\x0ab'"),
                                   std::pair("a\\b", "'a\\b'"), std::pair("\xc3\xbc", "'\xc3\xbc'")}) {
    Graph graph;
    graph.output(graph.call_function("aten::neg", {graph.get_attr(name)}));
    const GraphModule module(GraphModule::Attributes{{name, torch::ones({2})}}, std::move(graph));
    EXPECT_THAT([&] { to_torchscript(module); }, ThrowsMessage<Error>(HasSubstr(std::string("the attribute ") + told)));
  }
}

TEST(ScriptNames, TwoAttributesOfOneNameAreRefused) {
  for (const auto& [first, second] :
       {std::pair("for", "for_"), std::pair("a.forward", "a.forward_"), std::pair("training_", "training")}) {
    Graph graph;
    graph.output(graph.call_function("aten::sub.Tensor", {graph.get_attr(first), graph.get_attr(second)}));
    const GraphModule module(GraphModule::Attributes{{first, torch::ones({2})}, {second, torch::zeros({2})}},
                             std::move(graph));
    EXPECT_THAT([&] { to_torchscript(module); }, ThrowsMessage<Error>(HasSubstr("which another attribute is called")));
  }
}

TEST(ScriptNames, AttributesMayBeCalledAsClassesOfFilesCallTheirs) {
  for (const char* name : {"__annotations__", "__parameters__", "__buffers__"}) {
    Graph graph;
    graph.output(graph.call_function("aten::add.Tensor", {graph.placeholder("x"), graph.get_attr(name)}));
    const GraphModule module(GraphModule::Attributes{{name, torch::ones({3, 4})}}, std::move(graph));
    EXPECT_TRUE(testing::saved_and_loaded(module).forward({sample()}).toTensor().equal(sample() + 1)) << name;
  }
}

}  // namespace fx::script_names_test
