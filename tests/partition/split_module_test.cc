// Programs cut into modules compute the same, whatever the cut, or are refused.
#include <fxgraph/rewriter/partition/split_module.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <random>

#include <fxgraph/module/inline_modules.h>
#include <fxgraph/rewriter/partition/submodule_inputs.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/trace/symbolic_trace.h>

namespace fx::split_module_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using torch::Tensor;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    fc1 = register_module("fc1", torch::nn::Linear(4, 4));
    fc2 = register_module("fc2", torch::nn::Linear(4, 4));
    scale = register_parameter("scale", torch::full({4}, 2.0));
  }
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) {
    const Tensor a = torch::relu(fc1(x)) * scale;
    const Tensor b = fc2(a + y);
    return {b * scale, a.sum()};
  }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
  Tensor scale;
};
TORCH_MODULE(Net);

std::int64_t by_half(const Node& node) {
  static const std::vector<std::string> kFirst = {"fc1", "relu", "mul"};
  return std::ranges::find(kFirst, node.name()) == kFirst.end() ? 1 : 0;
}

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> all;
  for (const Node& node : graph.nodes()) all.push_back(node.name());
  return all;
}

std::shared_ptr<GraphModule> part(const std::shared_ptr<GraphModule>& split, const std::string& path) {
  return std::dynamic_pointer_cast<GraphModule>(split->submodule(path));
}

TEST(SplitModule, CallsAModuleForEachPartition) {
  Net net;
  const auto gm = symbolic_trace(net, {torch::rand({2, 4}), torch::rand({2, 4})}, {.sizes = Sizes::fixed});
  const std::string before = print_graph(gm->graph());
  std::vector<std::pair<std::string, std::string>> paths;
  SplitOptions options;
  options.module_paths = &paths;
  const auto split = split_module(*gm, by_half, options);
  EXPECT_EQ(print_graph(gm->graph()), before);
  EXPECT_THAT(names(split->graph()), ElementsAre("x", "y", "submod_0", "submod_1", "mul_1", "sum_1", "output"))
      << split->graph();
  // Placeholders stand before the attributes, which are copied to where they are read.
  EXPECT_THAT(names(part(split, "submod_0")->graph()), ElementsAre("x", "scale", "fc1", "relu", "mul", "output"));
  EXPECT_THAT(names(part(split, "submod_1")->graph()),
              ElementsAre("y", "mul", "scale", "add", "fc2", "mul_1", "sum_1", "output"));
  EXPECT_THAT(paths, ElementsAre(std::pair("submod_0.fc1", "fc1"), std::pair("submod_1.fc2", "fc2")));
  EXPECT_EQ(split->submodule("submod_0.fc1"), net->fc1.ptr());
  EXPECT_TRUE(split->attribute("submod_1.scale").is_same(net->scale));
  const Tensor x = torch::rand({3, 4}), y = torch::rand({3, 4});
  const auto found = split->run({x, y}).toTupleRef().elements(), wanted = gm->run({x, y}).toTupleRef().elements();
  EXPECT_TRUE(found[0].toTensor().equal(wanted[0].toTensor()));
  EXPECT_TRUE(found[1].toTensor().equal(wanted[1].toTensor()));
  const auto copy = split->clone_graph_module();
  EXPECT_TRUE(copy->attribute("submod_0.scale").is_same(copy->attribute("submod_1.scale")));
  EXPECT_FALSE(copy->attribute("submod_0.scale").is_same(net->scale));
}

TEST(SplitModule, KeepsModes) {
  Net net;
  net->fc1->eval();
  const auto gm = symbolic_trace(net, {torch::rand({2, 4}), torch::rand({2, 4})}, {.sizes = Sizes::fixed});
  const auto split = split_module(*gm, by_half);
  EXPECT_TRUE(split->is_training());
  EXPECT_TRUE(split->submodule("submod_0")->is_training());
  EXPECT_FALSE(net->fc1->is_training());
}

std::shared_ptr<GraphModule> from_text(const std::string& text) {
  return std::make_shared<GraphModule>(parse_graph("graph():\n" + text));
}

TEST(SplitModule, TupleReturnAndNormalisedNames) {
  const auto gm = from_text(R"(%value = placeholder[target=value](default=None)
    %relu = call_function[target=aten::relu](args = (%value,))
    %neg = call_function[target=aten::neg](args = (%relu,))
    return neg)");
  SplitOptions options;
  options.tuple_return = true;
  options.keep_original_input_names = false;
  const auto split = split_module(
      *gm, [](const Node& node) { return node.name() == "relu" ? 3 : 5; }, options);
  EXPECT_THAT(names(split->graph()), ElementsAre("value", "submod_3", "relu", "submod_5", "neg", "output"));
  EXPECT_TRUE(split->graph().find("value")->arg(0).is_none());  // defaults stay
  EXPECT_THAT(names(part(split, "submod_3")->graph()), ElementsAre("arg_0", "relu", "output"));
  EXPECT_THAT(names(part(split, "submod_5")->graph()), ElementsAre("arg_0", "neg", "output"));
  EXPECT_TRUE(split->forward(torch::ones({2})).equal(-torch::ones({2})));
}

TEST(SplitModule, OfNothingAndOfWhatNothingUses) {
  const auto empty = split_module(*from_text("%x = placeholder[target=x]\nreturn x"), by_half);
  EXPECT_THAT(names(empty->graph()), ElementsAre("x", "output"));
  const auto dead = split_module(*from_text(R"(%x = placeholder[target=x]
    %fc1 = call_function[target=aten::relu](args = (%x,))
    %neg = call_function[target=aten::neg](args = (%x,))
    return neg)"),
                                 by_half);
  EXPECT_THAT(names(dead->graph()), ElementsAre("x", "submod_0", "submod_1", "output"));
  EXPECT_TRUE(part(dead, "submod_0")->graph().output_node()->arg(0).is_none());
  EXPECT_TRUE(dead->forward(torch::ones({2})).equal(-torch::ones({2})));
}

TEST(SplitModule, RefusesPartitionsThatWaitForEachOther) {
  const auto gm = from_text(R"(%x = placeholder[target=x]
    %a = call_function[target=aten::relu](args = (%x,))
    %b = call_function[target=aten::neg](args = (%a,))
    %c = call_function[target=aten::exp](args = (%b,))
    return c)");
  EXPECT_THAT([&] { split_module(*gm, [](const Node& node) { return node.name() == "b" ? 1 : 0; }); },
              ThrowsMessage<Error>(AllOf(HasSubstr("%a (0) before %b (1)"), HasSubstr("%b (1) before %c (0)"))));
}

// A write keeps its place among the reads, though no value passes between them.
TEST(SplitModule, KeepsWritesInPlace) {
  const auto gm = from_text(R"(%x = placeholder[target=x]
    %y = call_function[target=aten::clone](args = (%x,))
    %read = call_function[target=aten::exp](args = (%y,))
    %write = call_function[target=aten::zero_](args = (%y,))
    %late = call_function[target=aten::neg](args = (%y,))
    return (read, late))");
  const auto split = split_module(*gm, [](const Node& node) -> std::int64_t {
    return node.name() == "y" ? 0 : node.name() == "write" ? 1 : node.name() == "late" ? 2 : 3;
  });
  EXPECT_THAT(names(split->graph()), ElementsAre("x", "submod_0", "submod_3", "submod_1", "submod_2", "output"));
  EXPECT_THROW(split_module(*gm, [](const Node& node) { return node.name() == "write" ? 1 : 0; }), Error);
}

Tensor program(Tensor x, const Tensor& y) {
  Tensor a = x * 2;
  Tensor row = a.select(0, 1);
  const Tensor seen = a.exp();
  row.add_(y.select(0, 0));
  const Tensor after = a.relu();
  const auto [values, indices] = torch::topk(after + seen, 2);
  a.mul_(0.5);
  Tensor noise = torch::rand({3, 2});
  noise = noise + torch::rand({3, 2});
  return (values * noise + a.slice(1, 0, 2)).sum(1) + indices.sum() - seen.mean();
}

TEST(SplitModule, AnyAssignmentComputesTheSameOrIsRefused) {
  const auto gm = symbolic_trace(program);
  const Tensor x = torch::rand({3, 4}), y = torch::rand({3, 4});
  const auto run = [&](GraphModule& module) {
    torch::manual_seed(7);
    return module.forward(x.clone(), y.clone());
  };
  const Tensor expected = run(*gm);
  std::mt19937 random(11);
  int refused = 0, split = 0;
  for (int round = 0; round < 400; ++round) {
    // Mostly in order with a few strays: assignments at random are hardly ever possible.
    const double strays = 0.05 * (round % 5);
    std::uniform_real_distribution<double> chance(0, 1);
    const std::size_t nodes = gm->graph().size();
    std::size_t position = 0;
    try {
      const auto parts = split_module(*gm, [&](const Node&) -> std::int64_t {
        const auto in_order = static_cast<std::int64_t>(4 * position++ / nodes);
        return chance(random) < strays ? static_cast<std::int64_t>(random() % 5) : in_order;
      });
      EXPECT_NO_THROW(parts->graph().lint());
      EXPECT_TRUE(run(*parts).equal(expected)) << parts->graph();
      GraphModule flat(*parts, inline_modules(*parts));
      EXPECT_TRUE(run(flat).equal(expected));
      ++split;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(split, 80);
  EXPECT_GT(refused, 20);
}

// ── torch.fx's test/fx/test_fx_split.py, each case by its name there: tags are what the callback gives, names what the
// option says ──

std::shared_ptr<GraphModule> split_by_tags(const GraphModule& module, const std::map<std::string, std::int64_t>& tags,
                                           std::int64_t otherwise,
                                           std::vector<std::pair<std::string, std::string>>* paths = nullptr) {
  static const std::vector<std::string> kTags = {"red", "blue", "green"};
  return split_module(
      module,
      [&](const Node& node) {
        const auto tag = tags.find(node.name());
        return tag == tags.end() ? otherwise : tag->second;
      },
      {.name = [](std::int64_t tag) { return kTags.at(static_cast<std::size_t>(tag)); }, .module_paths = paths});
}

TEST(TestFXSplit, test_split_preserve_node_meta) {
  const auto gm = std::make_shared<GraphModule>(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %y = placeholder[target=y]
    %add = call_function[target=aten::add.Tensor](args = (%x, %x))
    %mul = call_function[target=aten::mul.Tensor](args = (%y, %y))
    %sub = call_function[target=aten::sub.Tensor](args = (%add, %mul))
    return sub)"));
  for (Node& node : gm->graph().nodes()) node.meta().set("name", node.name());
  const auto split = split_by_tags(*gm, {{"add", 0}, {"mul", 1}, {"sub", 2}}, 2);
  const auto expect_named = [](const Node& node) {
    const Meta* notes = node.find_meta();
    ASSERT_TRUE(notes && notes->get<std::string>("name")) << node.name();
    EXPECT_EQ(*notes->get<std::string>("name"), node.name());
  };
  for (const char* tag : {"red", "blue", "green"}) {
    for (const Node& node : part(split, tag)->graph().nodes()) {
      if (!node.is(Op::output)) expect_named(node);
    }
  }
  for (const Node* placeholder : split->graph().placeholders()) expect_named(*placeholder);
}

TEST(TestSplitByTags, test_split_by_tags) {
  struct ModuleImpl : torch::nn::Module {
    ModuleImpl() {
      for (const auto& [name, in, out] : std::vector<std::tuple<const char*, int, int>>{
               {"linear1", 2, 3}, {"linear2", 4, 5}, {"linear3", 6, 7}, {"linear4", 15, 6}})
        linears.push_back(register_module(name, torch::nn::Linear(in, out)));
    }
    Tensor forward(const Tensor& x1, const Tensor& x2, const Tensor& x3) {
      return linears[3](torch::cat({linears[0](x1), linears[1](x2), linears[2](x3)}, 1));
    }
    std::vector<torch::nn::Linear> linears;
  };
  const std::vector<c10::IValue> inputs = {torch::rand({2, 2}), torch::rand({2, 4}), torch::rand({2, 6})};
  const auto gm = symbolic_trace(std::make_shared<ModuleImpl>(), inputs, {.sizes = Sizes::fixed});
  std::vector<std::pair<std::string, std::string>> paths;
  const auto split = split_by_tags(*gm, {{"linear1", 0}, {"linear2", 1}}, 2, &paths);
  EXPECT_THAT(split->named_children().keys(), ElementsAre("red", "blue", "green"));
  const auto calls = [&](const char* tag) {
    std::vector<std::string> names;
    for (const Node* call : part(split, tag)->graph().find_nodes(Op::call_module)) names.push_back(call->name());
    return names;
  };
  EXPECT_THAT(calls("red"), ElementsAre("linear1"));
  EXPECT_THAT(calls("blue"), ElementsAre("linear2"));
  EXPECT_THAT(calls("green"), ElementsAre("linear3", "linear4"));
  using Path = std::pair<std::string, std::string>;
  EXPECT_THAT(paths, ElementsAre(Path("red.linear1", "linear1"), Path("blue.linear2", "linear2"),
                                 Path("green.linear3", "linear3"), Path("green.linear4", "linear4")));
  EXPECT_TRUE(torch::equal(split->run(inputs).toTensor(), gm->run(inputs).toTensor()));
}

TEST(TestSplitOutputType, test_split_by_tags) {
  const auto gm = std::make_shared<GraphModule>(GraphModule::Attributes{{"conv", torch::nn::Conv2d(3, 16, 3).ptr()}},
                                                parse_graph(R"(graph():
    %x = placeholder[target=x]
    %conv = call_module[target=conv](args = (%x,))
    %mul = call_function[target=aten::mul.Tensor](args = (%conv, 0.5))
    %relu = call_function[target=aten::relu](args = (%mul,))
    return relu)"));
  const auto split = split_by_tags(*gm, {{"conv", 0}, {"mul", 1}}, 2);
  const Tensor x = torch::randn({1, 3, 24, 24});
  const c10::IValue result = split->run({x});
  ASSERT_TRUE(result.isTensor()) << "no tuple around it";
  EXPECT_TRUE(torch::equal(result.toTensor(), gm->forward(x)));
}

// FX's generate_inputs_for_submodules: with these examples a part can be lowered by itself.
TEST(SubmoduleInputs, AreWhatThePartsAreCalledWith) {
  Net net;
  const std::vector<c10::IValue> inputs = {torch::rand({2, 4}), torch::rand({2, 4})};
  const auto gm = symbolic_trace(net, inputs, {.sizes = Sizes::fixed});
  const auto split = split_module(*gm, by_half);
  const SubmoduleInputs heard = inputs_of_submodules(*split, inputs);
  ASSERT_EQ(heard.size(), 2u);
  torch::NoGradGuard inference;
  const c10::IValue first = part(split, "submod_0")->run(heard.at("submod_0"));
  EXPECT_TRUE(torch::equal(first.toTensor(), heard.at("submod_1").at(0).toTensor()) ||
              torch::equal(first.toTensor(), heard.at("submod_1").at(1).toTensor()));
  EXPECT_THAT(inputs_of_submodules(*split, inputs, {"submod_1"}).size(), 1u);
  EXPECT_THAT([&] { inputs_of_submodules(*split, inputs, {"nothing"}); },
              ThrowsMessage<Error>(HasSubstr("the program does not call 'nothing'")));
}

TEST(SplitModule, RefusesAValueUsedBeforeItIsThere) {
  GraphModule gm(
      parse_graph("graph():\n%x = placeholder[target=x]\n%a = call_function[target=aten::relu](args = (%x,))\n"
                  "%b = call_function[target=aten::neg](args = (%a,))\nreturn b"));
  EXPECT_THAT([&] { split_module(gm, {}); }, ThrowsMessage<Error>(HasSubstr("is empty; give one")));
  gm.graph().find("b")->append(*gm.graph().find("a"));
  EXPECT_THAT([&] { split_module(gm, [](const Node&) { return 0; }); },
              ThrowsMessage<Error>(HasSubstr("b: it uses a, which is defined after it")));
}

}  // namespace fx::split_module_test
