// What a GraphModule does not take: graphs out of order when they run, and modules and tensors that cannot be held.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>

namespace fx::refused_edits_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using torch::nn::Module;

std::shared_ptr<GraphModule> relu_and_neg() {
  return std::make_shared<GraphModule>(
      parse_graph("graph():\n%x = placeholder[target=x]\n%a = call_function[target=aten::relu](args = (%x,))\n"
                  "%b = call_function[target=aten::neg](args = (%a,))\nreturn b"));
}

TEST(RefusedEdits, AValueUsedBeforeItIsThereDoesNotRun) {
  const auto late = relu_and_neg(), own = relu_and_neg();
  late->graph().find("b")->append(*late->graph().find("a"));
  own->graph().find("a")->set_args({*own->graph().find("a")});
  const torch::Tensor x = torch::ones({2});
  for (const auto& [module, words] : {std::pair(late, "b: it uses a, which is defined after it; move one of them"),
                                      std::pair(own, "a: it uses its own value; give it another input")}) {
    EXPECT_THAT([&] { module->forward(x); }, ThrowsMessage<Error>(HasSubstr(words)));
    EXPECT_THAT([&] { module->recompile(); }, ThrowsMessage<Error>(HasSubstr(words)));
    EXPECT_THAT([&] { propagate_shapes(*module, {x}); }, ThrowsMessage<Error>(HasSubstr(words)));
  }
}

TEST(RefusedEdits, APlaceholderAfterACallIsAnInputLikeOthers) {
  const auto module = relu_and_neg();
  Graph& graph = module->graph();
  Node& late = graph.placeholder("late");  // before the output
  graph.output_node()->set_args({graph.call_function("aten::add.Tensor", {*graph.find("b"), late})});
  const torch::Tensor x = torch::rand({2}), y = torch::rand({2});
  EXPECT_TRUE(torch::equal(module->forward(x, y), y - x.relu()));
  EXPECT_THAT([&] { module->forward(x); }, ThrowsMessage<Error>(HasSubstr("late")));
}

TEST(RefusedEdits, NoModuleIsNone) {
  const auto module = relu_and_neg();
  module->add_submodule("a", torch::nn::ReLU().ptr());
  EXPECT_THAT([&] { module->replace_submodule("a", nullptr); }, ThrowsMessage<Error>(HasSubstr("to put at 'a'")));
  EXPECT_THAT([&] { module->add_submodule("q.r", nullptr); }, ThrowsMessage<Error>(HasSubstr("to put at 'q.r'")));
  EXPECT_EQ(module->find_submodule("q"), nullptr);
  EXPECT_NO_THROW(module->eval());
  EXPECT_NE(module->find_submodule("a"), nullptr);
}

TEST(RefusedEdits, NoModuleIsInsideItself) {
  const auto outer = relu_and_neg(), inner = relu_and_neg();
  outer->add_submodule("a.inner", inner);
  const auto inside = ThrowsMessage<Error>(HasSubstr("would be inside itself"));
  EXPECT_THAT([&] { outer->add_submodule("me", outer); }, inside);
  EXPECT_THAT([&] { outer->add_submodule("new.me", outer); }, inside);
  EXPECT_EQ(outer->find_submodule("new"), nullptr);
  EXPECT_THAT([&] { outer->add_submodule("a.me", outer->submodule("a")); }, inside);
  EXPECT_THAT([&] { inner->add_submodule("outer", outer); }, inside) << "each holds the other";
  EXPECT_THAT([&] { outer->replace_submodule("a.inner", outer); }, inside);
  EXPECT_NO_THROW(outer->add_submodule("twice", inner)) << "two places are no circle";
  EXPECT_NO_THROW(outer->eval());
}

TEST(RefusedEdits, ATensorDoesNotTakeTheNameOfAModule) {
  const auto module = relu_and_neg();
  module->add_submodule("a", torch::nn::ReLU().ptr());
  const auto taken = ThrowsMessage<Error>(HasSubstr("'a' is a module; remove it"));
  EXPECT_THAT([&] { module->set_attribute("a", torch::ones({2})); }, taken);
  EXPECT_THAT([&] { module->set_parameter("a", torch::ones({2})); }, taken);
  EXPECT_THAT([&] { module->set_buffer("a", torch::ones({2})); }, taken);
  EXPECT_TRUE(module->delete_submodule("a"));
  EXPECT_NO_THROW(module->set_attribute("a", torch::ones({2})));
}

}  // namespace fx::refused_edits_test
