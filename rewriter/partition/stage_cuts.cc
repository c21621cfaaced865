#include <fxgraph/rewriter/partition/stage_cuts.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>

#include <fxgraph/rewriter/partition/minimum_cut.h>
#include <fxgraph/rewriter/partition/stage_memory.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class StageCutter {
 public:
  explicit StageCutter(const StageProblem& problem) : problem_(problem), place_(*problem.graph, 0) {
    for (Node& node : const_cast<Graph&>(*problem.graph).nodes()) {
      if (!node.is_callable()) continue;
      place_[node] = calls_.size();
      calls_.push_back(&node);
    }
    sum_up();
    find_places();
    if (problem.max_memory) lives_.emplace(problem, calls_);
  }

  NodeMap<std::uint32_t> run() {
    NodeMap<std::uint32_t> stage(*problem_.graph, 0);
    if (problem_.stages == 1 && !problem_.max_weights && !problem_.max_memory) return stage;
    if (calls_.size() < problem_.stages) refuse(calls_.size());
    limit_ = fastest() * (1 + problem_.slack);
    const std::vector<std::size_t> cuts = cheapest_cuts();
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      while (at < cuts.size() && i >= cuts[at]) ++at;
      stage[*calls_[i]] = at;
    }
    MinimumCuts(problem_, calls_, limit_).improve(stage);
    return stage;
  }

 private:
  // Prefix sums over the calls, and the bytes that a cut before each would send.
  void sum_up() {
    const std::size_t count = calls_.size();
    seconds_.assign(count + 1, 0);
    std::vector<double> change(count + 2, 0);
    for (std::size_t i = 0; i < count; ++i) seconds_[i + 1] = seconds_[i] + problem_.seconds[*calls_[i]];
    for (const Node& node : problem_.graph->nodes()) {
      if (node.is(Op::get_attr) || node.is(Op::output)) continue;
      const std::size_t made = node.is_callable() ? place_[node] : 0;
      std::size_t last = made;
      for (const Node& user : node.users()) last = std::max(last, user.is(Op::output) ? count - 1 : place_[user]);
      change[made + 1] += static_cast<double>(problem_.bytes[node]);
      change[last + 1] -= static_cast<double>(problem_.bytes[node]);
    }
    sent_.assign(count + 1, 0);
    double now = 0;
    for (std::size_t i = 0; i <= count; ++i) sent_[i] = now += change[i];
  }

  // A cut may not go through a unit.
  void find_places() {
    const std::size_t count = calls_.size();
    allowed_.assign(count + 1, true);
    std::vector<std::size_t> first, last;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t unit = problem_.unit[*calls_[i]];
      if (!unit) continue;
      if (unit >= first.size()) {
        first.resize(unit + 1, count);
        last.resize(unit + 1, 0);
      }
      first[unit] = std::min(first[unit], i);
      last[unit] = std::max(last[unit], i);
    }
    std::vector<int> change(count + 2, 0);
    for (std::size_t unit = 0; unit < first.size(); ++unit) {
      if (first[unit] >= last[unit]) continue;
      ++change[first[unit] + 1];
      --change[last[unit] + 1];
    }
    int inside = 0;
    for (std::size_t i = 0; i <= count; ++i) {
      inside += change[i];
      allowed_[i] = inside == 0;
    }
    allowed_[0] = false;
  }

  [[noreturn]] void refuse(std::size_t possible) const {
    throw Error(
        ErrorKind::invalid_argument,
        "split_pipeline: the program can be cut into " + std::to_string(possible) + " stages, not into " +
            std::to_string(problem_.stages) +
            ": a call is the least, lists of tensors and storage that is written keep calls together; ask for fewer");
  }

  // By place: where at the earliest a stage that ends there may begin; the place itself when one call is too much.
  std::vector<std::size_t> earliest_begins(double limit) const {
    std::vector<std::size_t> begins(calls_.size() + 1, 0);
    std::vector<std::uint32_t> readers(problem_.weight_bytes.size(), 0);
    std::int64_t weights = 0;
    std::size_t from = 0;
    std::optional<WindowPeak> peak;
    if (lives_) peak.emplace(problem_, *lives_, calls_.size());
    const auto is_too_much = [&](std::size_t to) {
      return seconds_[to] - seconds_[from] > limit || (problem_.max_weights && weights > problem_.max_weights) ||
             (peak && weights + peak->bytes() > problem_.max_memory);
    };
    for (std::size_t to = 1; to <= calls_.size(); ++to) {
      if (peak) peak->push();
      for (const std::uint32_t weight : problem_.weights[*calls_[to - 1]])
        weights += readers[weight]++ == 0 ? problem_.weight_bytes[weight] : 0;
      while (from < to && is_too_much(to)) {
        for (const std::uint32_t weight : problem_.weights[*calls_[from]])
          weights -= --readers[weight] == 0 ? problem_.weight_bytes[weight] : 0;
        if (peak) peak->pop();
        ++from;
      }
      begins[to] = from;
    }
    return begins;
  }

  // How many stages it takes when each goes as far as the limits let it; too many when one piece does not fit.
  std::size_t stages_within(double limit) const {
    const std::vector<std::size_t> begins = earliest_begins(limit);
    std::size_t stages = 0, from = 0;
    while (from < calls_.size()) {
      std::size_t end = from;
      for (std::size_t to = from + 1; to <= calls_.size() && begins[to] <= from; ++to) {
        if (to == calls_.size() || allowed_[to]) end = to;
      }
      if (end == from) return std::numeric_limits<std::size_t>::max();
      from = end;
      ++stages;
    }
    return stages;
  }

  // The least time of the slowest stage.
  double fastest() const {
    double low = 0, high = seconds_.back() * (1 + 1e-9) + 1e-12;
    const std::size_t cuts = 1 + static_cast<std::size_t>(std::count(allowed_.begin(), allowed_.end() - 1, true));
    if (cuts < problem_.stages) refuse(cuts);
    if (stages_within(high) > problem_.stages && problem_.max_memory) {
      throw Error(ErrorKind::invalid_argument, "split_pipeline: " + std::to_string(problem_.stages) +
                                                   " stages do not do with " + std::to_string(problem_.max_memory) +
                                                   " bytes of weights and activations each; ask for more stages, " +
                                                   "smaller micro-batches, or more bytes");
    }
    if (stages_within(high) > problem_.stages) {
      const std::int64_t all =
          std::accumulate(problem_.weight_bytes.begin(), problem_.weight_bytes.end(), std::int64_t{0});
      throw Error(ErrorKind::invalid_argument, "split_pipeline: " + std::to_string(problem_.stages) +
                                                   " stages of at most " + std::to_string(problem_.max_weights) +
                                                   " bytes of weights do not hold the program's " +
                                                   std::to_string(all) + "; ask for more stages, or more bytes");
    }
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (stages_within(middle) <= problem_.stages ? high : low) = middle;
    }
    return high;
  }

  // least[i]: the fewest bytes that the first i calls cost in so many stages. The stage that ends at i may begin
  // anywhere in a window that moves with i.
  std::vector<std::size_t> cheapest_cuts() const {
    const std::size_t count = calls_.size();
    std::vector<double> least(count + 1, kNever);
    least[0] = 0;
    const std::vector<std::size_t> begins = earliest_begins(limit_);
    std::vector<std::vector<std::uint32_t>> from(problem_.stages, std::vector<std::uint32_t>(count + 1));
    for (std::size_t stage = 0; stage < problem_.stages; ++stage) {
      std::vector<double> next(count + 1, kNever);
      std::deque<std::size_t> window;
      for (std::size_t i = 1; i <= count; ++i) {
        if (least[i - 1] < kNever) {
          while (!window.empty() && least[window.back()] > least[i - 1]) window.pop_back();
          window.push_back(i - 1);
        }
        while (!window.empty() && window.front() < begins[i]) window.pop_front();
        if (window.empty() || (i < count && !allowed_[i])) continue;
        next[i] = least[window.front()] + (i < count ? sent_[i] : 0);
        from[stage][i] = static_cast<std::uint32_t>(window.front());
      }
      least = std::move(next);
    }
    if (least[count] == kNever) refuse(problem_.stages - 1);
    std::vector<std::size_t> cuts;
    for (std::size_t stage = problem_.stages, at = count; stage-- > 1;) cuts.push_back(at = from[stage][at]);
    std::ranges::reverse(cuts);
    return cuts;
  }

  const StageProblem& problem_;
  std::vector<Node*> calls_;
  NodeMap<std::size_t> place_;
  std::vector<double> seconds_, sent_;
  std::vector<bool> allowed_;  // by place: may a stage begin here
  std::optional<StorageLives> lives_;
  double limit_ = 0;
};

}  // namespace

NodeMap<std::uint32_t> cut_stages(const StageProblem& problem) { return StageCutter(problem).run(); }

}  // namespace fx
