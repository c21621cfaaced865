// Whole numbers that programs compute of three sizes: what is flattened, the tokens of an image, sums. The graph
// computes the same, or refuses; where one size is fixed, too.
#include <algorithm>

#include "tests/support/night.h"
#include "tests/trace/round_trips.h"
#include "tests/trace/sizes_testing.h"

namespace fx::three_sizes_test {

using testing::AtSizes;
using testing::Stays;
using torch::Tensor;
using I = std::int64_t;

struct OfThree {
  const char* name;
  I (*of)(I a, I b, I c);
  Stays stays = Stays::free;
  Stays where_one_is_fixed = stays, from_a_cube = stays;
};
void PrintTo(const OfThree& each, std::ostream* out) { *out << each.name; }

const OfThree kCases[] = {
    {"product", [](I a, I b, I c) { return a * b * c; }},
    {"twice_the_product", [](I a, I b, I c) { return 2 * a * b * c; }},
    {"product_and_one", [](I a, I b, I c) { return a * b * c + 1; }},
    {"thrice_the_product_less_two", [](I a, I b, I c) { return 3 * a * b * c - 2; }},
    {"product_with_one_more", [](I a, I b, I c) { return a * (b + 1) * c; }, Stays::free_or_refused},
    {"product_with_one_less", [](I a, I b, I c) { return a * b * (c - 1); }},
    {"product_with_twice_and_one", [](I a, I b, I c) { return a * (2 * b + 1) * c; }},
    {"product_of_halves", [](I a, I b, I c) { return a * (b / 2) * (c / 2); }},
    {"parts_of_an_image", [](I, I b, I c) { return (b / 16) * (c / 16); }, Stays::free_or_refused},
    {"parts_and_one", [](I, I b, I c) { return (b / 16) * (c / 16) + 1; }, Stays::free, Stays::free,
     Stays::free_or_refused},
    {"parts_that_begin", [](I a, I b, I c) { return a * ((b + 7) / 8) * ((c + 7) / 8); }},
    {"area_and_one", [](I, I b, I c) { return b * c + 1; }},
    {"area_and_the_third", [](I a, I b, I c) { return b * c + a; }, Stays::free, Stays::free_or_refused},
    {"area_less_the_third", [](I a, I b, I c) { return b * c - a; }},
    {"area_and_twice_the_third", [](I a, I b, I c) { return a * b + 2 * c + 3; }},
    {"tokens_of_all", [](I a, I b, I c) { return a * (b * c + 1); }, Stays::free_or_refused},
    {"times_a_sum", [](I a, I b, I c) { return a * (b + c); }, Stays::free, Stays::free_or_refused},
    {"times_a_sum_and_one", [](I a, I b, I c) { return a * (b + c + 1); }},
    {"times_a_difference", [](I a, I b, I c) { return a * (b - c + 200); }},
    {"sum", [](I a, I b, I c) { return a + b + c; }, Stays::free_or_refused, Stays::free},
    {"sum_and_one", [](I a, I b, I c) { return a + b + c + 1; }, Stays::free_or_refused},
    {"sum_less_the_third", [](I a, I b, I c) { return a + b - c; }, Stays::free_or_refused, Stays::free},
    {"less_both", [](I a, I b, I c) { return a - b - c; }, Stays::free_or_refused, Stays::free},
    {"sum_with_twice_the_third", [](I a, I b, I c) { return a + b + 2 * c - 1; }, Stays::free_or_refused, Stays::free},
    {"two_and_three_times", [](I a, I b, I) { return 2 * a + 3 * b; }, Stays::free_or_refused},
    {"around", [](I, I b, I c) { return 2 * (b + c) - 4; }},
    {"sum_of_areas", [](I a, I b, I c) { return a * b + b * c; }, Stays::free_or_refused},
    {"surface", [](I a, I b, I c) { return a * b + b * c + a * c; }, Stays::free_or_refused},
    {"third_of_the_sum", [](I a, I b, I c) { return (a + b + c) / 3; }, Stays::free_or_refused},
    {"smallest",
     [](I a, I b, I c) {
       return std::min({a, b, c});
     },
     Stays::free_or_refused},
    {"product_over_one", [](I a, I b, I c) { return a * b / c; }, Stays::free_or_refused},
    {"product_up_to_5000", [](I a, I b, I c) { return std::min<I>(a * b * c, 5000); }, Stays::free_or_refused},
    {"hashed", [](I a, I b, I c) { return (a * 7919 + b * 104729 + c * 1299709) % 11; }, Stays::free_or_refused},
    {"rest_of_the_product", [](I a, I b, I c) { return a * b * c % 7; }, Stays::free_or_refused},
    {"sum_with_a_square", [](I a, I b, I c) { return a * a + b + c; }, Stays::free_or_refused},
    {"flipped_bits", [](I a, I b, I c) { return (a ^ b) + c; }, Stays::free_or_refused},
};

class ThreeSizes : public ::testing::TestWithParam<OfThree> {
 protected:
  static Tensor at(const Tensor& x) { return x * GetParam().of(x.size(0), x.size(1), x.size(2)); }
  static AtSizes outcome(GraphModule& gm, const std::vector<I>& sizes) {
    const Tensor x = torch::rand(sizes);
    return testing::at_sizes(
        gm, [&]() -> c10::IValue { return at(x); }, {x}, 0);
  }
};

const std::vector<std::vector<I>> kExamples = {{2, 6, 8}, {4, 4, 4}, {3, 32, 48}};
const std::vector<std::vector<I>> kOthers = {{1, 1, 1},  {1, 2, 3},   {3, 2, 1},  {5, 5, 5},  {2, 7, 8},
                                             {9, 6, 8},  {2, 6, 9},   {7, 3, 5},  {4, 9, 2},  {10, 20, 3},
                                             {1, 40, 7}, {16, 8, 31}, {64, 2, 2}, {2, 64, 3}, {3, 2, 130}};

TEST_P(ThreeSizes, AreFollowedOrRefused) {
  for (const std::vector<I>& example : kExamples) {
    const bool is_cube = example[0] == example[1] && example[1] == example[2];
    const Stays stays = is_cube ? GetParam().from_a_cube : GetParam().stays;
    const auto gm = symbolic_trace([](Tensor x) { return at(x); }, {torch::rand(example)});
    gm->graph().lint();
    for (const std::vector<I>& sizes : kOthers) {
      const AtSizes found = outcome(*gm, sizes);
      EXPECT_NE(found, AtSizes::wrong) << torch::IntArrayRef(sizes) << " from " << torch::IntArrayRef(example)
                                       << gm->graph();
      if (stays == Stays::free) {
        EXPECT_EQ(found, AtSizes::equal) << torch::IntArrayRef(sizes) << " from " << torch::IntArrayRef(example) << '\n'
                                         << SizeReport(gm->graph());
      }
    }
  }
}

TEST_P(ThreeSizes, AreFollowedWhereOneIsFixed) {
  for (std::size_t fixed = 0; fixed < 3; ++fixed) {
    std::vector<std::string> vary;
    for (std::size_t dim = 0; dim < 3; ++dim) {
      if (dim != fixed) vary.push_back("x[" + std::to_string(dim) + "]");
    }
    const std::vector<I> example = {3, 6, 8};
    TraceOptions options;
    if (GetParam().where_one_is_fixed == Stays::free) options.sizes = Sizes::varying(vary);
    const auto gm = symbolic_trace([](Tensor x) { return at(x); }, {torch::rand(example)}, options);
    for (std::vector<I> sizes : kOthers) {
      sizes[fixed] = example[fixed];
      const AtSizes found = outcome(*gm, sizes);
      EXPECT_NE(found, AtSizes::wrong) << torch::IntArrayRef(sizes) << gm->graph();
      if (GetParam().where_one_is_fixed == Stays::free) {
        EXPECT_EQ(found, AtSizes::equal) << torch::IntArrayRef(sizes) << gm->graph();
      }
    }
  }
}

TEST_P(ThreeSizes, AreFollowedFromAFile) {
  const auto gm = symbolic_trace([](Tensor x) { return at(x); }, {torch::rand({2, 6, 8})});
  const auto loaded = from_torchscript(testing::saved_and_loaded(*gm));
  GraphModule again(testing::attributes_of(*gm), parse_graph(print_graph(gm->graph())));
  for (const std::vector<I>& sizes : kOthers) {
    for (GraphModule* each : {loaded.get(), &again}) {
      const AtSizes found = outcome(*each, sizes);
      EXPECT_NE(found, AtSizes::wrong) << torch::IntArrayRef(sizes) << each->graph();
      if (GetParam().stays == Stays::free) {
        EXPECT_EQ(found, AtSizes::equal) << torch::IntArrayRef(sizes) << each->graph();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ThreeSizes, ::testing::ValuesIn(testing::some_by_day(kCases)),
                         [](const auto& info) { return std::string(info.param.name); });

// ── Flattened ─────────────────────────────────────────────────────────────────────────────────────────────────────

struct Flattened {
  const char* name;
  Tensor (*program)(Tensor);
};
std::ostream& operator<<(std::ostream& out, const Flattened& each) { return out << each.name; }

class FlattenedSizes : public ::testing::TestWithParam<Flattened> {};

const Flattened kFlattened[] = {
    {"all_rows",
     [](Tensor x) {
       return x.view({x.size(0) * x.size(1) * x.size(2), x.size(3)}) * 2;
     }},
    {"rows_and_back",
     [](Tensor x) {
       const I b = x.size(0), t = x.size(1), h = x.size(2);
       return x.reshape({b * t * h, -1}).sum(1).view({b, t, h});
     }},
    {"heads",
     [](Tensor x) {
       const I b = x.size(0), t = x.size(1), h = x.size(2), d = x.size(3);
       const Tensor each = x.transpose(1, 2).contiguous().view({b * h, t, d});
       return each.bmm(each.transpose(1, 2)).view({b, h, t, t}) / (b * t * h);
     }},
    {"features",
     [](Tensor x) {
       return x.view({x.size(0), x.size(1) * x.size(2) * x.size(3)}).mean(1);
     }},
    {"numbers_of_rows",
     [](Tensor x) {
       const I rows = x.size(0) * x.size(1) * x.size(2);
       return torch::arange(rows).view({rows, 1}) + x.reshape({rows, x.size(3)});
     }},
    {"tokens_and_one",
     [](Tensor x) {
       const Tensor tokens = x.flatten(2).transpose(1, 2);
       return torch::cat({torch::zeros({x.size(0), 1, x.size(1)}), tokens}, 1) +
              torch::arange(x.size(2) * x.size(3) + 1).view({1, -1, 1});
     }},
};

TEST_P(FlattenedSizes, HoldAtOtherSizesWithGradients) {
  const auto gm = symbolic_trace(GetParam().program, {torch::rand({2, 3, 4, 5})});
  for (const std::vector<I>& sizes : std::vector<std::vector<I>>{
           {1, 1, 1, 1}, {3, 2, 7, 4}, {5, 9, 2, 6}, {2, 3, 4, 9}, {8, 3, 4, 5}, {2, 11, 4, 5}, {2, 3, 12, 5}}) {
    const Tensor ours = torch::rand(sizes).requires_grad_(), theirs = ours.detach().clone().requires_grad_();
    const Tensor found = gm->run({ours}).toTensor(), expected = GetParam().program(theirs);
    EXPECT_TRUE(testing::same_value(found, expected, 1e-5)) << torch::IntArrayRef(sizes);
    found.pow(2).sum().backward();
    expected.pow(2).sum().backward();
    EXPECT_TRUE(testing::same_value(ours.grad(), theirs.grad(), 1e-4)) << torch::IntArrayRef(sizes);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, FlattenedSizes, ::testing::ValuesIn(testing::some_by_day(kFlattened)),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::three_sizes_test
