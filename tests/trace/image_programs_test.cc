// Programs on images that have no weights, each at other batches, heights and widths than its example's.
#include "tests/trace/program_checks.h"

namespace fx::image_programs_test {

using testing::Model;
using testing::ProgramCase;
using testing::Tensors;
using torch::Tensor;
using torch::indexing::Slice;

std::function<Tensors()> image(std::int64_t n, std::int64_t h, std::int64_t w) {
  return [=] {
    torch::manual_seed(n + h * w);
    return Tensors{torch::rand({n, 3, h, w}) - 0.3};
  };
}

struct Focus : Model {
  Tensor forward(Tensor x) override {
    using namespace torch::indexing;
    x = torch::cat({x.index({"...", Slice(None, None, 2), Slice(None, None, 2)}),
                    x.index({"...", Slice(1, None, 2), Slice(None, None, 2)}),
                    x.index({"...", Slice(None, None, 2), Slice(1, None, 2)}),
                    x.index({"...", Slice(1, None, 2), Slice(1, None, 2)})},
                   1);
    return x.mean(1) * x.size(1);
  }
};
struct SpaceToDepth : Model {
  Tensor forward(Tensor x) override {
    const auto n = x.size(0), ch = x.size(1), h = x.size(2), w = x.size(3);
    return x.view({n, ch, h / 2, 2, w / 2, 2}).permute({0, 3, 5, 1, 2, 4}).contiguous().view({n, ch * 4, h / 2, w / 2});
  }
};
struct FlowWarp : Model {
  Tensor forward(Tensor x) override {
    const auto n = x.size(0), h = x.size(2), w = x.size(3);
    const Tensor xs = torch::linspace(-1, 1, w).view({1, 1, w}).expand({n, h, w});
    const Tensor ys = torch::linspace(-1, 1, h).view({1, h, 1}).expand({n, h, w});
    const Tensor grid = torch::stack({xs, ys}, 3).to(x.dtype()) * 0.9;
    return torch::grid_sampler(x, grid, 0, 0, true);
  }
};
struct TotalVariation : Model {
  Tensor forward(Tensor x) override {
    const auto h = x.size(2), w = x.size(3);
    const auto count = static_cast<double>(x.size(1) * (h - 1) * w);
    const Tensor dy = (x.slice(2, 1, h) - x.slice(2, 0, h - 1)).pow(2).sum();
    const Tensor dx = (x.slice(3, 1) - x.slice(3, 0, w - 1)).pow(2).sum();
    return 2 * (dy / count + dx / static_cast<double>(x[0].numel())) / x.size(0);
  }
};
struct Broadcast : Model {
  Tensor forward(Tensor x) override {
    const Tensor coordinates = torch::arange(x.size(3), x.options()) / (x.size(3) - 1) * 2 - 1;
    const Tensor rows = torch::arange(0, x.size(2), 1, x.options()).div(x.size(2)).unsqueeze(1);
    return torch::cat({x, (coordinates + rows).expand({x.size(0), 1, x.size(2), x.size(3)})}, 1);
  }
};
struct Tiles : Model {
  Tensor forward(Tensor x) override {
    const Tensor windows = x.unfold(2, 3, 2).unfold(3, 3, 2);
    const auto rows = windows.size(2), columns = windows.size(3);
    return windows.reshape({x.size(0), x.size(1), rows * columns, 9}).mean(-1).view({-1, rows, columns});
  }
};
struct NormByHand : Model {
  Tensor forward(Tensor x) override {
    const auto m = x.numel() / x.size(1);
    const Tensor mean = x.transpose(0, 1).reshape({x.size(1), -1}).sum(1) / m;
    return x - mean.view({1, x.size(1), 1, 1});
  }
};
struct RollAndFlip : Model {
  Tensor forward(Tensor x) override {
    return torch::roll(x, {x.size(2) / 2, -1}, {2, 3}) + torch::flip(x, {3}) +
           torch::rot90(torch::rot90(x, 1, {2, 3}), 3, {2, 3});
  }
};

template <typename M>
std::shared_ptr<torch::nn::Module> make() {
  return std::make_shared<M>();
}

const std::vector<ProgramCase>& programs() {
  const auto usual = [](std::int64_t n, std::int64_t h, std::int64_t w) {
    return std::vector<std::function<Tensors()>>{image(n, h, w), image(5, h, w), image(1, h + 32, w + 64),
                                                 image(3, 2 * h, h)};
  };
  const auto odd = [&](std::int64_t n, std::int64_t h, std::int64_t w) {
    auto all = usual(n, h, w);
    for (const std::int64_t by : {1, 3, 6, 11}) all.push_back(image(2, h + by, w + 2 * by + 1));
    return all;
  };
  static const auto& table = *new std::vector<ProgramCase>{
      {"Focus", make<Focus>, usual(2, 16, 16), 4, {"x[0]", "x[2]", "x[3]"}},
      {"SpaceToDepth", make<SpaceToDepth>, usual(2, 16, 16), 4},
      {"FlowWarp", make<FlowWarp>, odd(2, 9, 8), 8},
      {"TotalVariation", make<TotalVariation>, odd(2, 16, 16), 8},
      {"Broadcast", make<Broadcast>, odd(2, 16, 16), 8},
      {"Tiles", make<Tiles>, odd(2, 9, 9), 8},
      {"NormByHand", make<NormByHand>, odd(2, 9, 9), 8},
      {"RollAndFlip", make<RollAndFlip>, odd(2, 9, 9), 8},
  };
  return table;
}

class ImagePrograms : public ::testing::TestWithParam<ProgramCase> {};

TEST_P(ImagePrograms, HoldAtOtherSizes) { testing::expect_holds_at_other_sizes(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Night, ImagePrograms, ::testing::ValuesIn(programs()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::image_programs_test

const std::vector<fx::testing::ProgramCase>& fx::testing::image_programs() { return image_programs_test::programs(); }
