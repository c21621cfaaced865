// Real numbers that programs compute of sizes, in double and in float: the graph computes the same, or refuses.
#include <cmath>

#include "tests/support/night.h"
#include "tests/trace/round_trips.h"
#include "tests/trace/sizes_testing.h"

namespace fx::real_sizes_test {

using testing::AtSizes;
using torch::Tensor;

struct RealNumber {
  const char* name;
  double (*in_double)(double h, double w);
  float (*in_float)(float h, float w);
  bool stays_free = true;  // at all sizes at which it is a number
};
std::ostream& operator<<(std::ostream& out, const RealNumber& each) { return out << each.name; }

// One that is written once for both types.
template <typename Of>
constexpr RealNumber number(const char* name, Of, bool stays_free = true) {
  return {name, [](double h, double w) -> double { return Of()(h, w); },
          [](float h, float w) -> float { return Of()(h, w); }, stays_free};
}

const RealNumber kNumbers[] = {
    number(
        "over_one_more", [](auto h, auto) { return 3 / (h + 1); }, false),
    number(
        "over_two_more", [](auto h, auto) { return decltype(h)(0.7) / (h + 2); }, false),
    number(
        "one_less_a_part", [](auto h, auto) { return 1 - 1 / h; }, false),
    number(
        "one_and_a_part", [](auto h, auto) { return 1 + 2 / (h + 1); }, false),
    number(
        "part_and_half", [](auto h, auto) { return decltype(h)(0.5) + 3 / h; }, false),
    number(
        "over_a_root_of_more", [](auto h, auto) { return 1 / std::sqrt(h + 1); }, false),
    number(
        "root_and_more", [](auto h, auto) { return 2 * std::sqrt(h) + 1; }, false),
    number(
        "log", [](auto h, auto) { return std::log(h); }, false),
    number(
        "log_of_one_more", [](auto h, auto) { return std::log(h + 1); }, false),
    number(
        "log_of_a_part", [](auto h, auto) { return std::log(h / 4); }, false),
    number(
        "log_to_512", [](auto h, auto) { return std::log(h) / std::log(decltype(h)(512)); }, false),
    number(
        "log2", [](auto h, auto) { return std::log2(h); }, false),
    number("ratio", [](auto h, auto w) { return h / w; }),
    number("over_a_product", [](auto h, auto w) { return 5 / (h * w); }),
    number(
        "sine", [](auto h, auto) { return std::sin(h); }, false),
    number(
        "fractional_power", [](auto h, auto) { return std::pow(h, decltype(h)(0.3)); }, false),
    number(
        "decay", [](auto h, auto) { return std::pow(decltype(h)(0.9), h); }, false),
    number(
        "two_parts", [](auto h, auto) { return 1 / h + 1 / (h + 3); }, false),
    number(
        "bounded_part", [](auto h, auto) { return std::max(1 / h, decltype(h)(0.05)); }, false),
};

class RealSizes : public ::testing::TestWithParam<RealNumber> {
 protected:
  Tensor in_double(const Tensor& x) const {
    return x * GetParam().in_double(static_cast<double>(x.size(0)), static_cast<double>(x.size(1)));
  }
  Tensor in_float(const Tensor& x) const {
    return x * GetParam().in_float(static_cast<float>(x.size(0)), static_cast<float>(x.size(1)));
  }
  void expect_followed_or_refused(GraphModule& gm, const std::function<Tensor(Tensor)>& program) const {
    for (const std::int64_t h : {1, 2, 3, 5, 7, 8, 12, 16, 20, 33, 64, 130, 1000}) {
      for (const std::int64_t w : {1, 4, 10, 23, 70}) {
        const Tensor x = torch::rand({h, w});
        const AtSizes outcome = testing::at_sizes(
            gm, [&]() -> c10::IValue { return program(x); }, {x}, 1e-6);
        EXPECT_NE(outcome, AtSizes::wrong) << h << " x " << w << gm.graph();
        if (GetParam().stays_free) {
          EXPECT_EQ(outcome, AtSizes::equal) << h << " x " << w << gm.graph();
        }
      }
    }
  }
};

TEST_P(RealSizes, AreFollowedOrRefused) {
  for (const auto& program : std::vector<std::function<Tensor(Tensor)>>{[this](Tensor x) { return in_double(x); },
                                                                        [this](Tensor x) { return in_float(x); }}) {
    for (const auto& [h, w] : std::vector<std::pair<int, int>>{{6, 8}, {5, 5}, {16, 24}, {33, 10}}) {
      const auto gm = symbolic_trace(program, {torch::rand({h, w})});
      gm->graph().lint();
      expect_followed_or_refused(*gm, program);
    }
  }
}

TEST_P(RealSizes, AreFollowedFromAFile) {
  const auto program = [this](Tensor x) { return in_double(x); };
  const auto gm = symbolic_trace(program, {torch::rand({6, 8})});
  expect_followed_or_refused(*from_torchscript(testing::saved_and_loaded(*gm)), program);
  GraphModule again(testing::attributes_of(*gm), parse_graph(print_graph(gm->graph())));
  expect_followed_or_refused(again, program);
}

INSTANTIATE_TEST_SUITE_P(Table, RealSizes, ::testing::ValuesIn(testing::some_by_day(kNumbers)),
                         [](const auto& info) { return std::string(info.param.name); });

// Of several ways to write a number one that makes it to the last bit: `n / 10.` is not `n * 0.1`.
TEST(RealSizesToTheLastBit, AreTheProgramsOwn) {
  const std::pair<const char*, double (*)(double)> kExact[] = {
      {"n / 10", [](double n) { return n / 10.0; }},
      {"n * 0.1", [](double n) { return n * 0.1; }},
      {"1 / 3n", [](double n) { return 1.0 / (n * 3); }},
      {"0.7 / n", [](double n) { return 0.7 / n; }},
      {"1 / root", [](double n) { return 1 / std::sqrt(n); }},
      {"root / 3", [](double n) { return std::sqrt(n) / 3; }},
      {"0.1f n", [](double n) { return static_cast<double>(static_cast<float>(n) * 0.1F); }},
      {"1 / n in float", [](double n) { return static_cast<double>(1 / static_cast<float>(n)); }},
  };
  for (const auto& [name, number] : kExact) {
    const auto program = [number = number](const Tensor& x) { return x * number(static_cast<double>(x.size(0))); };
    const bool in_float = std::string_view(name).find('f') != std::string_view::npos;
    const auto options = torch::dtype(in_float ? torch::kFloat : torch::kDouble);
    const auto gm = symbolic_trace(program, {torch::rand({12}, options)});
    for (std::int64_t n = 1; n < 200; ++n) {
      const Tensor x = torch::rand({n}, options);
      ASSERT_TRUE(torch::equal(gm->forward(x), program(x))) << name << " at " << n << gm->graph();
    }
  }
}

}  // namespace fx::real_sizes_test
