// Programs that compare sizes with each other: which is larger, whether two are the same, the smaller or larger of two.
#include "tests/support/night.h"
#include "tests/trace/pair_programs.h"

namespace fx::size_orders_test {

using testing::PairProgram;
using torch::Tensor;

class SizeOrders : public ::testing::TestWithParam<PairProgram> {};

TEST_P(SizeOrders, AreFollowedOrAsserted) { testing::expect_followed_or_asserted(GetParam()); }

Tensor padded(const Tensor& x, std::int64_t rows) { return torch::constant_pad_nd(x, {0, 0, 0, rows - x.size(0)}); }

const std::vector<PairProgram>& cases() {
  static const auto& table = *new std::vector<PairProgram>{
      {"square_images",
       [](Tensor x, Tensor y) { return x.size(0) == x.size(1) ? x.t() * 2 : x + y.sum(); },
       {{4, 9}, {2, 3}},
       {{{4, 9}, {5, 7}}},
       {{{3, 3}, {2, 3}}, {{9, 9}, {2, 3}}, {{4, 4}, {1, 1}}}},
      {"portrait_or_landscape",
       [](Tensor x, Tensor y) { return x.size(0) > x.size(1) ? x.t() : x + y.sum(); },
       {{4, 9}, {2, 3}},
       {{{4, 9}, {5, 7}}},
       {{{9, 4}, {2, 3}}, {{30, 29}, {2, 3}}}},
      {"square_or_an_error",
       [](Tensor x, Tensor y) {
         try {
           return torch::matmul(x, x) + y.sum();
         } catch (...) {
           return torch::matmul(x, x.t()) + y.sum();
         }
       },
       {{2, 4}, {1, 1}},
       {},
       {{{3, 3}, {1, 1}}, {{4, 4}, {1, 1}}, {{2, 2}, {1, 1}}}},
      {"a_product_or_an_error",
       [](Tensor x, Tensor y) {
         try {
           return torch::matmul(x, y).sum(0);
         } catch (...) {
           return torch::matmul(x, y.t()).sum(0);
         }
       },
       {{2, 4}, {5, 4}},
       {{{3, 4}, {5, 4}}, {{9, 4}, {5, 4}}},
       {{{3, 4}, {4, 4}}, {{3, 6}, {6, 6}}, {{3, 1}, {1, 1}}, {{3, 4}, {7, 4}}}},
      {"the_smaller",
       [](Tensor x, Tensor y) {
         const std::int64_t rows = std::min(x.size(0), y.size(0));
         return x.slice(0, 0, rows) + y.slice(0, 0, rows);
       },
       {{4, 3}, {2, 3}},
       {{{3, 3}, {3, 3}}, {{5, 4}, {7, 4}}, {{1, 1}, {1, 1}}, {{1, 2}, {40, 2}}, {{40, 2}, {1, 2}}},
       {}},
      {"the_smaller_of_equal_ones",
       [](Tensor x, Tensor y) {
         const std::int64_t rows = std::min(x.size(0), y.size(0));
         return x.slice(0, 0, rows) + y.slice(0, 0, rows);
       },
       {{4, 3}, {4, 3}},
       {{{3, 3}, {3, 3}}, {{5, 4}, {7, 4}}, {{40, 2}, {1, 2}}},
       {}},
      {"at_most_so_many",
       [](Tensor x, Tensor y) { return std::get<0>(x.topk(std::min<std::int64_t>(5, x.size(1)), 1)) + y.sum(); },
       {{2, 9}, {1, 1}},
       {{{3, 5}, {2, 2}}, {{3, 4}, {2, 2}}, {{3, 1}, {2, 2}}, {{3, 70}, {2, 2}}},
       {}},
      {"at_least_so_many",
       [](Tensor x, Tensor y) {
         return torch::ones({std::max<std::int64_t>(6, x.size(1)), 2}) * y.sum();
       },
       {{2, 9}, {1, 1}},
       {{{3, 5}, {2, 2}}, {{3, 6}, {2, 2}}, {{3, 1}, {2, 2}}, {{3, 70}, {2, 2}}},
       {}},
      {"a_root",
       [](Tensor x, Tensor y) { return x / std::sqrt(static_cast<double>(x.size(1))) + y.sum(); },
       {{2, 9}, {1, 1}},
       {{{3, 5}, {2, 2}}, {{1, 4}, {2, 2}}},
       {}},
  };
  return table;
}

INSTANTIATE_TEST_SUITE_P(Table, SizeOrders, ::testing::ValuesIn(testing::some_by_day(cases())),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::size_orders_test
