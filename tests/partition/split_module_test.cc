// Programs cut into modules compute the same, whatever the cut, or are refused.
#include <fxgraph/rewriter/partition/split_module.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <random>

#include <fxgraph/module/inline_modules.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/trace/symbolic_trace.h>

namespace fx {
namespace {

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

}  // namespace
}  // namespace fx
