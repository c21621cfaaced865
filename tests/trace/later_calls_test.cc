// What a module keeps where nobody looks, and what decides only in a later call.
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>

#include "tests/trace/sizes_testing.h"

namespace fx::later_calls_test {

using ::testing::HasSubstr;
using torch::Tensor;

Tensor either(bool late, const Tensor& x) { return late ? x * 2 : x + 1; }

struct Counts : torch::nn::Module {
  int calls = 0;
  Tensor forward(Tensor x) {
    ++calls;
    return x * 2;
  }
};
struct DecidesByPointer : torch::nn::Module {
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  int when = 3;
  explicit DecidesByPointer(int after) : when(after) {}
  Tensor forward(Tensor x) { return either(++*calls >= when, x); }
};
struct Hidden {
  std::vector<int> history;
  std::map<std::string, int> counts;
};
struct DecidesByList : torch::nn::Module {
  std::unique_ptr<Hidden> hidden = std::make_unique<Hidden>();
  Tensor forward(Tensor x) {
    hidden->history.push_back(1);
    return either(hidden->history.size() > 3, x);
  }
};
struct DecidesByMap : torch::nn::Module {
  std::map<std::string, int> counts;
  Tensor forward(Tensor x) { return either(++counts["calls"] > 4, x); }
};
struct DecidesByElement : torch::nn::Module {
  std::vector<int> counts = {0, 0, 0};
  Tensor forward(Tensor x) { return either(++counts[1] > 3, x); }
};

struct CountsBesideAMap : torch::nn::Module {
  std::int64_t before = 0;
  std::map<int, double> history;
  Tensor forward(Tensor x) {
    history[static_cast<int>(history.size())] = 1;
    return either(++before > 500, x);
  }
};
struct CountsNothing : torch::nn::Module {
  std::vector<double> history;
  std::map<int, double> by_number;
  std::list<int> list;
  std::unordered_map<int, int> hashed;
  Tensor forward(Tensor x) {
    history.push_back(1);
    by_number[static_cast<int>(history.size())] = 1;
    list.push_back(1);
    hashed[static_cast<int>(history.size())] = 1;
    return x * 2;
  }
};

template <typename Module, typename... Args>
std::string refusal(Args... args) {
  const auto module = std::make_shared<Module>(args...);
  return testing::error_thrown_by([&] { symbolic_trace(module, {torch::rand({2, 3})}); }).what();
}

// What only counts is nobody's state, and a decision beyond the runs that were made is not seen.
TEST(LaterCalls, CountersThatNobodyReads) {
  EXPECT_NO_THROW(symbolic_trace(std::make_shared<CountsNothing>(), {torch::rand({2, 3})}));
  EXPECT_NO_THROW(symbolic_trace(std::make_shared<CountsBesideAMap>(), {torch::rand({2, 3})}));
  const auto counts = std::make_shared<Counts>();
  symbolic_trace(counts, {torch::rand({2, 3})});
  EXPECT_LE(counts->calls, 20);
}

TEST(LaterCalls, WhatDecidesInTheThirdOrFifth) {
  for (const int when : {3, 4, 5}) EXPECT_THAT(refusal<DecidesByPointer>(when), HasSubstr("later call")) << when;
  EXPECT_THAT(refusal<DecidesByList>(), HasSubstr("later call"));
  EXPECT_THAT(refusal<DecidesByMap>(), HasSubstr("later call"));
  EXPECT_THAT(refusal<DecidesByElement>(), HasSubstr("later call"));
}

// ── At other sizes than the call before
// ───────────────────────────────────────────────────────────────────────────────

struct KeepsByLength : torch::nn::Module {
  torch::nn::Linear project = register_module("project", torch::nn::Linear(4, 3));
  Tensor cache;
  std::int64_t length = 0;
  using Step = std::function<Tensor(KeepsByLength&, Tensor)>;
  Step step;
  explicit KeepsByLength(Step given) : step(std::move(given)) { eval(); }
  Tensor forward(Tensor x) { return step(*this, std::move(x)); }
};

struct LengthCase {
  const char* name;
  KeepsByLength::Step step;
};
std::ostream& operator<<(std::ostream& out, const LengthCase& c) { return out << c.name; }

class LengthsOfCalls : public ::testing::TestWithParam<LengthCase> {};

// In each sequence of calls the graph is what the program is in its first call at that length, or is refused there.
TEST_P(LengthsOfCalls, AreSeenTogether) {
  for (const std::vector<std::int64_t>& first : {std::vector<std::int64_t>{1, 8, 4}, {2, 5, 4}}) {
    const auto net = std::make_shared<KeepsByLength>(GetParam().step);
    const auto gm = symbolic_trace(net, {torch::rand(first)});
    EXPECT_FALSE(net->cache.defined() && is_proxy(net->cache));
    for (const std::int64_t length : {8, 1, 3, 1}) {
      const auto twin = std::make_shared<KeepsByLength>(GetParam().step);
      for (auto& each : twin->named_parameters()) each.value().detach().copy_(net->named_parameters()[each.key()]);
      const Tensor x = torch::rand({first[0], length, 4});
      EXPECT_NE(testing::at_sizes(*gm, [&]() -> c10::IValue { return twin->forward(x); }, {x}), testing::AtSizes::wrong)
          << length;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, LengthsOfCalls,
                         ::testing::Values(LengthCase{"cache_is_read_by_single_steps",
                                                      [](KeepsByLength& m, Tensor x) {
                                                        Tensor k = m.project(x);
                                                        if (x.size(1) == 1 && m.cache.defined())
                                                          k = torch::cat({m.cache, k}, 1);
                                                        m.cache = k;
                                                        return k.sum(1);
                                                      }},
                                           LengthCase{"cache_is_read_by_others",
                                                      [](KeepsByLength& m, Tensor x) {
                                                        Tensor k = m.project(x);
                                                        if (m.cache.defined() && m.cache.size(1) != k.size(1))
                                                          k = torch::cat({m.cache, k}, 1);
                                                        m.cache = m.project(x);
                                                        return k.sum(1);
                                                      }},
                                           LengthCase{"length_of_the_call_before",
                                                      [](KeepsByLength& m, Tensor x) {
                                                        Tensor k = m.project(x);
                                                        if (m.length != 0 && m.length != x.size(1)) k = k * 2;
                                                        m.length = x.size(1);
                                                        return k.sum(1);
                                                      }},
                                           LengthCase{"kept_to_be_looked_at",
                                                      [](KeepsByLength& m, Tensor x) {
                                                        m.cache = m.project(x);
                                                        return m.cache.sum(1) * x.size(1);
                                                      }},
                                           LengthCase{"mask_that_is_made_again",
                                                      [](KeepsByLength& m, Tensor x) {
                                                        if (!m.cache.defined() || m.cache.size(0) != x.size(1))
                                                          m.cache = torch::ones({x.size(1)});
                                                        return m.project(x).sum(2) * m.cache;
                                                      }}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::later_calls_test
