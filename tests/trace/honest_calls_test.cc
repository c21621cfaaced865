// Programs that tracers get wrong, as a table: modules called in unusual ways, errors that are caught, numbers in
// results.
#include <torch/nn/utils/rnn.h>

#include "tests/trace/honest_case.h"

namespace fx::honest_calls_test {

using testing::Bag;
using Case = testing::HonestCase;
using torch::Tensor;
using torch::indexing::Slice;
namespace F = torch::nn::functional;

class HonestCalls : public ::testing::TestWithParam<Case> {};

TEST_P(HonestCalls, AreRightOrRefused) {
  torch::manual_seed(2);
  testing::expect_honest(GetParam(), {{torch::rand({2, 3})}, {torch::rand({2, 3}) - 0.5}, {torch::rand({5, 3}) - 0.5}});
}

const std::vector<Case>& cases() {
  static const auto& table = *new std::vector<Case>{
      // ── Leaf modules
      {"called_twice", "right", [](Bag& m, Tensor x) { return m.linear(m.linear(x).relu()); }},
      {"changed_in_between", "",
       [](Bag& m, Tensor x) {
         x = m.linear(x);
         {
           torch::NoGradGuard no_grad;
           m.linear->weight.mul_(0.5);
         }
         return m.linear(x);
       }},
      {"bias_is_taken_away", "",
       [](Bag& m, Tensor x) {
         const Tensor bias = m.linear->bias;
         m.linear->bias = Tensor();
         x = m.linear(x);
         m.linear->bias = bias;
         return x + m.linear(x);
       }},
      {"weight_is_replaced_for_a_call", "",
       [](Bag& m, Tensor x) {
         const Tensor weight = m.linear->weight;
         m.linear->weight = weight * 2;
         x = m.linear(x);
         m.linear->weight = weight;
         return x;
       }},
      {"norm_is_frozen_for_a_call", "",
       [](Bag& m, Tensor x) {
         const bool training = m.norm->is_training();
         m.norm->eval();
         x = m.norm(x);
         m.norm->train(training);
         return x;
       }},
      {"norm_is_frozen_for_a_call_training", "",
       [](Bag& m, Tensor x) {
         const bool training = m.norm->is_training();
         m.norm->eval();
         x = m.norm(x);
         m.norm->train(training);
         return x;
       },
       true},
      {"dropout_is_woken_for_a_call", "",
       [](Bag& m, Tensor x) {
         m.dropout->train();
         x = m.dropout(x);
         m.dropout->eval();
         return x;
       }},
      {"probability_is_changed_for_a_call", "",
       [](Bag& m, Tensor x) {
         m.dropout->options.p(0.9);
         x = m.dropout(x);
         m.dropout->options.p(0.5);
         return x;
       },
       true},
      {"norm_called_twice_training", "right", [](Bag& m, Tensor x) { return m.norm(m.norm(x)); }, true},
      {"momentum_is_changed", "",
       [](Bag& m, Tensor x) {
         m.norm->options.momentum(0.5);
         return m.norm(x);
       },
       true},
      {"statistics_are_reset", "",
       [](Bag& m, Tensor x) {
         m.norm->reset_running_stats();
         return m.norm(x);
       },
       true},
      {"child_is_registered_in_forward", "",
       [](Bag& m, Tensor x) {
         if (!m.named_children().contains("late")) {
           torch::manual_seed(4);
           m.register_module("late", torch::nn::Linear(3, 3));
         }
         return m.named_children()["late"]->as<torch::nn::Linear>()->forward(x);
       }},
      {"child_is_replaced", "",
       [](Bag&, Tensor x) {
         torch::nn::Linear other(3, 3);
         {
           torch::NoGradGuard no_grad;
           other->weight.fill_(1);
           other->bias.fill_(2);
         }
         return other(x);
       }},
      {"made_in_forward", "",
       [](Bag&, Tensor x) {
         torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({3}));
         return norm(x);
       }},
      {"clone_in_forward", "",
       [](Bag& m, Tensor x) {
         const auto copy = std::dynamic_pointer_cast<torch::nn::LinearImpl>(m.linear->clone());
         return copy->forward(x);
       }},
      {"sequential_in_forward", "",
       [](Bag& m, Tensor x) { return torch::nn::Sequential(m.linear, torch::nn::ReLU())->forward(x); }},
      {"recurrent_with_state", "",
       [](Bag&, Tensor x) {
         static torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 4).batch_first(true));
         const auto [y, state] = lstm(x.unsqueeze(0));
         return y.squeeze(0) + std::get<0>(state).flatten();
       }},
      // ── Functions with flags
      {"instance_norm", "",
       [](Bag&, Tensor x) {
         return F::instance_norm(x.unsqueeze(0), F::InstanceNormFuncOptions().use_input_stats(true)).squeeze(0);
       }},
      {"batch_norm_always_training", "",
       [](Bag& m, Tensor x) {
         return F::batch_norm(x, m.norm->running_mean, m.norm->running_var, F::BatchNormFuncOptions().training(true));
       }},
      {"rrelu", "", [](Bag& m, Tensor x) { return F::rrelu(x, F::RReLUFuncOptions().training(m.is_training())); }},
      {"rrelu_training", "",
       [](Bag& m, Tensor x) { return F::rrelu(x, F::RReLUFuncOptions().training(m.is_training())); }, true},
      {"gumbel", "",
       [](Bag&, Tensor x) { return F::gumbel_softmax(x, F::GumbelSoftmaxFuncOptions().hard(true).dim(1)); }},
      {"random_numbers_by_size", "",
       [](Bag&, Tensor x) {
         return x + torch::randn({x.size(0), 3}) * torch::rand_like(x);
       }},
      {"permutation", "", [](Bag&, Tensor x) { return x.index_select(0, torch::randperm(x.size(0))); }},
      {"bernoulli", "", [](Bag&, Tensor x) { return x * torch::bernoulli(torch::full_like(x, 0.5)); }},
      {"in_place_random", "", [](Bag&, Tensor x) { return x + torch::empty_like(x).normal_(0, 1); }},
      {"generator_of_its_own", "",
       [](Bag&, Tensor x) {
         auto generator = at::make_generator<at::CPUGeneratorImpl>(42);
         return x + torch::rand({3}, generator);
       }},
      {"interpolate", "",
       [](Bag&, Tensor x) {
         return F::interpolate(x.unsqueeze(0), F::InterpolateFuncOptions()
                                                   .scale_factor(std::vector<double>{2.0})
                                                   .mode(torch::kLinear)
                                                   .align_corners(false))
             .squeeze(0);
       }},
      {"pad_by_rows", "",
       [](Bag&, Tensor x) {
         return F::pad(x, F::PadFuncOptions({0, x.size(0) % 2}).mode(torch::kConstant));
       }},
      {"cross_entropy", "",
       [](Bag&, Tensor x) { return F::cross_entropy(x, torch::zeros({x.size(0)}, torch::kLong)); }},
      // ── Errors that the program handles
      {"falls_back_when_there_is_no_data", "refused",
       [](Bag&, Tensor x) {
         float most = 1;
         try {
           most = x.max().item<float>();
         } catch (const std::exception&) {
         }
         return x * most;
       }},
      {"falls_back_when_there_is_no_pointer", "refused",
       [](Bag&, Tensor x) {
         try {
           return x * static_cast<double>(*x.data_ptr<float>());
         } catch (...) {
           return x * 2;
         }
       }},
      {"falls_back_when_shapes_differ", "",
       [](Bag& m, Tensor x) {
         try {
           return x.matmul(torch::cat({m.w, m.w}));
         } catch (const c10::Error&) {
           return x.matmul(m.w);
         }
       }},
      {"falls_back_when_anything_happens", "",
       [](Bag& m, Tensor x) {
         try {
           return x.matmul(torch::cat({m.w, m.w}));
         } catch (const std::exception&) {
           return x.matmul(m.w);
         }
       }},
      {"throws_and_catches_its_own", "right",
       [](Bag&, Tensor x) {
         try {
           throw std::runtime_error("mine");
         } catch (const std::runtime_error&) {
           return x * 3;
         }
       }},
      // ── Numbers that the program is told
      {"row_count_in_result", "right", [](Bag&, Tensor x) { return torch::tensor(x.size(0)) + x.sum(); }},
      {"rank_decides", "right", [](Bag&, Tensor x) { return x.dim() == 2 ? x.unsqueeze(0).mean(1) : x; }},
      {"rows_are_listed", "",
       [](Bag&, Tensor x) {
         Tensor sum = torch::zeros({3});
         for (const Tensor& row : x.unbind(0)) sum = sum + row;
         return sum;
       }},
      {"rows_in_reverse", "",
       [](Bag&, Tensor x) {
         std::vector<Tensor> rows;
         for (std::int64_t i = x.size(0) - 1; i >= 0; --i) rows.push_back(x[i]);
         return torch::stack(rows);
       }},
      {"last_row", "right", [](Bag&, Tensor x) { return x[-1] + x[x.size(0) - 1] + x.index({x.size(0) - 1}); }},
      {"slices_by_halves", "",
       [](Bag&, Tensor x) {
         return x.index({Slice(0, (x.size(0) + 1) / 2)}).sum(0) +
                x.index({Slice(x.size(0) / 2, torch::indexing::None, 2)}).sum(0);
       }},
      {"size_as_text", "", [](Bag&, Tensor x) { return x * static_cast<double>(std::to_string(x.size(0)).size()); }},
      {"size_in_a_switch", "",
       [](Bag&, Tensor x) {
         switch (x.size(0)) {
           case 5: return x * 2;
           default: return x * 3;
         }
       }},
      {"log_of_size", "", [](Bag&, Tensor x) { return x * std::log2(static_cast<double>(x.size(0))); }},
      {"power_of_two_above", "",
       [](Bag&, Tensor x) {
         std::int64_t n = 1;
         while (n < x.size(0)) n *= 2;
         return F::pad(x, F::PadFuncOptions({0, 0, 0, n - x.size(0)}).mode(torch::kConstant));
       }},
      {"size_through_float", "",
       [](Bag&, Tensor x) { return x.narrow(0, 0, static_cast<std::int64_t>(0.7F * static_cast<float>(x.size(0)))); }},
      {"nelement_by_itemsize", "", [](Bag&, Tensor x) { return x * static_cast<double>(x.nbytes()); }},
      {"version_is_asked", "", [](Bag&, Tensor x) { return x * static_cast<double>(x._version() + 1); }},
      {"identity_is_asked", "", [](Bag& m, Tensor x) { return x.is_same(m.w) ? x * 2 : x * 3; }},
      {"alias_is_asked", "", [](Bag&, Tensor x) { return x.is_alias_of(x) ? x * 2 : x * 3; }},
      {"grad_mode_is_asked", "", [](Bag&, Tensor x) { return torch::GradMode::is_enabled() ? x * 2 : x * 3; }},
      {"values_differ", "", [](Bag&, Tensor x) { return std::get<0>(torch::_unique(x)).sum(); }},
      {"sorted_and_top", "right",
       [](Bag&, Tensor x) {
         const auto [values, places] = torch::topk(x, 2, 1);
         return values + std::get<0>(x.sort(0)).narrow(1, 0, 2) + places;
       }},
      {"einsum", "right",
       [](Bag& m, Tensor x) {
         return torch::einsum("bi,ij->bj", {x, m.w});
       }},
      {"meshgrid_by_size", "",
       [](Bag&, Tensor x) {
         const auto grids = torch::meshgrid({torch::arange(x.size(0)), torch::arange(3)}, "ij");
         return x + grids[0] * 10 + grids[1];
       }},
      {"swapped_in_place", "",
       [](Bag&, Tensor x) {
         Tensor y = x.clone();
         y.transpose_(0, 1);
         y.resize_({3, x.size(0)});
         return y * 2;
       }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Calls, HonestCalls, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::honest_calls_test
