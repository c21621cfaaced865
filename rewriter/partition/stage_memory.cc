// A tree over the places holds how many bytes are live at each: adding to a range and the most of a range take
// O(log places).
#include <fxgraph/rewriter/partition/stage_memory.h>

#include <algorithm>
#include <utility>

namespace fx {

StorageLives::StorageLives(const StageProblem& problem, const std::vector<Node*>& calls)
    : touched_(calls.size()), made_(problem.storage_bytes.size(), -2), last_(problem.storage_bytes.size(), -1) {
  const auto touch = [&](std::size_t place, const Node& value) {
    for (const std::uint32_t storage : problem.storages[value]) {
      if (std::ranges::find(touched_[place], storage) == touched_[place].end()) touched_[place].push_back(storage);
      last_[storage] = std::max(last_[storage], static_cast<std::int64_t>(place));
    }
  };
  const auto make = [&](const Node& value, std::int64_t place) {
    for (const std::uint32_t storage : problem.storages[value]) {
      if (made_[storage] == -2) made_[storage] = place;
    }
  };
  for (const Node* input : problem.graph->placeholders()) make(*input, -1);
  for (std::size_t place = 0; place < calls.size(); ++place) {
    calls[place]->for_each_input([&](const Node& value) { touch(place, value); });
    make(*calls[place], static_cast<std::int64_t>(place));
    touch(place, *calls[place]);
  }
  const Node* output = problem.graph->output_node();
  if (!output || calls.empty()) return;
  output->for_each_input([&](const Node& value) {
    for (const std::uint32_t storage : problem.storages[value])
      last_[storage] = static_cast<std::int64_t>(calls.size());
  });
}

WindowPeak::WindowPeak(const StageProblem& problem, const StorageLives& lives, std::size_t calls)
    : problem_(problem),
      lives_(lives),
      calls_(calls),
      touches_(lives.size(), 0),
      given_(lives.size(), false),
      add_(4 * calls + 4, 0),
      most_(4 * calls + 4, 0) {}

void WindowPeak::add(std::uint32_t storage, std::int64_t sign) {
  const std::int64_t bytes = sign * problem_.storage_bytes[storage];
  if (given_[storage]) {
    given_bytes_ += bytes;
    return;
  }
  const auto begin = static_cast<std::size_t>(lives_.made(storage));
  const auto end = std::min(calls_, static_cast<std::size_t>(lives_.last(storage) + 1));
  add(1, 0, calls_, begin, end, bytes);
}

void WindowPeak::push() {
  for (const std::uint32_t storage : lives_.touched(to_)) {
    if (touches_[storage]++) continue;
    given_[storage] = lives_.made(storage) < static_cast<std::int64_t>(from_);
    add(storage, 1);
  }
  ++to_;
}

void WindowPeak::pop() {
  const auto leaving = static_cast<std::int64_t>(from_++);
  for (const std::uint32_t storage : lives_.touched(static_cast<std::size_t>(leaving))) {
    if (--touches_[storage] && lives_.made(storage) != leaving) continue;
    add(storage, -1);
    if (!touches_[storage]) continue;
    given_[storage] = true;
    add(storage, 1);
  }
}

std::int64_t WindowPeak::bytes() const { return from_ == to_ ? 0 : given_bytes_ + most(1, 0, calls_, from_, to_); }

void WindowPeak::add(std::size_t node, std::size_t begin, std::size_t end, std::size_t from, std::size_t to,
                     std::int64_t bytes) {
  if (from <= begin && end <= to) {
    add_[node] += bytes;
    most_[node] += bytes;
    return;
  }
  const std::size_t middle = (begin + end) / 2;
  if (from < middle) add(2 * node, begin, middle, from, to, bytes);
  if (middle < to) add(2 * node + 1, middle, end, from, to, bytes);
  most_[node] = add_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
}

std::int64_t WindowPeak::most(std::size_t node, std::size_t begin, std::size_t end, std::size_t from,
                              std::size_t to) const {
  if (from <= begin && end <= to) return most_[node];
  const std::size_t middle = (begin + end) / 2;
  if (to <= middle) return add_[node] + most(2 * node, begin, middle, from, to);
  if (from >= middle) return add_[node] + most(2 * node + 1, middle, end, from, to);
  return add_[node] + std::max(most(2 * node, begin, middle, from, to), most(2 * node + 1, middle, end, from, to));
}

std::vector<std::int64_t> stage_peaks(const StageProblem& problem, const std::vector<Node*>& calls,
                                      const NodeMap<std::uint32_t>& stage) {
  const StorageLives lives(problem, calls);
  std::vector<std::vector<std::size_t>> places(problem.stages);
  for (std::size_t place = 0; place < calls.size(); ++place) places[stage[*calls[place]]].push_back(place);
  std::vector<std::int64_t> peaks;
  std::vector<std::uint32_t> seen(lives.size(), 0);
  for (std::uint32_t at = 0; at < problem.stages; ++at) {
    std::vector<std::int64_t> change(places[at].size() + 1, 0);
    for (const std::size_t place : places[at]) {
      for (const std::uint32_t storage : lives.touched(place)) {
        if (std::exchange(seen[storage], at + 1) == at + 1) continue;
        const std::int64_t made = lives.made(storage), last = lives.last(storage);
        const bool own = made >= 0 && stage[*calls[static_cast<std::size_t>(made)]] == at;
        const auto index = [&](std::int64_t place) {
          return static_cast<std::size_t>(std::ranges::lower_bound(places[at], static_cast<std::size_t>(place)) -
                                          places[at].begin());
        };
        change[own ? index(made) : 0] += problem.storage_bytes[storage];
        change[own ? index(last + 1) : places[at].size()] -= problem.storage_bytes[storage];
      }
    }
    std::int64_t now = 0, most = 0;
    for (const std::int64_t bytes : change) most = std::max(most, now += bytes);
    peaks.push_back(most);
  }
  return peaks;
}

}  // namespace fx
