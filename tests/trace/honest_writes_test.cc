// Programs that tracers get wrong, as a table: writes in place and threads.
#include <ATen/Parallel.h>

#include <future>
#include <thread>

#include "tests/trace/honest_case.h"

namespace fx::honest_writes_test {

using testing::Bag;
using Case = testing::HonestCase;
using torch::Tensor;
using torch::indexing::Slice;

class HonestWrites : public ::testing::TestWithParam<Case> {};

TEST_P(HonestWrites, IsRightOrRefused) { testing::expect_honest(GetParam(), testing::two_inputs()); }

const std::vector<Case>& writes_and_threads() {
  static const auto& table = *new std::vector<Case>{
      // ── In place
      {"input_in_place", "right",
       [](Bag&, Tensor x) {
         x.add_(1);
         return x * 2;
       }},
      {"input_in_place_through_a_view", "right",
       [](Bag&, Tensor x) {
         x.select(0, 0).zero_();
         return x + 0;
       }},
      {"input_indexed", "right",
       [](Bag&, Tensor x) {
         x = x.clone();
         x.index_put_({Slice(), 1}, 5.0);
         return x;
       }},
      {"input_masked", "right",
       [](Bag&, Tensor x) {
         x = x.clone();
         x.index_put_({x > 0.5}, 0.0);
         return x;
       }},
      {"shape_in_place", "right",
       [](Bag&, Tensor x) {
         x = x * 1;
         x.unsqueeze_(0).squeeze_(0).t_();
         return x.matmul(torch::ones({2, 2}));
       }},
      {"out_variant", "right",
       [](Bag&, Tensor x) {
         Tensor y = torch::empty({2, 3});
         torch::mul_out(y, x, x);
         return y;
       }},
      {"resize_in_place", "",
       [](Bag&, Tensor x) {
         Tensor y = torch::empty({0});
         torch::add_out(y, x, x);
         return y;
       }},
      {"parameter_in_place", "",
       [](Bag& m, Tensor x) {
         m.w.add_(1);
         return x.matmul(m.w);
       }},
      // ── Threads
      {"parallel_for", "",
       [](Bag&, Tensor x) {
         std::vector<Tensor> rows(2);
         at::parallel_for(0, 2, 1, [&](std::int64_t begin, std::int64_t end) {
           for (std::int64_t i = begin; i < end; ++i) rows[static_cast<std::size_t>(i)] = x[i] * 2;
         });
         return torch::stack(rows);
       }},
      {"async", "",
       [](Bag&, Tensor x) {
         auto a = std::async(std::launch::async, [&] { return x.exp() * 2; });
         auto b = std::async(std::launch::async, [&] { return x.sin() * 3; });
         return a.get() + b.get();
       }},
      {"threads", "",
       [](Bag&, Tensor x) {
         Tensor y;
         std::thread other([&] { y = x.relu() + 1; });
         other.join();
         return y * 2;
       }},
      {"threads_with_weights_alone", "",
       [](Bag& m, Tensor x) {
         Tensor y;
         std::thread other([&] { y = m.w * 2; });
         other.join();
         return x.matmul(y);
       }},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Programs, HonestWrites, ::testing::ValuesIn(writes_and_threads()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::honest_writes_test
