#include <fxgraph/rewriter/quantize/histogram.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fx {

namespace {

constexpr double kUpsampling = 128;
constexpr double kHopeless = 2;  // times the least error: the search ends
// Rounding errs to both sides, and sums of many values forget it; what is cut off errs to one side, and they do not.
constexpr double kSaturated = 4;

// Of values spread evenly from `begin` to `end`, by their distance from the number that they are rounded to.
double squared_error(double begin, double end) { return (end * end * end - begin * begin * begin) / 3; }

}  // namespace

Histogram Histogram::of(const at::Tensor& values, double low, double high, int bins) {
  Histogram made = from_tensor(at::histc(values, bins, low, high), low, high);
  return made;
}

Histogram Histogram::from_tensor(const at::Tensor& counts, double low, double high) {
  const at::Tensor wide = counts.to(at::kDouble).contiguous();
  const double* first = wide.data_ptr<double>();
  return {low, high, std::vector<double>(first, first + wide.numel())};
}

at::Tensor Histogram::to_tensor() const { return at::tensor(at::ArrayRef<double>(counts), at::kDouble).to(at::kFloat); }

// The new range is a whole number of old bins, cut 128-fold, so that the old bins fall on its grid. Only its upper end
// gives way: where all values are positive, the lower one stays at zero.
Histogram Histogram::merged(const Histogram& old, const at::Tensor& values, double low, double high) {
  const double least = std::min(low, old.low), most = std::max(high, old.high);
  const auto bins = static_cast<int>(old.counts.size());
  if (least == old.low && most == old.high) {
    Histogram sum = of(values, least, most, bins);
    for (std::size_t i = 0; i < sum.counts.size(); ++i) sum.counts[i] += old.counts[i];
    return sum;
  }
  const double fine = old.width() / kUpsampling;
  const double coarsening = std::ceil((most - least) / (bins * fine));
  const double top = least + coarsening * bins * fine;
  Histogram sum = of(values, least, top, bins);
  const double start = std::round((old.low - least) / fine);
  for (std::size_t i = 0; i < old.counts.size(); ++i) {
    // Bin i of the old one covers [begin, end) on the fine grid; it is shared out among the new bins that it meets.
    const double begin = start + static_cast<double>(i) * kUpsampling, end = begin + kUpsampling;
    for (double at = begin; at < end;) {
      const auto bin = static_cast<std::size_t>(std::min(at / coarsening, bins - 1.0));
      const double next = std::min(end, (static_cast<double>(bin) + 1) * coarsening);
      const double stop = next > at ? next : end;
      sum.counts[bin] += old.counts[i] * (stop - at) / kUpsampling;
      at = stop;
    }
  }
  return sum;
}

// Both ends of a bin in steps of the grid, counted from zero; between them the steps that are crossed whole.
double Histogram::error_of(const RoundingGrid& grid) const {
  const double least = static_cast<double>(grid.least - grid.zero_point),
               most = static_cast<double>(grid.most - grid.zero_point);
  const double width = this->width() / grid.scale;
  double error = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const double begin = low / grid.scale + static_cast<double>(i) * width, end = begin + width;
    const double first = std::clamp(std::round(begin), least, most), last = std::clamp(std::round(end), least, most);
    double sum = 0;
    if (begin > most || end < least) {
      sum = kSaturated * squared_error(begin - first, end - first);
    } else if (first == last) {
      sum = squared_error(begin - first, end - first);
    } else {
      sum = squared_error(begin - first, 0.5) + squared_error(-0.5, end - last) +
            (last - first - 1) * squared_error(-0.5, 0.5);
    }
    error += counts[i] / width * sum;
  }
  return error * grid.scale * grid.scale;
}

std::pair<double, double> Histogram::range_of_least_error(
    const std::function<RoundingGrid(double low, double high)>& grid_for) const {
  std::vector<double> sums(counts.size());
  std::partial_sum(counts.begin(), counts.end(), sums.begin());
  const double total = sums.back();
  constexpr double kStep = 1e-5;
  std::size_t first = 0, last = counts.size() - 1;
  std::pair<double, double> best = range_of(first, last);
  if (total == 0 || low == high) return best;
  double least = error_of(grid_for(best.first, best.second));
  for (double alpha = 0, beta = 1; alpha < beta;) {
    std::size_t left = first, right = last;
    while (left < last && sums[left] < (alpha + kStep) * total) ++left;
    while (right > first && sums[right] > (beta - kStep) * total) --right;
    if (left == first && right == last) {
      alpha += kStep;
      beta -= kStep;
      continue;
    }
    if (left - first > last - right) {
      first = left;
      alpha += kStep;
    } else {
      last = right;
      beta -= kStep;
    }
    const std::pair<double, double> range = range_of(first, last);
    const double error = error_of(grid_for(range.first, range.second));
    if (error > kHopeless * least) break;
    if (error >= least) continue;
    least = error;
    best = range;
  }
  return best;
}

std::pair<double, double> Histogram::central(double percentile) const {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double outside = total * (1 - percentile / 100) / 2;
  std::size_t first = 0, last = counts.size() - 1;
  for (double sum = 0; first < last && sum + counts[first] <= outside; ++first) sum += counts[first];
  for (double sum = 0; last > first && sum + counts[last] <= outside; --last) sum += counts[last];
  return range_of(first, last);
}

}  // namespace fx
