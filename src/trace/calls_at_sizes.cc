#include <fxgraph/trace/calls_at_sizes.h>

#include <algorithm>

#include <fxgraph/run/value.h>
#include <fxgraph/text/print.h>
#include <fxgraph/trace/odd_inputs.h>
#include <fxgraph/trace/same_program.h>

namespace fx::internal {
namespace {

using Tensors = std::vector<at::Tensor>;

class TwoCalls {
 public:
  explicit TwoCalls(const CallsAtSizes& calls) : calls_(calls) {}

  /// Whether the program does with `later` after a call on `before` what it does without.
  TrialFinding judge(const Tensors& before, const Tensors& later) const {
    const SecondCallPlan earlier_plan = plan_on(before), later_plan = plan_on(later);
    SeparateCall alone(later_plan);
    calls_.plan.state.restore();
    if (!runs(alone)) return {TrialResult::agrees};  // nor does the graph
    alone.end();
    calls_.plan.state.restore();
    SeparateCall first(earlier_plan), second(later_plan);
    if (!runs(first)) return {TrialResult::agrees};
    const std::vector<ReplacedBuffer> replaced = replaced_buffers(*first.session, calls_.plan.state.changes());
    second.session->follow_call(first.session);
    try {
      second.run();
    } catch (const std::exception& error) {
      return {TrialResult::differs, false, first_line(error)};
    }
    bool uses_any = false;
    const std::vector<std::uint8_t> depends = dependences(first.graph, *first.session);
    for (const Node& node : second.graph.nodes()) {
      const Node* kept = second.session->kept_value(node);
      uses_any |= kept != nullptr;
      if (!kept || depends[kept->id()] == kNothing || is_written(*kept, replaced)) continue;
      return {TrialResult::differs, false,
              "it uses %" + kept->name() + " (" + kept->target().str() + "), which the call before kept"};
    }
    // What it uses of the call before it need not make again.
    const bool is_same = uses_any || (print_graph(alone.graph) == print_graph(second.graph) &&
                                      same_constants(*alone.session, *second.session));
    return {is_same ? TrialResult::agrees : TrialResult::differs, false,
            "it runs other operators, or has other numbers"};
  }

 private:
  SecondCallPlan plan_on(const Tensors& inputs) const {
    const auto run = [this, &inputs](Session& session, Graph& graph) { calls_.run(session, graph, inputs); };
    return {calls_.plan.graph, calls_.plan.session, calls_.plan.state, run, calls_.plan.is_free_attribute};
  }

  static bool runs(SeparateCall& call) {
    try {
      call.run();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  // Whether the graph writes it to a buffer.
  bool is_written(const Node& kept, const std::vector<ReplacedBuffer>& replaced) const {
    return std::any_of(replaced.begin(), replaced.end(), [&](const ReplacedBuffer& each) {
      return each.value == &kept && std::any_of(calls_.updates.begin(), calls_.updates.end(), [&](const auto& update) {
               return update.attribute == each.buffer->path;
             });
    });
  }

  const CallsAtSizes& calls_;
};

}  // namespace

void compare_calls_at_sizes(const CallsAtSizes& calls, const SampledProgram& program,
                            const std::vector<BoundTensor>& inputs, SizeGroups& groups) {
  if (!program.log.asks_rank()) return;
  const TwoCalls two(calls);
  const Tensors examples = groups.stand_ins(groups.examples());
  OddInputs sizes(program, inputs, groups);
  sizes.add_ones();
  sizes.add_small();
  sizes.add_spare();
  sizes.run([&](const Tensors& others) -> TrialFinding {
    const TrialFinding found = two.judge(examples, others);
    return found.result == TrialResult::agrees ? two.judge(others, examples) : found;
  });
  if (const std::string difference = sizes.difference(); !difference.empty()) {
    throw Error(ErrorKind::trace, "symbolic_trace: a call of " + calls.name +
                                      " does something else after one at other sizes: " + difference +
                                      "; pass what it keeps as an input and return it");
  }
}

}  // namespace fx::internal
