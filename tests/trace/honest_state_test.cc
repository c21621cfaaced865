// Programs that keep something from call to call, as a table: what a trace of each must be.
#include <fxgraph/text/size_report.h>
#include "tests/trace/honest_case.h"

namespace fx::honest_state_test {

using testing::Bag;
using Case = testing::HonestCase;
using torch::Tensor;

class HonestState : public ::testing::TestWithParam<Case> {};

TEST_P(HonestState, IsRightOrRefused) { testing::expect_honest(GetParam(), testing::two_inputs()); }

const std::vector<Case>& cases() {
  static const auto& table = *new std::vector<Case>{
      // ── Caches
      {"cache_grows", "refused",
       [](Bag& m, Tensor x) {
         m.cache = m.cache.defined() ? torch::cat({m.cache, x}) : x;
         return m.cache.sum(0);
       }},
      {"defined_cache_grows", "refused",
       [](Bag& m, Tensor x) {
         m.table = torch::cat({m.table, x});
         return m.table.sum(0);
       }},
      {"cache_of_a_child_grows", "refused",
       [](Bag& m, Tensor x) {
         m.inner->cache = m.inner->cache.defined() ? torch::cat({m.inner->cache, x}) : x * 1;
         return m.inner->cache.sum(0);
       }},
      {"cache_in_a_list", "refused",
       [](Bag& m, Tensor x) {
         m.list.push_back(x * 2);
         return torch::cat(m.list).sum(0);
       }},
      {"two_calls_back", "refused",
       [](Bag& m, Tensor x) {
         const Tensor y = x + 0.5 * m.both.second;
         m.both = {y.detach() * 1, m.both.first};
         return y;
       }},
      {"input_of_two_calls_back", "refused",
       [](Bag& m, Tensor x) {
         const Tensor y = x + m.full[1].expand({2, 3});
         m.full[1] = m.full[0];
         m.full[0] = x;
         return y;
       }},
      {"three_calls_back", "refused",
       [](Bag& m, Tensor x) {
         if (m.list.empty()) m.list = {torch::zeros({2, 3}), torch::zeros({2, 3}), torch::zeros({2, 3})};
         const Tensor y = x + m.list.front();
         m.list.erase(m.list.begin());
         m.list.push_back(x * 2);
         return y;
       }},
      {"delayed_by_six_calls", "refused",
       [](Bag& m, Tensor x) {
         while (m.list.size() < 6) m.list.push_back(torch::zeros({2, 3}));
         const Tensor y = x + m.list.front();
         m.list.erase(m.list.begin());
         m.list.push_back(y);
         return y;
       }},
      {"double_buffer", "refused",
       [](Bag& m, Tensor x) {
         const Tensor y = x + m.pair_of_rows[0];
         std::swap(m.pair_of_rows[0], m.pair_of_rows[1]);
         m.pair_of_rows[1].copy_(x.detach().sum(0, true));
         return y;
       }},
      {"delay_that_is_not_read", "right",
       [](Bag& m, Tensor x) {
         m.full[1] = m.full[0];
         m.full[0] = x * 2;
         return x * 3;
       }},
      {"log_in_a_list", "right",
       [](Bag& m, Tensor x) {
         m.list.push_back(x * 2);
         return x * 3;
       }},
      {"caches_in_a_full_list", "refused",
       [](Bag& m, Tensor x) {
         m.full[1] = torch::cat({m.full[1], x});
         return m.full[1].sum(0);
       }},
      {"cache_in_a_list_of_a_child", "refused",
       [](Bag& m, Tensor x) {
         m.inner->list.push_back(x * 2);
         return torch::cat(m.inner->list).sum(0);
       }},
      {"cache_in_an_optional", "refused",
       [](Bag& m, Tensor x) {
         m.maybe = m.maybe ? *m.maybe + x : x * 1;
         return *m.maybe * 2;
       }},
      {"cache_in_a_pair", "refused",
       [](Bag& m, Tensor x) {
         m.both = {x * 1, m.both.first};
         return m.both.second + x;
       }},
      {"output_is_kept", "right",
       [](Bag& m, Tensor x) {
         m.cache = torch::softmax(x.matmul(m.w), -1);
         return m.cache * 2;
       }},
      {"output_is_kept_in_a_child", "right",
       [](Bag& m, Tensor x) {
         m.inner->table = x * 2;
         return m.inner->forward(x);
       }},
      {"mask_is_made_once", "right",
       [](Bag& m, Tensor x) {
         if (!m.cache.defined()) m.cache = torch::triu(torch::ones({3, 3}), 1);
         return x.matmul(m.cache);
       }},
      {"mask_is_made_once_in_a_child", "right",
       [](Bag& m, Tensor x) {
         if (!m.inner->cache.defined()) {
           m.inner->cache = torch::zeros({3});
           m.inner->cache.fill_(2);
         }
         return x * m.inner->cache;
       }},
      {"mask_is_made_once_with_a_flag", "right",
       [](Bag& m, Tensor x) {
         if (!m.flag) {
           m.cache = torch::arange(3, torch::kFloat);
           m.flag = true;
         }
         return x + m.cache;
       }},
      {"first_input_is_kept", "refused",
       [](Bag& m, Tensor x) {
         if (!m.cache.defined()) m.cache = x * 1;
         return x - m.cache;
       }},
      {"first_random_number_is_kept", "refused",
       [](Bag& m, Tensor x) {
         if (!m.cache.defined()) m.cache = torch::rand({3});
         return x - m.cache;
       }},
      {"weight_is_kept", "",
       [](Bag& m, Tensor x) {
         if (!m.cache.defined()) m.cache = m.w.t();
         return x.matmul(m.cache);
       }},
      {"cache_is_written_in_place", "right",
       [](Bag& m, Tensor x) {
         m.table.add_(x.detach().mean(0, true));
         return x + m.table;
       }},
      {"slot_of_a_cache_by_position", "refused",
       [](Bag& m, Tensor x) {
         m.running.select(0, m.count % 3).copy_(x.detach().mean());
         ++m.count;
         return x + m.running;
       }},
      // ── Buffers
      {"buffer_is_replaced", "right",
       [](Bag& m, Tensor x) {
         m.running = m.running * 0.9 + x.detach().mean(0) * 0.1;
         return x - m.running;
       }},
      {"buffer_is_replaced_after_use", "right",
       [](Bag& m, Tensor x) {
         const Tensor y = x - m.running;
         m.running = x.detach().mean(0);
         return y;
       }},
      {"buffer_is_replaced_twice", "right",
       [](Bag& m, Tensor x) {
         m.running = m.running + 1;
         m.running = m.running * 2;
         return x * m.running;
       }},
      {"buffer_is_replaced_by_another_shape", "refused",
       [](Bag& m, Tensor x) {
         m.running = torch::cat({m.running, x.mean(0)});
         return x * m.running.sum();
       }},
      {"buffer_is_updated_in_place", "right",
       [](Bag& m, Tensor x) {
         m.running.mul_(0.9).add_(x.detach().mean(0), 0.1);
         return x - m.running;
       }},
      {"buffer_is_updated_without_gradients", "right",
       [](Bag& m, Tensor x) {
         torch::NoGradGuard no_grad;
         m.running.copy_(x.mean(0));
         return x - m.running;
       }},
      {"parameter_is_updated_without_gradients", "right",
       [](Bag& m, Tensor x) {
         {
           torch::NoGradGuard no_grad;
           m.w.mul_(0.5);
         }
         return x.matmul(m.w);
       }},
      {"parameter_is_updated_by_data", "right",
       [](Bag& m, Tensor x) {
         m.w.data().mul_(0.5);
         return x.matmul(m.w);
       }},
      {"parameter_is_given_other_data", "refused",
       [](Bag& m, Tensor x) {
         m.w.set_data(m.w * 0.5);
         return x.matmul(m.w);
       }},
      // ── Numbers
      {"counter_in_the_result", "refused", [](Bag& m, Tensor x) { return x * static_cast<double>(++m.count); }},
      {"counter_of_a_child", "refused", [](Bag& m, Tensor x) { return x * static_cast<double>(++m.inner->count); }},
      {"counter_that_decides_later", "refused", [](Bag& m, Tensor x) { return m.count++ >= 3 ? x * 2 : x; }},
      {"counter_alone", "right",
       [](Bag& m, Tensor x) {
         ++m.count;
         return x * 2;
       }},
      {"flag_is_flipped", "refused",
       [](Bag& m, Tensor x) {
         m.flag = !m.flag;
         return m.flag ? x * 2 : x * 3;
       }},
      {"warm_up", "refused",
       [](Bag& m, Tensor x) {
         m.scale *= 0.5;
         return x * m.scale;
       }},
      {"constant_from_a_counter", "refused",
       [](Bag& m, Tensor x) {
         return x * torch::tensor({static_cast<float>(++m.count), 1.0F, 1.0F});
       }},
      {"borrowed_counter", "refused",
       [](Bag& m, Tensor x) {
         m.memory[0] += 1;
         return x * torch::from_blob(m.memory, {3});
       }},
      // ── Registered things
      {"training_is_switched", "refused",
       [](Bag& m, Tensor x) {
         m.dropout->train(!m.dropout->is_training());
         return m.dropout(x);
       }},
      {"requires_grad_is_switched", "refused",
       [](Bag& m, Tensor x) {
         m.w.set_requires_grad(false);
         return x.matmul(m.w);
       }},
      {"generator_is_seeded", "refused",
       [](Bag&, Tensor x) {
         torch::manual_seed(1);
         return x + torch::rand({3});
       }},
      {"default_dtype_is_switched", "",
       [](Bag&, Tensor x) {
         const auto before = torch::get_default_dtype();
         torch::set_default_dtype(torch::scalarTypeToTypeMeta(torch::kDouble));
         const Tensor y = x + torch::ones({3});
         torch::set_default_dtype(before);
         return y;
       }},
      // ── Failing
      {"fails_midway", "refused",
       [](Bag& m, Tensor x) -> Tensor {
         m.cache = x * 2;
         ++m.count;
         if (is_proxy(x)) throw std::runtime_error("no");
         return m.cache + static_cast<double>(m.count);
       }},
      {"fails_on_data", "refused",
       [](Bag& m, Tensor x) -> Tensor {
         m.inner->cache = x * 2;
         m.list.push_back(x);
         if (m.inner->cache.sum().item<float>() > 100) return x;
         return x * 2;
       }},
      {"fails_in_c10", "refused",
       [](Bag& m, Tensor x) -> Tensor {
         m.count += 2;
         TORCH_CHECK(!is_proxy(x), "not like this");
         return x * static_cast<double>(m.count);
       }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Programs, HonestState, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// Nobody can put these back, but the second call tells.
TEST(HonestStateOutside, OfTheModuleIsNoticed) {
  static int calls = 0;
  static Tensor cache;
  const std::vector<c10::IValue> examples = {torch::rand({2, 3})};
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x * ++calls; }, examples), trace,
                  ::testing::HasSubstr("second call"));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x * ++calls; }), trace, ::testing::HasSubstr("second call"));
  EXPECT_FX_ERROR(symbolic_trace([](Tensor x) { return x * (std::rand() % 10007); }, examples), trace,
                  ::testing::HasSubstr("second call"));
  EXPECT_FX_ERROR(symbolic_trace([count = 0](Tensor x) mutable { return x * ++count; }, examples), trace,
                  ::testing::HasSubstr("second call"));
  const auto keeps = [](Tensor x) {
    cache = cache.defined() ? cache + x : x * 1;
    return cache * 2;
  };
  EXPECT_FX_ERROR(symbolic_trace(keeps, examples), trace, ::testing::HasSubstr("second call"));
  cache = Tensor();
}

// One of few numbers: the second call often draws the same, and another size seems to decide.
TEST(HonestStateOutside, NumbersThatAreDrawnAreNoticedNearlyAlways) {
  const std::vector<c10::IValue> examples = {torch::rand({6, 8})};
  for (const int choices : {2, 3, 10}) {
    int passed = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::srand(seed);
      const auto program = [&](Tensor x) { return x * static_cast<double>(std::rand() / 7 % choices + 1); };
      try {
        symbolic_trace(program, examples);
        ++passed;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::trace) << error.what();
      }
    }
    EXPECT_LE(passed, choices == 2 ? 6 : choices == 3 ? 2 : 0) << choices;
  }
}

// Beside a size that is asked for, what is drawn looks like a rule of it: none that is found is kept.
TEST(HonestStateOutside, NumbersThatAreDrawnBesideSizesAreNotTakenForRules) {
  for (const int choices : {2, 3, 10}) {
    int refused = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::srand(seed);
      const auto program = [&](Tensor x) { return x * static_cast<double>(std::rand() / 7 % choices + 1) + x.size(1); };
      try {
        const auto gm = symbolic_trace(program, {torch::rand({6, 8})});
        EXPECT_THAT(SizeReport(gm->graph()).str(), ::testing::HasSubstr("x[1] = 8"));
      } catch (const Error& error) {
        ++refused;
      }
    }
    EXPECT_GE(refused, choices == 2 ? 17 : 20) << choices;
  }
}

}  // namespace fx::honest_state_test
