// SizeSearch: finds the dimensions of a traced program's inputs that may vary, by running it at other sizes.
//
// All dimensions change at once first, each to another size. When the program then does something else or fails, each
// dimension is tried alone, up to the call that was different: what fails alone is tied to a dimension of the same
// size, varies in steps, or is fixed. Then all again, until a run comes through.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/trace/size_groups.h>

namespace fx::internal {

class SizeSearch {
 public:
  SizeSearch(const SampledProgram& program, SizeGroups& groups) : program_(program), groups_(groups) {}

  /// Settles the groups, so that `count` samples in which all free ones vary came through; fewer when none is free.
  void find(std::size_t count);
  /// Fixes the groups on which a number of the program depends for which there is no expression. Samples taken before
  /// are dropped.
  void fix_dependence(std::uint32_t call, std::uint32_t leaf, const std::string& why);
  /// The same for a tensor that the program makes without operators.
  void fix_dependence_of_constant(std::uint32_t call, const std::string& why);

  /// The runs that came through.
  const std::vector<std::unique_ptr<Sample>>& samples() const { return samples_; }

 private:
  using Some = std::vector<std::uint32_t>;

  std::unique_ptr<Sample> attempt(const GroupSizes& sizes, std::uint32_t last, bool* came_through);
  bool works(const GroupSizes& sizes, std::uint32_t last);
  void settle(const Some& active, const GroupSizes& sizes, const Sample& failure);
  void settle_together(const Some& active, const GroupSizes& sizes, const Sample& failure);
  bool is_about_steps(std::uint32_t group, std::int64_t bad, std::uint32_t last);
  bool narrow(std::uint32_t group, const GroupSizes& sizes, const Sample& failure, std::uint32_t last);
  Some tie(Some culprits, const Some& active, const GroupSizes& sizes, std::uint32_t last);
  bool tie_all(const Some& some, const GroupSizes& sizes, std::uint32_t last);
  bool find_steps(const Some& some, const Sample& failure);
  bool widen_step(std::uint32_t group, std::uint32_t last);
  bool works_at(const Some& some, std::int64_t size, std::uint32_t last);
  void fix(std::uint32_t group, const std::string& why, const std::string& where);
  void fix_where(const std::function<bool(const Sample&)>& depends, std::uint32_t last, const std::string& why);
  std::string reason(const Sample& failure) const;
  bool is_held_by_parameter(const Sample& failure) const;

  const SampledProgram& program_;
  SizeGroups& groups_;
  std::vector<std::unique_ptr<Sample>> samples_;
  std::vector<GroupSizes> sizes_;  // of the samples
  int round_ = 0;
  std::vector<int> blamed_;  // how often each group alone was another program
  int attempts_ = 0;
};

}  // namespace fx::internal
