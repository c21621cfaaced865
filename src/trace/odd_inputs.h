// Inputs that samples of other sizes do not reach: of size zero and one, of the small sizes between, of large ones, and
// of another number of dimensions. Whether a traced program does with them what the graph does.
//
// Programs treat them on their own (`if (x.size(0) == 0) return …`, `if (x.dim() == 3) x = x.unsqueeze(0)`), count
// dimensions from behind (`x.size(-1)`), or end the process. So they are tried in a child process; what goes another
// way is asserted not to be.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/trace/child_trials.h>
#include <fxgraph/trace/size_groups.h>
#include <fxgraph/trace/size_terms.h>

namespace fx::internal {

class OddInputs {
 public:
  OddInputs(const SampledProgram& program, const std::vector<BoundTensor>& inputs, SizeGroups& groups)
      : program_(program), inputs_(inputs), groups_(groups) {}

  /// Zero for all free groups at once; where that does not do, for each alone.
  void add_empty();
  /// One, likewise: there are fewer parts then (`chunk(2)`), and nothing to divide by (`x.size(1) - 1`).
  void add_ones();
  /// The other sizes up to five, likewise: `x.size(1) == 2`.
  void add_small();
  /// For each free group alone some thousand; where that does not do, less. For programs that compute something of
  /// sizes, so that they cannot be tried at any (SizeSearch::check_far).
  void add_large();
  /// Sizes beyond those that operators refuse by themselves, for each free group alone: they may take some again
  /// (`avg_pool1d(x, 8)` and half of it go together every 16), and nothing is asserted of them.
  void add_beyond();
  /// One size after the other for each free group alone, and for all. Below the smallest that a sample had, where the
  /// program does something else at zero or one: it does so from some size on (`max(n / 4, 1)`). All, where `is_guess`
  /// says that numbers follow a rule that was guessed from few values, or none. To be called behind add_empty() and
  /// add_ones().
  void add_sizes(bool is_guess);
  /// All up to `largest`, for each free group alone.
  void add_up_to(std::int64_t largest);
  /// Sizes at which other rules than `explained`, the terms in the graph, would give other numbers. What cannot be
  /// tried there is against them; large ones are not tried unless they `may_be_far`.
  void add_telling(const SizeTerms& terms, const std::vector<SizeTerms::Id>& explained, bool may_be_far);
  /// For each free group alone sizes of many divisors: `n % 32 == 0` has no bounds.
  void add_multiples();
  /// For each two free groups the largest and the smallest that do, and both large: `n > 2 * b`.
  void add_corners();
  /// All sizes of some hundred for each free group alone, and small ones for each two, as far as there is time: of
  /// small programs all, which may ask anything (`n == 32`, `n % 13`). To be called last.
  void add_spare();
  /// One dimension more, in front, and the first one less, of all inputs at once, and of each alone: it may compare
  /// them.
  void add_ranks();
  /// Tries them. `agrees` as try_in_children() has it.
  void run(const std::function<bool(const Sample&)>& agrees);
  /// The same with a judge of one's own.
  void run(const JudgeTrial& judge) { try_in_children(trials_, judge); }
  /// After that: what does not do, in words; empty when nothing was seen that does not. Where no process could be made,
  /// that is the reason.
  std::string difference() const;
  /// After run(): whether the program goes no other way at any size.
  bool all_do() const;
  /// Some of the sizes at which the program came through and numbers in the graph are not those of the program, if
  /// there are any.
  std::vector<GroupSizes> other_numbers() const;
  /// What does not do at size zero has a size of one at least from now on in the groups; what does not do at another
  /// size stays between those that do; what follows no bounds is fixed. Where no process could be made, everything has
  /// a size of one at least.
  void judge(const std::function<bool(const Sample&)>& agrees);
  /// Asserts the rank of the inputs that the program treats differently at another. To be called when the graph has
  /// what it asserts of sizes: a size of a dimension that is not there is no clear answer.
  void write(Graph& graph) const;

 private:
  struct Empty {
    std::size_t trial;
    std::uint32_t group;
  };
  struct Size {
    std::size_t trial;
    std::vector<std::uint32_t> groups;  ///< that have this size
    std::int64_t size;
    bool has_to_agree = false;  ///< and not only must not be seen not to
  };
  struct Rank {
    std::size_t trial;
    std::vector<std::uint32_t> inputs;
    bool more;  ///< dimensions than in the example, and not less
  };
  struct Multiple {
    std::size_t trial;
    std::uint32_t group;
    std::int64_t size;
    std::optional<std::size_t> beyond;  ///< the trial of the next size, away from the example's
  };
  struct Corner {
    std::size_t trial;
    std::uint32_t a, b;
    GroupSizes sizes;
  };
  using SmallSizes = std::vector<std::pair<std::uint32_t, std::int64_t>>;  // of groups
  struct Small {
    std::size_t trial;
    SmallSizes sizes;
    std::vector<std::size_t> alone, without;  ///< trials of each alone, and of all but it where there are more than two
  };
  static constexpr std::int64_t kLarge = 300;  // from here on a trial has little time

  GroupSizes sizes_with(const std::vector<std::uint32_t>& some, std::int64_t size) const;
  std::size_t add_trial_at(const GroupSizes& sizes, bool is_large);
  std::size_t add_trial(const std::vector<std::uint32_t>& some, std::int64_t size, bool is_large = false);
  std::vector<std::uint32_t> groups_above(std::int64_t size) const;
  bool is_seen(std::size_t trial) const;
  bool is_against(const Size& each) const;
  bool is_of_all(const Size& all) const;
  bool has_right_ones_beyond(const Size& bad) const;
  void bound_by_sizes();
  void judge_multiples();
  void judge_small();
  bool judge_corners();
  void judge_pairs();
  enum class Side : std::uint8_t { low, high };
  bool bound_corner(Side side, const std::function<bool(const Sample&)>& agrees);
  void bound_together(const std::function<bool(const Sample&)>& agrees);
  static bool goes_another_way(const ChildTrial& trial);
  void add_rank(bool more, const std::vector<std::uint32_t>& some);
  const Rank* against(std::uint32_t input) const;

  const SampledProgram& program_;
  const std::vector<BoundTensor>& inputs_;
  SizeGroups& groups_;
  std::vector<ChildTrial> trials_;
  std::vector<Empty> empty_;
  std::vector<Size> sizes_;
  std::optional<std::size_t> all_ones_;
  std::vector<Rank> ranks_;
  std::vector<Multiple> multiples_;
  std::vector<Small> small_;
  std::vector<Corner> pairs_;
  std::vector<Corner> corners_;
};

}  // namespace fx::internal
