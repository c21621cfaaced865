// Numbers without an expression: the dimensions on which they depend are fixed.
#include <fxgraph/trace/size_search.h>

#include <algorithm>

namespace fx::internal {

void SizeSearch::fix_where(const std::function<bool(const Probe&)>& depends, std::uint32_t last,
                           const std::string& why) {
  const Some active = groups_.free();
  // Where it was seen to be another number, first.
  std::vector<GroupSizes> tried;
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    if (depends(*samples_[i])) tried.push_back(taken_[i].sizes);
  }
  tried.push_back(groups_.choose(active, 0));
  bool any = false;
  std::string where;
  for (std::size_t i = 0; i < tried.size() && !any; ++i) {
    for (const std::uint32_t group : active) {
      GroupSizes alone = groups_.examples();
      alone[group] = tried[i][group];
      bool came_through = false;
      const std::unique_ptr<Probe> sample = attempt(groups_.with_derived(std::move(alone)), last, &came_through);
      if (came_through && !depends(*sample)) continue;
      where = sample->where();
      fix(group, why, where);
      any = true;
    }
  }
  for (const std::uint32_t group : active) {
    if (!any) fix(group, why, where);
  }
  forget_all();
}

void SizeSearch::fix_dependence(std::uint32_t call, std::uint32_t leaf, const std::string& why) {
  fix_where(
      [&](const Probe& sample) {
        return std::any_of(sample.changes().begin(), sample.changes().end(),
                           [&](const Probe::Change& change) { return change.call == call && change.leaf == leaf; });
      },
      call, why);
}

void SizeSearch::fix_dependence_of_constant(std::uint32_t call, const std::string& why) {
  fix_where(
      [&](const Probe& sample) {
        return std::any_of(sample.changed_constants().begin(), sample.changed_constants().end(),
                           [&](const Probe::ChangedConstant& constant) { return constant.call == call; });
      },
      Probe::kToTheEnd, why);
}

}  // namespace fx::internal
