// SizeGroups: which dimensions of the inputs of a trace vary, and how.
//
// A group is a set of dimensions that are always equal. It is fixed at its size, free, perhaps in steps, or follows
// from others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fxgraph/symbolic/size_expr.h>
#include <fxgraph/trace/probe.h>
#include <fxgraph/trace/sizes.h>

namespace fx::internal {

/// One dimension of one input tensor.
struct SizeDimension {
  std::uint32_t input;
  std::int64_t dim;
  std::int64_t size;  ///< of the example
  std::uint32_t group;
};

struct SizeGroup {
  std::int64_t size;  ///< of the examples
  std::vector<std::uint32_t> dimensions;
  bool fixed = false;
  std::int64_t step = 1;  ///< sizes are multiples of it
  /// Sizes up to `below` and from `above` on are known not to do; `said` whether the graph would not say so by itself.
  std::int64_t below = 0, above = std::numeric_limits<std::int64_t>::max();
  bool below_said = true, above_said = true;
  /// The sizes that are known to do.
  std::int64_t lowest, highest;
  /// What it is of others, by the names of their dimensions, for a group that does not vary without them.
  std::optional<SizeExpr> follows;
  std::string why, where;  ///< why it is fixed, tied or has steps
  /// The sizes at which the program came through.
  std::set<std::int64_t> probed{};

  /// Whether nothing that is known is against this size.
  bool may_be(std::int64_t tried) const { return tried >= 1 && tried > below && tried < above && tried % step == 0; }
  /// Whether nothing that is known is against any size.
  bool may_be_any() const {
    return !fixed && step == 1 && below < 1 && above == std::numeric_limits<std::int64_t>::max();
  }
  /// Whether a graph of it takes this size.
  bool takes(std::int64_t tried) const {
    return (!fixed || tried == size) && tried % step == 0 && is_within_bounds(tried);
  }
  /// Whether it is none of those that are asserted not to be, as too small or too large.
  bool is_within_bounds(std::int64_t tried) const {
    return (below_said || tried >= lowest) && (above_said || tried <= highest);
  }
  void fix(std::string reason, std::string place);
  /// Sizes up to this, or from it on, do not do, which the graph is to say, with this reason beside others.
  void stay_above(std::int64_t size, const std::string& reason, const CallPlace& place);
  void stay_below(std::int64_t size, const std::string& reason, const CallPlace& place);
  /// Sizes are multiples of this. What was known of others says nothing.
  void vary_in(std::int64_t steps);
  void add_reason(const std::string& reason, const CallPlace& place);
  /// The same where none is known.
  void explain_by(const std::string& reason, const CallPlace& place) {
    if (why.empty()) add_reason(reason, place);
  }
};

/// A size for each group.
using GroupSizes = std::vector<std::int64_t>;

class SizeGroups {
 public:
  /// Each dimension is a group of its own; `varies` says which may vary.
  SizeGroups(const std::vector<BoundTensor>& inputs, const std::vector<std::vector<bool>>& varies);

  const std::vector<BoundTensor>& inputs() const { return inputs_; }
  std::vector<SizeGroup> groups;
  std::vector<SizeDimension> dimensions;
  /// Whether nothing is computed of what has these sizes, so that they may be as large as one likes.
  bool may_go_far = false;

  /// Those that vary and follow from no other.
  std::vector<std::uint32_t> free() const;
  /// The sizes of the examples.
  GroupSizes examples() const;
  /// The same, but this one for the groups of `some`.
  GroupSizes examples_with(const std::vector<std::uint32_t>& some, std::int64_t size) const;
  /// Other sizes for the groups of `some`, different from each other; another choice for each `round`.
  GroupSizes choose(const std::vector<std::uint32_t>& some, int round) const;
  /// These sizes, where groups that follow from others are what they are of these.
  GroupSizes with_derived(GroupSizes sizes) const;
  /// Empty tensors of these sizes, laid out as the examples.
  std::vector<at::Tensor> stand_ins(const GroupSizes& sizes) const;
  /// The sizes of these inputs; nothing where dimensions that are always equal are not.
  std::optional<GroupSizes> sizes_of(const std::vector<at::Tensor>& inputs) const;
  /// Makes two groups one.
  void tie(std::uint32_t a, std::uint32_t b);
  /// Makes a group follow from others, which follow from none.
  void follow(std::uint32_t group, SizeExpr tie);
  /// The groups of the dimensions that the expression names.
  std::vector<std::uint32_t> groups_of(const SizeExpr& tie) const;
  std::uint32_t group_of(const std::string& dimension) const;
  /// What it is for these sizes; -1 where something is divided by zero.
  std::int64_t value(const SizeExpr& tie, const GroupSizes& sizes) const;
  /// Says nothing of where the program was run: it holds by construction.
  void forget_probed() {
    for (SizeGroup& group : groups) group.probed.clear();
  }
  /// Fixes what follows from fixed ones alone.
  void fix_followers();
  /// Whether these sizes keep to what is known of the groups.
  bool allow(const GroupSizes& sizes) const;
  /// Whether they are none of those that are asserted not to be, as too small or too large.
  bool are_within_bounds(const GroupSizes& sizes) const;

 private:
  std::int64_t far_factor(const SizeGroup& group) const;
  std::int64_t candidate(const SizeGroup& group, int round, std::size_t nth) const;

  const std::vector<BoundTensor>& inputs_;
};

/// `x[2]`
std::string dimension_name(const BoundTensor& input, std::int64_t dim);
/// For each input, which of its dimensions may vary. Throws Error(invalid_argument) for a name that is none of theirs.
std::vector<std::vector<bool>> what_varies(const std::vector<BoundTensor>& inputs, const Sizes& sizes);
/// Throws Error(trace) when a dimension that was to vary cannot.
void check_named(const std::vector<BoundTensor>& inputs, const SizeGroups& groups, const Sizes& sizes);

}  // namespace fx::internal
