// Parts of programs handed to back ends compute the same, hostile programs included; what may not go stays.
#include <fxgraph/rewriter/partition/lower.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <random>

#include <fxgraph/rewriter/partition/inline_submodules.h>
#include <fxgraph/rewriter/partition/xnnpack.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/partition/copying_part.h"
#include "tests/support/error_of.h"
#include "tests/support/names.h"
#include "tests/trace/torch_models.h"
#include "tests/trace/trace_testing.h"

namespace fx::lower_test {

using testing::CopyingBackend;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names;
using testing::same_value;
using torch::Tensor;

const OperatorSupport kEverything([](const CallFacts&) -> std::optional<std::string> { return std::nullopt; });

std::shared_ptr<GraphModule> from_text(const std::string& text) {
  return std::make_shared<GraphModule>(parse_graph("graph():\n" + text));
}

TEST(OperatorSupport, AsksOperatorsTypesShapesAndNames) {
  const auto gm = from_text(R"(
    %x : [num_users=2] = placeholder[target=x]
    %a = call_function[target=torch.add](args = (%x, 1))
    %b = call_method[target=add](args = (%a, %x))
    %c = call_function[target=aten::to.dtype](args = (%b, torch.int64))
    %d = call_function[target=aten::add.Tensor](args = (%c, 1))
    return d)");
  ShapeProp prop(*gm);
  const Shapes& shapes = prop.propagate({TensorInfo{.sizes = {2, 3}}});
  const auto why = [&](const OperatorSupport& support, const char* name) {
    return support.why_not(CallFacts(*gm, *gm->graph().find(name), &shapes)).value_or("yes");
  };
  const OperatorSupport adds = support_operators({"aten::add"});
  for (const char* name : {"a", "b", "d"}) EXPECT_EQ(why(adds, name), "yes") << name;
  EXPECT_EQ(why(adds, "c"), "aten::to is not among the operators supported");
  EXPECT_EQ(why(support_operators({"aten::add.Tensor"}), "b"), "yes");
  EXPECT_EQ(why(support_operators({"aten::add.Scalar"}), "b"), "aten::add is not among the operators supported");
  const OperatorSupport floats = chain({adds, support_dtypes({DType::float32})});
  EXPECT_EQ(why(floats, "b"), "yes");
  EXPECT_EQ(why(floats, "d"), "%c is int64[2, 3]: that type is not supported");
  EXPECT_EQ(why(support_ranks(3, 4), "b"), "%a is float32[2, 3]: from 3 to 4 dimensions are supported");
  EXPECT_EQ(why(decline_if_input_dtype(DType::int64), "d"), "%c is int64, which is declined");
  EXPECT_EQ(why(decline_if_input_dtype(DType::int64), "c"), "yes");
  EXPECT_EQ(why(decline_if_node_in_names({"a"}), "a"), "%a is declined by name");
  EXPECT_EQ(why(any_chain({support_operators({"aten::mul"}), adds}), "a"), "yes");
  EXPECT_EQ(why(OperatorSupport(), "a"), "nothing is supported");
  const OperatorSupport table =
      support_table({{"aten::add", SupportedDTypes{.args = {{DType::float32, DType::int64}}, .kwargs = {}}},
                     {"aten::to", std::nullopt}});
  EXPECT_EQ(why(table, "d"), "yes");
  EXPECT_EQ(support_dtypes({DType::float32}).why_not(CallFacts(*gm, *gm->graph().find("a"))).value_or("yes"),
            "what %x holds is not known: give example inputs");
}

TEST(FuseByPartitions, test_fuser_util) {
  testing::Mlp net;
  const auto gm = symbolic_trace(net, {torch::rand({2, 8})}, {.sizes = Sizes::fixed});
  Graph& graph = gm->graph();
  const auto fused = fuse_by_partitions(*gm, {{graph.find("fc1"), graph.find("relu")}, {graph.find("fc2")}});
  EXPECT_THAT(names(fused->graph().nodes()), ElementsAre("x", "fused_0", "fused_1", "log_softmax", "output"));
  const Tensor x = torch::rand({3, 8});
  EXPECT_TRUE(fused->forward(x).equal(gm->forward(x)));
  const auto back = inline_submodules(*fused, {"fused_0", "fused_1"});
  EXPECT_EQ(print_graph(back->graph()), print_graph(graph));
  EXPECT_TRUE(back->forward(x).equal(gm->forward(x)));
  EXPECT_EQ(back->named_parameters().keys(), gm->named_parameters().keys());
}

TEST(FuseByPartitions, test_fuser_util_xfail) {
  const auto gm = from_text(R"(%x = placeholder[target=x]
    %a = call_function[target=aten::relu](args = (%x,))
    %b = call_function[target=aten::neg](args = (%a,))
    %c = call_function[target=aten::exp](args = (%b,))
    return c)");
  Graph& graph = gm->graph();
  EXPECT_THAT(error_of([&] {
                fuse_by_partitions(*gm, {{graph.find("a"), graph.find("c")}});
              }),
              HasSubstr("%a (0) before %b (outside), %b (outside) before %c (0)"));
  EXPECT_THAT(error_of([&] {
                fuse_by_partitions(*gm, {{graph.find("a")}, {graph.find("a")}});
              }),
              HasSubstr("%a is in two partitions"));
}

TEST(LiftSubmodule, AndBack) {
  testing::Mlp net;
  const auto gm = symbolic_trace(net, {torch::rand({2, 8})}, {.sizes = Sizes::fixed});
  const auto lifted = lift_submodule(*gm, {gm->graph().find("relu"), gm->graph().find("fc2")}, "middle");
  EXPECT_THAT(names(lifted->graph().nodes()), ElementsAre("x", "fc1", "middle", "log_softmax", "output"));
  EXPECT_EQ(print_graph(inline_submodules(*lifted, {"middle"})->graph()), print_graph(gm->graph()));
  EXPECT_THAT(error_of([&] { lift_submodule(*gm, {gm->graph().find("relu")}, "fc1"); }), HasSubstr("'fc1' is taken"));
  EXPECT_THAT(error_of([&] { lift_submodule(*gm, {}, "none"); }), HasSubstr("there are no nodes"));
  EXPECT_THAT(error_of([&] { lift_submodule(*gm, {lifted->graph().nodes().begin()->next()}, "other"); }),
              HasSubstr("it is not in this graph"));
  EXPECT_THAT(error_of([&] { inline_submodules(*gm, {"fc1"}); }), HasSubstr("'fc1' is no GraphModule"));
}

TEST(Lower, HandsOverWhatIsSupportedAndSaysWhyNotTheRest) {
  testing::Mlp net;
  const auto gm = symbolic_trace(net, {torch::rand({2, 8})}, {.sizes = Sizes::fixed});
  const Lowered lowered = lower(*gm, CopyingBackend(support_operators({"Linear", "aten::relu"})));
  EXPECT_THAT(lowered.parts(), ElementsAre("copying_0"));
  EXPECT_EQ(lowered.report(),
            "partition 0: 3 nodes, %fc1, %relu, %fc2\n"
            "outside: %log_softmax: aten::log_softmax is not among the operators supported\n");
  const Tensor x = torch::rand({3, 8});
  EXPECT_TRUE(lowered.module()->forward(x).equal(gm->forward(x)));
  EXPECT_EQ(print_graph(lowered.inlined()->graph()), print_graph(gm->graph()));
  // Once more, with another part beside the first.
  const Lowered twice = lower(*lowered.module(), CopyingBackend(support_operators({"aten::log_softmax"})));
  EXPECT_THAT(twice.parts(), ElementsAre("copying_2_0"));
  EXPECT_TRUE(twice.module()->forward(x).equal(gm->forward(x)));
}

TEST(Lower, NamesThePartThatDoesNotCompile) {
  struct Throwing : CopyingBackend {
    using CopyingBackend::CopyingBackend;
    std::shared_ptr<torch::nn::Module> compile(std::shared_ptr<GraphModule>) const override {
      throw std::runtime_error("out of registers");
    }
  };
  struct Declining : CopyingBackend {
    using CopyingBackend::CopyingBackend;
    std::shared_ptr<torch::nn::Module> compile(std::shared_ptr<GraphModule>) const override { return nullptr; }
  };
  testing::Mlp net;
  const auto gm = symbolic_trace(net, {torch::rand({2, 8})}, {.sizes = Sizes::fixed});
  EXPECT_THAT(error_of([&] { lower(*gm, Throwing(kEverything)); }),
              HasSubstr("copying did not compile copying_0 (%fc1 and what goes with it): out of registers"));
  const Lowered declined = lower(*gm, Declining(kEverything));
  EXPECT_THAT(declined.parts(), IsEmpty());
  EXPECT_EQ(print_graph(declined.module()->graph()), print_graph(gm->graph()));
}

// What a copy would change stays in the program, by name.
TEST(Lower, KeepsWritesDrawsAndSharedStorageInTheProgram) {
  const auto gm = from_text(R"(
    %x = placeholder[target=x]
    %a = call_function[target=aten::mul.Tensor](args = (%x, 2.0))
    %row = call_function[target=aten::select.int](args = (%a, 0, 0))
    %w = call_function[target=aten::add_.Tensor](args = (%row, 1.0))
    %b = call_function[target=aten::exp](args = (%a,))
    %r = call_function[target=aten::rand_like](args = (%b,))
    %c = call_function[target=aten::add.Tensor](args = (%b, %r))
    %v = call_function[target=aten::view](args = (%x, [-1]))
    return (c, v))");
  const Lowered lowered = lower(*gm, CopyingBackend(kEverything));
  EXPECT_EQ(lowered.report(),
            "partition 0: 1 node, %b\n"
            "partition 1: 1 node, %c\n"
            "  apart from partition 0: %b comes before %r (it draws random numbers), which comes before %c\n"
            "outside: %a, %row: its result may share storage that %w writes to\n"
            "outside: %w: it writes to what it is given\n"
            "outside: %r: it draws random numbers\n"
            "outside: %v: its result may share storage that the caller gets to see\n");
}

TEST(Lower, ReadsOfWrittenWeightsStay) {
  auto gm = std::make_shared<GraphModule>(GraphModule::Attributes{{"w", torch::ones({3})}}, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %w = get_attr[target=w]
    %a = call_function[target=aten::mul.Tensor](args = (%x, %w))
    %n = call_function[target=aten::add_.Tensor](args = (%w, 1.0))
    %b = call_function[target=aten::exp](args = (%a,))
    return b)"));
  const Lowered lowered = lower(*gm, CopyingBackend(kEverything));
  EXPECT_THAT(lowered.report(), HasSubstr("outside: %a: it reads w, which %n writes to"));
  const Tensor x = torch::rand({3});
  for (int round = 0; round < 3; ++round) {
    const auto fresh = gm->clone_graph_module();
    const Lowered again = lower(*fresh, CopyingBackend(kEverything));
    for (int call = 0; call <= round; ++call) {
      const Tensor expected = torch::exp(x * (1.0 + call));
      EXPECT_TRUE(torch::allclose(again.module()->forward(x), expected)) << round << call;
    }
  }
}

/// Programs with views, writes to anything, random draws, several results, and results that are views.
class HostileProgram {
 public:
  explicit HostileProgram(std::uint64_t seed) : random_(seed) {}

  std::shared_ptr<GraphModule> make(std::size_t operators) {
    values_ = {&graph_.placeholder("x"), &graph_.placeholder("y"), &graph_.get_attr("w"), &graph_.get_attr("v")};
    for (std::size_t i = 0; i < operators; ++i) values_.push_back(&step());
    graph_.output(Argument::tuple({*values_.back(), pick(), pick()}));
    return std::make_shared<GraphModule>(
        GraphModule::Attributes{{"w", torch::full({3, 3}, 0.5)}, {"v", torch::full({3, 3}, -0.25)}}, std::move(graph_));
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  Node& pick() {
    return *values_[values_.size() - 1 - below(std::min<std::size_t>(values_.size(), below(3) ? 4 : 100))];
  }
  Node& call(const char* target, std::vector<Argument> args) { return graph_.call_function(target, args); }

  Node& step() {
    switch (below(12)) {
      case 0: return call("aten::t", {pick()});
      case 1: return call("aten::add_.Tensor", {pick(), 0.5});
      case 2: {
        Node& row = call("aten::select.int", {pick(), 0, static_cast<std::int64_t>(below(3))});
        call("aten::mul_.Tensor", {row, 0.5});
        return pick();
      }
      case 3: return call("aten::mul.Tensor", {pick(), call("aten::rand_like", {pick()})});
      case 4: {
        Node& parts = call("aten::split.Tensor", {pick(), 1, 1});
        std::vector<Argument> list;
        for (std::int64_t i : {2, 0, 1}) list.emplace_back(call("operator.getitem", {parts, i}));
        return call("aten::cat", {Argument::list(list), 1});
      }
      case 5: return call("aten::copy_", {pick(), pick()});
      case 6:
      case 7: return call("aten::sub.Tensor", {pick(), pick()});
      case 8: return call("aten::mm", {pick(), pick()});
      case 9: return call("aten::reshape", {pick(), Argument::list({3, 3})});
      case 10: return call("aten::tanh", {pick()});
      default: return call("aten::sigmoid", {pick()});
    }
  }

  std::mt19937_64 random_;
  Graph graph_;
  std::vector<Node*> values_;
};

/// Result, inputs after the call, weights after it; twice.
std::vector<c10::IValue> everything_seen(GraphModule& module) {
  std::vector<c10::IValue> seen;
  for (int call = 0; call < 2; ++call) {
    torch::manual_seed(3);
    const Tensor x = torch::rand({3, 3}), y = torch::rand({3, 3});
    const c10::IValue result = module.run({x, y});
    // The caller writes to a result: what else shows it?
    for (const c10::IValue& element : result.toTupleRef().elements()) element.toTensor().view(-1)[0].fill_(7);
    seen.push_back(result);
    seen.emplace_back(x);
    seen.emplace_back(y);
  }
  for (const char* path : {"w", "v"}) {
    const Tensor weight = module.find_attribute(path);
    seen.emplace_back(weight.defined() ? weight.clone() : Tensor());
  }
  return seen;
}

TEST(Lower, HostileProgramsComputeTheSame) {
  std::size_t parts = 0, lowered_nodes = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const auto gm = HostileProgram(seed).make(4 + seed % 30);
    std::vector<c10::IValue> expected;
    try {
      expected = everything_seen(*gm->clone_graph_module());
    } catch (const std::exception&) {
      continue;  // writes to what overlaps itself, and the like
    }
    const OperatorSupport some([&](const CallFacts& call) -> std::optional<std::string> {
      if ((call.node().id() * 2654435761u + seed) % 100 < 70) return std::nullopt;
      return "not this one";
    });
    const auto copy = gm->clone_graph_module();
    const Lowered lowered = lower(*copy, CopyingBackend(some));
    parts += lowered.parts().size();
    lowered_nodes += !lowered.parts().empty();
    const auto got = everything_seen(*lowered.module());
    for (std::size_t i = 0; i + 2 < expected.size(); ++i) {
      ASSERT_TRUE(same_value(expected[i], got[i])) << seed << " " << i << "\n" << gm->graph() << lowered.report();
    }
    // The weights are shared with the module that was lowered.
    const auto again = gm->clone_graph_module();
    const auto inlined = lower(*again, CopyingBackend(some)).inlined();
    const auto back = everything_seen(*inlined);
    for (std::size_t i = 0; i + 2 < expected.size(); ++i) ASSERT_TRUE(same_value(expected[i], back[i])) << seed;
    for (const char* path : {"w", "v"}) {
      ASSERT_TRUE(same_value(again->attribute(path), copy->attribute(path))) << seed << path;
    }
  }
  EXPECT_GT(parts, 300u);
  EXPECT_GT(lowered_nodes, 150u);
}

TEST(Xnnpack, RunsConvolutionsLinearLayersAndTheirActivations) {
  if (!XnnpackBackend::is_available()) GTEST_SKIP() << "LibTorch was built without XNNPACK";
  testing::LeNet net;
  net->eval();
  torch::NoGradGuard inference;
  const Tensor x = torch::rand({2, 1, 28, 28});
  const auto gm = symbolic_trace(net, {x}, {.sizes = Sizes::fixed});
  const Lowered lowered = lower(*gm, XnnpackBackend(), {.examples = {x}});
  EXPECT_FALSE(lowered.parts().empty()) << lowered.report();
  EXPECT_TRUE(torch::allclose(lowered.module()->forward(x), gm->forward(x), 1e-4, 1e-5)) << lowered.report();
  EXPECT_EQ(print_graph(lowered.inlined()->graph()), print_graph(gm->graph()));
  const Lowered blind = lower(*gm, XnnpackBackend());
  EXPECT_THAT(blind.parts(), IsEmpty());
  EXPECT_THAT(blind.report(), HasSubstr("needs to know the shape of its input"));
}

TEST(Xnnpack, OptionsOfConvolutionsAndBounds) {
  if (!XnnpackBackend::is_available()) GTEST_SKIP() << "LibTorch was built without XNNPACK";
  torch::NoGradGuard inference;
  torch::manual_seed(1);
  const Tensor grouped = torch::randn({8, 2, 3, 3}), bias = torch::randn({8}), dense = torch::randn({5, 8}),
               square = torch::randn({5, 5});
  const auto program = [&](const Tensor& x) {
    const Tensor a = torch::relu(torch::conv2d(x, grouped, bias, {2, 1}, {1, 2}, {1, 1}, 2));
    const Tensor b = torch::clamp(torch::conv2d(x, grouped, {}, 1, 1, 1, 2), -0.5, 0.25);
    const Tensor c = torch::linear(a.mean({2, 3}), dense);
    return std::make_tuple(torch::hardtanh(c, -0.1), a.sum() + b.sum(),
                           torch::clamp_min(torch::linear(c, square), 0.1));
  };
  const Tensor x = torch::randn({2, 4, 9, 7});
  const auto gm = symbolic_trace(program, {x}, {.sizes = Sizes::fixed});
  const Lowered lowered = lower(*gm, XnnpackBackend(), {.examples = {x}});
  EXPECT_GE(lowered.parts().size(), 2u);
  EXPECT_TRUE(same_value(lowered.module()->run({x}), gm->run({x}), 1e-4)) << lowered.report();
}

TEST(Xnnpack, OptionsInPythonsWords) {
  if (!XnnpackBackend::is_available()) GTEST_SKIP() << "LibTorch was built without XNNPACK";
  torch::NoGradGuard inference;
  torch::manual_seed(1);
  GraphModule gm{Graph()};
  gm.set_attribute("w", torch::randn({8, 4, 3, 3}));
  gm.set_graph(parse_graph(R"(graph():
    %x = placeholder[target=x]
    %w = get_attr[target=w]
    %a = call_function[target=torch.nn.functional.conv2d](args = (%x, %w), kwargs = {padding: 1, stride: 2})
    %b = call_function[target=torch.nn.functional.hardtanh](args = (%a, -0.1, 0.25))
    return b)"));
  const Tensor x = torch::randn({2, 4, 9, 7});
  const Lowered lowered = lower(gm, XnnpackBackend(), {.examples = {x}});
  EXPECT_EQ(lowered.parts().size(), 1u) << lowered.report();
  EXPECT_TRUE(torch::allclose(lowered.module()->forward(x), gm.forward(x), 1e-4, 1e-5)) << lowered.report();
}

// XNNPACK itself would read past its inputs, or end the process.
TEST(Xnnpack, RefusesWhatItsKernelsCannotTake) {
  if (!XnnpackBackend::is_available()) GTEST_SKIP() << "LibTorch was built without XNNPACK";
  torch::NoGradGuard inference;
  const Tensor kernel = torch::randn({8, 3, 3, 3}), matrix = torch::randn({5, 8});
  const auto refuses = [](const auto& program, const Tensor& x, const Tensor& other) {
    const auto gm = symbolic_trace(program, {x}, {.sizes = Sizes::fixed});
    const Lowered lowered = lower(*gm, XnnpackBackend(), {.examples = {x}});
    EXPECT_EQ(lowered.parts().size(), 1u) << lowered.report();
    try {
      lowered.module()->forward(other);
    } catch (const std::exception& error) {
      return std::string(error.what()).find("compiled for XNNPACK") != std::string::npos;
    }
    return false;
  };
  const auto conv = [&](const Tensor& x) { return torch::conv2d(x, kernel); };
  const auto linear = [&](const Tensor& x) { return torch::linear(x, matrix); };
  const Tensor image = torch::randn({1, 3, 9, 9}), rows = torch::randn({2, 8});
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{1, 1, 9, 9}, {1, 4, 9, 9}, {1, 3, 2, 9}, {3, 9, 9}})
    EXPECT_TRUE(refuses(conv, image, torch::randn(sizes))) << at::IntArrayRef(sizes);
  for (const std::int64_t features : {1, 7, 9}) EXPECT_TRUE(refuses(linear, rows, torch::randn({2, features})));
}

}  // namespace fx::lower_test
