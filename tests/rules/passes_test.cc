// The rules that compute with weights or look at whole programs: InlineModules, MergeLinears, Constants, NoOps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/run/missing_operators.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/rules/apply_rule.h"

namespace fx::rules::passes_test {

using ::testing::HasSubstr;
using namespace fx::testing;

TEST(MergeLinears, ABiasThatIsBroadcastStays) {
  struct Net : torch::nn::Module {
    torch::Tensor first = register_parameter("first", torch::randn({6, 4}));
    torch::Tensor second = register_parameter("second", torch::randn({6, 4}));
    torch::Tensor one = register_parameter("one", torch::randn({1}));
    torch::Tensor six = register_parameter("six", torch::randn({6}));
    torch::Tensor forward(torch::Tensor x) { return torch::linear(x, first, one) * torch::linear(x, second, six); }
  };
  const auto module = symbolic_trace(std::make_shared<Net>(), {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  EXPECT_EQ(apply("merge-linears", module, kRows).outcome.applied, 0u);
}

// The embedding scales the rows that it looks up, in evaluation too.
TEST(Constants, AWeightThatAModuleWritesStays) {
  struct Tied : torch::nn::Module {
    torch::nn::Embedding rows =
        register_module("rows", torch::nn::Embedding(torch::nn::EmbeddingOptions(6, 4).max_norm(0.5)));
    torch::Tensor forward(torch::Tensor i) { return torch::linear(rows(i).sum(1), rows->weight); }
  };
  const torch::NoGradGuard no_grad;
  const auto program = std::make_shared<Tied>();
  program->eval();
  const torch::Tensor i = torch::tensor({{0, 1}, {2, 3}, {4, 0}});
  const auto module = symbolic_trace(std::dynamic_pointer_cast<Tied>(program), {i});
  const auto twin = module->clone_graph_module();
  optimize(*module);
  EXPECT_TRUE(torch::allclose(module->forward(i), twin->forward(i)));
}

TEST(Optimize, WorksOutTheShapesOfUnchangedNodesOnce) {
  Graph graph;
  Node* last = &graph.placeholder("x");
  for (int i = 0; i < 100; ++i) last = &graph.call_function("aten::sin", {*last});
  for (int i = 0; i < 2; ++i) last = &graph.call_function("aten::neg", {*last});
  graph.output(graph.call_function("aten::relu", {*last}));
  const std::size_t nodes = graph.size();
  GraphModule module(std::move(graph));
  const OptimizeReport report = optimize(module, {.rules = {"inverse-pairs"}, .inputs = kRows});
  EXPECT_EQ(report.applied(), 1u);
  EXPECT_EQ(report.rounds, 2u);
  EXPECT_GT(report.shapes_worked_out, nodes);
  EXPECT_LE(report.shapes_worked_out, nodes + 3) << "again only what took the value that went";
}

struct Attention : torch::nn::Module {
  torch::nn::Linear q{nullptr}, k{nullptr}, v{nullptr};
  Attention() {
    q = register_module("q", torch::nn::Linear(4, 4));
    k = register_module("k", torch::nn::Linear(torch::nn::LinearOptions(4, 4).bias(false)));
    v = register_module("v", torch::nn::Linear(4, 6));
  }
  torch::Tensor forward(torch::Tensor x) {
    return torch::matmul(torch::softmax(torch::matmul(q(x), k(x).t()), -1), v(x));
  }
};

TEST(MergeLinears, QueryKeyAndValueBecomeOne) {
  const auto net = std::make_shared<Attention>();
  const Applied applied =
      apply("merge-linears", symbolic_trace(net, {torch::randn({5, 4})}, {.sizes = Sizes::fixed}), kRows);
  EXPECT_EQ(applied.outcome.applied, 3u);
  EXPECT_EQ(count(*applied.module, "aten::linear"), 1u);
  EXPECT_EQ(count_modules(*applied.module), 0u);
}

// What a merged layer gives is no longer contiguous: `view` of it may fail, `reshape` never does.
struct Viewed : Attention {
  torch::Tensor forward(torch::Tensor x) {
    const torch::Tensor heads = q(x).view({5, 2, 2}).transpose(0, 1);
    return torch::relu(heads.reshape({-1})) + torch::sigmoid(k(x).view({-1})) + v(x).sum();
  }
};

TEST(MergeLinears, AViewOfTheResultBecomesAReshape) {
  const auto module = symbolic_trace(std::make_shared<Viewed>(), {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  ASSERT_EQ(count(*module, "aten::view"), 2u) << print_graph(module->graph());
  const Applied applied = apply("merge-linears", module, kRows);
  EXPECT_EQ(applied.outcome.applied, 3u);
  EXPECT_EQ(count(*applied.module, "aten::view"), 0u);
}

struct Strided : Attention {
  torch::Tensor forward(torch::Tensor x) {
    return q(x).as_strided({2, 2}, {4, 1}) + k(x).sum() + v(x).sum() + q(x).relu_().sum();
  }
};

TEST(MergeLinears, AResultThatIsReadByItsStridesOrWrittenStays) {
  const auto net = std::make_shared<Strided>();
  net->eval();
  const auto module = symbolic_trace(net, {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  const Applied applied = apply("merge-linears", module, kRows);
  EXPECT_EQ(applied.outcome.applied, 2u) << print_graph(applied.module->graph());
  ASSERT_EQ(applied.outcome.refused.size(), 2u);
  std::vector<std::string> reasons = {applied.outcome.refused[0].reason, applied.outcome.refused[1].reason};
  EXPECT_THAT(reasons, ::testing::UnorderedElementsAre(HasSubstr("reads the storage of its result"),
                                                       HasSubstr("something writes to its result")));
}

TEST(MergeLinears, OneAloneStays) {
  const auto module = symbolic_trace(torch::nn::Linear(4, 2), {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  EXPECT_EQ(apply("merge-linears", module, kRows).outcome.applied, 0u);
}

struct Weighted : torch::nn::Module {
  torch::Tensor w = register_parameter("w", torch::randn({4, 4}));
  torch::Tensor counter = register_buffer("counter", torch::zeros({4}));
  torch::Tensor forward(torch::Tensor x) {
    counter.add_(1);
    return x.matmul((w.t() * 2).relu()) + counter.neg();
  }
};

TEST(Constants, WhatDependsOnWeightsAloneIsComputedOnce) {
  const auto net = std::make_shared<Weighted>();
  const auto module = symbolic_trace(net);
  const RuleOutcome outcome = optimize(*module, {.rules = {"constant-folding"}}).rules.front();
  EXPECT_EQ(outcome.applied, 1u) << "the chain on w as one; the counter is written to";
  EXPECT_EQ(count(*module, "aten::relu"), 0u);
  EXPECT_EQ(count(*module, "aten::neg"), 1u);
  const torch::Tensor x = torch::randn({5, 4});
  const torch::Tensor expected = x.matmul((net->w.t() * 2).relu()) - 1;
  EXPECT_TRUE(torch::allclose(module->forward(x), expected, 1e-5, 1e-6));
}

TEST(Constants, StoredNumbersBecomeLiterals) {
  struct Net : torch::nn::Module {
    torch::Tensor half = register_buffer("half", torch::tensor(0.5, torch::kDouble));
    torch::Tensor three = register_buffer("three", torch::tensor(3));
    torch::Tensor forward(torch::Tensor x) { return (x * half + three) / half - half * x.sum(); }
  };
  const auto module = symbolic_trace(std::make_shared<Net>(), {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  const Applied applied = apply("literal-operands", module, kRows);
  EXPECT_EQ(applied.outcome.applied, 3u) << "the sum has no dimensions: " << print_graph(applied.module->graph());
  EXPECT_EQ(optimize(*module, {.rules = {"literal-operands"}}).applied(), 0u) << "types must be known";
}

TEST(Constants, RandomNumbersAndLargeResultsAreNot) {
  struct Net : torch::nn::Module {
    torch::Tensor w = register_parameter("w", torch::randn({300, 1}));
    torch::Tensor forward(torch::Tensor x) { return x + torch::rand_like(w) + w.expand({300, 300}).relu(); }
  };
  const auto module = symbolic_trace(std::make_shared<Net>());
  const RuleOutcome outcome = optimize(*module, {.rules = {"constant-folding"}}).rules.front();
  EXPECT_EQ(outcome.applied, 0u) << print_graph(module->graph());
  ASSERT_EQ(outcome.refused.size(), 1u);
  EXPECT_THAT(outcome.refused[0].reason, HasSubstr("larger than what it is computed from"));
}

// What rules read and edit is the operator's call, whatever words the program has for it.
struct InPythonsWords {
  const char* rule;
  const char* text;
  std::vector<std::int64_t> sizes;
  GraphModule::Attributes attributes;
  std::size_t applied;
  std::vector<const char*> operators;  ///< that are there then
};

TEST(Spellings, PassesReadAndEditCallsInPythonsWords) {
  const at::Tensor statistic = at::rand({3}) + 0.5;
  const std::vector<InPythonsWords> programs = {
      {"fuse-conv-bn",
       R"(graph():
    %x = placeholder[target=x]
    %w = get_attr[target=w]
    %m = get_attr[target=m]
    %v = get_attr[target=v]
    %y = call_function[target=torch.nn.functional.conv2d](args = (%x, %w), kwargs = {stride: 2})
    %n = call_function[target=torch.nn.functional.batch_norm](args = (%y, %m, %v, %v), kwargs = {eps: 0.01})
    return %n)",
       {2, 2, 8, 8},
       {{"w", at::randn({3, 2, 3, 3})}, {"m", at::randn({3})}, {"v", statistic}},
       1,
       {"aten::conv2d"}},
      {"merge-linears",
       R"(graph():
    %x = placeholder[target=x]
    %w = get_attr[target=w]
    %a = call_function[target=torch.nn.functional.linear](args = (%x, %w), kwargs = {})
    %b = call_function[target=torch.nn.functional.linear](args = (%x, %w, None), kwargs = {})
    %u = call_method[target=view](args = (%a, -1), kwargs = {})
    %v = call_method[target=view](args = (%b, 3, 5), kwargs = {})
    %r = call_method[target=reshape](args = (%v, -1), kwargs = {})
    %s = call_function[target=operator.sub](args = (%u, %r), kwargs = {})
    return %s)",
       {5, 4},
       {{"w", at::randn({3, 4})}},
       2,
       {"aten::linear", "aten::reshape"}},
      {"literal-operands",
       R"(graph():
    %x = placeholder[target=x]
    %c = get_attr[target=c]
    %a = call_function[target=operator.mul](args = (%c, %x), kwargs = {})
    %b = call_method[target=sub](args = (%a, %c), kwargs = {})
    return %b)",
       {5, 4},
       {{"c", at::scalar_tensor(0.5)}},
       2,
       {"aten::mul.Scalar", "aten::sub.Scalar"}},
      {"constant-folding",
       R"(graph():
    %x = placeholder[target=x]
    %w = get_attr[target=w]
    %t = call_method[target=t](args = (%w,), kwargs = {})
    %r = call_function[target=torch.relu](args = (%t,), kwargs = {})
    %y = call_function[target=torch.matmul](args = (%x, %r), kwargs = {})
    return %y)",
       {5, 4},
       {{"w", at::randn({3, 4})}},
       1,
       {}},
  };
  for (const InPythonsWords& program : programs) {
    const auto module = std::make_shared<GraphModule>(program.attributes, parse_graph(program.text));
    const Applied applied = apply(program.rule, module, {TensorInfo{.sizes = program.sizes}});
    EXPECT_EQ(applied.outcome.applied, program.applied)
        << print_graph(applied.module->graph())
        << (applied.outcome.refused.empty() ? "" : applied.outcome.refused[0].reason);
    for (const char* target : program.operators) EXPECT_GE(count(*applied.module, target), 1u) << target;
  }
}

TEST(NoOps, ModulesThatPassOnWhatTheyGetAreDropped) {
  torch::nn::Sequential net(torch::nn::Identity(), torch::nn::Linear(4, 4), torch::nn::Dropout(0.5));
  net->eval();
  const auto module = symbolic_trace(net, {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  const Applied applied = apply("identity-modules", module, kRows);
  EXPECT_EQ(count_modules(*applied.module), 1u) << print_graph(applied.module->graph());
}

TEST(NoOps, DropoutInTrainingStays) {
  torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Dropout(0.5));
  const auto module = symbolic_trace(net, {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  EXPECT_EQ(optimize(*module, {.rules = {"identity-modules"}}).applied(), 0u);
}

TEST(InlineModules, BecomeTheirOperators) {
  torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::ReLU(),
                            torch::nn::LayerNorm(torch::nn::LayerNormOptions({6})));
  const auto module = symbolic_trace(net, {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  const Applied applied = apply("inline-modules", module, kRows);
  EXPECT_EQ(count_modules(*applied.module), 0u);
  EXPECT_EQ(count(*applied.module, "aten::linear"), 1u);
  const Applied decomposed = apply("decomposition", module, kRows);
  EXPECT_EQ(count(*decomposed.module, "aten::layer_norm"), 0u) << print_graph(decomposed.module->graph());
}

TEST(Activations, FormulasOfATracedModelAreRecognised) {
  const auto module = symbolic_trace([](torch::Tensor x) {
    const torch::Tensor gelu = 0.5 * x * (1 + torch::erf(x / std::sqrt(2.0)));
    const torch::Tensor tanh = 0.5 * x * (1 + torch::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * torch::pow(x, 3))));
    const torch::Tensor swish = x * torch::clamp(x + 3, 0, 6) / 6;
    return gelu + tanh + swish + x * torch::sigmoid(x);
  });
  const Applied applied = apply("fusion", module, kRows);
  EXPECT_EQ(count(*applied.module, "aten::gelu"), 2u) << print_graph(applied.module->graph());
  EXPECT_EQ(count(*applied.module, "aten::hardswish"), 1u);
  EXPECT_EQ(count(*applied.module, "aten::silu"), 1u);
}

TEST(Attention, WrittenOutItIsOneCallAndBack) {
  const auto module = symbolic_trace([](torch::Tensor q, torch::Tensor k, torch::Tensor v, torch::Tensor mask) {
    const torch::Tensor scores = torch::matmul(q / 2.0, k.transpose(-2, -1)) + mask;
    return torch::matmul(torch::dropout(torch::softmax(scores, -1), 0.1, false), v);
  });
  const std::vector<TensorInfo> shapes = {TensorInfo{.sizes = {2, 3, 5, 4}}, TensorInfo{.sizes = {2, 3, 6, 4}},
                                          TensorInfo{.sizes = {2, 3, 6, 7}}, TensorInfo{.sizes = {5, 6}}};
  const Applied applied = apply("recognise-attention", module, shapes);
  EXPECT_EQ(applied.outcome.applied, 1u) << print_graph(applied.module->graph());
  EXPECT_EQ(count(*applied.module, "aten::softmax.int"), 0u);
  const Applied back = apply("decompose-attention", applied.module, shapes);
  EXPECT_EQ(count(*back.module, "aten::softmax.int"), 1u) << print_graph(back.module->graph());
}

TEST(Attention, BoolMasksAndCastsAreSeen) {
  const auto module = symbolic_trace([](torch::Tensor q, torch::Tensor k, torch::Tensor v, torch::Tensor m) {
    const torch::Tensor scores = torch::matmul(q, k.transpose(-2, -1)).masked_fill(m > 1, -INFINITY);
    return torch::matmul(torch::softmax(scores.to(torch::kFloat), -1).to(torch::kFloat), v);
  });
  const std::vector<TensorInfo> shapes = {TensorInfo{.sizes = {2, 3, 5, 4}}, TensorInfo{.sizes = {2, 3, 6, 4}},
                                          TensorInfo{.sizes = {2, 3, 6, 7}}, TensorInfo{.sizes = {5, 6}}};
  const Applied applied = apply("recognise-attention", module, shapes);
  if (find_torch_operator("aten::_safe_softmax")) {
    EXPECT_EQ(applied.outcome.applied, 0u);
    return;
  }
  EXPECT_EQ(applied.outcome.applied, 1u) << print_graph(applied.module->graph());
  EXPECT_EQ(count(*applied.module, "aten::masked_fill.Scalar"), 0u);
  const Applied back = apply("decompose-attention", applied.module, shapes);
  EXPECT_EQ(count(*back.module, "aten::masked_fill.Scalar"), 1u) << print_graph(back.module->graph());
}

TEST(Attention, AMaskThatDoesNotHideIsRefused) {
  const auto module = symbolic_trace([](torch::Tensor q, torch::Tensor k, torch::Tensor v, torch::Tensor m) {
    return torch::matmul(torch::softmax(torch::matmul(q, k.transpose(-2, -1)).masked_fill(m > 1, -1e9), -1), v);
  });
  const std::vector<TensorInfo> shapes = {TensorInfo{.sizes = {3, 5, 4}}, TensorInfo{.sizes = {3, 6, 4}},
                                          TensorInfo{.sizes = {3, 6, 7}}, TensorInfo{.sizes = {5, 6}}};
  const Applied applied = apply("recognise-attention", module, shapes);
  EXPECT_EQ(applied.outcome.applied, 0u);
  ASSERT_EQ(applied.outcome.refused.size(), 1u);
  EXPECT_THAT(applied.outcome.refused[0].reason, HasSubstr("not with -inf"));
}

TEST(Norms, ALayerNormWrittenOutIsRecognised) {
  struct Net : torch::nn::Module {
    torch::Tensor gamma = register_parameter("gamma", torch::randn({4}));
    torch::Tensor beta = register_parameter("beta", torch::randn({4}));
    torch::Tensor square = register_parameter("square", torch::randn({4, 4}));
    torch::Tensor forward(torch::Tensor input) {
      const torch::Tensor x = input.matmul(square);  // so that its last size is 4 in every call
      const torch::Tensor centred = x - x.mean(-1, true);
      const torch::Tensor variance = centred.pow(2).mean(-1, true);
      return centred / torch::sqrt(variance + 1e-5) * gamma + beta;
    }
  };
  const auto module = symbolic_trace(std::make_shared<Net>(), {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  const Applied applied = apply("recognise-layer-norm", module, kRows);
  EXPECT_EQ(applied.outcome.applied, 2u);
  EXPECT_EQ(count(*applied.module, "aten::layer_norm"), 1u);
  EXPECT_EQ(count(*applied.module, "aten::add.Tensor"), 0u) << "weight and bias went in";
}

TEST(Norms, OneValueAtATimeIsNotNormalisedByAKernel) {
  const auto norm = [](const torch::Tensor& input) {
    const torch::Tensor x = std::get<0>(input.max(-1, true)), centred = x - x.mean(-1, true);
    return centred / torch::sqrt(x.var(-1, /*unbiased=*/false, true) + 1e-5);
  };
  const Applied applied = apply("recognise-layer-norm", symbolic_trace(norm, {torch::randn({5, 4})}), kRows);
  EXPECT_EQ(applied.outcome.applied, 0u);
}

TEST(Norms, AnRmsNormWrittenOutIsCalledWhereLibTorchItselfHasIt) {
  struct Net : torch::nn::Module {
    torch::Tensor square = register_parameter("square", torch::randn({4, 4}));
    torch::Tensor forward(torch::Tensor input) {
      const torch::Tensor x = input.matmul(square);
      return x * torch::rsqrt(x.pow(2).mean(-1, true) + 1e-5);
    }
  };
  const auto module = symbolic_trace(std::make_shared<Net>(), {torch::randn({5, 4})}, {.sizes = Sizes::fixed});
  const Applied applied = apply("recognise-rms-norm", module, kRows);
  EXPECT_EQ(count(*applied.module, "aten::rms_norm"), missing_operator_body(Symbol("aten::rms_norm")) ? 0u : 1u);
}

}  // namespace fx::rules::passes_test
