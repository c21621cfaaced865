#include <fxgraph/rewriter/quantize/histogram.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fx {

namespace {

constexpr int kLevels = 256;
constexpr double kUpsampling = 128;

// Of values spread evenly from `begin` to `end` around the number that they are rounded to.
double squared_error(double begin, double end, double density) {
  return density * (end * end * end - begin * begin * begin) / 3;
}

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

double Histogram::error_of(std::size_t first, std::size_t last) const {
  const double width = this->width();
  const double step = width * static_cast<double>(last - first + 1) / kLevels;
  if (step == 0) return 0;
  double error = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const double begin = (static_cast<double>(i) - static_cast<double>(first)) * width, end = begin + width;
    const double level_of_begin = std::clamp(std::floor(begin / step), 0.0, kLevels - 1.0);
    const double level_of_end = std::clamp(std::floor(end / step), 0.0, kLevels - 1.0);
    const double density = counts[i] / width;
    error += squared_error(begin - (level_of_begin + 0.5) * step, step / 2, density);
    error += (level_of_end - level_of_begin - 1) * squared_error(-step / 2, step / 2, density);
    error += squared_error(-step / 2, end - (level_of_end + 0.5) * step, density);
  }
  return error;
}

std::pair<double, double> Histogram::range_of_least_error() const {
  std::vector<double> sums(counts.size());
  std::partial_sum(counts.begin(), counts.end(), sums.begin());
  const double total = sums.back();
  constexpr double kStep = 1e-5;
  std::size_t first = 0, last = counts.size() - 1;
  double least = std::numeric_limits<double>::infinity();
  for (double alpha = 0, beta = 1; alpha < beta;) {
    std::size_t left = first, right = last;
    while (left < last && sums[left] < (alpha + kStep) * total) ++left;
    while (right > first && sums[right] > (beta - kStep) * total) --right;
    std::size_t next_first = first, next_last = last;
    if (left - first > last - right) {
      next_first = left;
      alpha += kStep;
    } else {
      next_last = right;
      beta -= kStep;
    }
    if (next_first == first && next_last == last) continue;
    const double error = error_of(next_first, next_last);
    if (error > least) break;
    least = error;
    first = next_first;
    last = next_last;
  }
  return {low + width() * static_cast<double>(first), low + width() * static_cast<double>(last + 1)};
}

std::pair<double, double> Histogram::central(double percentile) const {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double outside = total * (1 - percentile / 100) / 2;
  std::size_t first = 0, last = counts.size() - 1;
  for (double sum = 0; first < last && sum + counts[first] <= outside; ++first) sum += counts[first];
  for (double sum = 0; last > first && sum + counts[last] <= outside; --last) sum += counts[last];
  return {low + width() * static_cast<double>(first), low + width() * static_cast<double>(last + 1)};
}

}  // namespace fx
