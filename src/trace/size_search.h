// SizeSearch: finds the dimensions of a traced program's inputs that may vary, by running it at other sizes.
//
// All dimensions change at once first, each to another size. When the program then does something else or fails, each
// dimension is tried alone, up to the call that was different: what fails alone is tied to a dimension of the same
// size, varies in steps, or is fixed. Then all again, until a run comes through.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/trace/size_groups.h>

namespace fx::internal {

class SizeSearch {
 public:
  SizeSearch(const ProbedProgram& program, SizeGroups& groups) : program_(program), groups_(groups) {}

  /// Larger, smaller, much larger: tells sizes, multiples and products apart. Without the smaller one for programs that
  /// ask for nothing, so that only operators say what they take.
  std::size_t enough_samples() const { return program_.log.asks_rank() ? 3 : 2; }

  /// Settles the groups, so that `count` samples in which all free ones vary came through; fewer when none is free.
  void find(std::size_t count);
  /// Fixes the groups on which a number of the program depends for which there is no expression. Probes taken before
  /// are dropped.
  void fix_dependence(std::uint32_t call, std::uint32_t leaf, const std::string& why);
  /// The same for a tensor that the program makes without operators.
  void fix_dependence_of_constant(std::uint32_t call, const std::string& why);

  /// Whether sizes may be as large as one likes: neither we nor the program compute anything of what has them.
  bool may_go_far();
  /// Drops the sample that was far, past sizes from which on some programs treat inputs in another way: there is no
  /// expression for what it did. False without one.
  bool drop_far();
  bool has_far() const { return std::ranges::find(taken_, true, &Taken::is_far) != taken_.end(); }
  /// Whether one that was far has been dropped.
  bool is_belied_far() const { return !may_be_far_; }

  /// Tries sizes that are far, where nothing is computed of what has them; asserts how far the program does the same,
  /// and `agrees` with the graph about numbers. True when only numbers are others: they are a sample of their own, to
  /// be explained; once that has been dropped, bounds are asserted for them, too.
  bool check_far(const std::function<bool(const Probe&)>& agrees);

  /// Tries sizes in the other order (a width above the height, where the example has them the other way round), and
  /// sizes that are all the same; fixes those whose order or equality sends the program another way. True when there is
  /// more to explain: another sample, or other groups.
  bool check_orders(const std::function<bool(const Probe&)>& agrees);

  /// Tries all sizes at one. What does not do has a size of two at least from now on; where the program comes through
  /// and only numbers are not those of the graph, nothing is said if `others` is given: it is these sizes.
  void check_ones(const std::function<bool(const Probe&)>& agrees, std::optional<GroupSizes>* others);
  /// Whether a sample had this size of the group.
  bool has_seen(std::uint32_t group, std::int64_t size) const;
  /// Takes one more sample, at sizes that the caller gives; what is different there, or nothing.
  std::string take(const GroupSizes& sizes);
  /// Takes one more sample, at these sizes; false when it does not come through. What does not do at sizes that were
  /// not seen is then left out.
  bool add_probe(const GroupSizes& sizes);

  /// Sizes at which the program slices what it takes whole at the examples', where dimensions are not free for that;
  /// nothing where there are none.
  std::optional<GroupSizes> where_it_slices_more() const;

  /// What the program does otherwise at the sizes of the examples, where nothing decides but what it keeps from call to
  /// call, or draws; empty when nothing.
  std::string difference_at_examples() const;
  /// Throws Error(trace) that says so; `how` says what is different, and at which sizes.
  [[noreturn]] static void refuse_state(const std::string& how);

  /// Where an operator has refused, it may take sizes that are further away, as multiples: there the graph says itself
  /// how far was looked.
  void check_beyond();
  /// Bounds were found for one dimension beside certain sizes of the others: tries each beside their extremes, and
  /// fixes it where that does not do, for no bound describes how dimensions compare.
  void check_corners(const std::function<bool(const Probe&)>& agrees, bool was_guessed);
  /// Of each tensor among the inputs the sizes of the largest samples.
  std::vector<std::vector<std::int64_t>> largest_tried() const;
  /// Whether there is room for another run; once there is none, nothing is tried any more.
  bool may_go_on() const;

  /// The runs that came through.
  const std::vector<std::unique_ptr<Probe>>& samples() const { return samples_; }

 private:
  using Some = std::vector<std::uint32_t>;
  struct Taken {
    GroupSizes sizes;
    int round = -1;  // of find()
    bool is_far = false;
  };

  void leave_out(const GroupSizes& sizes, const std::string& why, const CallPlace& place);
  void fix_rest(const Some& active);
  bool may_explore() const;
  bool may_look_into_corners() const;
  bool settle_as_demanded(const GroupSizes& sizes, const Probe& failure);
  bool fix_unless_near(std::uint32_t index, std::int64_t tried, const Probe& failure);
  void exclude_ones(const Some& some, const Probe& all,
                    const std::function<std::unique_ptr<Probe>(const Some&)>& try_ones);
  std::unique_ptr<Probe> attempt(const GroupSizes& sizes, std::uint32_t last, bool* came_through);
  /// Null where it came through.
  std::unique_ptr<Probe> failure_at(const GroupSizes& sizes, std::uint32_t last = Probe::kToTheEnd);
  /// The same; what came through becomes a sample.
  std::unique_ptr<Probe> failure_as_sample(Taken taken);
  int round() const;
  int choice_of(int round) const;
  static std::uint32_t last_of(const Probe& failure) {
    return failure.came_through() ? Probe::kToTheEnd : failure.failed_at();
  }
  void note_slice(const GroupSizes& sizes);
  void note_probed(const GroupSizes& sizes);
  void forget(std::size_t sample);
  void forget_others();
  void forget_all();
  bool works(const GroupSizes& sizes, std::uint32_t last);
  void settle(const Some& active, const GroupSizes& sizes, const Probe& failure);
  void settle_together(const Some& active, const GroupSizes& sizes, const Probe& failure);
  Some tie(Some culprits, const Some& active, const GroupSizes& sizes, std::uint32_t last);
  void limit(std::uint32_t group, std::int64_t bad, const Probe& failure);
  bool find_steps(const Some& some, GroupSizes beside, std::int64_t bad, const Probe& failure);
  bool find_bound(std::uint32_t group, std::int64_t bad, const Probe& failure);
  bool works_at(const Some& some, std::int64_t size, std::uint32_t last);
  void fix(std::uint32_t group, const std::string& why, const std::string& where);
  void fix_where(const std::function<bool(const Probe&)>& depends, std::uint32_t last, const std::string& why);
  bool is_said(const Probe& failure) const;
  enum class Order { reversed, equal };
  GroupSizes in_order(const Some& some, Order order) const;
  bool check_order(const Some& some, Order order, const std::function<bool(const Probe&)>& agrees, bool* is_refused);
  std::string reason(const Probe& failure) const;
  std::string in_words(const Probe& failure) const;
  bool is_held_by_parameter(const Probe& failure) const;

  const ProbedProgram& program_;
  SizeGroups& groups_;
  std::vector<std::unique_ptr<Probe>> samples_;
  std::vector<Taken> taken_;  // for the samples
  bool may_be_far_ = true;
  bool has_computed_ = false;
  std::uint64_t spent_ = 0;                                    // operators that all runs have taken
  const std::function<bool(const Probe&)>* agrees_ = nullptr;  // who says of a run that came through whether it did
  std::map<std::uint32_t, std::int64_t> slices_more_at_;       // a size of this group alone
};

}  // namespace fx::internal
