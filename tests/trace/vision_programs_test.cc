// Image models as public LibTorch projects write them, each at other batches, heights and widths than its example's.
#include <cmath>

#include "tests/trace/program_checks.h"

namespace fx::vision_programs_test {

namespace F = torch::nn::functional;
namespace nn = torch::nn;
using testing::Model;
using testing::Model2;
using testing::ProgramCase;
using testing::Tensors;
using torch::Tensor;
using torch::indexing::Slice;

std::function<Tensors()> image(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return [=] {
    torch::manual_seed(n + h * w);
    return Tensors{torch::rand({n, c, h, w}) - 0.3};
  };
}

Tensor resized(const Tensor& x, std::vector<std::int64_t> size, bool aligned = false) {
  return F::interpolate(
      x, F::InterpolateFuncOptions().size(std::move(size)).mode(torch::kBilinear).align_corners(aligned));
}

nn::Conv2d conv(int in, int out, int kernel = 3, int stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
}

/// Features at 1/2, 1/4 and 1/8.
struct Pyramid : Model {
  nn::Conv2d a = register_module("a", conv(3, 4, 3, 2)), b = register_module("b", conv(4, 4, 3, 2)),
             c = register_module("c", conv(4, 4, 3, 2)), side = register_module("side", conv(4, 4, 1)),
             head = register_module("head", conv(4, 2, 1));
};

struct Fpn : Pyramid {
  Tensor forward(Tensor x) override {
    const Tensor p = torch::relu(a(x)), q = torch::relu(b(p)), r = torch::relu(c(q));
    const Tensor up = resized(r, {q.size(2), q.size(3)}) + side(q);
    const Tensor top =
        F::interpolate(
            up,
            F::InterpolateFuncOptions().size(std::vector<std::int64_t>{p.size(2), p.size(3)}).mode(torch::kNearest)) +
        side(p);
    return resized(head(top), {x.size(2), x.size(3)});
  }
};
struct FpnByScale : Pyramid {
  Tensor forward(Tensor x) override {
    const Tensor p = torch::relu(a(x)), q = torch::relu(b(p)), r = torch::relu(c(q));
    const auto twice = [](const Tensor& t) {
      return F::interpolate(t,
                            F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kNearest));
    };
    return head(twice(twice(twice(r) + side(q)) + side(p)));
  }
};
struct Psp : Pyramid {
  Tensor forward(Tensor x) override {
    const Tensor f = torch::relu(b(a(x)));
    std::vector<Tensor> levels = {f};
    for (const std::int64_t bins : {1, 2, 3, 6})
      levels.push_back(resized(side(torch::adaptive_avg_pool2d(f, {bins, bins})), f.sizes().slice(2).vec(), true));
    return resized(torch::cat(levels, 1).mean(1, true), {x.size(2), x.size(3)}, true);
  }
};
struct DeepLab : Pyramid {
  nn::Conv2d wide = register_module("wide", nn::Conv2d(nn::Conv2dOptions(4, 4, 3).padding(2).dilation(2)));
  Tensor forward(Tensor x) override {
    const auto shape = x.sizes();
    const Tensor low = a(x), f = b(low);
    Tensor pooled = f.mean({2, 3}, true);
    pooled = resized(side(pooled), {f.size(-2), f.size(-1)});
    const Tensor joined = torch::cat({wide(f), side(f), pooled}, 1).narrow(1, 0, 4);
    const Tensor up = resized(joined, low.sizes().slice(2, 2).vec());
    return resized(head(up + low), {shape[2], shape[3]});
  }
};
struct UnetByCrop : Pyramid {
  Tensor forward(Tensor x) override {
    const Tensor p = torch::relu(a(x)), q = torch::relu(b(p));
    Tensor up = torch::upsample_nearest2d(q, {q.size(2) * 2, q.size(3) * 2});
    const auto h = std::min(up.size(2), p.size(2)), w = std::min(up.size(3), p.size(3));
    up = up.index({Slice(), Slice(), Slice(0, h), Slice(0, w)});
    return head(up + p.slice(2, 0, h).slice(3, 0, w));
  }
};
struct UnetByTransposed : Pyramid {
  nn::ConvTranspose2d up = register_module("up", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4, 4, 2).stride(2)));
  Tensor forward(Tensor x) override {
    const Tensor p = torch::relu(a(x)), q = torch::relu(b(p));
    Tensor u = up(q);
    const auto dh = p.size(2) - u.size(2), dw = p.size(3) - u.size(3);
    u = F::pad(u, F::PadFuncOptions({dw / 2, dw - dw / 2, dh / 2, dh - dh / 2}));
    return head(torch::relu(u + p));
  }
};
struct SqueezeExcite : Pyramid {
  nn::Linear down = register_module("down", nn::Linear(4, 2)), up = register_module("up", nn::Linear(2, 4));
  Tensor forward(Tensor x) override {
    x = a(x);
    const auto n = x.size(0), ch = x.size(1);
    const Tensor s = torch::adaptive_avg_pool2d(x, {1, 1}).view({n, ch});
    return x * torch::sigmoid(up(torch::relu(down(s)))).view({n, ch, 1, 1}).expand_as(x);
  }
};
struct Shuffle : Pyramid {
  Tensor forward(Tensor x) override {
    x = a(x);
    const auto n = x.size(0), ch = x.size(1), h = x.size(2), w = x.size(3);
    x = x.view({n, 2, ch / 2, h, w}).transpose(1, 2).contiguous().view({n, ch, h, w});
    const auto halves = x.chunk(2, 1);
    return torch::cat({halves[0], halves[1].relu()}, 1);
  }
};
struct NonLocal : Pyramid {
  Tensor forward(Tensor x) override {
    x = a(x);
    const auto n = x.size(0), ch = x.size(1), hw = x.size(2) * x.size(3);
    const Tensor q = side(x).view({n, ch, hw}).permute({0, 2, 1}), k = b(x).flatten(2);
    const Tensor attention = torch::softmax(torch::bmm(q, k) / std::sqrt(static_cast<double>(ch)), -1);
    return x + torch::bmm(attention, k.permute({0, 2, 1})).mean(1).view({n, ch, 1, 1});
  }
};
struct PadTo32 : Pyramid {
  Tensor forward(Tensor x) override {
    const auto h = x.size(2), w = x.size(3);
    const std::int64_t ph = (32 - h % 32) % 32, pw = (32 - w % 32) % 32;
    const Tensor padded =
        F::pad(x, F::PadFuncOptions({pw / 2, pw - pw / 2, ph / 2, ph - ph / 2}).mode(torch::kConstant));
    const Tensor y = F::interpolate(
        c(b(a(padded))), F::InterpolateFuncOptions().scale_factor(std::vector<double>{8, 8}).mode(torch::kNearest));
    return y.slice(2, ph / 2, ph / 2 + h).slice(3, pw / 2, pw / 2 + w);
  }
};
struct CeilTo8 : Pyramid {
  Tensor forward(Tensor x) override {
    const auto up = [](std::int64_t n) {
      return static_cast<std::int64_t>(std::ceil(static_cast<double>(n) / 8.0)) * 8;
    };
    return resized(head(a(resized(x, {up(x.size(2)), up(x.size(3))}))), {x.size(2) / 2, x.size(3) / 2});
  }
};
struct ScaledByHalves : Pyramid {
  Tensor forward(Tensor x) override {
    const auto options = F::InterpolateFuncOptions().mode(torch::kBilinear).align_corners(false);
    auto down = options, up = options;
    down.scale_factor(std::vector<double>{0.5, 0.5});
    up.scale_factor(std::vector<double>{1.5, 1.5});
    return F::interpolate(F::interpolate(x, down), up) * 2;
  }
};
struct Anchors : Pyramid {
  Tensor forward(Tensor x) override {
    const Tensor f = c(b(a(x)));
    const auto n = f.size(0), h = f.size(2), w = f.size(3);
    const auto stride = static_cast<float>(x.size(2) / h);
    const auto grid = torch::meshgrid({torch::arange(h), torch::arange(w)}, "ij");
    const Tensor centres = torch::stack({grid[1], grid[0]}, -1).to(f.dtype()).view({1, h, w, 2}) * stride + stride / 2;
    const Tensor boxes = f.permute({0, 2, 3, 1}).contiguous().view({n, h, w, 4});
    const Tensor xy = boxes.index({"...", Slice(0, 2)}) + centres, wh = boxes.index({"...", Slice(2, 4)}).exp();
    return torch::cat({xy - wh / 2, xy + wh / 2}, -1).view({n, -1, 4});
  }
};
struct Yolo : Pyramid {
  Tensor forward(Tensor x) override {
    Tensor p = c(b(a(x)));
    const auto bs = p.size(0), grid = p.size(2), other = p.size(3), stride = x.size(2) / p.size(2);
    p = p.view({bs, 2, 2, grid * other}).transpose(2, 3).contiguous().view({bs, grid * other * 2, 2});
    const Tensor xs = torch::arange(other).repeat({grid, 1}).view({-1, 1}),
                 ys = torch::arange(grid).view({-1, 1}).repeat({1, other}).view({-1, 1});
    const Tensor offsets = torch::cat({xs, ys}, 1).repeat({1, 2}).view({-1, 2}).unsqueeze(0);
    return (torch::sigmoid(p) + offsets.to(p.dtype())) * stride;
  }
};
struct Vgg : Pyramid {
  nn::Linear fc = register_module("fc", nn::Linear(4 * 2 * 2, 5));
  nn::Dropout drop = register_module("drop", nn::Dropout(0.0));
  Tensor forward(Tensor x) override {
    x = torch::max_pool2d(torch::relu(a(x)), 2);
    x = torch::adaptive_avg_pool2d(x, {2, 2});
    x = x.view({x.size(0), -1});
    return torch::log_softmax(fc(drop(x)), 1);
  }
};
struct Lenet : Pyramid {
  nn::Linear fc = register_module("fc", nn::Linear(4 * 4 * 4, 5));
  Tensor forward(Tensor x) override { return fc(torch::relu(b(a(x))).view({-1, 4 * 4 * 4})); }
};
struct Patches : Pyramid {
  nn::Conv2d embed = register_module("embed", nn::Conv2d(nn::Conv2dOptions(3, 8, 4).stride(4)));
  Tensor cls = register_parameter("cls", torch::rand({1, 1, 8})),
         pos = register_parameter("pos", torch::rand({1, 17, 8}));
  Tensor forward(Tensor x) override {
    const auto n = x.size(0);
    x = embed(x).flatten(2).transpose(1, 2);
    x = torch::cat({cls.expand({n, -1, -1}), x}, 1);
    return torch::softmax((x + pos).index({Slice(), 0}), -1);
  }
};
struct PatchesOfAnySize : Patches {
  Tensor forward(Tensor x) override {
    const auto n = x.size(0), h = x.size(2) / 4, w = x.size(3) / 4;
    x = embed(x).flatten(2).transpose(1, 2);
    Tensor grid = pos.slice(1, 1).reshape({1, 4, 4, 8}).permute({0, 3, 1, 2});
    grid = F::interpolate(
        grid,
        F::InterpolateFuncOptions().size(std::vector<std::int64_t>{h, w}).mode(torch::kBicubic).align_corners(false));
    grid = grid.permute({0, 2, 3, 1}).view({1, h * w, 8});
    return (x + grid).mean(1) + cls.squeeze(0) * n;
  }
};
struct Rois : Pyramid {
  Tensor forward(Tensor x) override {
    const Tensor f = b(a(x));
    const double ratio = static_cast<double>(f.size(2)) / static_cast<double>(x.size(2));
    const Tensor theta = torch::eye(2, 3).unsqueeze(0).repeat({x.size(0), 1, 1}).to(x.dtype()) * ratio;
    const Tensor grid = F::affine_grid(theta, {x.size(0), f.size(1), 5, 5}, false);
    return F::grid_sample(f, grid, F::GridSampleFuncOptions().align_corners(false));
  }
};
struct SinePositions : Pyramid {
  Tensor forward(Tensor x) override {
    x = a(x);
    const Tensor ones = torch::ones({x.size(0), x.size(2), x.size(3)}, x.options());
    Tensor y = ones.cumsum(1), z = ones.cumsum(2);
    y = y / (y.slice(1, -1) + 1e-6) * 6.28;
    z = z / (z.index({Slice(), Slice(), Slice(-1, torch::indexing::None)}) + 1e-6) * 6.28;
    return x + torch::stack({y.sin(), y.cos(), z.sin(), z.cos()}, 1);
  }
};
struct Residual : Pyramid {
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(4));
  nn::Sequential skip = register_module("skip", nn::Sequential(conv(3, 4, 1, 2)));
  Tensor forward(Tensor x) override {
    const Tensor s = skip->forward(x);
    return torch::avg_pool2d(torch::relu(norm(a(x)) + s), {s.size(2), s.size(3)}).flatten(1);
  }
};
struct Inception : Pyramid {
  Tensor forward(Tensor x) override {
    x = x * 2 - 1;
    x = torch::cat({a(x), F::avg_pool2d(x, F::AvgPool2dFuncOptions(3).stride(2).padding(1))}, 1);
    if (x.size(2) > 1) x = torch::max_pool2d(x, 2, 2, 0, 1, true);
    return std::get<0>(x.flatten(2).max(2));
  }
};
struct Vae : Pyramid {
  nn::Linear mean = register_module("mean", nn::Linear(4, 3)), log = register_module("log", nn::Linear(4, 3)),
             decode = register_module("decode", nn::Linear(3, 6));
  Tensor forward(Tensor x) override {
    const Tensor h = torch::relu(a(x)).mean({2, 3}), m = mean(h), l = log(h);
    const Tensor z = m + torch::randn_like(l) * torch::exp(0.5 * l);
    return torch::sigmoid(decode(z)).view({x.size(0), 1, 2, 3});
  }
};
struct Generator : Model {
  nn::ConvTranspose2d one =
                          register_module("one", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(6, 4, 4).bias(false))),
                      two = register_module(
                          "two",
                          nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4, 3, 4).stride(2).padding(1).bias(false)));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(4));
  Tensor forward(Tensor x) override {
    x = x.view({x.size(0), x.size(1), 1, 1});
    return torch::tanh(two(torch::relu(norm(one(x)))));
  }
};
struct StyleLoss : Pyramid {
  Tensor forward(Tensor x) override {
    const Tensor f = a(x);
    const auto n = f.size(0), ch = f.size(1), h = f.size(2), w = f.size(3);
    const Tensor flat = f.view({n * ch, h * w});
    return torch::mm(flat, flat.t()).div(n * ch * h * w);
  }
};
struct HourglassByDepth : Pyramid {
  Tensor step(int depth, Tensor x) {
    const Tensor up = side(x);
    Tensor low = torch::max_pool2d(x, 2);
    low = depth > 1 ? step(depth - 1, low) : side(low);
    return up + F::interpolate(low, F::InterpolateFuncOptions().size(x.sizes().slice(2).vec()).mode(torch::kNearest));
  }
  Tensor forward(Tensor x) override { return step(2, a(x)); }
};
struct Equal : Model2 {
  nn::Conv2d a = register_module("a", conv(6, 4));
  Tensor forward(Tensor x, Tensor y) override {
    if (x.sizes() != y.sizes()) y = resized(y, {x.size(2), x.size(3)});
    return a(torch::cat({x, y}, 1));
  }
};

template <typename M>
std::shared_ptr<nn::Module> make() {
  return std::make_shared<M>();
}

const std::vector<ProgramCase>& programs() {
  const auto usual = [](std::int64_t n, std::int64_t h, std::int64_t w) {
    return std::vector<std::function<Tensors()>>{image(n, 3, h, w), image(5, 3, h, w), image(1, 3, h + 32, w + 64),
                                                 image(3, 3, 2 * h, h)};
  };
  const auto odd = [&](std::int64_t n, std::int64_t h, std::int64_t w) {
    auto all = usual(n, h, w);
    for (const std::int64_t by : {1, 3, 6, 11}) all.push_back(image(2, 3, h + by, w + 2 * by + 1));
    return all;
  };
  const auto batches = [](std::int64_t h, std::int64_t w) {
    return std::vector<std::function<Tensors()>>{image(2, 3, h, w), image(1, 3, h, w), image(7, 3, h, w)};
  };
  const auto vectors = [] {
    return std::vector<std::function<Tensors()>>{[] {
                                                   return Tensors{torch::rand({2, 6})};
                                                 },
                                                 [] {
                                                   return Tensors{torch::rand({9, 6})};
                                                 }};
  };
  static const auto& table = *new std::vector<ProgramCase>{
      {"Fpn", make<Fpn>, odd(2, 32, 32), 8},
      {"FpnByScale", make<FpnByScale>, usual(2, 32, 32), 4},
      {"Psp", make<Psp>, odd(2, 32, 48), 8},
      {"DeepLab", make<DeepLab>, odd(2, 32, 48), 8},
      {"UnetByCrop", make<UnetByCrop>, odd(2, 32, 32), 3},
      {"UnetByTransposed", make<UnetByTransposed>, odd(2, 32, 32), 4},
      {"UnetByTransposedOdd", make<UnetByTransposed>, odd(2, 33, 35), 4},
      {"SqueezeExcite", make<SqueezeExcite>, odd(2, 16, 16), 8},
      {"Shuffle", make<Shuffle>, odd(1, 16, 16), 8},
      {"NonLocal", make<NonLocal>, odd(2, 8, 8), 8},
      {"PadTo32", make<PadTo32>, odd(2, 32, 32), 8},
      {"PadTo32Odd", make<PadTo32>, odd(2, 45, 70), 8},
      {"CeilTo8", make<CeilTo8>, odd(2, 19, 30), 8},
      {"ScaledByHalves", make<ScaledByHalves>, odd(2, 19, 30), 2},
      {"Anchors", make<Anchors>, usual(2, 32, 32), 4},
      {"Yolo", make<Yolo>, usual(1, 32, 32), 4},
      {"Vgg", make<Vgg>, odd(2, 16, 16), 8},
      {"Lenet", make<Lenet>, batches(16, 16), 3, {"x[0]"}},
      {"Patches", make<Patches>, batches(16, 16), 3},
      {"PatchesOfAnySize", make<PatchesOfAnySize>, usual(2, 16, 16), 4},
      {"Rois", make<Rois>, usual(2, 16, 16), 4},
      {"SinePositions", make<SinePositions>, odd(2, 9, 8), 8},
      {"Residual", make<Residual>, odd(2, 16, 16), 8},
      {"Inception", make<Inception>, odd(2, 16, 16), 8},
      {"Vae", make<Vae>, odd(2, 16, 16), 8},
      {"Generator", make<Generator>, vectors(), 2},
      {"StyleLoss", make<StyleLoss>, odd(1, 16, 16), 8},
      {"HourglassByDepth", make<HourglassByDepth>, odd(2, 32, 32), 8},
      {"Equal",
       make<Equal>,
       {[] {
          return Tensors{torch::rand({2, 3, 8, 8}), torch::rand({2, 3, 4, 4})};
        },
        [] {
          return Tensors{torch::rand({3, 3, 9, 10}), torch::rand({3, 3, 5, 4})};
        },
        [] {
          return Tensors{torch::rand({3, 3, 9, 10}), torch::rand({3, 3, 9, 10})};
        }},
       2},
  };
  return table;
}

class VisionPrograms : public ::testing::TestWithParam<ProgramCase> {};

TEST_P(VisionPrograms, HoldAtOtherSizes) { testing::expect_holds_at_other_sizes(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Night, VisionPrograms, ::testing::ValuesIn(programs()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::vision_programs_test

const std::vector<fx::testing::ProgramCase>& fx::testing::vision_programs() { return vision_programs_test::programs(); }
