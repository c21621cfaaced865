// Operators replaced by what functions compute.
#include <fxgraph/rewriter/program/decompose.h>

#include <fxgraph/text/parse.h>
#include "tests/trace/trace_testing.h"

namespace fx::decompose_test {

using testing::calls;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::same_value;
using torch::Tensor;

TEST(Decompose, ReluOfTheSeeds) {
  const auto gm = symbolic_trace([](Tensor x) { return torch::relu(x - 1); });
  Decompositions table;
  table["aten::relu"] = [](auto x) { return (x > 0) * x; };
  const auto decomposed = decompose(*gm, table);
  EXPECT_THAT(calls(decomposed->graph()),
              ElementsAre("aten::sub.Scalar(x, 1)", "aten::gt.Scalar(sub, 0)", "aten::mul.Tensor(gt, sub)"));
  const Tensor x = torch::randn({5});
  EXPECT_TRUE(torch::equal(decomposed->forward(x), gm->forward(x)));  // but for the sign of zeros
}

TEST(Decompose, LiteralsDefaultsAndSeveralResults) {
  Decompositions table;
  table["aten::clamp"] = [](Tensor x, double low, double high) {
    return torch::minimum(torch::maximum(x, torch::full_like(x, low)), torch::full_like(x, high));
  };
  table["torch.ops.aten.add.Tensor"] = [](Tensor x, Tensor y) { return x - (-y); };
  table["aten::max.dim"] = [](Tensor x, std::int64_t dim, bool keep) {
    return std::make_tuple(x.amax(dim, keep), x.argmax(dim, keep));
  };
  const auto program = [](Tensor x) {
    auto [values, indices] = torch::max(torch::clamp(x, -0.5, 0.5), 1);
    return torch::add(values, indices);
  };
  const auto gm = symbolic_trace(program);
  const auto decomposed = decompose(*gm, table);
  decomposed->graph().lint();
  for (const Node& node : decomposed->graph().nodes()) {
    EXPECT_FALSE(node.is(Op::call_function) && table.contains(node.target())) << node;
  }
  const Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(same_value(decomposed->forward(x), program(x)));
}

TEST(Decompose, AppliesToWhatFunctionsMake) {
  Decompositions table;
  table["aten::silu"] = [](Tensor x) { return x * torch::sigmoid(x); };
  table["aten::sigmoid"] = [](Tensor x) { return 1 / (1 + torch::exp(-x)); };
  const auto decomposed = decompose(*symbolic_trace([](Tensor x) { return torch::silu(x); }), table);
  const Tensor x = torch::randn({5});
  EXPECT_EQ(decomposed->graph().count(Op::call_function, "aten::sigmoid"), 0U);
  EXPECT_TRUE(same_value(decomposed->forward(x), torch::silu(x), 1e-6));
}

TEST(Decompose, CapturesTensorsAndKeepsAttributes) {
  const Tensor two = torch::full({1}, 2.0F);
  const auto gm = symbolic_trace([](Tensor x) { return torch::relu(x) + torch::tensor({1.0F}); });
  Decompositions table;
  table["aten::relu"] = [&](Tensor x) { return x * two; };
  const Tensor x = torch::rand({3});
  EXPECT_TRUE(same_value(decompose(*gm, table)->forward(x), x * 2 + 1));
  EXPECT_FX_ERROR(decompose(gm->graph(), table), invalid_argument, HasSubstr("attributes"));
}

TEST(Decompose, Misfits) {
  Decompositions table;
  table["aten::add.Tensor"] = [](Tensor x, Tensor y) { return x - y; };
  EXPECT_FX_ERROR(decompose(*symbolic_trace([](Tensor x) { return torch::add(x, x, 2); }), table), invalid_argument,
                  HasSubstr("%add"), HasSubstr("alpha=2"));
  Decompositions endless;
  endless["aten::relu"] = [](Tensor x) { return torch::relu(x) * 1; };
  EXPECT_FX_ERROR(decompose(*symbolic_trace([](Tensor x) { return torch::relu(x); }), endless), invalid_argument,
                  HasSubstr("64 rounds"));
}

TEST(Decompose, WhatWritesIsDecomposedByWhatWrites) {
  const auto gm = symbolic_trace([](Tensor x) {
    const Tensor y = x * 2;
    y.select(0, 0).relu_();
    return y;
  });
  Decompositions table;
  table["aten::relu_"] = [](Tensor x) { return torch::relu(x); };
  EXPECT_FX_ERROR(decompose(*gm, table), invalid_argument, HasSubstr("%relu_"), HasSubstr("writes to its argument"));
  table["aten::relu_"] = [](Tensor x) { return x.copy_(torch::relu(x)); };
  const Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(decompose(*gm, table)->forward(x).equal(gm->forward(x)));
}

// Its result would be the input, which the program then writes.
TEST(Decompose, WhatTheProgramWouldSeeIsRefused) {
  const auto gm = symbolic_trace([](Tensor x) { return torch::relu(x).add_(1); });
  Decompositions table;
  table["aten::relu"] = [](Tensor x) { return x; };
  EXPECT_FX_ERROR(decompose(*gm, table), invalid_argument, HasSubstr("%relu (aten::relu)"));
  EXPECT_EQ(gm->graph().count(Op::call_function, "aten::relu"), 1U);
  table["aten::relu"] = [](Tensor x) { return x.clone(); };
  const Tensor x = torch::randn({4}), before = x.clone();
  EXPECT_TRUE(decompose(*gm, table)->forward(x).equal(before + 1));
  EXPECT_TRUE(x.equal(before));
}

TEST(Decompose, MayAskForSizesWithShapes) {
  Tracer tracer;
  Trace trace = tracer.trace([](Tensor x) { return x.mean(); }, {torch::rand({2, 3})});
  Decompositions table;
  table["aten::mean"] = [](Tensor x) { return x.sum() / x.numel(); };
  EXPECT_THAT(calls(decompose(trace.graph, table, nullptr, &trace.shapes)),
              ElementsAre("aten::sum(x)", "aten::div.Scalar(sum_1, 6)"));
  EXPECT_FX_ERROR(decompose(trace.graph, table), trace, HasSubstr("numel()"), HasSubstr("%mean"));
}

}  // namespace fx::decompose_test
