// Random programs that pad, crop, write into larger tensors and cut to the smaller of two: traced at sizes at which
// much of it is left out, and at others, they do what the program does or refuse.
#include <random>

#include "tests/trace/sizes_testing.h"

namespace fx::random_crops_test {

using testing::AtSizes;
using torch::constant_pad_nd;
using torch::Tensor;
using torch::indexing::None;
using torch::indexing::Slice;

class RandomProgram {
 public:
  explicit RandomProgram(std::mt19937& random) {
    std::uniform_int_distribution<std::int64_t> any(0, 99), length(2, 5);
    for (std::int64_t left = length(random); left > 0; --left)
      steps_.push_back({any(random), any(random), any(random), any(random)});
  }

  Tensor operator()(const Tensor& x) const {
    std::vector<Tensor> values = {x};
    for (const Step& step : steps_) values.push_back(next(step, values));
    return values.back() * 2;
  }

 private:
  struct Step {
    std::int64_t kind, of, other, number;
  };

  static Tensor next(const Step& step, const std::vector<Tensor>& values) {
    const auto pick = [&](std::int64_t which) { return values[static_cast<std::size_t>(which) % values.size()]; };
    const Tensor a = pick(step.of), b = pick(step.other);
    const std::int64_t h = a.size(1), w = a.size(2), unit = 2 + step.number % 7;
    const std::int64_t below = (unit - h % unit) % unit, right = (unit - w % unit) % unit;
    const std::int64_t rows = std::min(h, b.size(1)), columns = std::min(w, b.size(2));
    switch (step.kind % 8) {
      case 0: return constant_pad_nd(a, {0, right, 0, below});
      case 1: return a.index({Slice(), Slice(0, b.size(1)), Slice(None, columns)});
      case 2: return a.index({torch::indexing::Ellipsis, Slice(0, std::min<std::int64_t>(w, 4 + unit))}) * 1.5;
      case 3: return a.relu() + 0.25;
      case 4: {
        Tensor larger = torch::zeros({a.size(0), h + below, w});
        larger.index_put_({Slice(), Slice(None, h)}, a);
        return larger;
      }
      case 5: {
        const Tensor padded = constant_pad_nd(a, {0, 0, below / 2, below - below / 2}) + 1;
        return padded.index({Slice(), Slice(below / 2, padded.size(1) - (below - below / 2))});
      }
      case 6:
        return a.index({Slice(), Slice(None, rows), Slice(None, columns)}) -
               b.index({Slice(), Slice(0, rows), Slice(0, columns)});
      default: return a.slice(1, 0, std::max<std::int64_t>(1, h - step.number % 3));
    }
  }

  std::vector<Step> steps_;
};

TEST(RandomCropsNight, AreRightOrRefused) {
  constexpr int kPrograms = 60, kSizes = 15;
  std::mt19937 random(7);
  std::uniform_int_distribution<std::int64_t> example_size(1, 24), size(1, 40), batch(1, 3);
  int equal = 0;
  for (int i = 0; i < kPrograms; ++i) {
    const RandomProgram program(random);
    // Every other one needs no padding to eight.
    const auto draw = [&] { return i % 2 == 0 ? example_size(random) : (example_size(random) % 3 + 1) * 8; };
    const Tensor example = torch::rand({2, draw(), draw()}), before = example.clone();
    const auto gm = symbolic_trace([&](Tensor x) { return program(x); }, {example});
    ASSERT_TRUE(torch::equal(example, before)) << i;
    EXPECT_EQ(testing::at_sizes(
                  *gm, [&]() -> c10::IValue { return program(example); }, {example}, 0),
              AtSizes::equal)
        << i;
    for (int k = 0; k < kSizes; ++k) {
      const Tensor x = torch::rand({batch(random), size(random), size(random)});
      try {
        const bool same = torch::equal(gm->run({x}).toTensor(), program(x));
        EXPECT_TRUE(same) << "program " << i << " at " << x.sizes() << " from " << example.sizes() << "\n"
                          << gm->sizes();
        equal += same;
      } catch (const std::exception&) {
      }
    }
  }
  EXPECT_GT(equal, kPrograms * kSizes / 2);
}

}  // namespace fx::random_crops_test
