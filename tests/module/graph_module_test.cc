// GraphModule as a torch::nn::Module: where its attributes come from, and what may be done to them.
#include <fxgraph/module/graph_module.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/module/module_info.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>

namespace fx::graph_module_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    conv = register_module("conv", torch::nn::Conv2d(3, 4, 3));
    bn = register_module("bn", torch::nn::BatchNorm2d(4));
    scale = register_parameter("scale", torch::full({4, 1, 1}, 2.0));
    shift = register_buffer("shift", torch::ones({1}));
  }
  torch::Tensor forward(const torch::Tensor& x) { return bn(conv(x)) * scale + shift; }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d bn{nullptr};
  torch::Tensor scale, shift;
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  NetImpl() {
    block = register_module("block", Block());
    spare = register_module("spare", torch::nn::Linear(2, 2));
  }
  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(block(x)); }
  Block block{nullptr};
  torch::nn::Linear spare{nullptr};
};
TORCH_MODULE(Net);

Graph net_graph() {
  return parse_graph(R"(graph():
    %x = placeholder[target=x]
    %conv = call_module[target=block.conv](args = (%x,))
    %bn = call_module[target=block.bn](args = (%conv,))
    %scale = get_attr[target=block.scale]
    %mul = call_function[target=aten::mul.Tensor](args = (%bn, %scale))
    %shift = get_attr[target=block.shift]
    %add = call_function[target=aten::add.Tensor](args = (%mul, %shift))
    %relu = call_function[target=aten::relu](args = (%add,))
    return relu)");
}

Net trained_net() {
  torch::manual_seed(0);
  Net net;
  net->forward(torch::randn({4, 3, 8, 8}));  // statistics away from their defaults
  net->eval();
  return net;
}

torch::Tensor image() { return torch::randn({2, 3, 8, 8}); }

TEST(GraphModule, TakesFromAModuleOnlyWhatTheGraphNames) {
  Net net = trained_net();
  GraphModule gm(*net, net_graph(), "Net");
  EXPECT_FALSE(gm.is_training());
  EXPECT_EQ(gm.named_parameters().keys(),
            (std::vector<std::string>{"block.scale", "block.conv.weight", "block.conv.bias", "block.bn.weight",
                                      "block.bn.bias"}));
  EXPECT_TRUE(gm.attribute("block.scale").is_alias_of(net->block->scale));
  EXPECT_TRUE(gm.is_parameter("block.scale"));
  EXPECT_FALSE(gm.is_parameter("block.shift"));
  EXPECT_EQ(gm.find_submodule("spare"), nullptr);
  EXPECT_EQ(gm.module_type("block.conv"), "Conv2d");
  const torch::Tensor x = image();
  EXPECT_TRUE(gm.forward(x).allclose(net->forward(x)));
  net->block->scale.data().mul_(3);
  EXPECT_TRUE(gm.forward(x).allclose(net->forward(x)));
}

TEST(GraphModule, LeavesTheModesOfTheModulesItTakes) {
  Net net = trained_net();
  net->train();
  net->block->bn->eval();  // frozen
  const GraphModule gm(*net, net_graph());
  EXPECT_TRUE(gm.is_training());
  EXPECT_FALSE(net->block->bn->is_training());
  EXPECT_FALSE(gm.find_submodule("block.bn")->is_training());
  EXPECT_TRUE(gm.find_submodule("block")->is_training());
}

TEST(GraphModule, NamesNodeAndPathOfWhatIsMissing) {
  const auto with = [](const char* line) {
    return parse_graph(std::string("graph():\n%x = placeholder[target=x]\n") + line + "\nreturn x");
  };
  Net net = trained_net();
  EXPECT_THAT([&] { GraphModule(*net, with("%m = call_module[target=block.pool](args = (%x,))")); },
              ThrowsMessage<Error>(HasSubstr("no 'block.pool', which %m calls")));
  EXPECT_THAT([&] { GraphModule(*net, with("%w = get_attr[target=block.gain]")); },
              ThrowsMessage<Error>(HasSubstr("no 'block.gain', which %w reads")));
  EXPECT_THAT([&] { GraphModule(GraphModule::Attributes{}, with("%w = get_attr[target=w]")); },
              ThrowsMessage<Error>(HasSubstr("no 'w', which %w reads")));
}

TEST(GraphModule, TakesFromABagOfAttributes) {
  const torch::Tensor weight = torch::randn({4, 8}).requires_grad_();
  GraphModule gm(
      {{"head", std::shared_ptr<torch::nn::Module>(torch::nn::Linear(4, 2).ptr())},
       {"a.weight", weight},
       {"extra", torch::ones(1)}},
      parse_graph(
          "graph():\n%x = placeholder[target=x]\n%w = get_attr[target=a.weight]\n"
          "%y = call_function[target=aten::linear](args = (%x, %w))\n%z = call_module[target=head](args = (%y,))\n"
          "%hw = get_attr[target=head.weight]\n%r = call_method[target=matmul](args = (%z, %hw))\nreturn r"));
  EXPECT_TRUE(gm.is_parameter("a.weight"));
  EXPECT_FALSE(gm.find_attribute("extra").defined());
  const torch::Tensor x = torch::randn({3, 8});
  const auto head = std::dynamic_pointer_cast<torch::nn::LinearImpl>(gm.submodule("head"));
  EXPECT_TRUE(gm.forward(x).allclose(head->forward(torch::linear(x, weight)).matmul(head->weight)));
}

TEST(GraphModule, TrainAndEvalSwitchCalledModules) {
  Net net = trained_net();
  GraphModule gm(*net, net_graph());
  const torch::Tensor x = image();
  const torch::Tensor evaluated = gm.forward(x);
  gm.train();
  const torch::Tensor before = net->block->bn->running_mean.clone();
  EXPECT_FALSE(gm.forward(x).allclose(evaluated));
  EXPECT_FALSE(net->block->bn->running_mean.allclose(before)) << "batch statistics are kept";
  gm.submodule("block.bn")->eval();
  net->block->bn->running_mean.copy_(before);
  gm.forward(x);
  EXPECT_TRUE(net->block->bn->running_mean.allclose(before)) << "a submodule's own mode counts";
}

TEST(GraphModule, MovesAndConvertsLikeAnyModule) {
  Net net = trained_net();
  GraphModule gm(*net, net_graph());
  const torch::Tensor x = image();
  const torch::Tensor single = gm.forward(x);
  gm.to(torch::kDouble);
  EXPECT_EQ(gm.attribute("block.conv.weight").scalar_type(), torch::kDouble);
  EXPECT_TRUE(gm.forward(x.to(torch::kDouble)).allclose(single.to(torch::kDouble), 1e-4, 1e-5));
}

TEST(GraphModule, ClonesDeeply) {
  Net net = trained_net();
  GraphModule gm(*net, net_graph(), "Net");
  const auto copy = gm.clone_graph_module();
  const torch::Tensor x = image();
  const torch::Tensor expected = gm.forward(x);
  EXPECT_TRUE(copy->forward(x).equal(expected));
  EXPECT_EQ(copy->class_name(), "Net");
  {
    torch::NoGradGuard guard;
    copy->attribute("block.scale").zero_();
  }
  copy->graph().find("relu")->set_target("aten::neg");
  EXPECT_TRUE(gm.forward(x).equal(expected));
  EXPECT_FALSE(copy->forward(x).equal(expected));
  EXPECT_TRUE(copy->attribute("block.scale").requires_grad());
}

TEST(GraphModule, ClonesOfExpandedBuffersAreExpanded) {
  const torch::Tensor row = torch::tensor({1.0F, 2.0F});
  const GraphModule gm({{"w", row.expand({3, 2})}}, parse_graph("graph():\n    %w = get_attr[target=w]\n    return w"));
  const torch::Tensor copy = gm.clone_graph_module()->attribute("w");
  EXPECT_TRUE(copy.equal(gm.attribute("w")));
  copy.select(0, 0).zero_();
  EXPECT_EQ(copy.abs().sum().item<float>(), 0);
  EXPECT_EQ(row[0].item<float>(), 1);
}

// One tensor under two names, a view of a buffer, a C++ module that shares its weight, one module under two names.
struct TiedImpl : torch::nn::Module {
  TiedImpl() {
    embedding = register_module("embedding", torch::nn::Embedding(5, 3));
    head = register_module("head", torch::nn::Linear(torch::nn::LinearOptions(3, 5).bias(false)));
    scale = register_parameter("scale", torch::full({3}, 2.0));
    again = register_parameter("again", scale);
    table = register_buffer("table", torch::arange(12.0).view({4, 3}));
    row = register_buffer("row", table.select(0, 2));
    alone = register_buffer("alone", torch::ones({3}));
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear head{nullptr};
  torch::Tensor scale, again, table, row, alone;
};
TORCH_MODULE(Tied);

TEST(GraphModule, ClonesKeepTiesBetweenTensors) {
  Tied root;
  GraphModule gm(*root, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %embedding = call_module[target=embedding](args = (%x,))
    %scale = get_attr[target=scale]
    %again = get_attr[target=again]
    %row = get_attr[target=row]
    %table = get_attr[target=table]
    %alone = get_attr[target=alone]
    %weight = get_attr[target=head.weight]
    %linear = call_function[target=aten::linear](args = (%embedding, %weight))
    return (linear, scale, again, row, table, alone))"));
  gm.set_parameter("head.weight", root->embedding->weight);
  gm.add_submodule("leaf", std::make_shared<LeafModule>("own.Leaf", std::vector<NamedTensor>{{"w", root->scale}}));
  gm.add_submodule("same_leaf", gm.submodule("leaf"));
  ASSERT_TRUE(gm.attribute("scale").is_same(gm.attribute("again")));

  const auto copy = gm.clone_graph_module();
  const auto at = [&](const char* path) { return copy->attribute(path); };
  EXPECT_FALSE(at("scale").is_alias_of(gm.attribute("scale")));
  EXPECT_TRUE(at("scale").is_same(at("again")));
  EXPECT_TRUE(at("leaf.w").is_same(at("scale")));
  EXPECT_EQ(copy->submodule("leaf"), copy->submodule("same_leaf"));
  EXPECT_TRUE(at("scale").requires_grad());
  EXPECT_TRUE(at("scale").is_leaf());
  EXPECT_TRUE(at("row").is_alias_of(at("table")));
  EXPECT_FALSE(at("row").is_alias_of(gm.attribute("row")));
  EXPECT_TRUE(at("row").equal(gm.attribute("row")));
  EXPECT_EQ(at("row").storage_offset(), 6);
  EXPECT_TRUE(at("head.weight").is_alias_of(at("embedding.weight")));
  EXPECT_TRUE(at("embedding.weight").requires_grad());
  EXPECT_FALSE(at("alone").is_alias_of(at("table")));

  const torch::NoGradGuard guard;
  at("table").zero_();
  at("head.weight").fill_(1);
  at("again").fill_(7);
  const auto parts = copy->run({torch::zeros({1}, torch::kInt64)}).toTupleRef().elements();
  EXPECT_TRUE(parts[0].toTensor().equal(torch::full({1, 5}, 3.0)));  // the embedding sees what the head was given
  EXPECT_TRUE(parts[1].toTensor().equal(torch::full({3}, 7.0)));
  EXPECT_TRUE(parts[3].toTensor().equal(torch::zeros({3})));
  EXPECT_TRUE(root->scale.equal(torch::full({3}, 2.0)));
}

TEST(GraphModule, IsAPartOfOtherModulesAndGraphs) {
  Net net = trained_net();
  auto inner = std::make_shared<GraphModule>(*net, net_graph());
  torch::nn::Module outer;
  outer.register_module("inner", inner);
  EXPECT_EQ(outer.parameters().size(), 5u);
  GraphModule around({{"body", std::shared_ptr<torch::nn::Module>(inner)}},
                     parse_graph("graph():\n%x = placeholder[target=x]\n%y = call_module[target=body](args = (%x,))\n"
                                 "%z = call_method[target=neg](args = (%y,))\nreturn z"));
  const torch::Tensor x = image();
  EXPECT_TRUE(around.forward(x).allclose(-net->forward(x)));
  inner->graph().find("relu")->set_target("aten::abs");
  EXPECT_TRUE(around.forward(x).allclose(-net->block->forward(x).abs())) << "edits of an inner graph are seen";
}

TEST(GraphModule, GradientsFlow) {
  Net net = trained_net();
  GraphModule gm(*net, net_graph());
  gm.forward(image()).sum().backward();
  EXPECT_TRUE(gm.attribute("block.scale").grad().defined());
}

TEST(GraphModule, AttributesAreReplacedWithoutTouchingTheOldOnes) {
  Net net = trained_net();
  GraphModule gm(*net, net_graph());
  const torch::Tensor x = image();
  gm.forward(x);
  const torch::Tensor zeros = torch::zeros({4, 1, 1});
  gm.set_attribute("block.scale", zeros);
  EXPECT_TRUE(gm.is_parameter("block.scale")) << "it stays what it was";
  EXPECT_TRUE(gm.forward(x).equal(torch::ones_like(gm.forward(x))));
  EXPECT_EQ(net->block->scale.sum().item<float>(), 8.0f);
  gm.set_attribute("new.deep.tensor", zeros);
  EXPECT_TRUE(gm.attribute("new.deep.tensor").is_same(zeros));
  EXPECT_TRUE(gm.delete_attribute("new.deep.tensor"));
  EXPECT_FALSE(gm.delete_attribute("new.deep.tensor"));
  EXPECT_THAT([&] { gm.set_attribute("block.scale.x", zeros); }, ThrowsMessage<Error>(HasSubstr("is a tensor")));
  EXPECT_THAT([&] { gm.set_attribute("a..b", zeros); }, ThrowsMessage<Error>(HasSubstr("empty part")));
  EXPECT_THAT([&] { static_cast<void>(gm.attribute("no.such")); },
              ThrowsMessage<Error>(HasSubstr("no parameter or buffer 'no.such'")));
}

TEST(GraphModule, SubmodulesAreAddedReplacedAndDeleted) {
  Net net = trained_net();
  GraphModule gm(*net, net_graph());
  const torch::Tensor x = image();
  gm.forward(x);
  gm.replace_submodule("block.bn", torch::nn::Identity().ptr());
  EXPECT_FALSE(gm.submodule("block.bn")->is_training()) << "takes over the mode";
  EXPECT_TRUE(gm.forward(x).allclose(torch::relu(net->block->conv(x) * net->block->scale + net->block->shift)));
  EXPECT_THROW(gm.replace_submodule("block.none", torch::nn::Identity().ptr()), Error);
  gm.add_submodule("extra.deep", torch::nn::Linear(2, 2).ptr());
  EXPECT_EQ(gm.fresh_path("extra.deep"), "extra.deep_1");
  EXPECT_EQ(gm.delete_all_unused_submodules(), 1u);
  EXPECT_EQ(gm.find_submodule("extra"), nullptr);
  EXPECT_NE(gm.find_submodule("block.conv"), nullptr);
  EXPECT_FALSE(gm.delete_submodule("extra"));
  EXPECT_TRUE(gm.delete_submodule("block.bn"));
  EXPECT_THAT([&] { gm.forward(x); }, ThrowsMessage<Error>(HasSubstr("no module 'block.bn'")));
}

TEST(GraphModule, UnusedAttributesGo) {
  Net net = trained_net();
  GraphModule gm(*net, net_graph());
  gm.set_buffer("left", torch::ones(1));
  gm.set_parameter("block.over", torch::ones(1));
  EXPECT_EQ(gm.delete_all_unused_attributes(), 2u);
  EXPECT_TRUE(gm.find_attribute("block.conv.weight").defined());
  EXPECT_TRUE(gm.find_attribute("block.shift").defined());
}

TEST(GraphModule, AModuleUnderTwoPathsKeepsWhatOneOfThemNeeds) {
  const auto linear = torch::nn::Linear(2, 2).ptr();
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& weight = graph.get_attr("read.weight");
  graph.output(Argument::tuple({weight, graph.call_module("called", {x})}));
  GraphModule gm(std::move(graph));
  gm.add_submodule("read", linear);
  gm.add_submodule("called", linear);
  EXPECT_EQ(gm.delete_all_unused_attributes(), 0u);
  gm.run({torch::ones({2, 2})});
}

TEST(GraphModule, OfferesBodiesOfCxxModulesToRules) {
  Net net = trained_net();
  GraphModule gm(*net, net_graph());
  const auto conv = gm.leaf("block.conv");
  ASSERT_TRUE(conv && conv->body());
  EXPECT_EQ(conv->type_name(), "Conv2d");
  EXPECT_EQ(conv->body()->count(Op::call_function, "aten::conv2d"), 1u);
  EXPECT_TRUE(conv->find_tensor("weight").is_same(net->block->conv->weight));
  EXPECT_EQ(gm.leaf("no.such"), nullptr);
  gm.train();
  EXPECT_EQ(gm.leaf("block.bn"), nullptr) << "training statistics are no body";
}

TEST(ModuleInfo, ComeFromBodiesAndModes) {
  torch::nn::ReLU in_place(torch::nn::ReLUOptions(true));
  torch::nn::Dropout dropout;
  torch::nn::BatchNorm2d norm(3);
  for (torch::nn::Module* module : std::initializer_list<torch::nn::Module*>{in_place.get(), dropout.get(), norm.get()})
    module->eval();
  GraphModule gm(
      {{"relu", in_place.ptr()}, {"dropout", dropout.ptr()}, {"norm", norm.ptr()}},
      parse_graph(
          "graph():\n%x = placeholder[target=x]\n%a = call_module[target=relu](args = (%x,))\n"
          "%b = call_module[target=dropout](args = (%a,))\n%c = call_module[target=norm](args = (%b,))\nreturn c"));
  const ModuleInfo effects = module_info(gm);
  const auto of = [&](const char* name) { return effects.effects(*gm.graph().find(name)); };
  EXPECT_TRUE(of("a").writes);
  EXPECT_FALSE(of("c").impure());
  gm.train();
  EXPECT_TRUE(of("b").random);
  EXPECT_TRUE(of("c").impure());
}

TEST(ShapeProp, NotesEveryTensor) {
  Net net = trained_net();
  GraphModule gm(*net, net_graph());
  const Shapes shapes = propagate_shapes(gm, std::vector<TensorInfo>{TensorInfo{.sizes = {2, 3, 8, 8}}});
  const auto text = [&](const char* name) { return to_string(*shapes[*gm.graph().find(name)].tensor()); };
  EXPECT_EQ(text("conv"), "float32[2, 4, 6, 6]");
  EXPECT_EQ(text("scale"), "float32[4, 1, 1]");
  EXPECT_EQ(text("relu"), "float32[2, 4, 6, 6]");
  EXPECT_EQ(shapes[*gm.graph().find("relu")].tensor()->strides, (std::vector<std::int64_t>{144, 36, 6, 1}));
}

TEST(ShapeProp, TellsSharedStorageFromReusedMemory) {
  GraphModule gm(parse_graph(
      "graph():\n%x = placeholder[target=x]\n%v = call_method[target=view](args = (%x, -1))\n"
      "%a = call_function[target=aten::relu](args = (%v,))\n%b = call_function[target=aten::neg](args = (%a,))\n"
      "%c = call_function[target=aten::neg](args = (%b,))\n%t = call_function[target=aten::topk](args = (%c, "
      "2))\nreturn (c, t)"));
  const Shapes shapes = propagate_shapes(gm, {torch::randn({4, 4})});
  const auto storage = [&](const char* name) { return shapes[*gm.graph().find(name)].tensor()->storage; };
  EXPECT_EQ(storage("x"), storage("v"));
  EXPECT_NE(storage("v"), storage("a"));
  EXPECT_NE(storage("a"), storage("c")) << "a is gone when c is made; its address may be the same";
  EXPECT_EQ(shapes[*gm.graph().find("t")].tensors.size(), 2u);
  EXPECT_EQ(shapes[*gm.graph().output_node()].tensors.size(), 3u);
}

}  // namespace fx::graph_module_test
