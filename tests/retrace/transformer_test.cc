// Transformer: copies a program exactly unless an override says otherwise.
#include <fxgraph/retrace/transformer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx::transformer_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kEveryOpcode = R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %k : [num_users=1] = placeholder[target=k](default=3)
    %linear : [num_users=2] = call_module[target=head.linear](args = (%x,), kwargs = {})
    %param : [num_users=1] = get_attr[target=param]
    %my_sum : [num_users=1] = call_function[target=operator.add](args = (%linear, %param), kwargs = {})
    %relu : [num_users=1] = call_method[target=relu](args = (%my_sum,), kwargs = {})
    %topk : [num_users=2] = call_function[target=torch.ops.aten.topk.default](args = (%relu, %k), kwargs = {})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%topk, 0), kwargs = {})
    %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%topk, 1), kwargs = {})
    %to : [num_users=2] = call_method[target=to](args = (%linear, torch.float64), kwargs = {copy: True})
    %size : [num_users=1] = call_method[target=size](args = (%to, 0), kwargs = {})
    %view : [num_users=1] = call_method[target=view](args = (%to, (%size, -1)), kwargs = {})
    return {'values': getitem, 'indices': getitem_1, 'rest': [view, None, 1.5]}
)";

std::shared_ptr<GraphModule> every_opcode() {
  torch::manual_seed(0);
  GraphModule::Attributes attributes = {
      {"head.linear", std::shared_ptr<torch::nn::Module>(torch::nn::Linear(4, 5).ptr())},
      {"param", torch::randn({5}).requires_grad_()}};
  return std::make_shared<GraphModule>(attributes, parse_graph(kEveryOpcode), "Every");
}

TEST(Transformer, WithoutOverridesCopies) {
  const auto gm = every_opcode();
  const auto copy = Transformer(*gm).transform();
  EXPECT_EQ(print_graph(copy->graph()), kEveryOpcode);
  EXPECT_EQ(copy->class_name(), "Every");
  EXPECT_TRUE(copy->attribute("param").is_same(gm->attribute("param")));
  EXPECT_EQ(copy->find_submodule("head.linear"), gm->find_submodule("head.linear"));
  copy->graph().lint();
  const torch::Tensor x = torch::randn({2, 4});
  const auto a = gm->run({x}).toGenericDict(), b = copy->run({x}).toGenericDict();
  EXPECT_TRUE(torch::equal(a.at("values").toTensor(), b.at("values").toTensor()));
  EXPECT_EQ(print_graph(gm->graph()), kEveryOpcode);
}

TEST(Transformer, KeepsNotesOnEveryNode) {
  const auto gm = every_opcode();
  for (Node& node : gm->graph().nodes()) node.meta().set(meta_key::kStackTrace, "net.py:" + node.name());
  const auto copy = Transformer(*gm).transform();
  for (const Node& node : copy->graph().nodes()) {
    if (node.is(Op::output)) continue;
    EXPECT_EQ(source_place(node), "net.py:" + node.name());
  }
}

struct SwapOperators : Transformer {
  using Transformer::Transformer;
  Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
    if (target == "aten::sigmoid") return torch::neg(args[0].toTensor()) * 2;
    return Transformer::call_function(target, args, kwargs);
  }
  Value call_method(const Target& target, const Args& args, const Kwargs& kwargs) override {
    if (target == "neg") return Transformer::call_function("aten::sigmoid", args, kwargs);
    return Transformer::call_method(target, args, kwargs);
  }
};

TEST(Transformer, RecordsWhatOverridesCompute) {
  GraphModule gm(parse_graph(
      "graph():\n%x = placeholder[target=x]\n%s = call_function[target=torch.ops.aten.sigmoid.default](args = (%x,))\n"
      "%n = call_method[target=neg](args = (%s,))\nreturn n"));
  gm.graph().find("s")->meta().set(meta_key::kModuleStack, std::string("block"));
  const auto swapped = SwapOperators(gm).transform();
  EXPECT_EQ(print_graph(swapped->graph()), R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %neg : [num_users=1] = call_function[target=torch.ops.aten.neg.default](args = (%x,), kwargs = {})
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Scalar](args = (%neg, 2), kwargs = {})
    %sigmoid : [num_users=1] = call_function[target=torch.ops.aten.sigmoid.default](args = (%mul,), kwargs = {})
    return sigmoid
)");
  for (const char* name : {"neg", "mul"}) {
    EXPECT_EQ(*swapped->graph().find(name)->find_meta()->get<std::string>(meta_key::kModuleStack), "block");
  }
  const torch::Tensor x = torch::randn({3});
  EXPECT_TRUE(torch::equal(swapped->forward(x), (x.neg() * 2).sigmoid()));
}

TEST(Transformer, OverridesMayReplaceResultsByTuples) {
  struct MaxForTopk : Transformer {
    using Transformer::Transformer;
    Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
      if (target != "aten::topk") return Transformer::call_function(target, args, kwargs);
      return torch::max(args[0].toTensor(), -1);
    }
  };
  const auto gm = every_opcode();
  const auto changed = MaxForTopk(*gm).transform();
  EXPECT_EQ(changed->graph().find_nodes(Op::call_function, "aten::topk").size(), 0u);
  const torch::Tensor x = torch::randn({2, 4});
  const auto found = changed->run({x, 1}).toGenericDict();
  const auto expected = gm->run({x, 1}).toGenericDict();
  EXPECT_TRUE(torch::equal(found.at("values").toTensor(), expected.at("values").toTensor().squeeze(1)));
}

TEST(Transformer, CapturesTensorsAndRecordsFactories) {
  struct Shift : Transformer {
    using Transformer::Transformer;
    Value call_method(const Target& target, const Args& args, const Kwargs& kwargs) override {
      const torch::Tensor value = Transformer::call_method(target, args, kwargs).toTensor();
      return target == "relu" ? value + outside + torch::ones({5}) : value;
    }
    torch::Tensor outside = torch::full({5}, 4.0);
  };
  const auto gm = every_opcode();
  const auto changed = Shift(*gm).transform();
  EXPECT_EQ(changed->graph().find_nodes(Op::call_function, "aten::ones").size(), 1u);
  const auto captured = changed->graph().find_nodes(Op::get_attr);
  ASSERT_EQ(captured.size(), 2u);
  EXPECT_TRUE(torch::equal(changed->attribute(captured[1]->target().str()), torch::full({5}, 4.0)));
  EXPECT_EQ(gm->find_attribute(captured[1]->target().str()).defined(), false);
  const torch::Tensor x = torch::randn({2, 4});
  EXPECT_TRUE(changed->run({x}).toGenericDict().at("values").toTensor().allclose(
      gm->run({x}).toGenericDict().at("values").toTensor() + 5));
}

TEST(Transformer, DropsWhatTheNewGraphDoesNotName) {
  struct Without : Transformer {
    using Transformer::Transformer;
    Value call_module(const Target&, const Args& args, const Kwargs&) override { return args[0]; }
    Value get_attr(const Target&, const Args&, const Kwargs&) override { return 1.5; }
  };
  const auto gm = every_opcode();
  const auto changed = Without(*gm).transform();
  EXPECT_EQ(changed->find_submodule("head.linear"), nullptr);
  EXPECT_EQ(changed->parameters().size(), 0u);
  EXPECT_EQ(changed->graph().find("my_sum")->arg(1), Argument(1.5));
  EXPECT_EQ(gm->parameters().size(), 3u);
}

TEST(Transformer, UsesShapesWhereTheyAreKnown) {
  struct Flatten : Transformer {
    using Transformer::Transformer;
    Value call_function(const Target& target, const Args& args, const Kwargs& kwargs) override {
      if (target != "aten::relu") return Transformer::call_function(target, args, kwargs);
      const torch::Tensor x = args[0].toTensor();
      return x.reshape({x.size(0) * x.size(1)});
    }
  };
  GraphModule gm(parse_graph(
      "graph():\n%x = placeholder[target=x]\n%r = call_function[target=torch.ops.aten.relu.default](args = (%x,))\n"
      "return r"));
  EXPECT_THAT([&] { Flatten(gm).transform(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("while running %r"), HasSubstr("x"))));
  Shapes shapes(gm.graph());
  shapes[*gm.graph().find("x")] = TensorInfo{.sizes = {2, 3}};
  const auto flat = Flatten(gm, &shapes).transform();
  EXPECT_EQ(flat->forward(torch::zeros({2, 3})).sizes(), (std::vector<std::int64_t>{6}));
}

TEST(Transformer, AnOverrideThatThrowsLeavesNothingBehind) {
  struct Fails : Transformer {
    using Transformer::Transformer;
    Value call_method(const Target& target, const Args& args, const Kwargs& kwargs) override {
      if (fail) throw std::runtime_error("not today");
      return Transformer::call_method(target, args, kwargs);
    }
    bool fail = true;
  };
  const auto gm = every_opcode();
  Fails fails(*gm);
  EXPECT_THAT([&] { fails.transform(); }, ThrowsMessage<Error>(AllOf(HasSubstr("%relu"), HasSubstr("not today"))));
  EXPECT_TRUE(torch::ones({2}).add(1).equal(torch::full({2}, 2.0)));  // this thread records no more
  fails.fail = false;
  EXPECT_EQ(print_graph(fails.transform()->graph()), kEveryOpcode);
}

}  // namespace fx::transformer_test
