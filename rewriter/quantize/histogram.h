// Histogram of a value over many runs, and the ranges that follow from it.
//
// The search for the range of least error moves the bounds inward as torch.ao's does, always the one that costs fewer
// values. Errors are those of the numbers that the range will really be rounded to, zero among them; what is cut off
// counts several times; and a rise of the error does not end the search at once: it is no smooth function.
// Cost: bins² at worst, some milliseconds.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace fx {

/// The numbers that values are rounded to: (q - zero_point) * scale for q from `least` to `most`.
struct RoundingGrid {
  double scale = 1;
  std::int64_t zero_point = 0, least = 0, most = 255;
};

struct Histogram {
  double low = 0, high = 0;
  std::vector<double> counts;

  static Histogram of(const at::Tensor& values, double low, double high, int bins);
  static Histogram from_tensor(const at::Tensor& counts, double low, double high);
  at::Tensor to_tensor() const;
  /// `old` and the values together, over a range that holds both; old counts are spread evenly over their bins.
  static Histogram merged(const Histogram& old, const at::Tensor& values, double low, double high);

  /// The range that makes the squared error of rounding least; `grid_for(low, high)` says what a range is rounded to.
  std::pair<double, double> range_of_least_error(
      const std::function<RoundingGrid(double low, double high)>& grid_for) const;
  /// The smallest range that leaves out half of the rest on each side: `percentile` of all values are in it.
  std::pair<double, double> central(double percentile) const;

 private:
  double error_of(const RoundingGrid& grid) const;
  double width() const { return (high - low) / static_cast<double>(counts.size()); }
  std::pair<double, double> range_of(std::size_t first, std::size_t last) const {
    return {low + width() * static_cast<double>(first), low + width() * static_cast<double>(last + 1)};
  }
};

}  // namespace fx
