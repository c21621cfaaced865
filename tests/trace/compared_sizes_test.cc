// Programs that compare two dimensions with each other: what is accepted is a region that the assertions describe.
#include "tests/trace/sizes_testing.h"

namespace fx::compared_sizes_test {

using torch::Tensor;

struct Compared {
  const char* name;
  std::function<Tensor(Tensor)> program;
};

Tensor counted(const Tensor& x, std::int64_t times) {
  Tensor n = torch::zeros({});
  for (std::int64_t k = times; k > 0; --k) n = n + 1;
  return n + x.sum() * 0;
}

const std::vector<Compared>& programs() {
  static const std::vector<Compared> all = {
      {"quotient", [](Tensor x) { return counted(x, x.size(0) / x.size(1)); }},
      {"rest", [](Tensor x) { return counted(x, x.size(0) % x.size(1)); }},
      {"difference", [](Tensor x) { return counted(x, x.size(0) - x.size(1)); }},
      {"product", [](Tensor x) { return counted(x, x.size(0) * x.size(1) / 4); }},
      {"split", [](Tensor x) { return torch::split(x, x.size(1), 0)[0].sum(); }},
      {"greater", [](Tensor x) { return x.size(0) > x.size(1) ? x.sum() : x.sum() * 2; }},
      {"not_less", [](Tensor x) { return x.size(0) >= x.size(1) ? x.sum() : x.sum() * 2; }},
      {"sum", [](Tensor x) { return x.size(0) + x.size(1) > 7 ? x.sum() : x.sum() * 2; }},
      {"equal", [](Tensor x) { return x.size(0) == x.size(1) ? x.sum() : x.sum() * 2; }},
      {"smaller", [](Tensor x) { return x.narrow(0, 0, std::min(x.size(0), x.size(1))).sum(); }},
  };
  return all;
}

TEST(ComparedSizes, AreNeverWrong) {
  constexpr std::int64_t kLargest = 9;
  for (const Compared& each : programs()) {
    for (const auto& [rows, columns] : {std::pair{4, 2}, {2, 4}, {1, 2}, {3, 3}, {5, 8}, {1, 1}, {7, 2}}) {
      const auto gm = symbolic_trace(each.program, {torch::ones({rows, columns})});
      for (std::int64_t a = 1; a <= kLargest; ++a) {
        for (std::int64_t b = 1; b <= kLargest; ++b) {
          const Tensor x = torch::ones({a, b});
          Tensor found;
          try {
            found = gm->forward(x);
          } catch (const Error&) {
            EXPECT_FALSE(a == rows && b == columns) << each.name;
            continue;
          }
          EXPECT_TRUE(found.equal(each.program(x)))
              << each.name << " traced at " << rows << "×" << columns << ", run at " << a << "×" << b;
        }
      }
    }
  }
}

}  // namespace fx::compared_sizes_test
