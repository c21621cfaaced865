// Members of every kind, changed in forward: a trace puts them back, or leaves them alone, and never breaks them.
#include <fxgraph/trace/member_state.h>

#include <cstdlib>

#include "tests/trace/chest_module.h"
#include "tests/trace/heap_shaker.h"
#include "tests/trace/honesty.h"
#include "tests/trace/member_state_cases.h"

namespace fx::member_state_test {

using Case = testing::MemberCase;
using testing::Chest;
using torch::Tensor;

class MemberStates : public ::testing::TestWithParam<Case> {};

std::string verdict_on(const Case& c) {
  const std::vector<testing::Inputs> inputs = {{torch::rand({2, 3})}, {torch::rand({4, 3}) - 0.5}};
  return testing::honesty(
      [&] { return std::make_shared<Chest>(c.step); },
      [](Chest& module, testing::Inputs& in) -> c10::IValue { return module.forward(in[0].toTensor()); }, inputs);
}

// "kept" is what cannot be put back: the trace is refused, and the module is as before, or as after a call.
bool is_as_wanted(const Case& c, const std::string& verdict) {
  if (std::string(c.want) == "kept") return verdict.starts_with("refused: ") || testing::is_moved_on(verdict);
  return testing::is_honest(verdict) && verdict.starts_with(c.want);
}

TEST_P(MemberStates, AreAsBefore) {
  const std::string verdict = verdict_on(GetParam());
  EXPECT_TRUE(is_as_wanted(GetParam(), verdict)) << "wanted " << GetParam().want << ", got " << verdict;
}

// Whatever the heap holds where members come to lie. FXGRAPH_HEAP_SEEDS says how often, FXGRAPH_HEAP_SEED where to
// begin.
TEST(MemberStateTable, IsTheSameOnEveryHeap) {
  const auto number = [](const char* name, int otherwise) {
    const char* value = std::getenv(name);
    return value ? std::atoi(value) : otherwise;
  };
  const int begin = number("FXGRAPH_HEAP_SEED", 1), count = number("FXGRAPH_HEAP_SEEDS", 2);
  for (int seed = begin; seed < begin + count; ++seed) {
    testing::HeapShaker heap(static_cast<std::uint32_t>(seed));
    for (const Case& c : testing::member_cases()) {
      heap.shake();
      const std::string verdict = verdict_on(c);
      EXPECT_TRUE(is_as_wanted(c, verdict))
          << c.name << " on heap " << seed << ": wanted " << c.want << ", got " << verdict;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Members, MemberStates, ::testing::ValuesIn(testing::member_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// ── Modules that lie elsewhere
// ─────────────────────────────────────────────────────────────────────────────────────────

struct Keeper : torch::nn::Module {
  Tensor cache;
  std::int64_t count = 0;
  Tensor forward(Tensor x) {
    ++count;
    cache = cache.defined() ? torch::cat({cache, x}) : x * 1;
    return cache.sum(0);
  }
};

struct Other {
  virtual ~Other() = default;
  Tensor kept = torch::ones({3});
  std::int64_t number = 3;
};
struct Virtual : Other, virtual torch::nn::Module {
  Tensor cache;
  Tensor forward(Tensor x) {
    number += 1;
    kept = kept + x.sum(0);
    cache = x * 2;
    return x + kept;
  }
};

struct TwoParents : torch::nn::Module {
  explicit TwoParents(const std::shared_ptr<Keeper>& shared) : child(register_module("child", shared)) {}
  std::shared_ptr<Keeper> child;
  Tensor forward(Tensor x) { return child->forward(x); }
};
struct Grandparent : torch::nn::Module {
  std::shared_ptr<Keeper> keeper = std::make_shared<Keeper>();
  std::shared_ptr<TwoParents> a = register_module("a", std::make_shared<TwoParents>(keeper));
  std::shared_ptr<TwoParents> b = register_module("b", std::make_shared<TwoParents>(keeper));
  Tensor forward(Tensor x) { return a->forward(x) + b->forward(x); }
};

const std::vector<c10::IValue>& examples() {
  static const auto& values = *new std::vector<c10::IValue>{torch::rand({2, 3})};
  return values;
}

TEST(MemberStateOf, AModuleOnTheStack) {
  Keeper keeper;
  EXPECT_FX_ERROR(symbolic_trace(keeper, examples()), trace, ::testing::HasSubstr("second call"));
  EXPECT_FALSE(keeper.cache.defined());
  EXPECT_EQ(keeper.count, 0);
}

TEST(MemberStateOf, AModuleWithVirtualBases) {
  const auto net = std::make_shared<Virtual>();
  const Tensor kept = net->kept;
  EXPECT_FX_ERROR(symbolic_trace(net, examples()), trace, ::testing::HasSubstr("symbolic_trace"));
  EXPECT_FALSE(net->cache.defined());
  EXPECT_TRUE(net->kept.is_same(kept));
  EXPECT_EQ(net->number, 3);
}

TEST(MemberStateOf, AModuleMadeByNew) {
  const std::shared_ptr<Virtual> net(new Virtual);
  EXPECT_FX_ERROR(symbolic_trace(net, examples()), trace, ::testing::HasSubstr("symbolic_trace"));
  EXPECT_FALSE(net->cache.defined());
  EXPECT_EQ(net->number, 3);
}

TEST(MemberStateOf, AModuleInsideOfAnother) {
  struct Owner {
    std::array<std::int64_t, 4> before = {1, 2, 3, 4};
    Keeper keeper;
    std::array<std::int64_t, 4> behind = {5, 6, 7, 8};
  };
  const std::shared_ptr<Owner> made = std::make_shared<Owner>(), owned(new Owner);
  for (const std::shared_ptr<Owner>& owner : {made, owned}) {
    const std::shared_ptr<Keeper> net(owner, &owner->keeper);
    // Of what is behind a pointer to another object, nobody knows how large it is.
    const char* why = owner == made ? "second call" : "cannot be put back";
    EXPECT_FX_ERROR(symbolic_trace(net, examples()), trace, ::testing::HasSubstr(why));
    EXPECT_EQ(owner->before, (std::array<std::int64_t, 4>{1, 2, 3, 4}));
    EXPECT_EQ(owner->behind, (std::array<std::int64_t, 4>{5, 6, 7, 8}));
  }
  EXPECT_FALSE(made->keeper.cache.defined());
  EXPECT_EQ(made->keeper.count, 0);
}

TEST(MemberStateOf, AModuleOfTwoParents) {
  const auto net = std::make_shared<Grandparent>();
  EXPECT_FX_ERROR(symbolic_trace(net, examples()), trace, ::testing::HasSubstr("second call"));
  EXPECT_FALSE(net->keeper->cache.defined());
  EXPECT_EQ(net->keeper->count, 0);
  EXPECT_EQ(net->forward(torch::ones({2, 3})).sum().item<float>(), 18);
}

// What an earlier call of the program left is there after the trace.
TEST(MemberStateOf, AModuleThatHasRun) {
  struct Looks : torch::nn::Module {
    Tensor last;
    Tensor forward(Tensor x) { return last = torch::softmax(x, 1); }
  };
  const auto net = std::make_shared<Looks>();
  net->forward(torch::rand({2, 3}));
  const Tensor last = net->last;
  const auto gm = symbolic_trace(net, examples());
  EXPECT_TRUE(net->last.is_same(last));
  EXPECT_EQ(last.use_count(), 2);
}

}  // namespace fx::member_state_test
