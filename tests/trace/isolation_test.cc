// What a trace leaves behind: nothing. Threads, exceptions, nesting, leaked proxies, size.
#include <atomic>
#include <thread>

#include "tests/support/allocations.h"
#include "tests/trace/trace_testing.h"

namespace fx::isolation_test {

using testing::calls;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::same_value;
using testing::traced_calls;
using torch::Tensor;

TEST(TraceIsolation, OrdinaryTensorsAreNotTraced) {
  const Tensor outside = torch::rand({3});
  Tracer tracer;
  Tensor kept;
  const Trace trace = tracer.trace([&](Tensor x) {
    kept = x * outside;
    return kept;
  });
  EXPECT_FALSE(is_proxy(outside));
  EXPECT_FALSE(is_proxy(outside + 1));
  EXPECT_FALSE(is_proxy(torch::ones({2})));
  EXPECT_TRUE(is_proxy(kept));
  EXPECT_EQ(node_of(kept), nullptr);
}

TEST(TraceIsolation, LeakedProxiesSaySo) {
  Tensor leaked;
  traced_calls([&](Tensor x) { return leaked = x + 1; });
  EXPECT_FX_ERROR(leaked * 2, trace, HasSubstr("trace that has ended"));
  EXPECT_FX_ERROR(torch::cat({torch::ones({1}), leaked}), trace, HasSubstr("trace that has ended"));
  EXPECT_FX_ERROR(traced_calls([&](Tensor x) { return x + leaked; }), trace, HasSubstr("trace that has ended"));
}

TEST(TraceIsolation, LeakedProxiesNameNoNodeOfALostGraph) {
  Tensor leaked;
  traced_calls([&](Tensor x) { return leaked = x + 1; });
  EXPECT_FX_ERROR(leaked.data_ptr(), trace, HasSubstr("a traced tensor: data_ptr()"));
  EXPECT_FX_ERROR(leaked.set_data(torch::ones({2})), trace, HasSubstr("a traced tensor"));
  traced_calls([&](Tensor x) { return leaked = x + 1; });
  EXPECT_FX_ERROR(leaked.size(0), trace, HasSubstr("a traced tensor: size()"));
  EXPECT_FX_ERROR(leaked.device(), trace, HasSubstr("a traced tensor: device()"));
  traced_calls([&](Tensor x) { return leaked = x + 1; }, {torch::ones({2})});
  EXPECT_TRUE(same_value(leaked, torch::full({2}, 2.0)));  // what examples tell it is
}

TEST(TraceIsolation, ExceptionsLeaveNoState) {
  Tracer tracer;
  EXPECT_THROW(tracer.trace([](Tensor x) -> Tensor {
    x = x + 1;
    throw std::runtime_error("mine");
  }),
               std::runtime_error);
  EXPECT_FALSE(is_proxy(torch::ones({1}) + 1));
  EXPECT_THAT(calls(tracer.trace([](Tensor x) { return x + 2; }).graph), ElementsAre("aten::add.Scalar(x, 2)"));
}

TEST(TraceIsolation, TracesMayNest) {
  EXPECT_THAT(traced_calls([](Tensor x) {
                EXPECT_THAT(traced_calls([](Tensor y) {
                              y = y.exp();
                              return y + torch::ones({1});
                            }),
                            ElementsAre("aten::exp(x)", "aten::ones([1])", "aten::add.Tensor(exp, ones)"));
                return x.log();
              }),
              ElementsAre("aten::log(x)"));
  EXPECT_FX_ERROR(traced_calls([](Tensor x) {
                    traced_calls([&](Tensor y) { return y + x; });
                    return x;
                  }),
                  trace, HasSubstr("%x"), HasSubstr("belongs to another trace"));
}

TEST(TraceIsolation, OneTracerTracesOneProgramAtATime) {
  Tracer tracer;
  EXPECT_FX_ERROR(tracer.trace([&](Tensor x) {
    tracer.trace([](Tensor y) { return y; });
    return x;
  }),
                  trace, HasSubstr("tracing already"));
}

TEST(TraceIsolation, ThreadsTraceAtOnce) {
  constexpr int kThreads = 4, kRounds = 50;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  const Tensor shared = torch::rand({3});
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        Tracer tracer({.sizes = Sizes::fixed});
        const Trace trace = tracer.trace(
            [&](Tensor x) {
              for (int i = 0; i <= t; ++i) x = (x * shared).relu() + torch::ones({3});
              return x;
            },
            round % 2 ? std::vector<c10::IValue>{torch::rand({3})} : std::vector<c10::IValue>{});
        trace.graph.lint();
        if (calls(trace.graph).size() != 4U * static_cast<std::size_t>(t + 1) || trace.attributes.size() != 1)
          ++failures;
      }
    });
  }
  // Meanwhile this thread computes, untraced.
  for (int i = 0; i < 1000; ++i) {
    if (is_proxy(shared * 2)) ++failures;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

TEST(TraceIsolation, GradientModesDoNotMatter) {
  const auto program = [](Tensor x) { return (x * 2).sigmoid(); };
  const std::vector<std::string> expected = traced_calls(program);
  {
    torch::NoGradGuard guard;
    EXPECT_EQ(traced_calls(program), expected);
    EXPECT_EQ(traced_calls(program, {torch::rand({2})}), expected);
  }
  {
    c10::InferenceMode guard;
    EXPECT_EQ(traced_calls(program), expected);
    EXPECT_EQ(traced_calls(program, {torch::rand({2})}), expected);
  }
  EXPECT_EQ(traced_calls(program, {torch::rand({2}).requires_grad_()}), expected);
}

// A function of every kind of operator: composite, in place, several results, a list, a factory, a captured tensor, a
// nested trace. It throws after `last` of them.
struct Thrown : std::runtime_error {
  using std::runtime_error::runtime_error;
};
class Countdown {
 public:
  explicit Countdown(int last) : left_(last) {}
  void operator()() {
    if (left_-- == 0) throw Thrown("after an operator");
  }

 private:
  int left_;
};

Tensor every_kind(Tensor x, const Tensor& outside, torch::nn::Sequential& net, Countdown& countdown) {
  countdown();
  Tensor y = net->forward(x);
  countdown();
  y = torch::conv1d(y.unsqueeze(0), outside.view({1, 1, 3}).expand({4, 4, 3}));
  countdown();
  y.add_(1);
  countdown();
  const auto [values, indices] = torch::topk(y, 2);
  countdown();
  const std::vector<Tensor> parts = torch::chunk(values, 2, 1);
  countdown();
  const Tensor made = torch::ones({2}) + torch::tensor({1.0F, 2.0F});
  countdown();
  y = torch::cat(parts, 1) * made;
  countdown();
  y.select(0, 0).zero_();
  countdown();
  TraceOptions once;
  once.second_call = false;
  Tracer inner(once);
  const Trace trace = inner.trace([&](Tensor z) {
    z = z.exp();
    countdown();
    return z;
  });
  countdown();
  return y;
}

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

TEST(TraceIsolation, AProgramMayThrowAfterAnyOperator) {
  const Tensor outside = torch::rand({3});
  const auto keys = [] {
    c10::impl::LocalDispatchKeySet now = c10::impl::tls_local_dispatch_key_set();
    return std::make_pair(now.included_.raw_repr(), now.excluded_.raw_repr());
  };
  const auto before = keys();
  torch::nn::Sequential net(torch::nn::Linear(6, 6), torch::nn::BatchNorm1d(6), torch::nn::ReLU());
  const Tensor mean = net[1]->as<torch::nn::BatchNorm1d>()->running_mean;
  const Tensor example = torch::rand({4, 6});
  for (const bool shapes : {false, true}) {
    const std::vector<c10::IValue> examples = shapes ? std::vector<c10::IValue>{example} : std::vector<c10::IValue>{};
    net->train(shapes);  // a batch norm that trains asks for sizes
    Tracer tracer;
    constexpr int kPlaces = 11, kNever = 1 << 20;
    for (int last = 0; last <= kPlaces; ++last) {
      SCOPED_TRACE(last);
      Countdown countdown(last == kPlaces ? kNever : last);
      bool came_through = false;
      std::vector<WeakTensor> proxies;
      const auto program = [&](Tensor x) {
        proxies.emplace_back(x.getIntrusivePtr());
        return every_kind(x.view({4, 6}), outside, net, countdown);
      };
      const std::size_t uses = outside.getIntrusivePtr().use_count();
      try {
        tracer.trace(program, examples);
        came_through = true;
      } catch (const Thrown&) {
      }
      EXPECT_EQ(came_through, last == kPlaces);
      EXPECT_EQ(keys(), before);
      for (const auto& proxy : proxies) EXPECT_TRUE(proxy.expired());
      proxies.clear();  // what is left of a proxy holds its session
      EXPECT_EQ(outside.getIntrusivePtr().use_count(), uses);
      EXPECT_FALSE(is_proxy(outside + 1));
      EXPECT_TRUE(mean.equal(torch::zeros_like(mean)));
      EXPECT_THAT(calls(tracer.trace([](Tensor x) { return x + 2; }).graph), ElementsAre("aten::add.Scalar(x, 2)"));
    }
  }
}

// ── Size
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

// An LSTM cell unrolled by hand: fifteen operators a step.
class UnrolledLstm {
 public:
  explicit UnrolledLstm(int steps) : steps_(steps) {}
  std::tuple<Tensor, Tensor> operator()(Tensor x, Tensor h, Tensor c) const {
    for (int step = 0; step < steps_; ++step) {
      const std::vector<Tensor> gates = (torch::mm(x, wi_) + torch::mm(h, wh_)).chunk(4, 1);
      c = torch::sigmoid(gates[1]) * c + torch::sigmoid(gates[0]) * torch::tanh(gates[2]);
      h = torch::sigmoid(gates[3]) * torch::tanh(c);
    }
    return std::make_tuple(h, c);
  }

 private:
  int steps_;
  Tensor wi_ = torch::rand({8, 32}) / 8, wh_ = torch::rand({8, 32}) / 8;
};

TEST(TraceSizeNight, AHundredThousandOperators) {
  const UnrolledLstm program(6700);
  const Tensor x = torch::rand({2, 8});
  for (const bool shapes : {false, true}) {
    const auto gm = symbolic_trace(program, shapes ? std::vector<c10::IValue>{x, x, x} : std::vector<c10::IValue>{});
    EXPECT_GT(gm->graph().size(), 100000U);
    EXPECT_LT(gm->graph().memory_bytes(), 300U * gm->graph().size());
    gm->graph().lint();
  }
}

TEST(TraceSize, AnOperatorCostsTheSameHoweverManyThereAre) {
  const Tensor x = torch::rand({2, 8});
  const auto allocations_per_node = [&](int steps) {
    const UnrolledLstm program(steps);
    std::size_t nodes = 0;
    const std::size_t count = testing::allocations_of([&] {
      nodes = symbolic_trace(program, {x, x, x})->graph().size();
    });
    return static_cast<double>(count) / static_cast<double>(nodes);
  };
  allocations_per_node(100);  // what is made once
  const double few = allocations_per_node(420), many = allocations_per_node(4200);
  EXPECT_GT(few, 0);
  EXPECT_NEAR(many / few, 1, 0.1) << few << " allocations per node of 6 000, " << many << " of 60 000";
}

}  // namespace fx::isolation_test
