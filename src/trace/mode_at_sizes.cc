// The part of ModeSwitch that looks at other sizes: a program that does the same in both modes at the sizes of the
// examples need not do so at others (`if (is_training() && x.size(1) > 64) …`). Both modes are run once more, at
// the same other sizes; each must do what it does at those of the examples, with the same numbers as the other.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fxgraph/trace/mode_switch.h>
#include <fxgraph/trace/tensor_memory.h>

namespace fx::internal {
namespace {

// Numbers and tensors of a run that are others than at the examples, by the nodes of the trace that made them.
struct Others {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Argument> numbers;
  std::map<std::uint32_t, at::Tensor> constants;

  template <typename IdOf>
  Others(const Probe& run, const IdOf& id_of) {
    for (const Probe::Change& change : run.changes()) {
      if (const auto id = id_of(change.call)) numbers.emplace(std::pair(*id, change.leaf), change.value);
    }
    for (const Probe::ChangedConstant& each : run.changed_constants()) {
      if (const auto id = id_of(each.call)) constants.emplace(*id, each.value);
    }
  }
  bool operator==(const Others& other) const {
    return numbers == other.numbers && std::ranges::equal(constants, other.constants, [](const auto& a, const auto& b) {
             return a.first == b.first && same_data(a.second, b.second);
           });
  }
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
  // Of calls that both modes make and the graph still has.
  using Id = std::optional<std::uint32_t>;
  const auto kept = [&](Id id) { return id && !program.log[program.log.index_of(*id)].node->is_erased() ? id : Id(); };
  const auto id_of_theirs = [&](std::uint32_t call) { return kept(ids_[call]); };
  const std::set<Id> shared(ids_.begin(), ids_.end());
  const auto id_of_own = [&](std::uint32_t call) {
    const Id id = program.log[call].node->id();
    return shared.contains(id) ? kept(id) : Id();
  };
  const std::vector<at::Tensor> stand_ins = groups.stand_ins(groups.with_broadcast(groups.choose(groups.free(), 0)));
  Probe own(program), theirs(other);
  if (!own.run(stand_ins) || !agrees(own)) return {};  // there is nothing to compare
  std::string difference;
  if (theirs.run(stand_ins)) {
    if (Others(own, id_of_own) == Others(theirs, id_of_theirs)) return {};
    difference = "a number that the program computes of it is another one";
  } else {
    difference = other.log.describe(theirs.failed_at()) + ": " + theirs.why();
    if (const std::string where = theirs.where(); !where.empty()) difference += " (" + where + ")";
  }
  return here() + "the program does something else at other sizes: " + difference;
}

}  // namespace fx::internal
