#include <fxgraph/ir/node_times.h>

#include <algorithm>

namespace fx {

MeasuredTime summarize(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const std::size_t last = seconds.size() - 1;
  return {seconds[seconds.size() / 2], (seconds[last * 3 / 4] - seconds[last / 4]) / 2, seconds.size()};
}

void add_runs(std::vector<double>& sum, const std::vector<double>& seconds) {
  if (sum.size() < seconds.size()) sum.resize(seconds.size(), 0.0);
  for (std::size_t i = 0; i < seconds.size(); ++i) sum[i] += seconds[i];
}

}  // namespace fx
