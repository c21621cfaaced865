#include <fxgraph/trace/raised_calls.h>

#include <algorithm>
#include <map>

namespace fx::internal {
namespace {

constexpr int kTimes = 2;  // that one call is looked at

class LeafInProbe {
 public:
  LeafInProbe(const RaisedCall& call, const ProbedProgram& program, const Probe& sample)
      : call_(call), log_(program.log), session_(program.session), sample_(sample) {
    for (const Probe::Change& change : sample.changes()) {
      if (log_[change.call].node->is_erased()) numbers_[{change.call, change.leaf}] = &change.value;
    }
  }

  /// Whether a number of the call is another one than at the examples.
  bool has_changed() const {
    return std::ranges::any_of(call_.operators, [this](const Node* each) {
      if (!each) return false;
      const auto first = numbers_.lower_bound({log_.index_of(*each), 0});
      return first != numbers_.end() && first->first.first == log_.index_of(*each);
    });
  }

  bool is_alike() const {
    const auto value_of = [this](const Node& node) { return sample_.value_of(log_.index_of(node)); };
    const std::unique_ptr<LeafAlone> alone =
        trace_leaf_alone(*call_.module, *call_.type, call_.inputs, session_, value_of);
    if (!alone) return false;
    const std::vector<std::uint32_t> operators = alone->operators();
    if (operators.size() != call_.operators.size()) return false;
    for (std::size_t i = 0; i < operators.size(); ++i) {
      if (call_.operators[i] && !is_alike(alone->log, operators[i], log_.index_of(*call_.operators[i]))) return false;
    }
    return true;
  }

 private:
  bool is_alike(const TraceLog& alone, std::uint32_t ours, std::uint32_t call) const {
    if (alone[ours].target != log_[call].target) return false;
    const std::uint32_t count = alone.num_leaves(ours);
    if (count != log_.num_leaves(call)) return false;
    for (std::uint32_t leaf = 0; leaf < count; ++leaf) {
      const Argument number = alone.leaf(ours, leaf);
      if (number.is_node()) continue;
      const auto changed = numbers_.find({call, leaf});
      if (number != (changed == numbers_.end() ? log_.leaf(call, leaf) : *changed->second)) return false;
    }
    return true;
  }

  const RaisedCall& call_;
  const TraceLog& log_;
  const Session& session_;
  const Probe& sample_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, const Argument*> numbers_;  // by call and leaf of its arguments
};

}  // namespace

void note_raised(const std::vector<RaisedCall>& calls, TraceLog& log) {
  for (const RaisedCall& call : calls) {
    std::uint32_t first = log.size(), last = 0;
    for (const Node* each : call.operators) {
      if (!each) continue;
      first = std::min(first, log.index_of(*each));
      last = std::max(last, log.index_of(*each));
    }
    log.note_leaf(first, last);
  }
}

std::string find_unlike_leaf(const std::vector<RaisedCall>& calls, const ProbedProgram& program,
                             const std::vector<std::unique_ptr<Probe>>& samples) {
  for (const RaisedCall& call : calls) {
    int times = 0;
    for (auto sample = samples.rbegin(); sample != samples.rend() && times < kTimes; ++sample) {
      const LeafInProbe leaf(call, program, **sample);
      if (!leaf.has_changed() && (!call.asks_for_sizes || times > 0)) continue;
      ++times;
      if (!leaf.is_alike()) return call.path;
    }
  }
  return {};
}

}  // namespace fx::internal
