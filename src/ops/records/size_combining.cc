// Sizes that are made of several: what broadcasts, what is expanded, what is viewed.
#include <algorithm>

#include <fxgraph/ops/records/size_rows.h>

namespace fx::internal {

// Each is 1, or what all others are that are not; of two that nothing tells apart neither is assumed.
SizeExpr SizeCall::broadcast(std::span<const SizeExpr> sizes) {
  if (std::ranges::all_of(sizes, [&](const SizeExpr& each) { return each == sizes[0]; })) return sizes[0];
  Sizes open;
  for (const SizeExpr& each : sizes) {
    const auto is_same = [&](const SizeExpr& other) {
      return answer({SizeRelation::equal, each, other}) == Answer::yes;
    };
    if (!is_certainly(each, 1) && std::ranges::none_of(open, is_same)) open.push_back(each);
  }
  if (open.size() < 2) return open.empty() ? sizes[0] : open[0];
  std::optional<SizeExpr> known;  // not 1
  SizeRange range{INT64_MAX, std::nullopt};
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (!known && answer({SizeRelation::equal, open[i], 1}) == Answer::no) known = open[i];
    range.min = std::min(*range.min, facts_.range(open[i]).min.value_or(0));
    for (std::size_t j = 0; j < i; ++j)
      require_any({{SizeRelation::equal, open[j], open[i]},
                   {SizeRelation::equal, open[j], 1},
                   {SizeRelation::equal, open[i], 1}});
  }
  return known ? facts_.simplified(*known) : fresh(range);
}

Sizes SizeCall::broadcast(const std::vector<const Sizes*>& all) {
  std::size_t rank = 0;
  for (const Sizes* each : all) rank = std::max(rank, each->size());
  Sizes result, at;
  for (std::size_t from_last = rank; from_last > 0; --from_last) {
    at.clear();
    for (const Sizes* each : all) {
      if (each->size() >= from_last) at.push_back((*each)[each->size() - from_last]);
    }
    result.push_back(broadcast(at));
  }
  return result;
}

Sizes SizeCall::common_sizes(std::span<const TensorType* const> operands) {
  const bool writes_first = !schema_.arguments.empty() && schema_.arguments[0].alias.writes;
  if (writes_first && !arguments_[0].tensor()) give_up("nothing is known of what is written");
  std::vector<const Sizes*> all;
  for (const TensorType* each : operands) {
    if (writes_first) require_expands(each->sizes, arguments_[0].tensor()->sizes);
    all.push_back(&each->sizes);
  }
  return writes_first ? arguments_[0].tensor()->sizes : broadcast(all);
}

void SizeCall::require_expands(const Sizes& x, const Sizes& to) {
  require(x.size() <= to.size(), "no more dimensions than it is expanded to");
  const std::size_t more = to.size() - x.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] != to[more + i] && !is_certainly(x[i], 1)) {
      const Answer one = answer({SizeRelation::equal, x[i], 1});
      if (one == Answer::no || x[i].is_integer()) {
        require_equal(x[i], to[more + i]);
      } else if (answer({SizeRelation::equal, x[i], to[more + i]}) != Answer::yes) {
        require_any({{SizeRelation::equal, x[i], to[more + i]}, {SizeRelation::equal, x[i], 1}});
      }
    }
  }
}

Sizes SizeCall::reshaped(const SizeExpr& numel, Sizes sizes) {
  SizeExpr rest = 1;
  std::optional<std::size_t> inferred;
  const bool infers = std::ranges::find(sizes, SizeExpr(-1)) != sizes.end();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == SizeExpr(-1)) {
      require(!inferred, "one size of -1");
      inferred = i;
      continue;
    }
    if (!sizes[i].is_integer() && answer({SizeRelation::at_least, sizes[i], 0}) != Answer::yes) {
      if (!infers) give_up("a size may be -1");
      require_at_least(sizes[i], 0);  // only one may be -1
    }
    require(!sizes[i].is_integer() || sizes[i].value() >= 0, "sizes of 0 and more");
    rest = rest * sizes[i];
  }
  if (!inferred) {
    require_equal(numel, rest);
    return sizes;
  }
  if (is_certainly(rest, 0)) refuse("a size of -1 beside a size of 0");
  require({SizeRelation::multiple, numel, rest});
  require({SizeRelation::unequal, rest, 0});
  sizes[*inferred] = floor_div(numel, rest);
  return sizes;
}

}  // namespace fx::internal
