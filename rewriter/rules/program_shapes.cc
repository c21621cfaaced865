#include <fxgraph/rewriter/rules/program_shapes.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <unordered_set>

#include <fxgraph/module/module_info.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/weights.h>

namespace fx::rules {

void ProgramShapes::find(std::optional<Vary> vary) {
  if (inputs_.empty()) return;
  propagate();
  if (!known()) return;
  if (vary) mark_free(module_, inputs_, shapes_, *vary);
  forget_branches(module_.graph(), shapes_);
  forget_changing_forms();
}

std::optional<AcrossSamples> ProgramShapes::across_samples() {
  find(Vary::all);
  const auto across = computes_across_samples(module_.graph(), shapes_);
  if (!across || !known()) return across;
  find(Vary::first);
  return computes_across_samples(module_.graph(), shapes_) ? across : std::nullopt;
}

bool ProgramShapes::any_reader() const {
  static const std::unordered_set<std::string_view> kReaders = {"addmm",
                                                                "bmm",
                                                                "expand",
                                                                "group_norm",
                                                                "layer_norm",
                                                                "linear",
                                                                "matmul",
                                                                "mean",
                                                                "mm",
                                                                "reshape",
                                                                "softmax",
                                                                "squeeze",
                                                                "unsqueeze",
                                                                "view",
                                                                "scaled_dot_product_attention",
                                                                "_scaled_dot_product_attention"};
  return std::any_of(module_.graph().nodes().begin(), module_.graph().nodes().end(), [](const Node& node) {
    return (node.is(Op::call_function) || node.is(Op::call_method)) && kReaders.contains(last_name(node));
  });
}

void ProgramShapes::propagate() {
  if (must_run_) return run();
  try {
    if (worked_out_ == 0) {
      propagated_.propagate(inputs_);
      worked_out_ = module_.graph().size();
    } else {
      worked_out_ += propagated_.update();
    }
    shapes_ = propagated_.shapes();
  } catch (const std::exception&) {
    must_run_ = true;  // it looks at its numbers, to check them for instance
    run();
  }
}

void ProgramShapes::run() {
  const at::NoGradGuard no_grad;
  const StateKeeper keeper(module_);
  try {
    shapes_ = propagate_shapes(module_, inputs_);
    worked_out_ += module_.graph().size();
    unknown_because_.clear();
  } catch (const std::exception& error) {
    shapes_ = {};
    unknown_because_ = error.what();
  }
}

/// What is known of a value's form is no use where the program changes it in place; of what is computed from a weight
/// either, whose form the next call finds changed.
void ProgramShapes::forget_changing_forms() {
  const Graph& graph = module_.graph();
  const auto changes = [&](const Node& node) { return effects_of(node).restructures; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), changes)) return;
  const ProgramEffects effects(module_);
  NodeMap<bool> carried(graph, false);
  for (const Node& node : graph.nodes()) {
    const bool changes_form = effects.has_inplace_view(node);
    bool from_state = changes_form && node.is(Op::get_attr);
    node.for_each_input([&](const Node& input) { from_state |= carried[input]; });
    carried[node] = from_state;
    if (changes_form || from_state) shapes_[node] = {};
  }
}

}  // namespace fx::rules
