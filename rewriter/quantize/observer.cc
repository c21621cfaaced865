#include <fxgraph/rewriter/quantize/observer.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/rewriter/quantize/histogram.h>
#include <fxgraph/run/value.h>
#include <fxgraph/support/error.h>

namespace fx {

namespace {

constexpr float kEpsilon = std::numeric_limits<float>::epsilon();

bool keeps_histogram(const Quantizer& quantizer) {
  return !quantizer.per_channel &&
         (quantizer.range == RangeKind::histogram || quantizer.range == RangeKind::percentile);
}

at::Tensor number(double value) { return at::full({}, value, at::kFloat); }

}  // namespace

// ── Scale and zero point ─────────────────────────────────────────────────────────────────────────────────────────────

double QuantParameters::scale_value() const { return scale.item<float>(); }
std::int64_t QuantParameters::zero_point_value() const { return zero_point.item<std::int64_t>(); }

at::Tensor QuantParameters::quantize(const at::Tensor& values) const {
  // Kernels quantize to all of the type; a narrower range is kept to by clamping first.
  const at::ScalarType type = to_scalar_type(dtype);
  if (per_channel()) return at::quantize_per_channel(values, scale.to(at::kDouble), zero_point, axis, type);
  return at::quantize_per_tensor(values, scale_value(), zero_point_value(), type);
}

at::Tensor QuantParameters::fake_quantize(const at::Tensor& values) const {
  if (per_channel())
    return at::fake_quantize_per_channel_affine(values, scale, zero_point.to(at::kInt), axis, quant_min, quant_max);
  return at::fake_quantize_per_tensor_affine(values, scale_value(), zero_point_value(), quant_min, quant_max);
}

namespace {

// In float32 throughout, as PyTorch does it.
RoundingGrid grid_for_range(const Quantizer& quantizer, float low, float high) {
  const std::int64_t least = quantizer.quant_min(), most = quantizer.quant_max();
  const auto steps = static_cast<float>(most - least);
  const float below = std::min(low, 0.0F), above = std::max(high, 0.0F);
  if (quantizer.symmetric) {
    const float scale = std::max(std::max(-below, above) / (steps / 2), kEpsilon);
    return {scale, quantizer.dtype == DType::quint8 ? 128 : 0, least, most};
  }
  const float scale = std::max((above - below) / steps, kEpsilon);
  const auto zero = static_cast<std::int64_t>(static_cast<float>(least) - std::nearbyint(below / scale));
  return {scale, std::clamp(zero, least, most), least, most};
}

}  // namespace

QuantParameters parameters_for_range(const Quantizer& quantizer, const at::Tensor& low, const at::Tensor& high,
                                     std::int64_t axis) {
  QuantParameters made;
  made.dtype = quantizer.dtype;
  made.axis = axis;
  made.quant_min = quantizer.quant_min();
  made.quant_max = quantizer.quant_max();
  const at::Tensor lows = low.to(at::kFloat).contiguous(), highs = high.to(at::kFloat).contiguous();
  made.scale = at::empty_like(lows);
  made.zero_point = at::empty(lows.sizes(), at::kLong);
  for (std::int64_t i = 0; i < lows.numel(); ++i) {
    const RoundingGrid grid = grid_for_range(quantizer, lows.data_ptr<float>()[i], highs.data_ptr<float>()[i]);
    made.scale.data_ptr<float>()[i] = static_cast<float>(grid.scale);
    made.zero_point.data_ptr<std::int64_t>()[i] = grid.zero_point;
  }
  return made;
}

QuantParameters fixed_parameters(double scale, std::int64_t zero_point) {
  QuantParameters made;
  made.scale = at::full({1}, scale, at::kFloat);
  made.zero_point = at::full({1}, zero_point, at::kLong);
  return made;
}

// ── Observer ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Observer::Observer(const Quantizer& quantizer, std::string value, std::int64_t axis)
    : torch::nn::Module("Observer"), quantizer_(quantizer), value_(std::move(value)), axis_(axis) {
  const double infinity = std::numeric_limits<double>::infinity();
  low_ = register_buffer("min_val", quantizer.per_channel ? at::empty({0}) : number(infinity));
  high_ = register_buffer("max_val", quantizer.per_channel ? at::empty({0}) : number(-infinity));
  not_finite_ = register_buffer("not_finite", at::zeros({}, at::kBool));
  if (keeps_histogram(quantizer)) histogram_ = register_buffer("histogram", at::zeros({quantizer.bins}));
}

torch::Tensor Observer::forward(torch::Tensor x) {
  const at::NoGradGuard no_grad;
  if (!notes_range(x)) not_finite_.fill_(true);
  return x;
}

void Observer::observe(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  if (!notes_range(x)) {
    throw Error(ErrorKind::invalid_argument,
                "the value of %" + value_ + " is not finite for this sample: no range can be found; check the samples",
                value_);
  }
}

// The least and the most of values are finite where all are: NaN is both.
bool Observer::notes_range(const at::Tensor& x) {
  if (x.numel() == 0) return true;
  const at::Tensor values = x.detach().to(at::kFloat);
  if (quantizer_.per_channel) return notes_channels(values);
  const auto [low, high] = at::aminmax(values);
  const double least = low.item<float>(), most = high.item<float>();
  if (!std::isfinite(least) || !std::isfinite(most)) return false;
  if (histogram_.defined()) {
    add_to_histogram(values, least, most);
  } else {
    update(low, high);
  }
  return true;
}

bool Observer::notes_channels(const at::Tensor& x) {
  const at::Tensor channels = x.transpose(0, axis_).flatten(1);
  const auto [low, high] = at::aminmax(channels, 1);
  if (!low.isfinite().all().item<bool>() || !high.isfinite().all().item<bool>()) return false;
  if (low_.numel() == 0) {
    low_.set_data(low);
    high_.set_data(high);
  } else {
    update(low, high);
  }
  return true;
}

void Observer::update(const at::Tensor& low, const at::Tensor& high) {
  if (quantizer_.range == RangeKind::moving_average && (quantizer_.per_channel || has_seen())) {
    low_.add_(low - low_, quantizer_.averaging_constant);
    high_.add_(high - high_, quantizer_.averaging_constant);
  } else {
    low_.copy_(at::minimum(low, low_));
    high_.copy_(at::maximum(high, high_));
  }
}

void Observer::add_to_histogram(const at::Tensor& x, double low, double high) {
  Histogram histogram = Histogram::of(x, low, high, quantizer_.bins);
  if (has_seen() && low_.item<float>() != high_.item<float>()) {
    histogram =
        Histogram::merged(Histogram::from_tensor(histogram_, low_.item<float>(), high_.item<float>()), x, low, high);
  } else if (has_seen()) {
    // So far one value only: its histogram says where, not how often.
    histogram = Histogram::of(x, std::min<double>(low, low_.item<float>()), std::max<double>(high, high_.item<float>()),
                              quantizer_.bins);
  }
  histogram_.copy_(histogram.to_tensor());
  low_.fill_(histogram.low);
  high_.fill_(histogram.high);
}

bool Observer::has_seen() const {
  return quantizer_.per_channel ? low_.numel() > 0 : low_.item<float>() <= high_.item<float>();
}

QuantParameters Observer::parameters() const {
  if (!has_seen()) {
    throw Error(ErrorKind::invalid_argument,
                "no value of %" + value_ + " was seen: run the prepared program on samples before converting it",
                value_);
  }
  const at::NoGradGuard no_grad;
  if (!histogram_.defined()) return parameters_for_range(quantizer_, low_, high_, axis_);
  const Histogram histogram = Histogram::from_tensor(histogram_, low_.item<float>(), high_.item<float>());
  const auto grid_for = [this](double low, double high) {
    return grid_for_range(quantizer_, static_cast<float>(low), static_cast<float>(high));
  };
  const auto [low, high] = quantizer_.range == RangeKind::percentile ? histogram.central(quantizer_.percentile)
                                                                     : histogram.range_of_least_error(grid_for);
  return parameters_for_range(quantizer_, number(low), number(high));
}

void Observer::forget() {
  const at::NoGradGuard no_grad;
  const double infinity = std::numeric_limits<double>::infinity();
  if (quantizer_.per_channel) {
    low_.set_data(at::empty({0}));
    high_.set_data(at::empty({0}));
  } else {
    low_.fill_(infinity);
    high_.fill_(-infinity);
  }
  if (histogram_.defined()) histogram_.zero_();
  not_finite_.zero_();
}

std::shared_ptr<torch::nn::Module> Observer::clone(const TorchDeviceOption& device) const {
  const at::NoGradGuard no_grad;
  auto copy = std::make_shared<Observer>(quantizer_, value_, axis_);
  const auto copied = [&](const at::Tensor& tensor) {
    return device ? tensor.to(*device, tensor.scalar_type(), false, /*copy=*/true) : tensor.clone();
  };
  copy->low_.set_data(copied(low_));
  copy->high_.set_data(copied(high_));
  if (histogram_.defined()) copy->histogram_.set_data(copied(histogram_));
  copy->not_finite_.set_data(copied(not_finite_));
  copy->train(is_training());
  return copy;
}

// ── SampleCheck ──────────────────────────────────────────────────────────────────────────────────────────────────────

SampleCheck::SampleCheck(std::string input, bool masks)
    : torch::nn::Module("SampleCheck"), input_(std::move(input)), masks_(masks) {}

torch::Tensor SampleCheck::forward(torch::Tensor x) {
  const at::NoGradGuard no_grad;
  const at::Tensor seen = x.detach();
  at::Tensor finite = seen.isfinite();
  if (masks_) finite = finite.logical_or(seen.isneginf());
  if (!finite.all().item<bool>())
    throw Error(ErrorKind::invalid_argument,
                "the input %" + input_ + " is not finite for this sample: no ranges can be found; check the samples",
                input_);
  return x;
}

std::shared_ptr<torch::nn::Module> SampleCheck::clone(const TorchDeviceOption&) const {
  return std::make_shared<SampleCheck>(input_, masks_);
}

// ── FakeQuantize ─────────────────────────────────────────────────────────────────────────────────────────────────────

FakeQuantize::FakeQuantize(const Quantizer& quantizer, std::string value, std::int64_t axis)
    : torch::nn::Module("FakeQuantize"),
      observer_(register_module("observer", std::make_shared<Observer>(quantizer, std::move(value), axis))),
      axis_(axis) {}

FakeQuantize::FakeQuantize(const QuantParameters& fixed, std::string value)
    : FakeQuantize(Quantizer{.dtype = fixed.dtype, .range = RangeKind::min_max}, std::move(value)) {
  fixed_ = std::make_unique<QuantParameters>(fixed);
}

std::shared_ptr<FakeQuantize> FakeQuantize::of_weight(const Quantizer& quantizer, std::string value,
                                                      std::int64_t axis) {
  auto made = std::make_shared<FakeQuantize>(quantizer, std::move(value), axis);
  made->of_weight_ = true;
  return made;
}

torch::Tensor FakeQuantize::forward(torch::Tensor x) {
  if (of_weight_) {
    observer_->forget();
    observer_->observe(x);
  } else if (observes_ && !fixed_ && (is_training() || !observer_->has_seen())) {
    observer_->observe(x);
  }
  return quantizes_ ? parameters().fake_quantize(x) : x;
}

QuantParameters FakeQuantize::parameters() const { return fixed_ ? *fixed_ : observer_->parameters(); }

std::shared_ptr<torch::nn::Module> FakeQuantize::clone(const TorchDeviceOption& device) const {
  auto copy = std::make_shared<FakeQuantize>(observer_->quantizer(), observer_->value(), axis_);
  copy->of_weight_ = of_weight_;
  if (fixed_) copy->fixed_ = std::make_unique<QuantParameters>(*fixed_);
  copy->observes_ = observes_;
  copy->quantizes_ = quantizes_;
  copy->observer_ = std::dynamic_pointer_cast<Observer>(observer_->clone(device));
  copy->replace_module("observer", copy->observer_);
  copy->train(is_training());
  return copy;
}

void register_observer_types() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_module_type<Observer>("fxgraph.quantize.Observer");
    register_module_type<SampleCheck>("fxgraph.quantize.SampleCheck");
    register_module_type<FakeQuantize>("fxgraph.quantize.FakeQuantize");
  });
}

}  // namespace fx
