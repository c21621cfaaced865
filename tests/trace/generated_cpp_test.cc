// Generated C++ compiles against LibTorch, loads the weights and gives the same outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <algorithm>

#include <fxgraph/module/code.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/trace/generated_cpp.h"
#include "tests/trace/larger_models.h"
#include "tests/trace/nn_cases.h"

namespace fx::generated_cpp_test {

using testing::expect_same_outputs;
using Case = testing::GeneratedCase;

struct ConvNetImpl : torch::nn::Module {
  ConvNetImpl() {
    block =
        register_module("block", torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).stride(2)),
                                                       torch::nn::BatchNorm2d(4), torch::nn::ReLU()));
    fc = register_module("fc", torch::nn::Linear(4, 5));
    scale = register_buffer("scale", torch::full({5}, 2.0));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::adaptive_avg_pool2d(block->forward(x), {1, 1}).flatten(1);
    return torch::softmax(fc(x) * scale, 1);
  }
  torch::nn::Sequential block{nullptr};
  torch::nn::Linear fc{nullptr};
  torch::Tensor scale;
};
TORCH_MODULE(ConvNet);

Case conv_net() {
  torch::manual_seed(0);
  ConvNet net;
  net->forward(torch::randn({4, 3, 9, 9}));
  net->eval();
  const torch::Tensor x = torch::randn({2, 3, 9, 9});
  return {"ConvNet", symbolic_trace(net, {x}), {x}};
}

template <typename Function>
Case traced(const std::string& name, Function&& function, std::vector<c10::IValue> inputs) {
  return {name, symbolic_trace(std::forward<Function>(function), inputs), inputs};
}

Case parsed(const std::string& name, const std::string& text, std::vector<c10::IValue> inputs) {
  return {name, std::make_shared<GraphModule>(parse_graph(text)), std::move(inputs)};
}

TEST(GeneratedCppNight, OfAConvNetGivesTheSameOutputs) { expect_same_outputs({conv_net()}); }

TEST(GeneratedCpp, SaysWhatItCannotSay) {
  const Graph graph = parse_graph(
      "graph():\n%x = placeholder[target=x]\n%y = call_function[target=my_package.strange](args = (%x,))\nreturn y");
  EXPECT_THAT([&] { code(graph, Language::cpp); },
              ::testing::ThrowsMessage<Error>(::testing::AllOf(::testing::HasSubstr("%y"),
                                                               ::testing::HasSubstr("my_package.strange"),
                                                               ::testing::HasSubstr("fx::decompose"))));
}

// Operators of every form: functions, methods, in place, several results, options, lists, dispatcher, numbers.
std::vector<Case> operator_cases() {
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({2, 3, 8}), image = torch::randn({1, 3, 8, 8});
  std::vector<Case> cases;
  cases.push_back(traced("Topk", [](torch::Tensor x) { return torch::topk(torch::sum(torch::relu(x), -1), 2); }, {x}));
  cases.push_back(traced("Chunks",
                         [](torch::Tensor x) {
                           const auto parts = torch::chunk(x, 3, 1);
                           return torch::cat({parts[2], parts[0]}, 1).unsqueeze(0).permute({0, 3, 1, 2}).contiguous();
                         },
                         {x}));
  cases.push_back(traced("InPlace",
                         [](torch::Tensor x) {
                           torch::Tensor y = x.clone();
                           y.add_(1.5).mul_(x).clamp_(-1, 1);
                           torch::leaky_relu_(y, 0.1);
                           y.select(1, 0).zero_();
                           return y;
                         },
                         {x}));
  cases.push_back(traced("Factories",
                         [](torch::Tensor x) {
                           torch::Tensor mask = torch::arange(8, torch::kInt64).remainder(2).to(torch::kBool);
                           return torch::where(mask, x, torch::zeros({2, 3, 8})) +
                                  torch::full({8}, 0.25, torch::kFloat) +
                                  torch::ones_like(x).to(torch::kDouble).to(torch::kFloat) + x.new_full({8}, 3);
                         },
                         {x}));
  cases.push_back(traced("Indexing",
                         [](torch::Tensor x) {
                           using namespace torch::indexing;
                           return std::make_tuple(x.index({Slice(None, None, 1), Slice(0, 2), -1}),
                                                  x.index({Ellipsis, Slice(1, 7, 2)}),
                                                  x.index_select(2, torch::tensor({3, 1})), x[0][1]);
                         },
                         {x}));
  cases.push_back(traced("Reductions",
                         [](torch::Tensor x) {
                           return std::make_tuple(x.mean(), x.sum(torch::IntArrayRef({0, 2}), true),
                                                  std::get<1>(x.max(1)), x.std(1, false), x.norm(), x.argmax(-1),
                                                  torch::var(x, {2}, /*unbiased=*/true, /*keepdim=*/true), x.amax({1}),
                                                  torch::logsumexp(x, {0}));
                         },
                         {x}));
  cases.push_back(traced(
      "Images",
      [](torch::Tensor x) {
        namespace F = torch::nn::functional;
        return std::make_tuple(
            torch::max_pool2d(x, 2), torch::avg_pool2d(x, {2, 2}, {1, 1}), torch::pixel_unshuffle(x, 2),
            F::interpolate(x, F::InterpolateFuncOptions().size(std::vector<int64_t>{16, 16}).mode(torch::kNearest)),
            F::pad(x, F::PadFuncOptions({1, 1, 1, 1})), torch::constant_pad_nd(x, {1, 2}, 0.5));
      },
      {image}));
  cases.push_back(traced(
      "Attention",
      [](torch::Tensor x) {
        const torch::Tensor weights = torch::softmax(torch::matmul(x, x.transpose(1, 2)) / 2.8284, -1);
        const torch::Tensor mask = torch::ones({3, 3}).tril().to(torch::kBool).logical_not();
        return torch::bmm(weights.masked_fill(mask, -std::numeric_limits<double>::infinity()).softmax(-1), x) * 2 -
               1 / (x + 10);
      },
      {x}));
  cases.push_back(traced("Lstm",
                         [](torch::Tensor x, torch::Tensor h, torch::Tensor w, torch::Tensor u) {
                           return torch::lstm(x, {h, h}, {w, u}, false, 1, 0.0, false, false, true);
                         },
                         {x, torch::randn({1, 2, 4}), torch::randn({16, 8}), torch::randn({16, 4})}));
  cases.push_back(traced("RoundedSizes",
                         [](torch::Tensor x) {
                           const auto n = static_cast<double>(x.size(2));
                           return std::make_tuple(x.narrow(2, 0, static_cast<std::int64_t>(n * 0.7)),
                                                  x * std::ceil(n * 1.1), x * std::lround(n * 0.09),
                                                  x.narrow(2, 0, std::clamp<std::int64_t>(x.size(2), 1, 5)));
                         },
                         {x}));
  cases.push_back(parsed("Sizes", R"(graph():
    %x = placeholder[target=x]
    %k = placeholder[target=k](default=3)
    %size = call_method[target=size](args = (%x, 0))
    %shape = call_function[target=builtins.getattr](args = (%x, 'shape'))
    %last = call_function[target=operator.getitem](args = (%shape, -1))
    %product = call_function[target=operator.mul](args = (%size, %last))
    %half = call_function[target=operator.floordiv](args = (%product, 2))
    %view = call_method[target=view](args = (%x, %half, -1))
    %sum = call_function[target=operator.add](args = (%view, %k))
    %new = call_function[target=operator.getitem](args = (%sum, (slice(None, 4, None), Ellipsis, None)))
    return (new, half, size))",
                         {x, 4}));
  const bool makes_a_pair = find_torch_operator("aten::_scaled_dot_product_attention") != nullptr;
  cases.push_back(parsed("Dispatcher",
                         makes_a_pair ? R"(graph():
    %x = placeholder[target=x]
    %six = call_function[target=torch.ops.aten.relu6_.default](args = (%x,))
    %pair = call_function[target=torch.ops.aten._scaled_dot_product_attention.default](args = (%six, %six, %six), kwargs = {need_attn_weights: True})
    %first = call_function[target=operator.getitem](args = (%pair, 0))
    %second = call_function[target=operator.getitem](args = (%pair, 1))
    return (first, second))"
                                      : R"(graph():
    %x = placeholder[target=x]
    %six = call_function[target=torch.ops.aten.relu6_.default](args = (%x,))
    %attention = call_function[target=torch.ops.aten.scaled_dot_product_attention.default](args = (%six, %six, %six), kwargs = {scale: 0.5})
    return attention)",
                         {x}));
  return cases;
}

TEST(GeneratedCppNight, OfEveryFormOfCallGivesTheSameOutputs) { expect_same_outputs(operator_cases()); }

// ── Modules
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

// Each module of torch::nn as a leaf, evaluating.
std::vector<Case> module_cases() {
  std::vector<Case> cases;
  for (const testing::NnCase& each : testing::all_nn_cases()) {
    each.module->eval();
    Tracer tracer;
    cases.push_back({each.name + std::to_string(cases.size()), to_graph_module(each.trace_child(tracer, each.inputs)),
                     each.inputs});
  }
  return cases;
}

TEST(GeneratedCppNight, LeavesNoModuleOfTorchNnToTheUser) {
  std::size_t made = 0;
  for (const Case& each : module_cases()) {
    const std::string source = code(*each.module, Language::cpp);
    EXPECT_EQ(source.find("to be set before the first forward"), std::string::npos) << each.name << "\n" << source;
    made += source.find("add_module(\"leaf\", torch::nn::") != std::string::npos;
  }
  EXPECT_GT(made, 20U);
}

TEST(GeneratedCpp, LeavesModulesOfOtherTypesToTheUser) {
  struct Other : torch::nn::Module {};
  GraphModule gm({{"other", std::shared_ptr<torch::nn::Module>(std::make_shared<Other>())}},
                 parse_graph("graph():\n%x = placeholder[target=x]\n"
                             "%y = call_module[target=other](args = (%x,))\nreturn y"));
  EXPECT_THAT(code(gm, Language::cpp), ::testing::AllOf(::testing::HasSubstr("to be set before the first forward"),
                                                        ::testing::HasSubstr("torch::nn::AnyModule other_;")));
}

bool takes_tensors_alone(const Case& each) {
  return std::ranges::all_of(each.inputs, [](const c10::IValue& input) { return input.isTensor(); });
}

TEST(GeneratedCppNight, OfModulesGivesTheSameOutputs) {
  torch::manual_seed(2);
  std::vector<Case> cases;
  for (Case& each : module_cases()) {
    const bool makes_one = code(*each.module, Language::cpp).find("add_module(\"leaf\"") != std::string::npos;
    if (makes_one && takes_tensors_alone(each)) cases.push_back(std::move(each));
  }
  EXPECT_GT(cases.size(), 20U);
  expect_same_outputs(cases);
}

template <typename Model>
Case evaluated(const std::string& name, Model model, std::vector<c10::IValue> inputs) {
  model->eval();
  return {name, symbolic_trace(model, inputs), inputs};
}

TEST(GeneratedCppNight, OfLargerModelsGivesTheSameOutputs) {
  torch::manual_seed(3);
  expect_same_outputs(
      {evaluated("CrnnAgain", testing::Crnn(), {torch::rand({2, 1, 8, 12})}),
       evaluated("TranslatorAgain", testing::Translator(), {torch::randint(11, {5, 2}), torch::randint(13, {4, 2})}),
       evaluated("VitAgain", testing::Vit(), {torch::rand({2, 3, 16, 16})})});
}

}  // namespace fx::generated_cpp_test
