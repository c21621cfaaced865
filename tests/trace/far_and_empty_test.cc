// Sizes that nobody would take for an example: none, one, and far more than the example has.
#include "tests/trace/sizes_testing.h"

namespace fx::far_and_empty_test {

using testing::AtSizes;
using ::testing::HasSubstr;
using torch::Tensor;

using Program = std::function<Tensor(Tensor)>;
using Shape = std::vector<std::int64_t>;

struct Case {
  const char* name;
  Program program;
  Shape example;
  std::vector<Shape> equal, refused;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const Tensor& table() {
  static const auto& rows = *new Tensor(torch::rand({1000, 4}));
  return rows;
}

class FarAndEmpty : public ::testing::TestWithParam<Case> {};

TEST_P(FarAndEmpty, IsRightOrRefused) {
  const Case& c = GetParam();
  table();  // not in a trace
  const auto gm = symbolic_trace([&](Tensor x) { return c.program(x); }, {torch::rand(c.example)});
  gm->graph().lint();
  const auto at = [&](const Shape& shape) {
    const Tensor x = torch::rand(shape);
    return testing::at_sizes(
        *gm, [&]() -> c10::IValue { return c.program(x); }, {x}, 0);
  };
  EXPECT_EQ(at(c.example), AtSizes::equal);
  for (const Shape& shape : c.equal) EXPECT_EQ(at(shape), AtSizes::equal) << torch::IntArrayRef(shape) << gm->graph();
  for (const Shape& shape : c.refused)
    EXPECT_EQ(at(shape), AtSizes::refused) << torch::IntArrayRef(shape) << gm->graph();
}

const std::vector<Case>& cases() {
  static const auto& table_of_cases = *new std::vector<Case>{
      // ── None
      {"returns_early_for_none",
       [](Tensor x) {
         return x.numel() == 0 ? torch::zeros({0, 7}) : x.matmul(torch::ones({4, 7}));
       },
       {3, 4},
       {{1, 4}, {50, 4}},
       {}},
      {"adds_only_where_there_is_something",
       [](Tensor x) {
         Tensor y = x * 2;
         if (x.size(0) > 0) y = y + x.mean(0);
         return y.sum(0);
       },
       {3, 4},
       {{1, 4}, {50, 9}},
       {}},
      {"divides_by_one_at_least",
       [](Tensor x) { return x.sum(0) / std::max<std::int64_t>(x.size(0), 1); },
       {3, 4},
       {{1, 4}, {50, 9}, {3, 0}},
       {}},
      {"divides_by_a_size",
       [](Tensor x) { return x.slice(1, 0, x.size(1) / x.size(0)); },
       {3, 14},
       {{1, 4}, {5, 4}, {3, 0}, {2, 500}},
       {}},
      {"takes_the_last_of_what_may_be_none",
       [](Tensor x) {
         std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.size(0)), 2);
         return x * *std::max_element(sizes.begin(), sizes.end());
       },
       {3, 4},
       {{1, 4}, {9, 4}},
       {}},
      {"views_none",
       [](Tensor x) {
         return x.view({x.size(0), 2, x.size(1) / 2});
       },
       {3, 4},
       {{1, 4}, {0, 4}, {9, 6}},
       {}},
      {"never_asks", [](Tensor x) { return x.relu().sum(0); }, {3, 4}, {{1, 4}, {0, 4}, {3, 0}, {90, 5}}, {}},
      {"slices_none",
       [](Tensor x) { return x + table().slice(0, 0, x.size(0)); },
       {3, 4},
       {{1, 4}, {0, 4}, {9, 4}},
       {}},
      {"counts_in_pixels",
       [](Tensor x) { return x.flatten(1).sum(1) / (x.size(1) * x.size(2)); },
       {2, 4, 4},
       {{0, 4, 4}, {1, 1, 1}, {2, 0, 3}},
       {}},
      // ── Far more
      {"takes_512_at_most",
       [](Tensor x) { return x.sum(0) * std::min<std::int64_t>(x.size(0), 512); },
       {4, 4},
       {{1, 4}, {512, 4}, {100, 9}, {513, 4}, {100000, 4}},
       {}},
      {"another_number_past_512",
       [](Tensor x) { return x * (x.size(0) > 512 ? 2 : 1); },
       {4, 4},
       {{1, 4}, {100, 9}},
       {{100000, 4}}},
      {"another_way_past_512",
       [](Tensor x) { return x.size(0) > 512 ? x.relu() : x.sigmoid(); },
       {4, 4},
       {{1, 4}, {40, 9}},
       {{100000, 4}}},
      {"checks_its_length",
       [](Tensor x) {
         TORCH_CHECK(x.size(0) <= 300, "too long");
         return x * 2;
       },
       {4, 4},
       {{1, 4}, {7, 9000}},
       {{5000, 4}}},
      {"has_a_table_of_1000",
       [](Tensor x) { return x + table().slice(0, 0, x.size(0)); },
       {4, 4},
       {{999, 4}, {1000, 4}},
       {{1001, 4}}},
      {"pads_to_a_multiple_of_64",
       [](Tensor x) {
         return torch::constant_pad_nd(x, {0, 63 - (x.size(0) + 63) % 64});
       },
       {64},
       {{1}, {65}, {127}, {128}, {5000}, {77777}},
       {}},
      {"pools_large_images",
       [](Tensor x) {
         if (x.size(2) * x.size(3) > 64 * 64) x = torch::max_pool2d(x, 2);
         return x.mean({2, 3});
       },
       {1, 2, 16, 16},
       {{3, 2, 16, 16}},  // no bound describes a product of two: both are fixed
       {{1, 2, 8, 8}, {3, 2, 32, 20}, {1, 2, 200, 200}, {1, 2, 2000, 100}}},
      {"scales_by_the_root",
       [](Tensor x) { return x.matmul(x.transpose(0, 1)) / std::sqrt(static_cast<double>(x.size(1))); },
       {4, 4},
       {{1, 1}, {700, 3}, {3, 5000}},
       {}},
  };
  return table_of_cases;
}

INSTANTIATE_TEST_SUITE_P(Sizes, FarAndEmpty, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// What ends the process, or does not come to an end, does so elsewhere.
// Large stand-ins have no memory, and nothing of them is left to read.
TEST(FarSizes, TakeNoMemory) {
  const auto attention = [](Tensor q, Tensor k) {
    return torch::softmax(q.matmul(k.transpose(1, 2)) / q.size(2), -1).matmul(k).view({q.size(0), -1});
  };
  const auto gm = symbolic_trace(attention, {torch::rand({2, 5, 8}), torch::rand({2, 7, 8})});
  const Tensor q = torch::rand({3, 600, 4}), k = torch::rand({3, 2, 4});
  EXPECT_TRUE(testing::same_value(gm->run({q, k}), attention(q, k), 0));
}

}  // namespace fx::far_and_empty_test
