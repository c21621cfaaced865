// What a program may learn of its inputs beside their numbers and sizes: whether they are given, their type, the
// thread that it is asked in. The graph does the same for other inputs, or refuses them.
#include <future>
#include <thread>

#include "tests/trace/round_trips.h"
#include "tests/trace/sizes_testing.h"

namespace fx::asked_of_inputs_test {

using testing::AtSizes;
using ::testing::HasSubstr;
using torch::Tensor;
using Optional = c10::optional<Tensor>;

struct Parts {
  Tensor x;
  Optional mask;
};

c10::IValue tuple(std::vector<c10::IValue> parts) { return c10::ivalue::Tuple::create(std::move(parts)); }

c10::IValue list(const std::vector<Optional>& parts) {
  c10::impl::GenericList made(c10::OptionalType::create(c10::TensorType::get()));
  for (const Optional& part : parts) made.push_back(part ? c10::IValue(*part) : c10::IValue());
  return made;
}

std::string why_not(GraphModule& gm, const std::vector<c10::IValue>& inputs) {
  try {
    gm.run(inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "it runs";
}

/// Traced with one of the two, the graph runs with it and refuses the other.
template <typename Program>
void expect_asserted(const Program& program, const std::vector<c10::IValue>& with,
                     const std::vector<c10::IValue>& without, const char* given, const char* absent) {
  EXPECT_EQ(why_not(*symbolic_trace(program, with), with), "it runs");
  EXPECT_EQ(why_not(*symbolic_trace(program, without), without), "it runs");
  EXPECT_THAT(why_not(*symbolic_trace(program, with), without), HasSubstr(given));
  EXPECT_THAT(why_not(*symbolic_trace(program, without), with), HasSubstr(absent));
}

const Tensor kX = torch::rand({2, 3}), kMask = torch::rand({2, 3});  // NOLINT: tensors do not throw here

TEST(AskedOfInputs, WhetherAnOptionalIsGiven) {
  const auto only_asks = [](Tensor x, Optional m) { return m ? x * 2 : x * 3; };
  expect_asserted(only_asks, {kX, kMask}, {kX, c10::IValue()}, "y was given in the example and must not be None",
                  "y has been specialized to have value None");
}

TEST(AskedOfInputs, WhetherAPartOfATupleIsGiven) {
  const auto uses = [](std::tuple<Tensor, Optional> t) {
    const auto& [x, m] = t;
    return m ? x * 2 : x * 3;
  };
  expect_asserted(uses, {tuple({kX, kMask})}, {tuple({kX, c10::IValue()})},
                  "x[1] was given in the example and must not be None", "x[1] has been specialized to have value None");
}

TEST(AskedOfInputs, WhetherAMemberIsGiven) {
  const auto uses = [](Parts parts) { return parts.mask ? parts.x * 2 : parts.x * 3; };
  expect_asserted(uses, {tuple({kX, kMask})}, {tuple({kX, c10::IValue()})}, "must not be None", "value None");
}

TEST(AskedOfInputs, WhetherAnElementIsGiven) {
  const auto uses = [](std::vector<Optional> parts) { return parts[1] ? *parts[0] * 2 : *parts[0] * 3; };
  expect_asserted(uses, {list({kX, kMask})}, {list({kX, c10::nullopt})}, "x[1] was given", "x[1] has been specialized");
}

TEST(AskedOfInputs, WhetherANumberIsGiven) {
  const auto uses = [](std::tuple<Tensor, c10::optional<double>> t) {
    return std::get<1>(t) ? std::get<0>(t) * *std::get<1>(t) : std::get<0>(t);
  };
  expect_asserted(uses, {tuple({kX, 2.0})}, {tuple({kX, c10::IValue()})}, "None",
                  "x[1] has been specialized to have value None");
}

// ── Types ────────────────────────────────────────────────────────────────────────────────────────────────────────────

struct CastsToItsWeights : torch::nn::Module {
  torch::nn::Linear fc{3, 3};
  bool back;
  explicit CastsToItsWeights(bool comes_back) : back(comes_back) { register_module("fc", fc); }
  Tensor forward(Tensor x) {
    const Tensor y = fc(x.to(fc->weight.dtype()));
    return back ? y.to(x.dtype()) : y;
  }
};

TEST(AskedOfInputs, TheirTypeWhereWeightsKeepTheirs) {
  for (const bool back : {false, true}) {
    const auto net = std::make_shared<CastsToItsWeights>(back);
    const auto gm = symbolic_trace(net, {kX});
    for (const auto type : {torch::kFloat, torch::kDouble, torch::kHalf}) {
      const Tensor x = kX.to(type);
      const AtSizes outcome = testing::at_sizes(*gm, [&]() -> c10::IValue { return net->forward(x); }, {x});
      EXPECT_EQ(outcome, type == torch::kFloat || !back ? AtSizes::equal : AtSizes::refused) << gm->graph();
    }
  }
}

TEST(AskedOfInputs, TheirTypeIsNotKnownWithoutExamples) {
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x.scalar_type() == torch::kFloat ? x * 2 : x * 3; }), trace,
                  HasSubstr("dtype()"), HasSubstr("symbolic_trace(f, {"));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x.is_floating_point() ? x * 2 : x * 3; }), trace,
                  HasSubstr("dtype()"));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x.dtype() == torch::kFloat ? x * 2 : x * 3; }), trace,
                  HasSubstr("dtype()"), HasSubstr("symbolic_trace(f, {"));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return (x * 2).dtype() == torch::kFloat ? x * 2 : x * 3; }), trace,
                  HasSubstr("dtype()"));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return torch::real(x.conj()); }), trace, HasSubstr("dtype()"));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x.is_contiguous() ? x * 2 : x * 3; }), trace,
                  HasSubstr("is_contiguous()"), HasSubstr("symbolic_trace(f, {"));
  EXPECT_NO_THROW(symbolic_trace([](Tensor x) { return x.contiguous() * 2; }));
}

// ── Threads ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// Whichever comes first comes first in the graph; what a call does otherwise does not end the process.
TEST(AskedOfInputs, ByTwoThreadsAtOnce) {
  const auto program = [](Tensor x) {
    Tensor a, b;
    std::thread t([&] {
      for (int i = 0; i < 50; ++i) a = torch::sin(i == 0 ? x : a);
    });
    std::thread u([&] {
      for (int i = 0; i < 50; ++i) b = torch::cos(i == 0 ? x : b);
    });
    t.join();
    u.join();
    return a - b;
  };
  for (int i = 0; i < 5; ++i) {
    try {
      const auto gm = symbolic_trace(program, {kX});
      EXPECT_TRUE(gm->forward(kMask).equal(program(kMask)));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("several threads"));
    }
  }
}

TEST(AskedOfInputs, InAThreadThatRefusesOtherSizes) {
  const Tensor w = torch::rand({3, 3});
  const auto program = [w](Tensor x) {
    Tensor y;
    std::thread t([&] { y = x.matmul(w).relu().view({x.size(0), 3}); });
    t.join();
    return y * 2;
  };
  const auto gm = symbolic_trace(program, {kX});
  for (const std::int64_t rows : {2, 5}) {
    const Tensor x = torch::rand({rows, 3});
    EXPECT_EQ(testing::at_sizes(*gm, [&]() -> c10::IValue { return program(x); }, {x}), AtSizes::equal);
  }
}

TEST(AskedOfInputs, InAThreadThatCannotBeTraced) {
  const auto program = [](Tensor x) {
    Tensor y;
    std::thread t([&] { y = x * x.sum().item<double>(); });
    t.join();
    return y;
  };
  EXPECT_FX_ERROR(symbolic_trace(program, {kX}), trace, HasSubstr("item()"));
}

// ── Buffers and modes ────────────────────────────────────────────────────────────────────────────────────────────────

struct HandsOutOldValue : torch::nn::Module {
  Tensor a = register_buffer("a", torch::zeros({3}));
  std::vector<Tensor> forward(Tensor x) {
    const Tensor before = a;
    a = a + x.sum(0);
    return {before, before.unsqueeze(0), before * 2, a};
  }
};

TEST(AskedOfInputs, BuffersBeforeTheyAreReplaced) {
  const auto net = std::make_shared<HandsOutOldValue>(), traced = std::make_shared<HandsOutOldValue>();
  const torch::NoGradGuard no_grad;
  const auto gm = symbolic_trace(traced, {kX});
  for (const Tensor& x : {kX, kMask})
    EXPECT_TRUE(testing::same_value(gm->run({x}), example(net->forward(x)), 1e-6)) << gm->graph();
}

struct FrozenNorm : torch::nn::Module {
  torch::nn::BatchNorm1d norm{3};
  FrozenNorm() { register_module("norm", norm); }
  void train(bool on = true) override {
    Module::train(on);
    norm->eval();
  }
  Tensor forward(Tensor x) { return norm(x) * (is_training() ? 2 : 1); }
};

TEST(AskedOfInputs, TheModeThatAModuleKeeps) {
  const auto net = std::make_shared<FrozenNorm>();
  net->train();
  const auto gm = symbolic_trace(net, {kX});
  EXPECT_THROW(gm->eval(), Error);
  gm->train();
  const Tensor statistics = net->norm->running_mean.clone();
  EXPECT_TRUE(gm->forward(kX).equal(net->forward(kX)));
  EXPECT_TRUE(net->norm->running_mean.equal(statistics));
}

}  // namespace fx::asked_of_inputs_test
