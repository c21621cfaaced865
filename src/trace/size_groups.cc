#include <fxgraph/trace/size_groups.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fxgraph/support/error.h>
#include <fxgraph/trace/tensor_memory.h>

namespace fx::internal {
namespace {

// How far the n-th group goes, so that groups of one size part.
constexpr std::array<std::int64_t, 12> kJumps = {3, 5, 2, 7, 4, 9, 6, 11, 8, 13, 10, 12};

// By four, in the first three rounds.
constexpr std::array<std::array<std::int64_t, 3>, 4> kRemainders = {{{3, 2, 1}, {3, 2, 0}, {3, 0, 1}, {2, 3, 1}}};

// Strides of a tensor of other sizes whose dimensions lie in the same order; broadcast ones stay broadcast.
std::vector<std::int64_t> strides_like(const at::Tensor& example, const std::vector<std::int64_t>& sizes) {
  const std::vector<std::int64_t> order = order_in_memory(example);
  std::vector<std::int64_t> strides(sizes.size(), 0);
  std::int64_t next = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    if (example.stride(*dim) == 0 && example.size(*dim) > 1) continue;
    const auto i = static_cast<std::size_t>(*dim);
    strides[i] = next;
    next *= std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

at::Tensor fake_input(const at::Tensor& example, const std::vector<std::int64_t>& sizes) {
  if (example.sizes() == at::IntArrayRef(sizes)) return example;
  return without_contents(example, sizes, strides_like(example, sizes), example.options());
}

}  // namespace

void SizeGroup::fix(std::string reason, std::string place) {
  fixed = true;
  why = std::move(reason);
  where = std::move(place);
}

void SizeGroup::add_reason(const std::string& reason, const CallPlace& place) {
  why += (why.empty() ? "" : "; ") + reason;
  if (where.empty()) where = words_for(place);
}

void SizeGroup::stay_above(std::int64_t bound, const std::string& reason, const CallPlace& place) {
  below = bound, below_said = false;
  lowest = std::max(lowest, bound + 1);
  add_reason(reason, place);
}

void SizeGroup::stay_below(std::int64_t bound, const std::string& reason, const CallPlace& place) {
  above = bound, above_said = false;
  highest = std::min(highest, bound - 1);
  add_reason(reason, place);
}

void SizeGroup::vary_in(std::int64_t steps) {
  step = steps;
  if (below % step != 0) below = 0, below_said = true;
  if (above % step != 0) above = std::numeric_limits<std::int64_t>::max(), above_said = true;
}

SizeGroups::SizeGroups(const std::vector<BoundTensor>& inputs, const std::vector<std::vector<bool>>& varies)
    : inputs_(inputs) {
  for (std::uint32_t input = 0; input < inputs.size(); ++input) {
    const at::Tensor& example = inputs[input].example;
    for (std::int64_t dim = 0; dim < example.dim(); ++dim) {
      const auto group = static_cast<std::uint32_t>(groups.size());
      dimensions.push_back({input, dim, example.size(dim), group});
      SizeGroup made;
      made.size = made.lowest = made.highest = example.size(dim);
      made.dimensions = {static_cast<std::uint32_t>(dimensions.size() - 1)};
      const bool may_vary = varies[input][static_cast<std::size_t>(dim)];
      made.fixed = !may_vary || made.size == 0;
      if (!may_vary) made.why = "it is not among those that TraceOptions::sizes names";
      if (made.size == 0) made.why = "the example is empty";
      groups.push_back(std::move(made));
    }
  }
}

std::vector<std::uint32_t> SizeGroups::free() const {
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].fixed && !groups[i].dimensions.empty() && !groups[i].follows) result.push_back(i);
  }
  return result;
}

// What follows from a follower is right one pass later.
GroupSizes SizeGroups::with_derived(GroupSizes sizes) const {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!groups[i].follows || groups[i].fixed || groups[i].dimensions.empty()) continue;
      const std::int64_t size = std::max<std::int64_t>(value(*groups[i].follows, sizes), 0);
      has_changed = has_changed || sizes[i] != size;
      sizes[i] = size;
    }
  }
  return sizes;
}

GroupSizes SizeGroups::examples() const {
  GroupSizes sizes;
  for (const SizeGroup& group : groups) sizes.push_back(group.size);
  return sizes;
}

// Larger, then smaller (a small size shrinks to one, which programs may treat on its own), then much larger (programs
// treat what is too long on its own), then larger again. The first three leave other remainders by four, for what
// programs halve: three first, which is furthest from what doubles again, then others for each group, which tells
// groups apart.
std::int64_t SizeGroups::candidate(const SizeGroup& group, int round, std::size_t nth) const {
  const std::int64_t step = group.step, units = group.size / step;
  const auto n = static_cast<std::int64_t>(nth);
  const std::int64_t jump = kJumps[nth % kJumps.size()] + 12 * (n / 12);
  const bool up = group.above > group.size + step, down = group.below + step < group.size;
  std::int64_t by = 0;
  if (((round % 2 == 1 && round < 3) || !up) && down) {
    by = units > 8 ? -std::min(units - 2, units / 6 + jump + round / 2)
                   : std::clamp<std::int64_t>(1 + n + round / 2, 1, units - 1) - units;
  } else if (round == 2) {
    by = units * (far_factor(group) - 1) + jump;
  } else if (round > 2) {
    by = 1 + (37 * n + 53 * round) % 97;  // far, and not in any step
  } else {
    by = (units > 16 ? units / 8 : 0) + jump + (round % 2 == 1 ? 7 : 0);
  }
  const std::int64_t missing =
      round < 3 ? ((kRemainders[nth % 4][static_cast<std::size_t>(round)] - by) % 4 + 4) % 4 : 0;
  if (round < 3 && by > 0) by += missing;
  if (round < 3 && by < -4) by += missing - 4;
  return group.size + step * std::max(by, 1 - units);
}

// How many times larger "much larger" is. Where nothing is computed it costs nothing to go where no program goes: past
// the sizes from which on some treat inputs in another way.
std::int64_t SizeGroups::far_factor(const SizeGroup& group) const {
  constexpr double kMostElements = 1 << 21, kMostUncomputed = 68719476736.0, kFarthest = 1 << 17;
  double elements = 1, uncomputed = kFarthest;
  for (std::uint32_t input = 0; input < inputs_.size(); ++input) {
    elements = std::max(elements, static_cast<double>(inputs_[input].example.numel()));
    double fixed = 1, some = 0;
    for (const SizeDimension& dimension : dimensions) {
      if (dimension.input != input) continue;
      if (groups[dimension.group].fixed) {
        fixed *= static_cast<double>(std::max<std::int64_t>(dimension.size, 1));
      } else {
        some += 1;
      }
    }
    if (some > 0) uncomputed = std::min(uncomputed, std::pow(kMostUncomputed / fixed, 1 / some));
  }
  const double times = uncomputed / static_cast<double>(std::max<std::int64_t>(group.size, 1));
  if (may_go_far && times > 37) return static_cast<std::int64_t>(times - 7) / 30 * 30 + 7;
  const double each =
      std::pow(kMostElements / elements, 1.0 / static_cast<double>(std::max<std::size_t>(free().size(), 1)));
  return each >= 7 ? 7 : each >= 5 ? 5 : each >= 3 ? 3 : 2;  // of other divisors than what programs divide by
}

GroupSizes SizeGroups::examples_with(const std::vector<std::uint32_t>& some, std::int64_t size) const {
  GroupSizes sizes = examples();
  for (const std::uint32_t group : some) sizes[group] = size;
  return sizes;
}

GroupSizes SizeGroups::choose(const std::vector<std::uint32_t>& some, int round) const {
  GroupSizes sizes = examples();
  std::vector<std::int64_t> taken;
  for (std::size_t nth = 0; nth < some.size(); ++nth) {
    const SizeGroup& group = groups[some[nth]];
    const auto fits = [&](std::int64_t size) { return size > group.below && size < group.above && size > 0; };
    std::int64_t size = candidate(group, round, nth);
    while (size >= group.above && size > group.size)
      size = group.size + (size - group.size) / 2 / group.step * group.step;
    while (size <= group.below && size < group.size)
      size = group.size - (group.size - size) / 2 / group.step * group.step;
    const std::int64_t wanted = size;
    for (int tries = 0; tries < 8 && std::find(taken.begin(), taken.end(), size) != taken.end(); ++tries) {
      size += size < group.size ? -group.step : 4 * group.step;
    }
    sizes[some[nth]] = fits(size) ? size : wanted;
    taken.push_back(sizes[some[nth]]);
  }
  return with_derived(std::move(sizes));
}

std::vector<at::Tensor> SizeGroups::stand_ins(const GroupSizes& some) const {
  const GroupSizes sizes = with_derived(some);
  std::vector<std::vector<std::int64_t>> wanted;
  for (const BoundTensor& input : inputs_) wanted.push_back(input.example.sizes().vec());
  for (const SizeDimension& dimension : dimensions) {
    wanted[dimension.input][static_cast<std::size_t>(dimension.dim)] = sizes[dimension.group];
  }
  std::vector<at::Tensor> result;
  for (std::size_t i = 0; i < inputs_.size(); ++i) result.push_back(fake_input(inputs_[i].example, wanted[i]));
  return result;
}

std::optional<GroupSizes> SizeGroups::sizes_of(const std::vector<at::Tensor>& inputs) const {
  GroupSizes sizes = examples();
  for (const SizeDimension& dimension : dimensions)
    sizes[dimension.group] = inputs[dimension.input].size(dimension.dim);
  const bool agree = std::all_of(dimensions.begin(), dimensions.end(), [&](const SizeDimension& dimension) {
    return sizes[dimension.group] == inputs[dimension.input].size(dimension.dim);
  });
  return agree && with_derived(sizes) == sizes ? std::optional(std::move(sizes)) : std::nullopt;
}

void SizeGroups::tie(std::uint32_t a, std::uint32_t b) {
  if (a > b) std::swap(a, b);
  for (const std::uint32_t dimension : groups[b].dimensions) {
    dimensions[dimension].group = a;
    groups[a].dimensions.push_back(dimension);
  }
  std::sort(groups[a].dimensions.begin(), groups[a].dimensions.end());
  groups[b].dimensions.clear();
}

std::uint32_t SizeGroups::group_of(const std::string& dimension) const {
  const auto is_it = [&](const SizeDimension& each) {
    return dimension_name(inputs_[each.input], each.dim) == dimension;
  };
  return std::find_if(dimensions.begin(), dimensions.end(), is_it)->group;
}

std::vector<std::uint32_t> SizeGroups::groups_of(const SizeExpr& tie) const {
  std::vector<std::uint32_t> found;
  tie.for_each_symbol([&](const std::string& dimension) {
    const std::uint32_t group = group_of(dimension);
    if (std::find(found.begin(), found.end(), group) == found.end()) found.push_back(group);
  });
  return found;
}

std::int64_t SizeGroups::value(const SizeExpr& tie, const GroupSizes& sizes) const {
  std::map<std::string, std::int64_t> at;
  tie.for_each_symbol([&](const std::string& dimension) { at.emplace(dimension, sizes[group_of(dimension)]); });
  return tie.evaluate(at).value_or(-1);
}

void SizeGroups::follow(std::uint32_t group, SizeExpr tie) {
  // No input has a size below zero: the graph refuses what would give one by itself.
  GroupSizes sizes = examples();
  const std::vector<std::uint32_t> others = groups_of(tie);
  if (!others.empty()) {
    SizeGroup& of = groups[others.front()];
    const auto is_possible = [&](std::int64_t size) {
      sizes[others.front()] = size;
      return value(tie, sizes) >= 0;
    };
    while (of.below + 1 < of.size && !is_possible(of.below + 1)) ++of.below;
  }
  groups[group].follows = std::move(tie);
}

void SizeGroups::fix_followers() {
  const auto is_fixed = [this](std::uint32_t of) { return groups[of].fixed; };
  for (std::size_t passes = groups.size(); passes-- > 0;) {
    for (SizeGroup& group : groups) {
      if (!group.follows) continue;
      const std::vector<std::uint32_t> of = groups_of(*group.follows);
      if (std::all_of(of.begin(), of.end(), is_fixed)) group.fixed = true;
    }
  }
}

bool SizeGroups::allow(const GroupSizes& sizes) const {
  for (const SizeDimension& dimension : dimensions) {
    const SizeGroup& group = groups[dimension.group];
    if (group.fixed && sizes[dimension.group] != group.size) return false;
    if (sizes[dimension.group] % group.step != 0) return false;
  }
  return with_derived(sizes) == sizes;
}

bool SizeGroups::are_within_bounds(const GroupSizes& sizes) const {
  return std::all_of(dimensions.begin(), dimensions.end(), [&](const SizeDimension& dimension) {
    return groups[dimension.group].is_within_bounds(sizes[dimension.group]);
  });
}

std::string dimension_name(const BoundTensor& input, std::int64_t dim) {
  const std::string index = std::to_string(dim);
  return input.name + (input.name.ends_with(']') ? ".size(" + index + ")" : "[" + index + "]");
}

std::vector<std::vector<bool>> what_varies(const std::vector<BoundTensor>& inputs, const Sizes& sizes) {
  std::vector<std::vector<bool>> varies;
  std::vector<std::string> names = sizes.names();
  for (const BoundTensor& input : inputs) {
    std::vector<bool>& dims = varies.emplace_back();
    for (std::int64_t dim = 0; dim < input.example.dim(); ++dim) {
      const auto named = std::find(names.begin(), names.end(), dimension_name(input, dim));
      dims.push_back(sizes.is_any() || named != names.end());
      if (named != names.end()) names.erase(named);
    }
  }
  if (!names.empty()) {
    throw Error(ErrorKind::invalid_argument,
                "symbolic_trace: there is no dimension " + names.front() +
                    " among the inputs; TraceOptions::sizes names dimensions as x[0], the first of the input x");
  }
  return varies;
}

// What was to vary and cannot is refused, where all others are only noted.
void check_named(const std::vector<BoundTensor>& inputs, const SizeGroups& groups, const Sizes& sizes) {
  for (const SizeDimension& dimension : groups.dimensions) {
    const std::string name = dimension_name(inputs[dimension.input], dimension.dim);
    const SizeGroup& group = groups.groups[dimension.group];
    if (!group.fixed || std::find(sizes.names().begin(), sizes.names().end(), name) == sizes.names().end()) continue;
    throw Error(ErrorKind::trace, "symbolic_trace: " + name + " was to vary, but the program holds for " +
                                      std::to_string(group.size) + " only: " + group.why);
  }
}

}  // namespace fx::internal
