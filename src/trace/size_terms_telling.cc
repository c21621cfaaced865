// Sizes that tell rules apart: those next to the steps of a division, a remainder or a bound. Another divisor has its
// steps elsewhere.
#include <algorithm>
#include <cstdlib>

#include <fxgraph/trace/size_terms.h>

namespace fx::internal {
namespace {

constexpr std::int64_t kFarthest = 1024;

// The first two sizes at which it steps up, and the last.
template <typename Found>
std::vector<std::int64_t> steps_of(Found&& found) {
  std::vector<std::int64_t> steps;
  for (std::int64_t at = 2; at <= kFarthest; ++at) {
    if (found(at) == found(at - 1)) continue;
    if (steps.size() == 3) steps.pop_back();
    steps.push_back(at);
  }
  return steps;
}

// The first two sizes at which a remainder does not go on as before, and the last.
template <typename Found>
std::vector<std::int64_t> wraps_of(Found&& found) {
  return steps_of([&](std::int64_t at) { return std::abs(found(at + 1) - found(at)); });
}

}  // namespace

std::vector<SizeTerms::Telling> SizeTerms::telling_sizes(
    const std::vector<Id>& explained,
    const std::function<bool(std::uint32_t, std::int64_t, std::int64_t)>& allows) const {
  // What bounds it hides it: it is seen only where each bound gives what it takes.
  using Bounds = std::vector<std::pair<Id, Id>>;  // a minimum or maximum, and what of it is looked at
  std::set<Telling> telling;
  std::set<std::pair<Id, Bounds>> seen;
  std::vector<std::pair<Id, Bounds>> open;
  for (const Id id : explained) open.emplace_back(id, Bounds());
  while (!open.empty()) {
    const auto [id, bounds] = open.back();
    open.pop_back();
    const SizeTerm& term = terms_[id];
    if (term.op == SizeOp::size || term.op == SizeOp::constant || term.op == SizeOp::real) continue;
    if (!seen.emplace(id, bounds).second) continue;
    const SizeTerm* const size = only_size(id);
    for (const Id of : {term.a, term.b}) {
      Bounds around = bounds;
      if (size && (term.op == SizeOp::min || term.op == SizeOp::max)) around.emplace_back(id, of);
      open.emplace_back(of, std::move(around));
    }
    if (!size) continue;
    const auto found = [&, id = id](std::int64_t at) { return at_size(id, at).whole; };
    const auto may_be = [&, &bounds = bounds](std::int64_t at) {
      return allows(size->call, size->number, at) && std::all_of(bounds.begin(), bounds.end(), [&](const auto& each) {
               return at_size(each.first, at).whole == at_size(each.second, at).whole;
             });
    };
    std::vector<std::int64_t> tell;
    const auto add_steps = [&](const std::vector<std::int64_t>& steps) {
      for (const std::int64_t step : steps) {
        for (const std::int64_t at : {step - 1, step}) {
          if (may_be(at)) tell.push_back(at);
        }
      }
    };
    if (term.op == SizeOp::floordiv) {
      add_steps(steps_of(found));
    } else if (term.op == SizeOp::mod) {
      add_steps(wraps_of(found));
    } else if (term.op == SizeOp::min || term.op == SizeOp::max) {
      add_steps(steps_of([&](std::int64_t at) { return found(at) == at_size(term.a, at).whole; }));
    }
    for (const std::int64_t each : tell) telling.insert({size->call, size->number, each});
  }
  return {telling.begin(), telling.end()};
}

}  // namespace fx::internal
