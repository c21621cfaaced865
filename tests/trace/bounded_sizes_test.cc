// Programs that do the same up to some size near the example's, or from one on: the size is bounded, not fixed, and in
// steps only where it goes on in steps.
#include "tests/support/night.h"
#include "tests/trace/round_trips.h"
#include "tests/trace/sizes_testing.h"

namespace fx::bounded_sizes_test {

using testing::AtSizes;
using torch::Tensor;
using torch::indexing::None;
using torch::indexing::Slice;

struct Bounded {
  const char* name;
  Tensor (*program)(Tensor);
  std::vector<std::int64_t> examples, equal, refused;  // the length of (2, n)
};
std::ostream& operator<<(std::ostream& out, const Bounded& each) { return out << each.name; }

const Tensor& table_of_16() {
  static const auto& table = *new Tensor(torch::arange(32, torch::kFloat).view({2, 16}));
  return table;
}

Tensor times_parts(const std::vector<Tensor>& parts) { return parts[0] * static_cast<double>(parts.size()); }
Tensor stacked_sums(const std::vector<Tensor>& parts) {
  std::vector<Tensor> sums;
  for (const Tensor& part : parts) sums.push_back(part.sum(1));
  return torch::stack(sums, 1);
}

Tensor split(Tensor x) { return times_parts(x.split(8, 1)); }
Tensor split_in_two(Tensor x) { return stacked_sums(x.split(8, 1)); }
Tensor table(Tensor x) { return x + table_of_16().slice(1, 0, x.size(1)); }
Tensor narrowed_table(Tensor x) { return x * table_of_16().narrow(1, 0, x.size(1)); }
Tensor indexed_table(Tensor x) { return x + table_of_16().index({Slice(), Slice(None, x.size(1))}); }
Tensor shifted_table(Tensor x) { return x + table_of_16().slice(1, 2, x.size(1) + 2); }
Tensor checked(Tensor x) {
  TORCH_CHECK(x.size(1) <= 12, "at most 12");
  return x * x.size(1);
}
Tensor checked_from_below(Tensor x) {
  TORCH_CHECK(x.size(1) >= 5, "at least 5");
  return x * x.size(1);
}
Tensor another_way(Tensor x) { return x.size(1) > 9 ? x.relu() : x.sigmoid() * x.size(1); }
Tensor even(Tensor x) { return x.view({x.size(0), -1, 2}).sum(2); }
Tensor pooled_and_repeated(Tensor x) {
  const Tensor a = torch::max_pool1d(x, 2), b = torch::max_pool1d(a, 2);
  return a + b.repeat_interleave(2, 1);
}
Tensor chunked(Tensor x) { return times_parts(x.chunk(4, 1)); }
Tensor chunked_and_stacked(Tensor x) { return stacked_sums(x.chunk(4, 1)); }
Tensor chunked_in_five(Tensor x) { return stacked_sums(x.chunk(5, -1)); }
Tensor padded_and_chunked(Tensor x) { return times_parts(torch::constant_pad_nd(x, {1, 0}).chunk(3, 1)); }

const Bounded kCases[] = {
    {"split", split, {1, 3, 6, 7, 8}, {1, 2, 3, 5, 6, 7, 8}, {9, 16, 17, 100}},
    {"split_in_two", split_in_two, {9, 11, 16}, {9, 10, 12, 15, 16}, {1, 7, 8, 17, 24, 100}},
    {"table", table, {10, 6, 15, 14, 16}, {1, 2, 5, 10, 15, 16}, {17, 40}},
    {"narrowed_table", narrowed_table, {6}, {1, 2, 5, 10, 15, 16}, {17, 40}},
    {"narrowed_table_near_its_end", narrowed_table, {10, 15, 14, 16}, {}, {17, 40}},
    {"indexed_table", indexed_table, {10, 6, 15, 14}, {1, 2, 5, 10, 15}, {17, 40}},
    {"shifted_table", shifted_table, {10, 6, 13, 12}, {1, 2, 5, 10, 13, 14}, {15, 16, 17, 40}},
    {"checked", checked, {6, 11, 10, 12}, {1, 2, 5, 10, 11, 12}, {13, 40}},
    {"checked_from_below", checked_from_below, {5, 6, 11}, {5, 6, 7, 10, 40}, {1, 3, 4}},
    {"checked_from_far_below", checked_from_below, {16}, {6, 7, 10, 40}, {1, 3, 4}},
    {"another_way", another_way, {6, 7, 8, 9}, {1, 2, 5, 8, 9}, {10, 12, 40}},
    {"even", even, {6, 8, 12}, {2, 4, 10, 64}, {1, 5, 7, 9, 63}},
    {"pooled_and_repeated", pooled_and_repeated, {12, 20, 32}, {4, 8, 16, 40, 64}, {6, 7, 30, 38}},
    {"chunked_of_3_parts", chunked, {5, 6}, {5, 6}, {1, 2, 4, 7, 8, 10, 40}},
    {"chunked_of_4_parts", chunked, {7}, {7, 8}, {1, 2, 3, 5, 6, 9}},
    {"chunked", chunked, {10, 12, 16}, {10, 11, 12, 13, 16, 40}, {1, 2, 3, 5, 6, 9}},
    {"chunked_and_stacked", chunked_and_stacked, {10, 13, 20}, {10, 11, 12, 13, 16, 40}, {1, 2, 3, 5, 6, 9}},
    {"chunked_and_stacked_of_3_parts", chunked_and_stacked, {5, 6}, {5, 6}, {1, 2, 4, 7, 8, 10, 40}},
    {"chunked_in_five", chunked_in_five, {17, 20, 33}, {20, 25, 64}, {1, 6, 7, 11, 12, 16}},
    {"padded_and_chunked", padded_and_chunked, {4, 9, 12}, {4, 5, 6, 7, 12, 33}, {1, 3}},
};

class BoundedSizes : public ::testing::TestWithParam<Bounded> {};

TEST_P(BoundedSizes, AreAsserted) {
  for (const std::int64_t example : GetParam().examples) {
    const auto gm = symbolic_trace(GetParam().program, {torch::rand({2, example})});
    const auto loaded = from_torchscript(testing::saved_and_loaded(*gm));
    const auto expect_at = [&](std::int64_t size, AtSizes wanted) {
      const Tensor x = torch::rand({2, size});
      for (GraphModule* each : {gm.get(), loaded.get()}) {
        EXPECT_EQ(testing::at_sizes(*each, [&]() -> c10::IValue { return GetParam().program(x); }, {x}), wanted)
            << size << " from " << example << each->graph();
      }
    };
    expect_at(example, AtSizes::equal);
    for (const std::int64_t size : GetParam().equal) expect_at(size, AtSizes::equal);
    for (const std::int64_t size : GetParam().refused) expect_at(size, AtSizes::refused);
  }
}

// Whatever becomes of a size, it is never silently another program.
TEST_P(BoundedSizes, AreRightOrRefused) {
  for (const std::int64_t example : GetParam().examples) {
    const auto gm = symbolic_trace(GetParam().program, {torch::rand({2, example})});
    for (std::int64_t size = 1; size <= 70; ++size) {
      const Tensor x = torch::rand({2, size});
      ASSERT_NE(testing::at_sizes(*gm, [&]() -> c10::IValue { return GetParam().program(x); }, {x}), AtSizes::wrong)
          << size << " from " << example << gm->graph();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, BoundedSizes, ::testing::ValuesIn(testing::some_by_day(kCases)),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::bounded_sizes_test
