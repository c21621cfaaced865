// The parts of a SizeSearch that compare sizes with each other: programs that do (`if (height > width)`,
// `max(x.size(0), y.size(0))`) show it only where the order is another one than in the example.
#include <fxgraph/support/error.h>
#include <fxgraph/trace/size_search.h>
#include <fxgraph/trace/trace_error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fx::internal {

// All near the largest that the examples have, so that no operator refuses what is small; less where tensors would be
// large.
GroupSizes SizeSearch::in_order(const Some& some, Order order) const {
  constexpr double kMostElements = 1 << 21;
  constexpr std::int64_t kLargestStep = 256;
  GroupSizes sizes = groups_.examples();
  std::int64_t step = 1, base = 1;
  for (const std::uint32_t group : some) {
    step = std::min(std::lcm(step, groups_.groups[group].step), kLargestStep);
    base = std::max(base, groups_.groups[group].size);
  }
  const double each = std::pow(kMostElements, 1.0 / static_cast<double>(std::max<std::size_t>(some.size(), 2)));
  base = std::max<std::int64_t>({std::min(base, static_cast<std::int64_t>(each)), step, 2});
  base = (base + step - 1) / step * step;
  Some ranked = some;
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return groups_.groups[a].size < groups_.groups[b].size; });
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const SizeGroup& group = groups_.groups[ranked[i]];
    // By three and by five in turn: what is halved is then rounded, and with another sign than in the example.
    const auto place = static_cast<std::int64_t>(ranked.size() - 1 - i);
    const std::int64_t above = order == Order::equal ? 0 : 4 * place - place % 2;
    const std::int64_t size = base + above * step;
    if (size % group.step == 0 && size > group.below && size < group.above) sizes[ranked[i]] = size;
  }
  return groups_.with_derived(std::move(sizes));
}

bool SizeSearch::check_order(const Some& some, Order order, const std::function<bool(const Probe&)>& agrees,
                             bool* is_refused) {
  const GroupSizes sizes = in_order(some, order);
  if (sizes == groups_.examples()) return false;
  if (!may_go_on()) return false;
  bool came_through = false;
  auto sample = attempt(sizes, Probe::kToTheEnd, &came_through);
  if (!came_through) {
    *is_refused = true;
    if (is_said(*sample) || some.size() > 2) return false;
    const std::string how = order == Order::equal ? " when two sizes are the same" : " when sizes are in another order";
    for (const std::uint32_t group : some) fix(group, reason(*sample) + how, sample->where());
    forget_others();
    return true;
  }
  if (agrees(*sample)) return false;
  samples_.push_back(std::move(sample));  // one more to be explained
  taken_.push_back({sizes});
  return true;
}

bool SizeSearch::check_orders(const std::function<bool(const Probe&)>& agrees) {
  constexpr std::size_t kMostPairs = 15;
  const Some some = groups_.free();
  if (some.size() < 2) return false;
  for (const Order order : {Order::reversed, Order::equal}) {
    bool is_refused = false;
    if (check_order(some, order, agrees, &is_refused)) return true;
    if (!is_refused || some.size() * (some.size() - 1) / 2 > kMostPairs) continue;
    for (std::size_t i = 0; i < some.size(); ++i) {
      for (std::size_t j = i + 1; j < some.size(); ++j) {
        if (some.size() > 2 && check_order({some[i], some[j]}, order, agrees, &is_refused)) return true;
      }
    }
  }
  return false;
}

std::string SizeSearch::difference_at_examples() const {
  Probe again(program_);
  const bool came_through = again.run(groups_.stand_ins(groups_.examples()));
  const auto is_there = [&](std::uint32_t call) { return !program_.log[call].node->is_erased(); };
  const auto differs = [&](const auto& change) { return is_there(change.call); };
  if (came_through && std::none_of(again.changes().begin(), again.changes().end(), differs) &&
      std::none_of(again.changed_constants().begin(), again.changed_constants().end(), differs))
    return {};
  if (program_.session.has_other_threads()) throw order_of_threads();
  return "at the same sizes: " + in_words(again);
}

void SizeSearch::refuse_state(const std::string& how) {
  throw Error(ErrorKind::trace,
              "symbolic_trace: a later call of the program does something else than the first, " + how +
                  "; it keeps something from call to call (behind a pointer, in a container, a static or global "
                  "variable): pass that in as an input and return it, or keep it in a registered buffer");
}

}  // namespace fx::internal
