// ShapeProp against a run on real tensors: at first, and after every one of many random edits.
#include <fxgraph/shapes/shape_prop.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <random>

#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

namespace fx::shape_prop_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The same shapes, and the same tensors share storage.
void expect_same(const Graph& graph, const Shapes& found, const Shapes& expected) {
  std::map<std::int64_t, std::int64_t> numbers;
  for (const Node& node : graph.nodes()) {
    const TensorInfos &a = found[node].tensors, &b = expected[node].tensors;
    ASSERT_EQ(a.size(), b.size()) << node;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(to_string(a[i]), to_string(b[i])) << node;
      EXPECT_EQ(a[i].strides, b[i].strides) << node;
      EXPECT_EQ(a[i].device, b[i].device) << node;
      EXPECT_EQ(numbers.try_emplace(b[i].storage, a[i].storage).first->second, a[i].storage) << node;
    }
  }
}

GraphModule graph_module(const std::string& text) { return GraphModule(parse_graph(text)); }

GraphModule every_opcode() {
  GraphModule::Attributes attributes = {{"conv", std::shared_ptr<torch::nn::Module>(torch::nn::Conv2d(3, 4, 3).ptr())},
                                        {"bn", std::shared_ptr<torch::nn::Module>(torch::nn::BatchNorm2d(4).ptr())},
                                        {"scale", torch::ones({4, 1, 1})}};
  return GraphModule(attributes, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %conv = call_module[target=conv](args = (%x,))
    %bn = call_module[target=bn](args = (%conv,))
    %scale = get_attr[target=scale]
    %mul = call_function[target=operator.mul](args = (%bn, %scale))
    %flat = call_method[target=flatten](args = (%mul, 2))
    %topk = call_function[target=torch.ops.aten.topk.default](args = (%flat, 3))
    %values = call_function[target=operator.getitem](args = (%topk, 0))
    %size = call_method[target=size](args = (%values, 1))
    %view = call_method[target=view](args = (%values, (-1, %size)))
    %add = call_method[target=add_](args = (%view, 1))
    return (add, topk))"));
}

TEST(ShapeProp, KnowsTheNumbersOfMasksAndIndicesThatTheModuleHolds) {
  GraphModule::Attributes attributes = {{"mask", torch::tensor({true, false, true, true})},
                                        {"few", torch::tensor({2})}};
  GraphModule gm(attributes, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %mask = get_attr[target=mask]
    %few = get_attr[target=few]
    %shown = call_function[target=torch.ops.aten.index.Tensor](args = (%x, [%mask]))
    %hidden = call_function[target=torch.ops.aten.logical_not.default](args = (%mask,))
    %rest = call_function[target=torch.ops.aten.masked_select.default](args = (%x, %hidden))
    %more = call_function[target=torch.ops.aten.add_.Scalar](args = (%few, 1))
    %repeated = call_function[target=torch.ops.aten.repeat_interleave.Tensor](args = (%more,))
    return (shown, rest, repeated))"));
  ShapeProp prop(gm);
  const Shapes& shapes = prop.propagate(std::vector<TensorInfo>{TensorInfo{.sizes = {4}}});
  const auto sizes = [&](const char* name) { return shapes[*gm.graph().find(name)].tensors.at(0).sizes; };
  EXPECT_EQ(sizes("shown"), std::vector<std::int64_t>{3});
  EXPECT_EQ(sizes("rest"), std::vector<std::int64_t>{1});
  EXPECT_EQ(sizes("repeated"), std::vector<std::int64_t>{3});
  EXPECT_EQ(gm.attribute("few").item<std::int64_t>(), 2) << "the program's own is not written";
}

TEST(ShapeProp, IsWhatARunOnRealTensorsGives) {
  GraphModule gm = every_opcode();
  const torch::Tensor x = torch::randn({2, 3, 8, 8});
  ShapeProp prop(gm);
  expect_same(gm.graph(), prop.propagate({x}), propagate_shapes(gm, {x}));
  EXPECT_EQ(to_string(*prop.shapes()[*gm.graph().find("view")].tensor()), "float32[6, 4]");
}

// Without kernels for shapes alone these run on what stands in for x, which must not be singular.
TEST(ShapeProp, FactorisationsFindSomethingRegular) {
  for (const char* call :
       {"torch.ops.aten.linalg_cholesky.default](args = (%x,))", "torch.ops.aten.linalg_inv.default](args = (%x,))",
        "torch.ops.aten.linalg_eigh.default](args = (%x,))", "torch.ops.aten.linalg_solve.default](args = (%x, %x))",
        "torch.ops.aten.linalg_qr.default](args = (%x,))", "torch.ops.aten.logdet.default](args = (%x,))"}) {
    GraphModule gm = graph_module(std::string("graph():\n%x = placeholder[target=x]\n%y = call_function[target=") +
                                  call + "\nreturn y\n");
    const torch::Tensor x = torch::eye(4).expand({2, 4, 4}) * 3;
    ShapeProp prop(gm);
    expect_same(gm.graph(), prop.propagate({x.contiguous()}), propagate_shapes(gm, {x.contiguous()}));
  }
}

TEST(ShapeProp, ChangesNothing) {
  GraphModule gm = every_opcode();
  ASSERT_TRUE(gm.is_training());
  const torch::Tensor mean = gm.attribute("bn.running_mean").clone();
  ShapeProp prop(gm);
  prop.propagate({torch::full({2, 3, 8, 8}, 2.0)});
  EXPECT_TRUE(torch::equal(gm.attribute("bn.running_mean"), mean));
  EXPECT_TRUE(gm.submodule("bn")->is_training());
}

TEST(ShapeProp, DrawsNoRandomNumbersThatShow) {
  GraphModule gm = graph_module(
      "graph():\n%x = placeholder[target=x]\n%d = call_function[target=torch.ops.aten.dropout.default](args = (%x, "
      "0.5, "
      "True))\n%r = call_function[target=torch.ops.aten.multinomial.default](args = (%d, 2, True))\nreturn r");
  torch::manual_seed(7);
  const torch::Tensor expected = torch::rand({3});
  torch::manual_seed(7);
  try {
    ShapeProp(gm).propagate({torch::ones({4})});
  } catch (const Error&) {  // zeros are no distribution
  }
  EXPECT_TRUE(torch::equal(torch::rand({3}), expected));
}

TEST(ShapeProp, UpdateRunsWhatChangedAndWhatItReaches) {
  GraphModule gm = graph_module(R"(graph():
    %x = placeholder[target=x]
    %a = call_function[target=torch.ops.aten.relu.default](args = (%x,))
    %b = call_function[target=torch.ops.aten.neg.default](args = (%x,))
    %c = call_function[target=torch.ops.aten.sum.dim_IntList](args = (%a, [0], True))
    %d = call_function[target=torch.ops.aten.add.Tensor](args = (%c, %b))
    return d)");
  ShapeProp prop(gm);
  prop.propagate({torch::zeros({2, 5})});
  EXPECT_EQ(prop.update(), 0u);
  gm.graph().find("c")->update_arg(1, Argument::list({Argument(1)}));
  EXPECT_EQ(prop.update(), 3u);  // c, d, output
  EXPECT_EQ(to_string(*prop.shapes()[*gm.graph().find("c")].tensor()), "float32[2, 1]");
  {
    auto at = gm.graph().inserting_after(*gm.graph().find("d"));
    Node& t = gm.graph().call_function("aten::t", {*gm.graph().find("d")});
    gm.graph().output_node()->set_args({t});
  }
  EXPECT_EQ(prop.update(), 2u);  // t, output
  EXPECT_EQ(to_string(*prop.shapes()[*gm.graph().output_node()].tensor()), "float32[5, 2]");
}

TEST(ShapeProp, UpdateNoticesReplacedTensorsAndModules) {
  GraphModule gm = every_opcode();
  ShapeProp prop(gm);
  const torch::Tensor x = torch::randn({2, 3, 8, 8});
  prop.propagate({x});
  gm.set_attribute("scale", torch::ones({2, 1, 4, 1, 1}));
  EXPECT_EQ(prop.update(), 9u);  // scale and all after it
  expect_same(gm.graph(), prop.shapes(), propagate_shapes(gm, {x}));
  gm.replace_submodule("conv", torch::nn::Conv2d(3, 4, 5).ptr());
  EXPECT_EQ(prop.update(), 10u);  // all but x and scale
  expect_same(gm.graph(), prop.shapes(), propagate_shapes(gm, {x}));
}

TEST(ShapeProp, AFailedUpdateLeavesTheShapes) {
  GraphModule gm = graph_module(
      "graph():\n%x = placeholder[target=x]\n%y = call_function[target=torch.ops.aten.relu.default](args = (%x,))\n"
      "return y");
  ShapeProp prop(gm);
  EXPECT_THAT([&] { prop.propagate(std::vector<c10::IValue>{}); }, ThrowsMessage<Error>(HasSubstr("no input for %x")));
  prop.propagate({torch::zeros({2, 3})});
  gm.graph().find("y")->set_args({*gm.graph().find("x"), 3});
  gm.graph().find("y")->set_target("aten::squeeze.dim");
  EXPECT_THAT([&] { prop.update(); }, ThrowsMessage<Error>(AllOf(HasSubstr("%y"), HasSubstr("out of range"))));
  EXPECT_EQ(to_string(*prop.shapes()[*gm.graph().find("y")].tensor()), "float32[2, 3]");
  gm.graph().find("y")->set_args({*gm.graph().find("x"), 0});
  EXPECT_EQ(prop.update(), 2u);
}

TEST(ShapeProp, ShapesThatChangeInPlaceAreWorkedOutAgain) {
  GraphModule gm = graph_module(R"(graph():
    %x = placeholder[target=x]
    %a = call_function[target=torch.ops.aten.clone.default](args = (%x,))
    %t = call_method[target=t_](args = (%a,))
    %b = call_function[target=torch.ops.aten.relu.default](args = (%a,))
    return b)");
  const torch::Tensor x = torch::randn({2, 3});
  ShapeProp prop(gm);
  expect_same(gm.graph(), prop.propagate({x}), propagate_shapes(gm, {x}));
  gm.graph().find("b")->set_target("aten::neg");
  prop.update();
  expect_same(gm.graph(), prop.shapes(), propagate_shapes(gm, {x}));
}

// The caller's tensors stay what they are, and so do those of the next run.
TEST(ShapeProp, InputsThatChangeInPlaceAreThoseOfTheCallEachTime) {
  GraphModule gm = graph_module(R"(graph():
    %x = placeholder[target=x]
    %before = call_function[target=torch.ops.aten.neg.default](args = (%x,))
    %u = call_method[target=unsqueeze_](args = (%x, 0))
    %b = call_function[target=torch.ops.aten.relu.default](args = (%x,))
    return (before, b))");
  const torch::Tensor x = torch::randn({2, 3});
  ShapeProp prop(gm);
  for (const char* target : {"aten::relu", "aten::neg", "aten::abs", "aten::exp"}) {
    gm.graph().find("b")->set_target(target);
    if (target == std::string_view("aten::relu")) prop.propagate({x});
    prop.update();
    EXPECT_EQ(to_string(*prop.shapes()[*gm.graph().find("before")].tensor()), "float32[2, 3]") << target;
    EXPECT_EQ(to_string(*prop.shapes()[*gm.graph().find("b")].tensor()), "float32[1, 2, 3]") << target;
  }
  EXPECT_EQ(x.dim(), 2);
}

TEST(ShapeProp, RandomEditsGiveWhatAFullRunGives) {
  constexpr const char* kUnary[] = {"aten::relu", "aten::neg", "aten::t", "aten::clone", "aten::contiguous"};
  constexpr const char* kBinary[] = {"aten::add.Tensor", "aten::mul.Tensor"};
  std::mt19937 random(3);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < 10; ++round) {
    GraphModule gm;
    Graph& graph = gm.graph();
    std::vector<Node*> nodes{&graph.placeholder("x"), &graph.placeholder("y")};
    const auto random_call = [&](std::size_t bound) -> Node& {
      Node& a = *nodes[below(bound)];
      Node& b = *nodes[below(bound)];
      switch (below(4)) {
        case 0: return graph.call_function(kBinary[below(2)], {a, b});
        case 1: return graph.call_function("aten::sum.dim_IntList", {a, Argument::list({Argument(below(2))}), true});
        case 2: return graph.call_function("aten::to.dtype", {a, below(2) ? DType::float64 : DType::float32});
        default: return graph.call_function(kUnary[below(5)], {a});
      }
    };
    while (nodes.size() < 30) nodes.push_back(&random_call(nodes.size()));
    graph.output(nodes.back());
    const std::vector<c10::IValue> inputs{torch::randn({4, 4}), torch::randn({1, 4}, torch::kDouble)};
    ShapeProp prop(gm);
    expect_same(graph, prop.propagate(inputs), propagate_shapes(gm, inputs));
    for (int edit = 0; edit < 20; ++edit) {
      const std::size_t i = 2 + below(nodes.size() - 2);
      auto at = graph.inserting_before(*nodes[i]);
      Node& made = random_call(i);
      nodes[i]->replace_all_uses_with(made);
      graph.erase_node(*nodes[i]);
      nodes[i] = &made;
      const std::size_t visited = prop.update();
      EXPECT_LE(visited, nodes.size() - i + 1);
      expect_same(graph, prop.shapes(), propagate_shapes(gm, inputs));
      if (::testing::Test::HasFailure()) FAIL() << print_graph(graph);
    }
  }
}

TEST(ShapeProp, MemoryFormats) {
  const auto format = [](const torch::Tensor& tensor) {
    GraphModule gm = graph_module("graph():\n%x = placeholder[target=x]\nreturn x");
    return memory_format_of(*propagate_shapes(gm, {tensor})[*gm.graph().find("x")].tensor()).name.str();
  };
  const torch::Tensor image = torch::zeros({2, 3, 4, 5});
  EXPECT_EQ(format(image), "contiguous_format");
  EXPECT_EQ(format(image.contiguous(torch::MemoryFormat::ChannelsLast)), "channels_last");
  EXPECT_EQ(format(torch::zeros({2, 3, 4, 5, 6}).contiguous(torch::MemoryFormat::ChannelsLast3d)), "channels_last_3d");
  EXPECT_EQ(format(image.transpose(0, 3)), "");
}

// Packed weights of one program lie where those of an earlier one lay: what was learnt of those says nothing of them.
TEST(ShapeProp, TellsPackedWeightsApart) {
  struct Kernel {
    const char *pack, *run;
    std::vector<Argument> bounds;
  };
  const Argument image = Argument::list({1, 2, 12, 12});
  const std::vector<Kernel> kernels = {
      {"mkldnn_prepacked::conv2d_prepack", "mkldnn_prepacked::conv2d_run", {image, "none"}},
      {"prepacked::conv2d_clamp_prepack", "prepacked::conv2d_clamp_run", {Argument(), Argument()}}};
  for (const Kernel& kernel : kernels) {
    std::vector<std::string> others;  // that take the places of what has gone, some of them
    for (int round = 0; round < 300; ++round) {
      const std::int64_t size = 1 + 2 * (round % 5);
      others.resize(static_cast<std::size_t>(round % 7), std::string(static_cast<std::size_t>(16 + round), 'x'));
      Graph graph;
      Node& x = graph.placeholder("x");
      std::vector<Argument> pack = {graph.get_attr("w"),    Argument(), Argument::list({1, 1}), Argument::list({0, 0}),
                                    Argument::list({1, 1}), 1};
      pack.insert(pack.end(), kernel.bounds.begin(), kernel.bounds.end());
      Node& packed = graph.call_function(kernel.pack, pack);
      Node& y = graph.call_function(kernel.run, std::vector<Argument>{x, packed});
      graph.output(y);
      GraphModule module({{"w", at::zeros({3, 2, size, size})}}, std::move(graph));
      ShapeProp prop(module);
      const Shapes& shapes = prop.propagate(std::vector{TensorInfo{.sizes = {1, 2, 12, 12}}});
      const TensorInfo* info = shapes[*module.graph().output_node()->arg(0).node_or_null()].tensor();
      ASSERT_TRUE(info) << kernel.run;
      ASSERT_EQ(info->sizes, (std::vector<std::int64_t>{1, 3, 13 - size, 13 - size})) << kernel.run << ", " << round;
    }
  }
}

}  // namespace fx::shape_prop_test
