// Traced tensors that a program keeps, wherever that is: after the trace an ordinary one lies there, which a call on
// the examples would have left.
#include <list>
#include <map>
#include <unordered_map>

#include "tests/trace/trace_testing.h"

namespace fx::left_over_test {

using ::testing::HasSubstr;
using testing::same_value;

using torch::Tensor;

// Keeps what it computes in a map, and reads it in the next call.
struct Memo : torch::nn::Module {
  Tensor w = register_parameter("w", torch::full({3}, 2.0));
  std::map<std::int64_t, Tensor> known;
  Tensor forward(Tensor x) {
    Tensor& product = known[x.size(1)];
    product = product.defined() ? product + x * w : x * w;
    return product * 3;
  }
};

TEST(LeftOver, OfARefusedProgramIsOrdinary) {
  const auto net = std::make_shared<Memo>();
  const Tensor example = torch::rand({2, 3});
  for (int i = 1; i < 4; ++i) {
    EXPECT_FX_ERROR(symbolic_trace(net, {example}), trace, HasSubstr("second call"), HasSubstr("TraceOptions::state"));
    ASSERT_EQ(net->known.size(), 1U);
    EXPECT_FALSE(is_proxy(net->known[3]));
  }
  const Tensor before = net->known[3].detach();
  EXPECT_TRUE(same_value(net->forward(example), (before + example * 2) * 3, 1e-5));
  net->forward(example).sum().backward();
  EXPECT_TRUE(net->w.grad().defined());
}

struct ListOfStructs : torch::nn::Module {
  struct Entry {
    int number;
    Tensor value, noise;
  };
  std::list<Entry> entries;
  Tensor forward(Tensor x) {
    entries.push_back({1, x * 2, torch::rand({3})});
    return x + entries.front().value;
  }
};

TEST(LeftOver, DrawsNoRandomNumbers) {
  const auto net = std::make_shared<ListOfStructs>();
  const Tensor example = torch::rand({2, 3});
  torch::manual_seed(4);
  const Tensor random = torch::rand({3});
  torch::manual_seed(4);
  EXPECT_FX_ERROR(symbolic_trace(net, {example}), trace, HasSubstr("second call"));
  EXPECT_TRUE(same_value(torch::rand({3}), random));
  for (const ListOfStructs::Entry& entry : net->entries) {
    EXPECT_TRUE(same_value(entry.value, example * 2));
    EXPECT_EQ(entry.noise.sizes(), torch::IntArrayRef({3}));
  }
  EXPECT_TRUE(same_value(net->forward(example), example * 3, 1e-6));
}

// Nobody reads it but who looks at it.
struct Looks : torch::nn::Module {
  struct Part {
    std::unordered_map<std::string, Tensor> named;
  };
  torch::nn::Linear project = register_module("project", torch::nn::Linear(3, 3));
  std::unique_ptr<Part> part = std::make_unique<Part>();
  std::shared_ptr<Tensor> shared = std::make_shared<Tensor>();
  Tensor attention;
  Tensor forward(Tensor x) {
    attention = torch::softmax(project(x), -1);
    part->named["twice"] = attention * 2;
    *shared = x.detach() + 1;
    return attention.matmul(x.t());
  }
};

TEST(LeftOver, IsWhatACallOnTheExamplesLeaves) {
  const auto net = std::make_shared<Looks>();
  const Tensor x = torch::rand({2, 3});
  const auto gm = symbolic_trace(net, {x});
  const Tensor expected = torch::softmax(net->project(x), -1);
  EXPECT_TRUE(same_value(net->attention, expected, 1e-6));
  EXPECT_TRUE(same_value(net->part->named["twice"], expected * 2, 1e-6));
  EXPECT_TRUE(same_value(*net->shared, x + 1));
  const Tensor other = torch::rand({5, 3});
  EXPECT_TRUE(same_value(gm->forward(other), net->forward(other), 1e-6));
}

struct FailsLate : torch::nn::Module {
  std::map<std::string, Tensor> kept;
  Tensor forward(Tensor x) {
    kept["sum"] = x.sum(0);
    if (is_proxy(x)) throw std::runtime_error("not like this");
    return x + kept["sum"];
  }
};

TEST(LeftOver, OfAProgramThatFailsIsOrdinary) {
  const auto net = std::make_shared<FailsLate>();
  const Tensor x = torch::rand({2, 3});
  EXPECT_ANY_THROW(symbolic_trace(net, {x}));
  EXPECT_TRUE(same_value(net->kept["sum"] * 2, x.sum(0) * 2));
  EXPECT_TRUE(same_value(net->forward(x), x + x.sum(0)));
}

// Of other calls than the first: the other mode, other sizes.
struct KeepsElsewhere : torch::nn::Module {
  std::map<std::int64_t, Tensor> of_size;
  std::map<bool, Tensor> of_mode;
  bool by_size = false;
  Tensor forward(Tensor x) {
    if (by_size && x.size(0) != 2) of_size[x.size(0)] = x * 2;
    if (!by_size && is_training()) of_mode[true] = x * 2;
    return x * 3;
  }
};

TEST(LeftOver, OfAnotherModeIsOrdinary) {
  const Tensor x = torch::rand({2, 3});
  const auto net = std::make_shared<KeepsElsewhere>();
  net->eval();
  symbolic_trace(net, {x});
  EXPECT_FALSE(net->is_training());
  ASSERT_EQ(net->of_mode.size(), 1U);
  EXPECT_TRUE(same_value(net->of_mode[true], x * 2));
}

TEST(LeftOver, OfAnotherSizeSaysSo) {
  const auto net = std::make_shared<KeepsElsewhere>();
  net->by_size = true;
  try {
    symbolic_trace(net, {torch::rand({2, 3})});
  } catch (const Error&) {
  }
  ASSERT_FALSE(net->of_size.empty());
  for (const auto& [size, tensor] : net->of_size) EXPECT_FX_ERROR(tensor + 1, trace, HasSubstr("trace that has ended"));
}

// Without examples nothing has a value.
TEST(LeftOver, WithoutExamplesIsRefused) {
  struct Keeps : torch::nn::Module {
    std::map<int, Tensor> kept;
    Tensor forward(Tensor x) { return kept[1] = x * 2; }
  };
  const auto net = std::make_shared<Keeps>();
  EXPECT_FX_ERROR(symbolic_trace(net), trace, HasSubstr("keeps %mul ("), HasSubstr("give examples"));
  EXPECT_FX_ERROR(net->kept[1] * 2, trace, HasSubstr("trace that has ended"));
}

}  // namespace fx::left_over_test
