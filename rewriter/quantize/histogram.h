// Histogram of a value over many runs, and the ranges that follow from it.
//
// The search for the range of least error is torch.ao's: bounds move inward, always the one that costs fewer values,
// until the estimated squared error of rounding grows. Cost: bins² at worst, some milliseconds.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace fx {

struct Histogram {
  double low = 0, high = 0;
  std::vector<double> counts;

  static Histogram of(const at::Tensor& values, double low, double high, int bins);
  static Histogram from_tensor(const at::Tensor& counts, double low, double high);
  at::Tensor to_tensor() const;
  /// `old` and the values together, over a range that holds both; old counts are spread evenly over their bins.
  static Histogram merged(const Histogram& old, const at::Tensor& values, double low, double high);

  /// The range that makes the squared error of 256 even steps least.
  std::pair<double, double> range_of_least_error() const;
  /// The smallest range that leaves out half of the rest on each side: `percentile` of all values are in it.
  std::pair<double, double> central(double percentile) const;

 private:
  double error_of(std::size_t first, std::size_t last) const;
  double width() const { return (high - low) / static_cast<double>(counts.size()); }
};

}  // namespace fx
