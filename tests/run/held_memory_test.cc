// Held memory: no run asks for more, and nothing that is kept changes.
#include <fxgraph/run/held_memory.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <optional>
#include <thread>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/support/error.h>
#include <fxgraph/text/parse.h>

namespace fx::held_memory_test {

// Values that die at once, views, writes in place, a result that is a view and one that is returned twice.
constexpr const char* kProgram = R"(graph():
    %x = placeholder[target=x]
    %w = get_attr[target=w]
    %a = call_function[target=torch.ops.aten.matmul.default](args = (%x, %w))
    %b = call_function[target=torch.ops.aten.relu.default](args = (%a,))
    %c = call_function[target=torch.ops.aten.transpose.int](args = (%b, 0, 1))
    %d = call_function[target=torch.ops.aten.contiguous.default](args = (%c,))
    %e = call_function[target=torch.ops.aten.mul_.Scalar](args = (%d, 0.5))
    %f = call_function[target=torch.ops.aten.cat.default](args = ([%e, %c], 0))
    %g = call_function[target=torch.ops.aten.exp.default](args = (%f,))
    %h = call_function[target=torch.ops.aten.slice.Tensor](args = (%f, 0, 1, 100))
    return (g, h, f)
)";

std::shared_ptr<GraphModule> program() {
  torch::manual_seed(3);
  GraphModule::Attributes attributes = {{"w", torch::randn({256, 256}) / 64}};
  return std::make_shared<GraphModule>(attributes, parse_graph(kProgram));
}

at::Tensor rows(std::int64_t count, int seed = 1) {
  torch::manual_seed(seed);
  return torch::randn({count, 256});
}

std::vector<at::Tensor> results_of(GraphModule& module, const at::Tensor& x) {
  const c10::IValue result = module.run({x});
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& each : result.toTupleRef().elements()) tensors.push_back(each.toTensor());
  return tensors;
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

void expect_equal(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].equal(expected[i])) << "result " << i;
}

TEST(HeldMemory, FromTheSecondRunOnNothingIsAskedFor) {
  HeldMemory memory;
  const auto module = program();
  std::size_t made = 0;
  for (int i = 0; i < 20; ++i) {
    const at::Tensor x = rows(200, i);
    const auto expected = results_of(*module, x);
    const HeldMemory::Scope scope(&memory);
    expect_equal(results_of(*module, x), expected);
    if (i == 0) made = memory.num_made();
    EXPECT_GT(made, 0U);
    EXPECT_EQ(memory.num_made(), made) << "run " << i;
  }
}

TEST(HeldMemory, WhatDoesNotLiveTogetherLiesTogether) {
  HeldMemory memory;
  std::size_t one = 0;
  {
    const HeldMemory::Scope scope(&memory);
    at::Tensor x = torch::zeros({1 << 16});
    one = memory.bytes();
    for (int i = 0; i < 50; ++i) x = x + 1;
    EXPECT_EQ(x.sum().item<double>(), 50.0 * (1 << 16));
  }
  EXPECT_EQ(one, sizeof(float) << 16);
  EXPECT_EQ(memory.bytes(), 2 * one);
}

TEST(HeldMemory, KeptResultsStayAsTheyWere) {
  const auto module = program(), plain = program();
  module->hold_memory();
  std::vector<std::vector<at::Tensor>> kept, expected;
  for (int i = 0; i < 12; ++i) {
    const at::Tensor x = rows(100 + 20 * (i % 3), i);
    expected.push_back(copies(results_of(*plain, x)));
    kept.push_back(results_of(*module, x));
    if (i % 4 == 3) {
      kept.erase(kept.begin());
      expected.erase(expected.begin());
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) expect_equal(kept[i], expected[i]);
}

TEST(HeldMemory, ResultsOutliveTheModule) {
  const at::Tensor x = rows(300);
  const auto expected = results_of(*program(), x);
  std::vector<at::Tensor> kept;
  {
    const auto module = program();
    module->hold_memory();
    results_of(*module, x);
    kept = results_of(*module, x);
  }
  expect_equal(kept, expected);
  kept[0].resize_({1000, 1000}).fill_(1);  // asks its allocator for more
  EXPECT_EQ(kept[0].sum().item<double>(), 1e6);
}

TEST(HeldMemory, IsGivenBackWhenNobodyWantsIt) {
  const auto module = program();
  module->hold_memory();
  results_of(*module, rows(3000));
  const std::size_t large = module->held_bytes();
  for (int i = 0; i <= HeldMemory::kIdleRuns; ++i) results_of(*module, rows(50));
  const std::size_t small = module->held_bytes();
  EXPECT_GT(small, 0U);
  EXPECT_LT(small, large / 20);
  module->hold_memory(false);
  EXPECT_EQ(module->held_bytes(), 0U);
  expect_equal(results_of(*module, rows(50)), results_of(*program(), rows(50)));
}

TEST(HeldMemory, ThreadsShareOneModule) {
  const auto module = program(), plain = program();
  module->hold_memory();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t) {
    const at::Tensor x = rows(100 + 50 * t, t);
    const auto expected = results_of(*plain, x);
    threads.emplace_back([&, t, x, expected] {
      std::vector<at::Tensor> last;
      for (int i = 0; i < 40; ++i) {
        const auto found = results_of(*module, x);
        for (std::size_t k = 0; k < found.size(); ++k) wrong[t] += !found[k].equal(expected[k]);
        last = found;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(HeldMemory, IsForTheRunAlone) {
  const auto module = program();
  module->hold_memory();
  results_of(*module, rows(100));
  const std::size_t held = module->held_bytes();
  const at::Tensor outside = torch::ones({1 << 20});
  EXPECT_EQ(module->held_bytes(), held);
  EXPECT_THROW(module->run({torch::ones({3, 5})}), Error);  // a run that ends early
  const at::Tensor later = torch::ones({1 << 20});
  EXPECT_EQ(module->held_bytes(), held);
}

TEST(HeldMemory, ScopesNest) {
  HeldMemory outer, inner;
  const HeldMemory::Scope a(&outer);
  at::Tensor x = torch::ones({1 << 14}), y;
  {
    const HeldMemory::Scope b(&inner);
    y = torch::ones({1 << 15});
    const HeldMemory::Scope none(nullptr);
    const at::Tensor z = torch::ones({1 << 14});
    EXPECT_EQ(inner.bytes(), (sizeof(float) << 15) + (sizeof(float) << 14));
  }
  const at::Tensor z = torch::ones({1 << 14});
  EXPECT_EQ(outer.bytes(), sizeof(float) << 15);
  EXPECT_EQ(y.sum().item<double>(), 1 << 15);
}

TEST(HeldMemory, SmallAndEmptyTensorsAreLeftToMalloc) {
  HeldMemory memory;
  const HeldMemory::Scope scope(&memory);
  const at::Tensor a = torch::ones({8}), b = torch::ones({0, 5}), c = torch::ones({8191});
  EXPECT_EQ(memory.num_made(), 0U);
  const at::Tensor d = torch::ones({8192});
  EXPECT_EQ(memory.num_made(), 1U);
}

TEST(HeldMemory, GradientsAreAsWithout) {
  const auto module = program(), plain = program();
  module->hold_memory();
  for (int i = 0; i < 3; ++i) {
    at::Tensor x = rows(120, i).requires_grad_(true), y = x.detach().clone().requires_grad_(true);
    const auto found = results_of(*module, x), expected = results_of(*plain, y);
    (found[0].sum() + found[1].square().sum()).backward();
    (expected[0].sum() + expected[1].square().sum()).backward();
    EXPECT_TRUE(x.grad().equal(y.grad()));
  }
}

TEST(HeldMemory, ClonesHoldTheirOwn) {
  const auto module = program();
  module->hold_memory();
  const auto clone = module->clone_graph_module();
  results_of(*clone, rows(100));
  EXPECT_GT(clone->held_bytes(), 0U);
  EXPECT_EQ(module->held_bytes(), 0U);
}

}  // namespace fx::held_memory_test
