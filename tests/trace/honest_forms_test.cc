// Programs in the many forms that people write, as a table: sharing, chance, exceptions, aliases, containers.
#include "tests/trace/honest_case.h"

namespace fx::honest_forms_test {

using testing::Bag;
using Case = testing::HonestCase;
using torch::Tensor;
using torch::indexing::Slice;
namespace F = torch::nn::functional;

class HonestForm : public ::testing::TestWithParam<Case> {};

TEST_P(HonestForm, IsRightOrRefused) { testing::expect_honest(GetParam(), testing::two_inputs()); }

Tensor halved(int depth, const Tensor& x) { return depth == 0 ? x : halved(depth - 1, x / 2) + x; }

const std::vector<Case>& cases() {
  static const auto& table = *new std::vector<Case>{
      // ── Sharing
      {"module_called_twice", "right", [](Bag& m, Tensor x) { return m.linear(m.linear(x).relu()); }},
      {"tied_weights", "right", [](Bag& m, Tensor x) { return x.matmul(m.w).relu().matmul(m.w.t()); }},
      {"weights_of_a_child", "right", [](Bag& m, Tensor x) { return x.matmul(m.inner->w) + m.inner->forward(x); }},
      {"functional_with_weights_of_a_module", "right",
       [](Bag& m, Tensor x) { return F::linear(x, m.linear->weight * 2, m.linear->bias) + m.linear(x); }},
      {"recursion", "right", [](Bag&, Tensor x) { return halved(3, x); }},
      {"list_of_functions", "right",
       [](Bag& m, Tensor x) {
         const std::vector<std::function<Tensor(Tensor)>> steps = {[](Tensor t) { return t.relu(); },
                                                                   [&m](Tensor t) { return m.linear(t); },
                                                                   [x](Tensor t) { return t + x; }};
         for (const auto& step : steps) x = step(x);
         return x;
       }},
      {"sequential_of_functionals", "right",
       [](Bag&, Tensor x) {
         torch::nn::Sequential net(torch::nn::Functional(torch::relu),
                                   torch::nn::Functional([](Tensor t) { return t * 3; }));
         return net->forward(x);
       }},
      // ── Results
      {"returns_its_input", "right", [](Bag&, Tensor x) { return x; }},
      {"returns_a_view_of_its_input", "right", [](Bag&, Tensor x) { return x.t(); }},
      {"returns_a_weight", "", [](Bag& m, Tensor) { return m.w; }},
      {"returns_a_constant", "right", [](Bag&, Tensor) { return torch::ones({2}); }},
      {"complex_result", "right", [](Bag&, Tensor x) { return torch::view_as_real(torch::fft::fft(x)); }},
      {"half_inside", "right", [](Bag&, Tensor x) { return x.to(torch::kBFloat16).to(torch::kFloat) * 2; }},
      {"integer_inside", "right",
       [](Bag&, Tensor x) { return (x * 10).to(torch::kLong).remainder(3).to(torch::kFloat); }},
      // ── Results by `out=`
      {"out_of_several", "right",
       [](Bag&, Tensor x) {
         Tensor values = torch::empty({0}), indices = torch::empty({0}, torch::kLong);
         torch::max_out(values, indices, x, 1);
         return values + indices;
       }},
      {"out_of_several_taken_apart", "right",
       [](Bag&, Tensor x) {
         Tensor values = torch::empty({0}), indices = torch::empty({0}, torch::kLong);
         return std::get<0>(torch::sort_out(values, indices, x, 1)) * 2 + indices;
       }},
      {"out_of_several_of_that_size", "right",
       [](Bag&, Tensor x) {
         Tensor values = torch::zeros({2, 2}), indices = torch::zeros({2, 2}, torch::kLong);
         torch::topk_out(values, indices, x, 2);
         return values + indices;
       }},
      {"out_of_several_into_rows", "right",
       [](Bag&, Tensor x) {
         const Tensor table = torch::zeros({2, 2}), places = torch::zeros({2, 2}, torch::kLong);
         Tensor row = table[1], place = places[0];
         torch::min_out(row, place, x, 1);
         return table + places;
       }},
      {"out_of_three", "right",
       [](Bag&, Tensor x) {
         Tensor u = torch::empty({0}), s = torch::empty({0}), v = torch::empty({0});
         torch::linalg_svd_out(u, s, v, x.matmul(x.t()));
         return s;
       }},
      // ── Chance
      {"rand_like", "right", [](Bag&, Tensor x) { return x + torch::rand_like(x); }},
      {"randn_of_its_size", "right",
       [](Bag&, Tensor x) {
         return x + torch::randn({x.size(0), 1});
       }},
      {"bernoulli", "right",
       [](Bag&, Tensor x) {
         return x * torch::bernoulli(torch::full({2, 3}, 0.5));
       }},
      {"multinomial", "right",
       [](Bag&, Tensor x) { return x.index_select(1, torch::multinomial(torch::ones({3}), 2)); }},
      {"randperm", "right", [](Bag&, Tensor x) { return x.index_select(0, torch::randperm(x.size(0))); }},
      {"normal_in_place", "right", [](Bag&, Tensor x) { return x + torch::empty_like(x).normal_(0, 0.1); }},
      {"gumbel", "right", [](Bag&, Tensor x) { return F::gumbel_softmax(x, F::GumbelSoftmaxFuncOptions().tau(0.5)); }},
      {"drop_path", "",
       [](Bag& m, Tensor x) {
         if (!m.is_training()) return x * 1;
         return x / 0.9 * torch::rand({x.size(0), 1}).add_(0.9).floor_();
       }},
      // ── Exceptions and questions
      {"catches_what_cannot_be", "",
       [](Bag&, Tensor x) {
         try {
           return x.view({7, 7});
         } catch (const c10::Error&) {
           return x * 2;
         }
       }},
      {"asks_for_type_and_rank", "right",
       [](Bag&, Tensor x) { return x.dim() == 2 && x.is_floating_point() && !x.is_cuda() ? x * 2 : x; }},
      {"asks_for_contiguity", "", [](Bag&, Tensor x) { return x.is_contiguous() ? x * 2 : x * 3; }},
      {"asks_whether_weights_learn", "right", [](Bag& m, Tensor x) { return m.w.requires_grad() ? x.matmul(m.w) : x; }},
      {"grad_mode_inside", "right",
       [](Bag& m, Tensor x) {
         const torch::NoGradGuard off;
         Tensor y = x.matmul(m.w);
         {
           const torch::AutoGradMode on(true);
           y = y + x.matmul(m.w);
         }
         return y;
       }},
      // ── Memory
      {"writes_a_row", "right",
       [](Bag&, Tensor x) {
         Tensor y = torch::zeros_like(x);
         y[0] = x[1];
         y.index_put_({1}, x[0] * 2);
         return y;
       }},
      {"writes_a_slice_of_a_result", "right",
       [](Bag& m, Tensor x) {
         Tensor y = x.matmul(m.w);
         y.slice(1, 0, 2).mul_(2);
         return y + 1;
       }},
      {"writes_through_two_views", "right",
       [](Bag&, Tensor x) {
         Tensor y = x.clone();
         y.view(-1).slice(0, 0, 4).add_(1);
         y.t().select(0, 0).zero_();
         return y;
       }},
      {"fills_a_list", "right",
       [](Bag&, Tensor x) {
         std::vector<Tensor> rows(2);
         for (std::size_t i = 0; i < rows.size(); ++i)
           rows[i] = x[static_cast<std::int64_t>(i)] * static_cast<double>(i);
         return torch::stack(rows).index_select(0, torch::tensor({1, 0}));
       }},
      {"by_name", "right",
       [](Bag&, Tensor x) {
         std::map<std::string, Tensor> parts = {{"a", x + 1}, {"b", x * 2}};
         parts["c"] = parts["a"] - parts["b"];
         return parts["c"];
       }},
      {"features_by_name_are_kept", "",
       [](Bag& m, Tensor x) {
         m.by_name["last"] = x * 2;
         return x + 1;
       }},
      {"swap", "right",
       [](Bag& m, Tensor x) {
         Tensor a = x * 2, b = x.matmul(m.w);
         std::swap(a, b);
         return a - b;
       }},
      // ── What a static keeps
      {"static_number", "right",
       [](Bag&, Tensor x) {
         static const double scale = 3;
         return x * scale;
       }},
      {"ranges_of_indices", "right",
       [](Bag&, Tensor x) {
         return x.index({Slice(), Slice(0, -1)}) + x.index({"...", -1}).unsqueeze(1);
       }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Programs, HonestForm, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::honest_forms_test
