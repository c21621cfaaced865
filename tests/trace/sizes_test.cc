// Traces that hold for other sizes than those of their examples: what is found to be an expression of sizes, what is
// fixed, and how it is said.
#include <regex>

#include "tests/trace/sizes_testing.h"

namespace fx::sizes_test {

using testing::AtSizes;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::traced_at;
using torch::Tensor;

template <typename Program>
std::string sizes_of(Program program, std::vector<c10::IValue> examples, TraceOptions options = {}) {
  return SizeReport(symbolic_trace(program, std::move(examples), std::move(options))->graph()).str();
}

// ── Expressions ───────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Sizes, OperatorsWithoutNumbersLeaveNothingBehind) {
  const auto gm = symbolic_trace([](Tensor x) { return x.relu() + 1; }, {torch::rand({2, 3})});
  EXPECT_EQ(gm->graph().size(), 4u);
  EXPECT_EQ(SizeReport(gm->graph()).str(), "x[0] free\nx[1] free\n");
}

TEST(Sizes, SizesBecomeNodes) {
  const auto halve = [](Tensor x) { return x.reshape({x.size(0), x.size(1) / 2, 2 * x.size(2)}); };
  const auto gm = symbolic_trace(halve, {torch::rand({2, 4, 5})});
  std::vector<std::string> calls = testing::calls(gm->graph());
  // Where this file is known to the debugger, the message ends with the line.
  for (std::string& call : calls) call = std::regex_replace(call, std::regex(R"( \(sizes_test\.cc:\d+\))"), "");
  EXPECT_EQ(calls,
            (std::vector<std::string>{"aten::size.int(x, 1)", "operator.mod(size, 2)", "operator.eq(mod, 0)",
                                      "torch._assert(eq, \"x[1] must be a multiple of 2: aten::reshape: shape "
                                      "'[2, 5, 10]' is invalid for input of size 110\")",
                                      "aten::size.int(x, 0)", "operator.floordiv(size, 2)", "aten::size.int(x, 2)",
                                      "operator.mul(2, size_2)", "aten::reshape(x, [size_1, floordiv, mul])"}))
      << gm->graph();
}

TEST(Sizes, SumOverABatch) {
  const auto mean = [](Tensor x) { return x.sum(0) / x.size(0); };
  EXPECT_EQ(traced_at(mean, {torch::rand({2, 3})}, torch::rand({7, 5})), AtSizes::equal);
  EXPECT_EQ(traced_at(mean, {torch::rand({1, 3})}, torch::rand({4, 1})), AtSizes::equal);
}

TEST(Sizes, LastStep) {
  const auto last = [](Tensor x) { return x.select(1, x.size(1) - 1); };
  EXPECT_EQ(traced_at(last, {torch::rand({2, 3, 4})}, torch::rand({3, 9, 4})), AtSizes::equal);
  EXPECT_EQ(traced_at(last, {torch::rand({2, 3, 4})}, torch::rand({1, 1, 1})), AtSizes::equal);
}

TEST(Sizes, TablesSlicedByLength) {
  const Tensor table = torch::rand({32, 8});
  const auto add = [table](Tensor x) { return x + table.slice(0, 0, x.size(1)); };
  EXPECT_EQ(traced_at(add, {torch::rand({2, 16, 8})}, torch::rand({3, 31, 8})), AtSizes::equal);
  EXPECT_EQ(traced_at(add, {torch::rand({2, 16, 8})}, torch::rand({1, 1, 8})), AtSizes::equal);
}

TEST(Sizes, CausalMask) {
  const auto mask = [](Tensor x) {
    const auto n = x.size(1);
    return torch::matmul(torch::softmax(torch::triu(torch::ones({n, n}), 1) * -1e9, -1), x);
  };
  EXPECT_EQ(traced_at(mask, {torch::rand({2, 5, 3})}, torch::rand({4, 11, 3})), AtSizes::equal);
}

TEST(Sizes, Heads) {
  const auto split = [](Tensor x) {
    return x.view({x.size(0), x.size(1), 4, x.size(2) / 4}).transpose(1, 2).contiguous();
  };
  EXPECT_EQ(traced_at(split, {torch::rand({2, 6, 16})}, torch::rand({3, 5, 16})), AtSizes::equal);
  EXPECT_NE(traced_at(split, {torch::rand({2, 6, 16})}, torch::rand({1, 1, 32})), AtSizes::wrong);
}

TEST(Sizes, ChannelShuffle) {
  const auto shuffle = [](Tensor x) {
    const auto n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
    return x.view({n, 2, c / 2, h, w}).transpose(1, 2).contiguous().view({n, -1, h, w});
  };
  EXPECT_EQ(traced_at(shuffle, {testing::image(2, 4, 5, 5)}, testing::image(3, 8, 7, 6)), AtSizes::equal);
  EXPECT_EQ(traced_at(shuffle, {testing::image(2, 4, 5, 5)}, testing::image(3, 5, 7, 6)), AtSizes::refused);
}

TEST(Sizes, PaddingToAMultiple) {
  const auto pad = [](Tensor x) {
    const auto h = (8 - x.size(2) % 8) % 8, w = (8 - x.size(3) % 8) % 8;
    return torch::constant_pad_nd(x, {0, w, 0, h});
  };
  for (const std::int64_t h : {1, 7, 8, 9, 23, 40, 100}) {
    EXPECT_EQ(traced_at(pad, {testing::image(2, 3, 16, 16)}, testing::image(1, 3, h, 2 * h + 1)), AtSizes::equal) << h;
    EXPECT_EQ(traced_at(pad, {testing::image(2, 3, 17, 13)}, testing::image(1, 3, h, 2 * h + 1)), AtSizes::equal) << h;
  }
}

TEST(Sizes, PaddingOnBothSides) {
  const auto pad = [](Tensor x) {
    const auto total = (8 - x.size(1) % 8) % 8;
    return torch::constant_pad_nd(x, {total / 2, total - total / 2});
  };
  for (const std::int64_t n : {1, 7, 8, 9, 22, 40, 101})
    EXPECT_EQ(traced_at(pad, {torch::rand({2, 21})}, torch::rand({1, n})), AtSizes::equal) << n;
}

TEST(Sizes, Windows) {
  const auto windows = [](Tensor x) {
    const auto b = x.size(0), h = x.size(1), w = x.size(2), c = x.size(3);
    return x.view({b, h / 7, 7, w / 7, 7, c}).permute({0, 1, 3, 2, 4, 5}).contiguous().view({-1, 49, c});
  };
  EXPECT_EQ(traced_at(windows, {torch::rand({2, 14, 14, 3})}, torch::rand({3, 21, 14, 5})), AtSizes::equal);
  EXPECT_EQ(traced_at(windows, {torch::rand({2, 14, 14, 3})}, torch::rand({3, 20, 7, 5})), AtSizes::refused);
}

TEST(Sizes, WindowsOfAPaddedImage) {
  const auto windows = [](Tensor x) {
    const auto b = x.size(0), h = x.size(2), w = x.size(3), c = x.size(1);
    const std::int64_t height = (h + 3) / 4 * 4, width = (w + 3) / 4 * 4;
    x = torch::constant_pad_nd(x, {0, width - w, 0, height - h});
    x = x.view({b, c, height / 4, 4, width / 4, 4}).permute({0, 2, 4, 1, 3, 5}).reshape({-1, c, 4, 4});
    return x.view({b * (height / 4) * (width / 4), c * 16}).mean(1);
  };
  for (const std::int64_t h : {4, 5, 9, 16, 30})
    EXPECT_EQ(traced_at(windows, {testing::image(2, 3, 9, 14)}, testing::image(3, 2, h, h + 3)), AtSizes::equal) << h;
}

TEST(Sizes, AnchorGrid) {
  const auto grid = [](Tensor x) {
    const auto h = x.size(2), w = x.size(3);
    const auto ys = torch::arange(h).view({h, 1}).expand({h, w}), xs = torch::arange(w).view({1, w}).expand({h, w});
    return torch::stack({xs, ys}, 2).view({1, 1, h, w, 2}).to(torch::kFloat) + x.unsqueeze(-1);
  };
  EXPECT_EQ(traced_at(grid, {testing::image(2, 3, 8, 8)}, testing::image(1, 5, 11, 6)), AtSizes::equal);
}

TEST(Sizes, RealNumbers) {
  const auto scale = [](Tensor x) {
    const auto n = static_cast<double>(x.size(1));
    return x / std::sqrt(n) + 1.0 / n + (n - 1) * 0.5 + 3.0 / std::sqrt(n);
  };
  EXPECT_EQ(traced_at(scale, {torch::rand({2, 16})}, torch::rand({3, 50})), AtSizes::equal);
  const auto in_float = [](Tensor x) { return x * (1.0F / static_cast<float>(x.size(1))); };
  EXPECT_EQ(traced_at(in_float, {torch::rand({2, 16})}, torch::rand({3, 50})), AtSizes::equal);
}

TEST(Sizes, ScaleToTheSizeOfAnother) {
  namespace F = torch::nn::functional;
  const auto resize = [](Tensor x, Tensor y) {
    const auto size = std::vector<std::int64_t>{y.size(2), y.size(3)};
    return torch::cat({F::interpolate(x, F::InterpolateFuncOptions().size(size).mode(torch::kNearest)), y}, 1);
  };
  EXPECT_EQ(traced_at(resize, {testing::image(2, 3, 8, 8), testing::image(2, 3, 16, 16)}, testing::image(1, 2, 5, 6),
                      testing::image(1, 4, 11, 13)),
            AtSizes::equal);
}

TEST(Sizes, AnIntermediateSize) {
  namespace F = torch::nn::functional;
  const Tensor weight = torch::rand({4, 3, 3, 3});
  const auto down_and_up = [weight](Tensor x) {
    const Tensor down = torch::conv2d(x, weight, {}, 2, 1);
    const Tensor small = torch::max_pool2d(down, 2);
    auto options = F::InterpolateFuncOptions().mode(torch::kBilinear).align_corners(false);
    return F::interpolate(small, options.size(std::vector<std::int64_t>{down.size(2), down.size(3)})) + down;
  };
  for (const std::int64_t h : {8, 13, 30})
    EXPECT_EQ(traced_at(down_and_up, {testing::image(2, 3, 16, 16)}, testing::image(1, 3, h, h + 5)), AtSizes::equal);
}

TEST(Sizes, TensorsMadeOfSizes) {
  const auto scale = [](Tensor x) {
    const Tensor size = torch::tensor({static_cast<float>(x.size(3)), static_cast<float>(x.size(2))});
    return x.flatten(2).sum(2) * size.sum() + torch::tensor({x.size(0), std::int64_t{7}}).sum();
  };
  EXPECT_EQ(traced_at(scale, {testing::image(2, 3, 8, 9)}, testing::image(5, 2, 11, 6)), AtSizes::equal);
}

TEST(Sizes, ReturnedSizes) {
  const auto shape = [](Tensor x) { return std::make_tuple(x * 2, x.size(0) * x.size(1)); };
  const auto gm = symbolic_trace(shape, {torch::rand({2, 3})});
  const c10::IValue value = gm->run({torch::rand({5, 7})});
  EXPECT_EQ(value.toTupleRef().elements()[1].toInt(), 35);
}

// ── What is fixed ─────────────────────────────────────────────────────────────────────────────────────────────────

TEST(Sizes, AWeightHoldsItsInput) {
  const Tensor weight = torch::rand({4, 3, 3, 3});
  const auto conv = [weight](Tensor x) { return torch::conv2d(x, weight); };
  const auto gm = symbolic_trace(conv, {testing::image(2, 3, 8, 8)});
  EXPECT_THAT(SizeReport(gm->graph()).str(),
              HasSubstr("x[0] free\nx[1] = 3: _tensor_constant0 (aten::conv2d): Given groups=1"));
  EXPECT_THAT(SizeReport(gm->graph()).str(), HasSubstr("x[2] free\nx[3] free\n"));
  EXPECT_FX_ERROR(gm->forward(testing::image(2, 4, 8, 8)), execution,
                  HasSubstr("x[1] must be 3, but is 4: _tensor_constant0"));
  const Tensor other = testing::image(1, 3, 9, 20);
  EXPECT_EQ(testing::at_sizes(*gm, [&]() -> c10::IValue { return conv(other); }, {other}), AtSizes::equal);
}

TEST(Sizes, ALoopOverALength) {
  const auto steps = [](Tensor x) {
    Tensor state = torch::zeros({x.size(0)});
    for (std::int64_t i = 0; i < x.size(1); ++i) state = torch::tanh(state + x.select(1, i));
    return state;
  };
  EXPECT_EQ(traced_at(steps, {torch::rand({2, 3})}, torch::rand({5, 3})), AtSizes::equal);
  EXPECT_EQ(traced_at(steps, {torch::rand({2, 3})}, torch::rand({5, 4})), AtSizes::refused);
  EXPECT_EQ(traced_at(steps, {torch::rand({2, 3})}, torch::rand({5, 2})), AtSizes::refused);
}

TEST(Sizes, ABranchOnASize) {
  const auto squeeze = [](Tensor x) { return x.size(0) == 1 ? x.squeeze(0) : x.sum(0); };
  EXPECT_EQ(traced_at(squeeze, {torch::rand({2, 3})}, torch::rand({1, 3})), AtSizes::refused);
  EXPECT_EQ(traced_at(squeeze, {torch::rand({2, 3})}, torch::rand({9, 3})), AtSizes::equal);
  const auto even = [](Tensor x) { return x.size(1) % 4 == 0 ? x * 2 : x.relu(); };
  EXPECT_EQ(traced_at(even, {torch::rand({2, 8})}, torch::rand({2, 20})), AtSizes::equal);
  EXPECT_EQ(traced_at(even, {torch::rand({2, 8})}, torch::rand({2, 6})), AtSizes::refused);
}

TEST(Sizes, ATensorOfForeignMemory) {
  const auto table = [](Tensor x) {
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < x.size(1); ++i) numbers.push_back(static_cast<float>(i * i * i % 7));
    return x + torch::from_blob(numbers.data(), {x.size(1)}).clone();
  };
  EXPECT_EQ(traced_at(table, {torch::rand({2, 5})}, torch::rand({4, 6})), AtSizes::refused);
  EXPECT_THAT(sizes_of(table, {torch::rand({2, 5})}), HasSubstr("x[1] = 5: _tensor_constant0, a tensor that"));
}

TEST(Sizes, NumbersWithoutARule) {
  const auto odd = [](Tensor x) {
    static constexpr std::int64_t kTable[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4};
    return x * kTable[x.size(0) % 24];
  };
  EXPECT_EQ(traced_at(odd, {torch::rand({2, 3})}, torch::rand({5, 3})), AtSizes::refused);
  EXPECT_EQ(traced_at(odd, {torch::rand({2, 3})}, torch::rand({2, 8})), AtSizes::equal);
}

TEST(Sizes, InputsThatAgree) {
  const auto add = [](Tensor x, Tensor y) { return x + y; };
  const auto gm = symbolic_trace(add, {torch::rand({2, 3}), torch::rand({2, 3})});
  EXPECT_THAT(SizeReport(gm->graph()).str(), HasSubstr("x[0] = y[0] free"));
  EXPECT_THAT(SizeReport(gm->graph()).str(), HasSubstr("x[1] = y[1] free"));
  EXPECT_EQ(traced_at(add, {torch::rand({2, 3}), torch::rand({2, 3})}, torch::rand({4, 5}), torch::rand({4, 5})),
            AtSizes::equal);
}

TEST(Sizes, BroadcastInputs) {
  const auto add = [](Tensor x, Tensor y) { return (x + y).reshape({-1, x.size(1)}) * y.size(0); };
  const std::vector<c10::IValue> examples = {torch::rand({1, 4}), torch::rand({1, 4})};
  EXPECT_EQ(traced_at(add, examples, torch::rand({3, 4}), torch::rand({3, 4})), AtSizes::equal);
  // Sizes that are one in both examples are taken to be equal, as others are.
  EXPECT_EQ(traced_at(add, examples, torch::rand({3, 4}), torch::rand({1, 4})), AtSizes::refused);
}

TEST(Sizes, StepsOfAnEncoderAndDecoder) {
  const auto unet = [](Tensor x) {
    const Tensor a = torch::max_pool2d(x, 2), b = torch::max_pool2d(a, 2), c = torch::max_pool2d(b, 2);
    const Tensor up = torch::upsample_nearest2d(c, torch::nullopt, std::vector<double>{2, 2});
    return torch::cat({torch::upsample_nearest2d(torch::cat({up, b}, 1), torch::nullopt, std::vector<double>{2, 2}), a},
                      1);
  };
  EXPECT_THAT(sizes_of(unet, {testing::image(1, 2, 32, 32)}), HasSubstr("x[2] free in steps of 8"));
  EXPECT_EQ(traced_at(unet, {testing::image(1, 2, 32, 32)}, testing::image(2, 3, 40, 24)), AtSizes::equal);
  EXPECT_EQ(traced_at(unet, {testing::image(1, 2, 32, 32)}, testing::image(2, 3, 44, 24)), AtSizes::refused);
}

TEST(Sizes, ListsOfTensors) {
  const auto sum = [](std::vector<Tensor> xs) { return torch::cat({xs[0].flatten(), xs[1].reshape({xs[1].numel()})}); };
  const auto gm = symbolic_trace(sum, {c10::IValue(std::vector<Tensor>{torch::rand({2, 3}), torch::rand({4, 5})})});
  EXPECT_THAT(SizeReport(gm->graph()).str(), HasSubstr("x[0].size(0) free"));
  const std::vector<Tensor> inputs = {torch::rand({1, 2}), torch::rand({3, 6})};
  EXPECT_TRUE(testing::same_value(gm->run({c10::IValue(inputs)}), sum(inputs)));
}

TEST(Sizes, UnusedInputs) {
  const auto first = [](std::vector<Tensor> xs, Tensor) { return xs[0].flatten() * 2; };
  const std::vector<Tensor> xs = {torch::rand({2, 3}), torch::rand({4, 5})};
  const auto gm = symbolic_trace(first, {c10::IValue(xs), torch::rand({3})});
  const std::vector<Tensor> others = {torch::rand({1, 2}), torch::rand({3, 6, 1})};
  EXPECT_TRUE(testing::same_value(gm->run({c10::IValue(others), torch::rand({2, 2})}), first(others, {})));
}

// ── How it is asked for ───────────────────────────────────────────────────────────────────────────────────────────

TEST(Sizes, FixedIsAsItWas) {
  const auto mean = [](Tensor x) { return x.sum(0) / x.size(0); };
  const auto gm = symbolic_trace(mean, {torch::rand({2, 3})}, {.sizes = Sizes::fixed});
  EXPECT_EQ(gm->graph().size(), 4u);
  EXPECT_EQ(SizeReport(gm->graph()).str(), "");
}

TEST(Sizes, NamedDimensionsVary) {
  const auto mean = [](Tensor x) { return x.sum(0) / x.size(0); };
  const auto gm = symbolic_trace(mean, {torch::rand({2, 3})}, {.sizes = Sizes::varying({"x[0]"})});
  EXPECT_EQ(
      SizeReport(gm->graph()).str(),
      "x[0] free, probed at 1, 5, 19 and 131059\nx[1] = 3: it is not among those that TraceOptions::sizes names\n");
  EXPECT_FX_ERROR(symbolic_trace(mean, {torch::rand({2, 3})}, {.sizes = Sizes::varying({"y[0]"})}), invalid_argument,
                  HasSubstr("there is no dimension y[0]"));
  const auto loop = [](Tensor x) { return x.size(0) == 2 ? x : x.relu(); };
  EXPECT_FX_ERROR(symbolic_trace(loop, {torch::rand({2, 3})}, {.sizes = Sizes::varying({"x[0]"})}), trace,
                  HasSubstr("x[0] was to vary"));
}

TEST(Sizes, SamplingLeavesTheRandomStateAlone) {
  const auto program = [](Tensor x) {
    return torch::dropout(torch::conv1d(x, torch::rand({2, x.size(1), 1})), 0.5, true);
  };
  torch::manual_seed(7);
  const Tensor expected = torch::rand({3});
  torch::manual_seed(7);
  symbolic_trace(program, {torch::rand({2, 3, 4}, torch::kCPU).zero_()}, {.sizes = Sizes::fixed});
  torch::manual_seed(7);
  const std::vector<c10::IValue> examples = {torch::ones({2, 3, 4})};
  symbolic_trace(program, examples);
  EXPECT_TRUE(torch::rand({3}).equal(expected));
}

}  // namespace fx::sizes_test
