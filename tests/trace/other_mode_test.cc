// What a program does only in the mode in which it was not traced: train() and eval() follow it, or are refused.
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "tests/trace/trace_testing.h"

namespace fx::other_mode_test {

using torch::Tensor;

struct Net : torch::nn::Module {
  using Step = std::function<Tensor(Net&, Tensor)>;
  explicit Net(Step given) : step(std::move(given)) {}
  Tensor forward(Tensor x) { return step(*this, std::move(x)); }

  Step step;
  torch::nn::Linear encode = register_module("encode", torch::nn::Linear(4, 3));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(3));
  torch::nn::Linear mean = register_module("mean", torch::nn::Linear(3, 2));
  torch::nn::Linear spread = register_module("spread", torch::nn::Linear(3, 2));
  torch::nn::Linear decode = register_module("decode", torch::nn::Linear(2, 4));
  torch::nn::Dropout drop = register_module("drop", torch::nn::Dropout(0.5));
  torch::nn::BatchNorm2d image_norm = register_module("image_norm", torch::nn::BatchNorm2d(4));
  torch::nn::InstanceNorm1d instance_norm = register_module("instance_norm", torch::nn::InstanceNorm1d(4));
  Tensor running = register_buffer("running", torch::ones({3}));
  Tensor cache;
  std::int64_t steps = 0;
};

struct Case {
  const char* name;
  bool follows;  // else the switch is refused
  Net::Step step;
  std::vector<std::int64_t> example;
  std::vector<std::vector<std::int64_t>> later{};  // sizes of calls in the other mode
  void (*prepare)(Net&) = [](Net&) {};             // the modes of modules below, when the root has its own
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

std::shared_ptr<Net> make(const Case& c, bool training) {
  torch::manual_seed(0);
  const auto net = std::make_shared<Net>(c.step);
  net->train(training);
  c.prepare(*net);
  return net;
}

// One that has the numbers of the other's draws.
void expect_same(GraphModule& traced, Net& twin, const std::vector<std::int64_t>& sizes) {
  torch::manual_seed(5);
  const Tensor x = torch::rand(sizes);
  const auto run = [&](auto&& call) {
    torch::manual_seed(6);
    return call();
  };
  Tensor ours;
  try {
    ours = run([&] { return traced.forward(x); });
  } catch (const Error&) {
    return;  // at these sizes, by name
  }
  EXPECT_TRUE(testing::same_value(ours, run([&] { return twin.forward(x); }), 1e-6)) << x.sizes();
}

class OtherMode : public ::testing::TestWithParam<Case> {
 protected:
  static void expect_honest(bool training) {
    const Case& c = GetParam();
    for (const bool to : {!training, training}) {
      SCOPED_TRACE(std::string(training ? "from train() to " : "from eval() to ") + (to ? "train()" : "eval()"));
      const auto net = make(c, training), twin = make(c, training);
      std::shared_ptr<GraphModule> traced;
      try {
        traced = symbolic_trace(net, {torch::rand(c.example)});
      } catch (const Error&) {
        EXPECT_FALSE(c.follows);
        continue;
      }
      EXPECT_EQ(traced->fixed_mode().empty(), c.follows) << traced->fixed_mode();
      if (!traced->fixed_mode().empty() && to != training) {
        EXPECT_FX_ERROR(traced->train(to), unsupported, ::testing::HasSubstr("the graph does not follow"));
        continue;
      }
      if (!traced->fixed_mode().empty()) continue;
      expect_same(*traced, *twin, c.example);
      traced->train(to);
      twin->train(to);
      for (int round = 0; round < 2; ++round) {
        for (const auto& sizes : c.later) expect_same(*traced, *twin, sizes);
      }
    }
  }
};

// Training has no statistics of one value: a larger example shows what the program does there.
using WhereOneIsTooFew = OtherMode;
TEST_P(WhereOneIsTooFew, IsFollowedOrRefused) { expect_honest(false); }

Tensor autoencode(Net& m, const Tensor& x) {
  const Tensor h = torch::relu(m.norm(m.encode(x)));
  Tensor y = m.mean(h);
  if (m.is_training()) y = y + torch::randn_like(y) * torch::exp(m.spread(h) * 0.5);
  return m.decode(y);
}

const std::vector<Case>& of_one() {
  static const auto& table = *new std::vector<Case>{
      {"noise", false, autoencode, {1, 4}, {{16, 4}}},
      {"norm_alone", false, [](Net& m, Tensor x) { return m.norm(m.encode(x)); }, {1, 4}, {{16, 4}, {2, 4}}},
      {"norm_and_dropout", false, [](Net& m, Tensor x) { return m.drop(m.norm(m.encode(x))); }, {1, 4}, {{16, 4}}},
      {"norm_and_dropout_by_flag",
       false,
       [](Net& m, Tensor x) { return torch::dropout(m.norm(m.encode(x)), 0.3, m.is_training()); },
       {1, 4},
       {{16, 4}}},
      {"another_factor",
       false,
       [](Net& m, Tensor x) { return m.norm(m.encode(x)) * (m.is_training() ? 2 : 3); },
       {1, 4},
       {{16, 4}}},
      {"norm_of_one_pixel",
       false,
       [](Net& m, Tensor x) {
         return m.image_norm(x.mean({2, 3}, true)) * x;
       },
       {1, 4, 5, 5},
       {{6, 4, 5, 5}}},
      {"norm_of_one_pixel_and_noise",
       false,
       [](Net& m, Tensor x) {
         x = m.image_norm(x.mean({2, 3}, true)) * x;
         return m.is_training() ? x + torch::randn_like(x) : x;
       },
       {1, 4, 5, 5},
       {{6, 4, 5, 5}}},
      {"norm_of_what_is_turned",
       false,
       [](Net& m, Tensor x) { return m.norm(m.encode(x.transpose(0, 1).select(1, 0))); },
       {3, 1, 4},
       {{3, 16, 4}}},
      {"norm_of_what_is_turned_and_noise",
       false,
       [](Net& m, Tensor x) {
         x = m.norm(m.encode(x.transpose(0, 1).select(1, 0)));
         return m.is_training() ? x * 2 : x;
       },
       {3, 1, 4},
       {{3, 16, 4}}},
      {"norm_of_a_sum",
       false,  // never of more than one value
       [](Net& m, Tensor x) {
         x = m.norm(m.encode(x).sum(0, true));
         return m.is_training() ? x * 2 : x;
       },
       {1, 4}},
      {"instance_norm", true, [](Net& m, Tensor x) { return m.instance_norm(x); }, {2, 4, 6}, {{2, 4, 7}}},
      {"one_at_a_time_otherwise",  // asserted: no size does in train()
       false,
       [](Net& m, Tensor x) {
         x = m.norm(m.encode(x));
         return x.size(0) == 1 ? x * 2 : x * 3;
       },
       {1, 4},
       {{16, 4}}},
  };
  return table;
}
INSTANTIATE_TEST_SUITE_P(Programs, WhereOneIsTooFew, ::testing::ValuesIn(of_one()),
                         [](const auto& info) { return std::string(info.param.name); });

using StateOfOneMode = OtherMode;
TEST_P(StateOfOneMode, IsRefusedInTheOther) { expect_honest(GetParam().name[0] == 'e'); }

// Traced in train() where the name begins with `eval`: what is kept there.
const std::vector<Case>& of_state() {
  static const auto& table = *new std::vector<Case>{
      {"eval_grows_a_cache",
       false,
       [](Net& m, Tensor x) {
         Tensor k = m.encode(x);
         if (!m.is_training()) {
           if (m.cache.defined()) k = torch::cat({m.cache, k}, 1);
           m.cache = k;
         }
         return k.sum(1);
       },
       {2, 3, 4},
       {{2, 3, 4}}},
      {"eval_keeps_to_look",
       true,
       [](Net& m, Tensor x) {
         const Tensor k = m.encode(x);
         if (!m.is_training()) m.cache = k;
         return k.sum(1);
       },
       {2, 3, 4},
       {{2, 3, 4}}},
      {"train_counts",
       false,
       [](Net& m, Tensor x) {
         const Tensor y = m.encode(x) / static_cast<double>(m.steps + 1);
         if (m.is_training()) ++m.steps;
         return y;
       },
       {2, 4},
       {{2, 4}}},
      {"train_counts_for_later",  // no run comes so far
       true,
       [](Net& m, Tensor x) {
         if (m.is_training()) ++m.steps;
         return m.encode(x) * (m.steps > 500 ? 2 : 1);
       },
       {2, 4},
       {{2, 4}}},
      {"train_counts_elsewhere",
       false,
       [count = std::make_shared<int>(0)](Net& m, Tensor x) {
         return m.is_training() ? m.encode(x) * (++*count > 1 ? 2 : 1) : m.encode(x);
       },
       {2, 4},
       {{2, 4}}},
      {"train_makes_a_mask_once",
       true,
       [](Net& m, Tensor x) {
         if (m.is_training() && !m.cache.defined()) m.cache = torch::ones({3});
         return m.encode(x);
       },
       {2, 4},
       {{2, 4}}},
      {"train_keeps_the_last",
       false,
       [](Net& m, Tensor x) {
         Tensor y = m.encode(x);
         if (m.is_training()) {
           if (m.cache.defined()) y = y + m.cache;
           m.cache = x.mean();
         }
         return y;
       },
       {2, 4},
       {{2, 4}}},
      {"train_switches_a_child",
       false,
       [](Net& m, Tensor x) {
         x = m.drop(m.encode(x));
         if (m.is_training()) m.drop->eval();
         return x;
       },
       {2, 4},
       {{2, 4}}},
  };
  return table;
}
INSTANTIATE_TEST_SUITE_P(Programs, StateOfOneMode, ::testing::ValuesIn(of_state()),
                         [](const auto& info) { return std::string(info.param.name); });

using SizesOfOneMode = OtherMode;
TEST_P(SizesOfOneMode, AreRefusedInTheOther) { expect_honest(false); }

const std::vector<Case>& of_sizes() {
  static const auto& table = *new std::vector<Case>{
      {"several_at_a_time",
       false,
       [](Net& m, Tensor x) {
         x = m.encode(x);
         return m.is_training() && x.size(0) > 1 ? x - x.mean(0) : x;
       },
       {1, 4},
       {{3, 4}}},
      {"sizes_are_numbers_in_both",
       true,
       [](Net& m, Tensor x) {
         return torch::dropout(m.encode(x).view({x.size(1), -1}), 0.5, m.is_training());
       },
       {2, 6, 4},
       {{2, 6, 4}, {5, 9, 4}}},
      {"a_norm_asks_for_more_than_one",
       true,
       [](Net& m, Tensor x) {
         return m.norm(m.encode(x)).view({x.size(0), -1});
       },
       {2, 4},
       {{2, 4}, {9, 4}}},
      {"numbers_of_sizes_in_one",
       false,
       [](Net& m, Tensor x) { return x * static_cast<double>(m.is_training() ? x.size(0) : 2); },
       {2, 4},
       {{3, 4}}},
  };
  return table;
}
INSTANTIATE_TEST_SUITE_P(Programs, SizesOfOneMode, ::testing::ValuesIn(of_sizes()),
                         [](const auto& info) { return std::string(info.param.name); });

using ModesBelow = OtherMode;
TEST_P(ModesBelow, AreFollowedOrRefused) {
  expect_honest(false);
  expect_honest(true);
}

void invert_dropout(Net& m) { m.drop->train(!m.is_training()); }

const std::vector<Case>& of_modes() {
  static const auto& table = *new std::vector<Case>{
      {"dropout_by_module",
       false,
       [](Net& m, Tensor x) { return m.drop(m.encode(x)); },
       {2, 4},
       {{2, 4}},
       invert_dropout},
      {"dropout_by_flag",
       false,
       [](Net& m, Tensor x) { return torch::dropout(m.encode(x), 0.3, m.drop->is_training()); },
       {2, 4},
       {{2, 4}},
       invert_dropout},
      {"dropout_by_both_flags",
       false,
       [](Net& m, Tensor x) {
         x = torch::dropout(m.encode(x), 0.3, m.drop->is_training());
         return torch::dropout(x, 0.4, m.is_training());
       },
       {2, 4},
       {{2, 4}},
       invert_dropout},
      {"norm",
       false,
       [](Net& m, Tensor x) { return m.norm(m.encode(x)); },
       {2, 4},
       {{2, 4}},
       [](Net& m) { m.norm->train(!m.is_training()); }},
      {"a_child_that_decides",
       false,
       [](Net& m, Tensor x) { return m.encode(x) * (m.drop->is_training() ? 2 : 3); },
       {2, 4},
       {{2, 4}},
       invert_dropout},
  };
  return table;
}
INSTANTIATE_TEST_SUITE_P(Programs, ModesBelow, ::testing::ValuesIn(of_modes()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::other_mode_test
