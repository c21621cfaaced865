// The part of ModeSwitch that looks at other sizes: a program that does the same in both modes at the sizes of the
// examples need not do so at others (`if (is_training() && x.size(1) > 64) …`). Both modes are run once more, at
// the same other sizes; each must do what it does at those of the examples, with the same numbers as the other.
#include <map>
#include <utility>

#include <fxgraph/trace/mode_switch.h>
#include <fxgraph/trace/tensor_memory.h>

namespace fx::internal {
namespace {

using Ids = std::vector<std::optional<std::uint32_t>>;
using NumberPlace = std::pair<std::uint32_t, std::uint32_t>;  // of a call of the trace

// Two runs at the same sizes, one in each mode.
class TwoRuns {
 public:
  TwoRuns(const TraceLog& own, const TraceLog& other, const Ids& ids) : own_(own), other_(other), ids_(ids) {
    for (std::uint32_t call = 0; call < ids.size(); ++call) {
      if (ids[call]) calls_.emplace(own.index_of(*ids[call]), call);
    }
  }

  /// Whether both have the same numbers in all calls that the graph has.
  bool same_numbers(const Probe& own, const Probe& other) const {
    std::map<NumberPlace, Argument> mine, theirs;
    for (const Probe::Change& change : own.changes()) {
      if (calls_.contains(change.call)) mine.emplace(NumberPlace(change.call, change.leaf), change.value);
    }
    for (const Probe::Change& change : other.changes()) {
      if (ids_[change.call]) theirs.emplace(NumberPlace(own_.index_of(*ids_[change.call]), change.leaf), change.value);
    }
    const auto at = [&](const std::map<NumberPlace, Argument>& changes, const TraceLog& log, std::uint32_t call,
                        NumberPlace leaf) {
      const auto changed = changes.find(leaf);
      return changed == changes.end() ? log.leaf(call, leaf.second) : changed->second;
    };
    for (const auto* changes : {&mine, &theirs}) {
      for (const auto& [leaf, value] : *changes) {
        if (own_[leaf.first].node->is_erased()) continue;
        if (at(mine, own_, leaf.first, leaf) != at(theirs, other_, calls_.at(leaf.first), leaf)) return false;
      }
    }
    return same_constants(own, other);
  }

 private:
  bool same_constants(const Probe& own, const Probe& other) const {
    std::map<std::uint32_t, at::Tensor> mine;
    for (const Probe::ChangedConstant& each : own.changed_constants()) {
      if (calls_.contains(each.call) && !own_[each.call].node->is_erased()) mine.emplace(each.call, each.value);
    }
    for (const Probe::ChangedConstant& each : other.changed_constants()) {
      const auto& id = ids_[each.call];
      if (!id || own_[own_.index_of(*id)].node->is_erased()) continue;
      const auto same = mine.find(own_.index_of(*id));
      if (same == mine.end() || !same_data(same->second, each.value)) return false;
      mine.erase(same);
    }
    return mine.empty();
  }

  const TraceLog& own_;
  const TraceLog& other_;
  const Ids& ids_;
  std::map<std::uint32_t, std::uint32_t> calls_;  // of the other mode, by those of the trace
};

}  // namespace

std::string ModeSwitch::difference_at_sizes(const ProbedProgram& program, const SizeGroups& groups,
                                            const std::function<bool(const Probe&)>& agrees) const {
  if (!other_ || !other_->log().asks_rank()) return {};
  const auto run = [this](Session& session, Graph& graph, const std::vector<at::Tensor>& stand_ins) {
    other_->run_in(session, graph, stand_ins);
  };
  const ProbedProgram other{.log = other_->log(),
                            .session = other_->session(),
                            .run = run,
                            .attributes = program.attributes,
                            .is_free_attribute = program.is_free_attribute,
                            .leave = program.leave,
                            .keeps_constants = program.keeps_constants,
                            .is_compared = program.is_compared,
                            .most_recordings = program.most_recordings,
                            .raised = program.raised,
                            .updates = probed_updates(other_->log(), other_->session(), other_->updates())};
  const TwoRuns both(program.log, other.log, ids_);
  const std::vector<at::Tensor> stand_ins = groups.stand_ins(groups.with_broadcast(groups.choose(groups.free(), 0)));
  Probe own(program), theirs(other);
  if (!own.run(stand_ins) || !agrees(own)) return {};  // there is nothing to compare
  std::string difference;
  if (theirs.run(stand_ins)) {
    if (both.same_numbers(own, theirs)) return {};
    difference = "a number that the program computes of it is another one";
  } else {
    if (theirs.threw() && is_about_statistics(theirs.why())) return {};  // so does the module
    difference = other.log.describe(theirs.failed_at()) + ": " + theirs.why();
    if (const std::string where = theirs.where(); !where.empty()) difference += " (" + where + ")";
  }
  return here() + "the program does something else at other sizes: " + difference;
}

}  // namespace fx::internal
