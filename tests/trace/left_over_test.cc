// Traced tensors that a module keeps where a trace cannot put anything back: it is refused, and the module goes on as
// after one call on the examples.
#include <list>
#include <map>
#include <unordered_map>

#include "tests/trace/trace_testing.h"

namespace fx::left_over_test {

using ::testing::HasSubstr;
using testing::same_value;

using torch::Tensor;

// Keeps what it computes in a map.
struct Memo : torch::nn::Module {
  Tensor w = register_parameter("w", torch::full({3}, 2.0));
  std::map<std::int64_t, Tensor> known;
  std::int64_t calls = 0;
  Tensor forward(Tensor x) {
    ++calls;
    Tensor& product = known[x.size(1)];
    product = product.defined() ? product + x * w : x * w;
    return product * 3;
  }
};

TEST(LeftOver, InAMapIsAsAfterOneCall) {
  const auto net = std::make_shared<Memo>(), twin = std::make_shared<Memo>();
  const Tensor example = torch::rand({2, 3});
  EXPECT_FX_ERROR(symbolic_trace(net, {example}), trace, HasSubstr("Memo"), HasSubstr("a call on the examples"));
  EXPECT_EQ(net->calls, 0);
  ASSERT_EQ(net->known.size(), 1U);
  EXPECT_FALSE(is_proxy(net->known[3]));
  twin->forward(example);
  EXPECT_TRUE(same_value(net->known[3], twin->known[3]));
  const Tensor x = torch::rand({2, 3});
  const Tensor ours = net->forward(x), theirs = twin->forward(x);
  EXPECT_TRUE(same_value(ours, theirs));
  ours.sum().backward();
  theirs.sum().backward();
  EXPECT_TRUE(same_value(net->w.grad(), twin->w.grad()));
}

TEST(LeftOver, CanBeTracedAgain) {
  const auto net = std::make_shared<Memo>();
  const Tensor example = torch::rand({2, 3});
  for (int i = 1; i < 4; ++i) {
    EXPECT_FX_ERROR(symbolic_trace(net, {example}), trace, HasSubstr("Memo"));
    EXPECT_TRUE(same_value(net->known[3], example * 2, 1e-6)) << i;  // what was there before is known by now
  }
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

TEST(LeftOver, InAListIsThereOnce) {
  const auto net = std::make_shared<ListOfStructs>();
  const Tensor example = torch::rand({2, 3});
  torch::manual_seed(4);
  const Tensor random = torch::rand({3});
  torch::manual_seed(4);
  EXPECT_FX_ERROR(symbolic_trace(net, {example}), trace, HasSubstr("ListOfStructs"));
  EXPECT_TRUE(same_value(torch::rand({3}), random));  // nobody has drawn
  ASSERT_EQ(net->entries.size(), 1U);
  EXPECT_TRUE(same_value(net->entries.front().value, example * 2));
  EXPECT_EQ(net->entries.front().noise.sizes(), torch::IntArrayRef({3}));
  EXPECT_TRUE(same_value(net->forward(example), example * 3, 1e-6));
}

struct BehindPointers : torch::nn::Module {
  struct Part {
    Tensor state = torch::ones({3});
    std::unordered_map<std::string, Tensor> named = {{"a", torch::zeros({3})}};
  };
  std::unique_ptr<Part> part = std::make_unique<Part>();
  std::shared_ptr<Tensor> shared = std::make_shared<Tensor>(torch::full({3}, 5.0));
  Tensor forward(Tensor x) {
    part->state = part->state + x.sum(0);
    part->named["a"] = part->named["a"] + 1;
    *shared = *shared * 2;
    return x + part->state + part->named["a"] + *shared;
  }
};

TEST(LeftOver, WhatItTookThePlaceOfIsThereAgain) {
  const auto net = std::make_shared<BehindPointers>(), twin = std::make_shared<BehindPointers>();
  const Tensor x = torch::rand({2, 3});
  EXPECT_FX_ERROR(symbolic_trace(net, {x}), trace, HasSubstr("BehindPointers"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_value(net->forward(x), twin->forward(x))) << i;
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

TEST(LeftOver, OfAnotherModeOrSizeIsOrdinary) {
  const Tensor x = torch::rand({2, 3});
  for (const bool by_size : {false, true}) {
    const auto net = std::make_shared<KeepsElsewhere>();
    net->by_size = by_size;
    net->eval();
    EXPECT_FX_ERROR(symbolic_trace(net, {x}), trace, HasSubstr("KeepsElsewhere"));
    EXPECT_FALSE(net->is_training());
    EXPECT_EQ(net->of_size.empty(), !by_size);
    EXPECT_EQ(net->of_mode.empty(), by_size);
    for (const auto& [size, tensor] : net->of_size) EXPECT_EQ((tensor + 1).size(0), size);
    for (const auto& each : net->of_mode) EXPECT_TRUE(same_value(each.second, x * 2));
  }
}

// Without examples nothing has a value: the tensor says so.
TEST(LeftOver, WithoutExamplesSaysSo) {
  struct Keeps : torch::nn::Module {
    std::map<int, Tensor> kept;
    Tensor forward(Tensor x) { return kept[1] = x * 2; }
  };
  const auto net = std::make_shared<Keeps>();
  EXPECT_FX_ERROR(symbolic_trace(net), trace, HasSubstr("Keeps"));
  EXPECT_FX_ERROR(net->kept[1] * 2, trace, HasSubstr("trace that has ended"));
}

}  // namespace fx::left_over_test
