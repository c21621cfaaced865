// Convolutions that are padded as TensorFlow pads them, so that ceil(n / stride) is left: EfficientNet and its like in
// the ways in which people write that. Several such numbers of one size are more than a trace finds rules for: it holds
// for other batches, and refuses other sizes of images.
#include <cmath>

#include "tests/trace/program_checks.h"

namespace fx::same_padding_test {

namespace F = torch::nn::functional;
namespace nn = torch::nn;
using testing::Model;
using testing::ProgramCase;
using testing::Tensors;
using torch::Tensor;
using I = std::int64_t;

// ── Spellings ─────────────────────────────────────────────────────────────────────────────────────────────────────

I by_ceil_of_double(I n, I kernel, I stride) {
  const I out = static_cast<I>(std::ceil(static_cast<double>(n) / static_cast<double>(stride)));
  return std::max<I>((out - 1) * stride + kernel - n, 0);
}
I by_ceil_of_float(I n, I kernel, I stride) {
  const auto out = static_cast<I>(std::ceil(static_cast<float>(n) / static_cast<float>(stride)));
  return std::max<I>(0, (out - 1) * stride + (kernel - 1) * 1 + 1 - n);
}
I by_rounding_up(I n, I kernel, I stride) {
  return std::max<I>(((n + stride - 1) / stride - 1) * stride + kernel - n, 0);
}
I by_remainder(I n, I kernel, I stride) {
  return n % stride == 0 ? std::max<I>(kernel - stride, 0) : std::max<I>(kernel - n % stride, 0);
}
using Spelling = I (*)(I, I, I);

Tensor pad_both(const Tensor& x, I h, I w) {
  return F::pad(x, F::PadFuncOptions({w / 2, w - w / 2, h / 2, h - h / 2}));
}
Tensor pad_where_needed(const Tensor& x, I h, I w) {
  if (h <= 0 && w <= 0) return x;
  return torch::constant_pad_nd(x, {w / 2, w - w / 2, h / 2, h - h / 2});
}
Tensor pad_odd_row(const Tensor& x, I h, I w) {  // the rest as the convolution's own padding would
  const Tensor y = torch::constant_pad_nd(x, {0, w % 2, 0, h % 2});
  return torch::constant_pad_nd(y, {w / 2, w / 2, h / 2, h / 2});
}
using Pad = Tensor (*)(const Tensor&, I, I);

// ── Models ────────────────────────────────────────────────────────────────────────────────────────────────────────

template <Spelling spelling, Pad pad>
struct SameConvImpl : nn::Module {
  SameConvImpl(I in, I out, I k, I s, I groups = 1) : kernel(k), stride(s) {
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(in, out, k).stride(s).groups(groups).bias(false)));
  }
  Tensor forward(const Tensor& x) {
    return conv(pad(x, spelling(x.size(2), kernel, stride), spelling(x.size(3), kernel, stride)));
  }
  I kernel, stride;
  nn::Conv2d conv{nullptr};
};

/// Mobile inverted bottlenecks with squeeze and excitation: kernels 3 and 5, strides 1 and 2.
template <Spelling spelling, Pad pad>
struct Efficient : Model {
  using Conv = SameConvImpl<spelling, pad>;
  std::shared_ptr<Conv> stem = register_module("stem", std::make_shared<Conv>(3, 4, 3, 2)),
                        three = register_module("three", std::make_shared<Conv>(4, 4, 3, 1, 4)),
                        five = register_module("five", std::make_shared<Conv>(4, 4, 5, 2, 4)),
                        wide = register_module("wide", std::make_shared<Conv>(4, 6, 5, 1)),
                        point = register_module("point", std::make_shared<Conv>(6, 6, 1, 1));
  nn::Conv2d squeeze = register_module("squeeze", nn::Conv2d(4, 4, 1));
  Tensor forward(Tensor x) override {
    const auto swish = [](const Tensor& y) { return y * torch::sigmoid(y); };
    x = swish(stem->forward(x));
    Tensor y = swish(three->forward(x));
    y = y * torch::sigmoid(squeeze(F::adaptive_avg_pool2d(y, F::AdaptiveAvgPool2dFuncOptions(1)))) + x;
    return point->forward(swish(wide->forward(swish(five->forward(y)))));
  }
};

/// The stem of a ResNet: a kernel of 7, and a pool that is padded likewise.
template <Spelling spelling, Pad pad>
struct Stem : Model {
  using Conv = SameConvImpl<spelling, pad>;
  std::shared_ptr<Conv> seven = register_module("seven", std::make_shared<Conv>(3, 4, 7, 2));
  Tensor forward(Tensor x) override {
    x = torch::relu(seven->forward(x));
    return torch::max_pool2d(pad(x, spelling(x.size(2), 3, 2), spelling(x.size(3), 3, 2)), 3, 2);
  }
};

template <typename M>
std::shared_ptr<nn::Module> make() {
  return std::make_shared<M>();
}

std::function<Tensors()> image(I n, I h, I w) {
  return [=] {
    torch::manual_seed(n + h * w);
    return Tensors{torch::rand({n, 3, h, w}) - 0.3};
  };
}

const std::vector<ProgramCase>& programs() {
  const auto from = [](I n, I h, I w) {
    return std::vector<std::function<Tensors()>>{image(n, h, w),   image(7, h, w),  image(1, 17, 24), image(3, 16, 33),
                                                 image(2, 31, 30), image(1, 9, 50), image(5, 64, 12)};
  };
  static const auto& table = *new std::vector<ProgramCase>{
      {"by_ceil_of_double", make<Efficient<by_ceil_of_double, pad_both>>, from(2, 16, 16), 2, {"x[0]"}},
      {"by_ceil_of_float", make<Efficient<by_ceil_of_float, pad_both>>, from(2, 15, 22), 2, {"x[0]"}},
      {"by_rounding_up", make<Efficient<by_rounding_up, pad_both>>, from(1, 20, 33), 2, {"x[0]"}},
      {"by_remainder", make<Efficient<by_remainder, pad_both>>, from(2, 16, 24), 2, {"x[0]"}},
      {"where_needed", make<Efficient<by_ceil_of_double, pad_where_needed>>, from(2, 16, 24), 2, {"x[0]"}},
      {"odd_row", make<Efficient<by_rounding_up, pad_odd_row>>, from(2, 16, 24), 2, {"x[0]"}},
      {"large", make<Efficient<by_ceil_of_double, pad_both>>, from(1, 64, 80), 2, {"x[0]"}},
      {"stem", make<Stem<by_rounding_up, pad_both>>, from(2, 16, 24), 2, {"x[0]"}},
      {"stem_by_remainder", make<Stem<by_remainder, pad_where_needed>>, from(2, 33, 20), 2, {"x[0]"}},
  };
  return table;
}

class SamePadding : public ::testing::TestWithParam<ProgramCase> {};

TEST_P(SamePadding, HoldsAtOtherSizes) { testing::expect_holds_at_other_sizes(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Night, SamePadding, ::testing::ValuesIn(programs()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace fx::same_padding_test
