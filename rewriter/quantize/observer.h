// Observers: modules that pass a value on and remember its range; and what a range becomes: scale and zero point.
//
// torch.ao.quantization's observers, with its numbers: min-max, moving average, histogram with the least squared error,
// percentile, per tensor or per channel, affine or symmetric. Where PyTorch 1.13 counts histograms between whole
// numbers only, these count between the values' own bounds.
//
// Observers are modules of the program that prepare() makes: their statistics are buffers, so they are saved and copied
// with it. Thread-safety: none.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>

#include <fxgraph/nn/torch_compat.h>
#include <fxgraph/rewriter/quantize/config.h>

namespace fx {

/// How a value becomes whole numbers: q = clamp(round(x / scale) + zero_point, quant_min, quant_max).
struct QuantParameters {
  DType dtype = DType::quint8;  ///< of the whole numbers
  at::Tensor scale;             ///< float32, one element or one for each channel
  at::Tensor zero_point;        ///< int64, likewise
  std::int64_t axis = -1;       ///< of the channels; -1: per tensor
  /// The smallest and the largest whole number.
  /// @{
  std::int64_t quant_min = 0, quant_max = 255;
  /// @}

  bool per_channel() const { return axis >= 0; }  ///< whether each channel has a scale of its own
  /// As numbers. Only where they are of the whole tensor.
  /// @{
  double scale_value() const;
  std::int64_t zero_point_value() const;
  /// @}
  /// `values` quantized so.
  at::Tensor quantize(const at::Tensor& values) const;
  /// The same, read back: what a program computes with. Gradients pass straight through inside the range.
  at::Tensor fake_quantize(const at::Tensor& values) const;
};

/// Scale and zero point for values from `low` to `high` (one number or one for each channel), as PyTorch computes them.
QuantParameters parameters_for_range(const Quantizer& quantizer, const at::Tensor& low, const at::Tensor& high,
                                     std::int64_t axis = -1);

/// A quint8 with this scale and zero point, whatever is seen: the results of sigmoid and the like.
QuantParameters fixed_parameters(double scale, std::int64_t zero_point);

/// Passes a value on and notes its range; see the top of this file.
class Observer : public torch::nn::Module {
 public:
  /// `value` is what it watches, for errors; `axis` is the channels' when the quantizer is per channel.
  Observer(const Quantizer& quantizer, std::string value, std::int64_t axis = -1);

  /// Notes the range of `x`, or that it has none because elements are not finite, and returns it.
  torch::Tensor forward(torch::Tensor x);
  /// The same; throws Error(invalid_argument) for NaN and infinities.
  void observe(const at::Tensor& x);
  /// True when forward met NaN or infinity: programs make such values of finite ones, masks for one.
  bool has_met_not_finite() const { return not_finite_.item<bool>(); }

  /// False as long as no value was seen.
  bool has_seen() const;
  /// Throws Error(invalid_argument) when no value was seen.
  QuantParameters parameters() const;
  void forget();  ///< what was seen

  /// What the constructor was given.
  /// @{
  const Quantizer& quantizer() const { return quantizer_; }
  const std::string& value() const { return value_; }
  /// @}
  /// A copy with statistics of its own.
  std::shared_ptr<torch::nn::Module> clone(const TorchDeviceOption& device = {}) const override;

 private:
  /// False where elements are not finite: nothing is noted then.
  bool notes_range(const at::Tensor& x);
  bool notes_channels(const at::Tensor& x);
  void update(const at::Tensor& low, const at::Tensor& high);
  void add_to_histogram(const at::Tensor& x, double low, double high);

  Quantizer quantizer_;
  std::string value_;
  std::int64_t axis_;
  at::Tensor low_, high_, histogram_, not_finite_;  // buffers
};

/// Passes a sample on; throws Error(invalid_argument) where it is not finite itself.
class SampleCheck : public torch::nn::Module {
 public:
  /// `masks`: -infinity alone may be meant, where no range is wanted.
  SampleCheck(std::string input, bool masks);
  /// Returns `x`. Throws Error(invalid_argument) where it is not finite.
  torch::Tensor forward(torch::Tensor x);
  /// A copy.
  std::shared_ptr<torch::nn::Module> clone(const TorchDeviceOption& device = {}) const override;

 private:
  std::string input_;
  bool masks_;
};

/// Quantizes and reads back, so that training sees what quantization does; gradients pass straight through inside the
/// range. In training mode it observes first; in evaluation the range stays.
class FakeQuantize : public torch::nn::Module {
 public:
  /// With the range that an Observer of these arguments sees.
  FakeQuantize(const Quantizer& quantizer, std::string value, std::int64_t axis = -1);
  /// With a scale and zero point that do not depend on what is seen.
  FakeQuantize(const QuantParameters& fixed, std::string value);
  /// For a weight: its range is always that of the weight as it is.
  static std::shared_ptr<FakeQuantize> of_weight(const Quantizer& quantizer, std::string value, std::int64_t axis);

  /// Notes the range of `x`, in training and where none was noted yet, and returns `x` quantized and read back.
  torch::Tensor forward(torch::Tensor x);

  /// What notes the range.
  /// @{
  Observer& observer() { return *observer_; }
  const Observer& observer() const { return *observer_; }
  /// @}
  /// What it quantizes by. Throws as Observer::parameters().
  QuantParameters parameters() const;
  /// torch.ao's disable_observer and disable_fake_quant.
  /// @{
  void enable_observer(bool on) { observes_ = on; }
  void enable_fake_quantize(bool on) { quantizes_ = on; }
  /// @}
  /// A copy with statistics of its own.
  std::shared_ptr<torch::nn::Module> clone(const TorchDeviceOption& device = {}) const override;

 private:
  std::shared_ptr<Observer> observer_;
  std::unique_ptr<QuantParameters> fixed_;
  std::int64_t axis_ = -1;
  bool of_weight_ = false;
  bool observes_ = true;
  bool quantizes_ = true;
};

/// Lets programs call observers. Idempotent.
void register_observer_types();

}  // namespace fx
