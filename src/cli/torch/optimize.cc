// fxgraph optimize: apply rules, compare, save, and say what changed.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include <fxgraph/cli/options.h>
#include <fxgraph/cli/torch/backend.h>
#include <fxgraph/cli/torch/measures.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/nn/object_attribute.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/rewriter/rules/packed_calls.h>
#include <fxgraph/run/machine.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>

namespace fx::cli {

namespace {

constexpr int kVerifyRounds = 8;
struct State {
  std::size_t nodes = 0;
  double parameters = 0;
  double parameter_bytes = 0;
  std::optional<double> macs;
  std::optional<double> peak_bytes;
  std::optional<MeasuredTime> forward;
};

class Optimization {
 public:
  Optimization(const OptimizeOptions& options, TorchModel& model)
      : options_(options), model_(model), inputs_(options.inputs) {
    rules::select(options.rules);  // names are checked before the long work
    if (!inputs_.empty()) inputs_for(model.graph(), inputs_);
    if (!options.target.empty() && inputs_.empty() && !model.graph().placeholders().empty()) {
      throw MissingOption("--target measures on the inputs' shapes: add --input, like --input 1x3x224x224");
    }
    if (!options.target.empty() && options.output.ends_with(".pt2")) {
      throw Error(ErrorKind::invalid_argument, fmt::format("{}: --target calls kernels with packed weights, for which "
                                                           "torch.export has no words: save the result as .pt",
                                                           options.output));
    }
    if (options.concurrent && options.target.empty())
      throw MissingOption("--concurrent leaves kernels of a target out: add --target cpu");
    if (!options.dtype.empty()) {
      if (options.target.empty()) throw MissingOption("--dtype is measured on a target: add --target cpu");
      dtype_ = DType::bfloat16;
    }
    if (options.verify && inputs_.empty() && !model.graph().placeholders().empty()) {
      throw MissingOption("--verify runs the program, so it needs its inputs: add --input, like --input 1x3x224x224");
    }
  }

  int run() {
    if (!inputs_.empty() || options_.verify) original_ = model_.clone();
    before_ = measure(model_);
    const std::map<std::string, const void*> weights = weights_of(model_.module());
    apply_rules();
    refuse_lost_weights(weights);
    model_.graph().lint();
    after_ = measure(model_);
    time_both();
    if (options_.verify) verify();
    const bool equal = !difference_ || *difference_ <= tolerance_;
    if (equal && !options_.output.empty()) model_.save(options_.output, inputs_);
    if (options_.json) {
      print_json(equal);
    } else {
      print_text(equal);
    }
    if (equal) return kDone;
    throw Error(ErrorKind::mismatch,
                fmt::format("{}: the result differs by {:.1e} (relative), more than {:.0e}; nothing was saved; {}",
                            options_.file, *difference_, tolerance_,
                            dtype_ ? "this program makes more of what bfloat16 rounds: leave --dtype out"
                                   : "find the rule at fault with --rules"));
  }

 private:
  static std::map<std::string, const void*> weights_of(const GraphModule& module) {
    std::map<std::string, const void*> weights;
    for (const auto& each : module.named_parameters()) weights[each.key()] = each.value().unsafeGetTensorImpl();
    for (const auto& each : module.named_buffers()) weights[each.key()] = each.value().unsafeGetTensorImpl();
    for (const auto& each : module.named_modules()) {
      if (dynamic_cast<const ObjectAttribute*>(each.value().get())) weights[each.key()] = each.value().get();
    }
    return weights;
  }

  // Text has no weights: those of the file go on to fit it, but what a rule makes would be nowhere.
  void refuse_lost_weights(const std::map<std::string, const void*>& before) const {
    if (options_.output.empty() || form_of(options_.output, ProgramForm::torchscript) != ProgramForm::text) return;
    std::vector<std::string> lost;
    for (const auto& [path, tensor] : weights_of(model_.module())) {
      const auto known = before.find(path);
      if (known == before.end() || known->second != tensor) lost.push_back(path);
    }
    if (lost.empty()) return;
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{}: text has no weights, and the rules made others ({}{}); save the result as .pt",
                    options_.output, lost[0], lost.size() > 1 ? fmt::format(" and {} more", lost.size() - 1) : ""));
  }

  State measure(TorchModel& model) {
    State state;
    state.nodes = model.graph().size();
    const ParameterCount parameters = count_parameters(model.module());
    state.parameters = parameters.elements;
    state.parameter_bytes = parameters.bytes;
    if (inputs_.empty()) return state;
    state.macs = cli::measure(model.module(), model.propagate_shapes(inputs_)).macs;
    const MicroBatches& cut = model.module().micro_batches();
    const Shapes shapes =
        cut.size == 0 ? model.propagate_shapes(inputs_) : fx::propagate_shapes(model.module(), largest_part(cut));
    state.peak_bytes = cli::measure(model.module(), shapes).peak_bytes;
    return state;
  }

  /// What the graph is given at once.
  std::vector<TensorInfo> largest_part(const MicroBatches& cut) const {
    std::vector<TensorInfo> inputs = infos_of(inputs_);
    for (std::size_t i = 0; i < inputs.size() && i < cut.inputs.size(); ++i) {
      if (cut.size == 0 || cut.inputs[i].empty() || inputs[i].sizes[0] <= cut.size) continue;
      inputs[i].sizes[0] = cut.size;
      inputs[i].strides.clear();
    }
    return inputs;
  }

  /// Inputs that are no tensors matter to kernels alone.
  std::vector<TensorInfo> infos() const {
    return options_.target.empty() && !inputs_.values.empty() ? std::vector<TensorInfo>() : infos_of(inputs_);
  }

  void apply_rules() {
    std::optional<Progress> progress;
    done_ = fx::optimize(model_.module(), {.rules = options_.rules,
                                           .inputs = infos(),
                                           .target = options_.target,
                                           .concurrent = options_.concurrent,
                                           .micro_batches = !options_.whole_batches,
                                           .dtype = dtype_,
                                           .keep_sizes = options_.keep_sizes,
                                           .progress = [&](std::string_view rule) {
                                             progress.reset();
                                             progress.emplace(fmt::format("applying {}", rule));
                                           }});
    progress.reset();
    model_.module().recompile();
  }

  void time_both() {
    if (inputs_.empty()) return;
    const Progress progress("timing");
    const StateKeeper keeper(model_.module()), original_keeper(original_->module());
    const std::vector<c10::IValue> inputs = inputs_for(original_->graph(), inputs_);
    const std::vector<MeasuredTime> times = time_forwards({&original_->module(), &model_.module()}, inputs);
    before_.forward = times[0];
    after_.forward = times[1];
  }

  void verify() {
    const Progress progress("verifying");
    tolerance_ = original_->tolerance(inputs_);
    if (dtype_) tolerance_ = std::max(tolerance_, usual_tolerance(at::kBFloat16));
    difference_ = model_.difference(*original_, inputs_, kVerifyRounds);
  }

  static std::string change(double before, double after) {
    if (before <= 0) return "";
    const double percent = (after - before) / before * 100;
    return std::abs(percent) < 0.5 ? " (unchanged)" : fmt::format(" ({:+.0f} %)", percent);
  }

  void print_text(bool equal) const {
    std::string line = fmt::format("{} nodes, {} parameters", before_.nodes, human_count(before_.parameters));
    if (before_.macs) line += fmt::format(", {}MACs", human_count(*before_.macs));
    if (before_.peak_bytes) line += fmt::format(", peak activations {}", human_bytes(*before_.peak_bytes));
    row(options_.file, line);
    for (const RuleOutcome& outcome : done_.rules) print_outcome(outcome);
    if (done_.lowering_undone) {
      row("lowering undone",
          fmt::format("a forward takes {} lowered, and {} as it was", human_seconds(done_.lowering_undone->undone),
                      human_seconds(done_.lowering_undone->kept)));
    }
    if (done_.rounding_undone) {
      row("bfloat16 undone",
          fmt::format("a forward takes {} with it, and {} without", human_seconds(done_.rounding_undone->undone),
                      human_seconds(done_.rounding_undone->kept)));
    }
    for (const rules::HeldInput& held : done_.held)
      row("held to",
          fmt::format("{} {}, since {} went by that; --keep-sizes does without", held.input, held.form, held.rule));
    print_micro_batches();
    line = fmt::format("{} nodes", after_.nodes);
    if (after_.peak_bytes)
      line += fmt::format(", peak {}{}{}", human_bytes(*after_.peak_bytes), done_.is_cut() ? " of a micro-batch" : "",
                          change(*before_.peak_bytes, *after_.peak_bytes));
    if (after_.forward) {
      line += fmt::format(", forward {} -> {}{}, {} interleaved runs, threads: {}", to_string(*before_.forward),
                          to_string(*after_.forward), change(before_.forward->seconds, after_.forward->seconds),
                          after_.forward->runs, threads());
    }
    row("", line);
    if (difference_ && equal)
      row("verified",
          fmt::format("{} random inputs{}, two calls each, largest relative difference {:.1e}{}", kVerifyRounds,
                      model_.compared_other_batch() ? " and another batch" : "", *difference_,
                      dtype_ ? fmt::format(", of {:.0e} that bfloat16 may make", tolerance_) : ""));
    if (equal && !options_.output.empty()) row("saved", options_.output);
    const auto packed = std::ranges::count_if(model_.graph().nodes(), rules::uses_xnnpack);
    if (packed > 0) {
      row("needs",
          fmt::format("one call at a time for each loaded copy: XNNPACK keeps state at {} place{}; --concurrent "
                      "does without",
                      packed, packed == 1 ? "" : "s"));
      row("needs",
          "one thread where it runs (torch.set_num_threads(1)): XNNPACK has threads of its own, and several of both "
          "wait "
          "for each other");
    }
    const auto is_packed = [](const Node& node) {
      return node.target().view().find("prepacked::") != std::string::npos;
    };
    if (std::ranges::any_of(model_.graph().nodes(), is_packed))
      row("needs", "numbers: what NaN becomes in packed kernels is one (0, a bound of the activation, -inf)");
    if (dtype_) print_dtype();
    if (done_.applied() > 0)
      row("for inference", "gradients of the result may be others, or none; train the program as it was");
  }

  void print_micro_batches() const {
    if (!done_.without_micro_batches.empty())
      row("micro-batches", fmt::format("none: {}", done_.without_micro_batches));
    if (!done_.micro_batches) return;
    std::string times;
    for (const rules::Measured& each : done_.micro_batches->measured)
      times += fmt::format("{}{} {}", times.empty() ? "" : ", ", each.name,
                           to_string(MeasuredTime{.seconds = each.seconds, .spread = each.spread}));
    row("micro-batches", (done_.is_cut() ? "batches are cut: " : "none is faster: ") + times);
    if (done_.is_cut() && !options_.output.empty() && !options_.output.ends_with(".pt"))
      row("", "not in " + options_.output + ", which runs batches whole: TorchScript (.pt) says it");
  }

  void print_dtype() const {
    std::size_t rounded = 0;
    for (const RuleOutcome& outcome : done_.rules) {
      const bool measured = outcome.rule->group == rules::Group::precision && outcome.rule->rewrites;
      rounded += measured ? outcome.applied : 0;
    }
    if (rounded == 0) {
      if (!done_.rounding_undone) row("bfloat16", "nothing is faster in it on this processor: all is float32");
    } else {
      row("needs", fmt::format("a processor that multiplies bfloat16, at {} place{}; another may be slower or refuse",
                               rounded, rounded == 1 ? "" : "s"));
    }
  }

  /// How often each was the fastest.
  static std::string winners(const RuleOutcome& outcome) {
    std::vector<std::pair<std::string, std::size_t>> counts;
    for (const rules::Choice& choice : outcome.choices) {
      const std::string& name = choice.measured[choice.fastest].name;
      auto known = std::ranges::find(counts, name, &decltype(counts)::value_type::first);
      if (known == counts.end()) known = counts.insert(known, {name, 0});
      known->second += choice.places;
    }
    std::string line;
    for (const auto& [name, count] : counts) {
      const std::size_t slash = name.find('/');
      line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name.substr(slash == std::string::npos ? 0 : slash + 1),
                          count);
    }
    return line.empty() ? line : " (measured to be fastest: " + line + ")";
  }

  // Rules that found nothing are left out, unless they were asked for one by one.
  void print_outcome(const RuleOutcome& outcome) const {
    std::string line;
    for (const auto& [what, count] : outcome.dropped) {
      if (count) line += fmt::format("{}{} {}{} dropped", line.empty() ? "" : ", ", count, what, count == 1 ? "" : "s");
    }
    if (line.empty() && outcome.applied) line = fmt::format("{} applied{}", outcome.applied, winners(outcome));
    const bool asked = std::ranges::find(options_.rules, outcome.rule->name) != options_.rules.end();
    if (line.empty() && asked) line = "0 applied";
    if (line.empty() && outcome.refused.empty()) return;
    row(std::string(outcome.rule->name), line.empty() ? "not applied" : line);
    std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
    for (const Refusal& refusal : outcome.refused) {
      auto known = std::ranges::find(reasons, refusal.reason, &decltype(reasons)::value_type::first);
      if (known == reasons.end()) known = reasons.insert(known, {refusal.reason, {}});
      known->second.push_back(refusal.node);
    }
    for (const auto& [reason, nodes] : reasons) {
      row("", fmt::format("not at {}{}: {}", nodes[0],
                          nodes.size() == 1 ? "" : fmt::format(" and {} more", nodes.size() - 1), reason));
    }
  }

  static void row(const std::string& head, const std::string& text) { fmt::print("{:<20} {}\n", head, text); }

  static nlohmann::ordered_json to_json(const State& state) {
    nlohmann::ordered_json out = {
        {"nodes", state.nodes}, {"parameters", state.parameters}, {"parameter_bytes", state.parameter_bytes}};
    if (state.macs) out["macs"] = *state.macs;
    if (state.peak_bytes) out["peak_bytes"] = *state.peak_bytes;
    if (state.forward) {
      out["forward_seconds"] = state.forward->seconds;
      out["forward_spread"] = state.forward->spread;
    }
    return out;
  }

  static nlohmann::ordered_json to_json(const rules::Choice& choice) {
    nlohmann::ordered_json out = {{"at", choice.what},
                                  {"places", choice.places},
                                  {"fastest", choice.measured[choice.fastest].name},
                                  {"seconds", nlohmann::json::object()}};
    for (const rules::Measured& each : choice.measured)
      out["seconds"][each.name] = {{"median", each.seconds}, {"spread", each.spread}};
    return out;
  }

  void print_json(bool equal) const {
    nlohmann::ordered_json out = {{"file", options_.file},
                                  {"threads", threads()},
                                  {"dtype", dtype_ ? nlohmann::json(to_string(*dtype_)) : nlohmann::json()},
                                  {"before", to_json(before_)},
                                  {"after", to_json(after_)},
                                  {"rules", nlohmann::json::array()}};
    for (const RuleOutcome& outcome : done_.rules) {
      nlohmann::ordered_json rule = {
          {"name", outcome.rule->name},         {"tried", outcome.tried},
          {"matched", outcome.matched},         {"applied", outcome.applied},
          {"refused", nlohmann::json::array()}, {"seconds", std::chrono::duration<double>(outcome.time).count()}};
      for (const Refusal& refusal : outcome.refused)
        rule["refused"].push_back({{"node", refusal.node}, {"reason", refusal.reason}});
      for (const auto& [what, count] : outcome.dropped) rule["dropped"][what] = count;
      for (const rules::Choice& choice : outcome.choices) rule["measured"].push_back(to_json(choice));
      out["rules"].push_back(rule);
    }
    if (done_.lowering_undone) {
      out["lowering_undone"] = {{"plain_seconds", done_.lowering_undone->kept},
                                {"lowered_seconds", done_.lowering_undone->undone}};
    }
    if (done_.rounding_undone) {
      out["rounding_undone"] = {{"float32_seconds", done_.rounding_undone->kept},
                                {"bfloat16_seconds", done_.rounding_undone->undone}};
    }
    if (done_.micro_batches) out["micro_batches"] = to_json(*done_.micro_batches);
    for (const rules::HeldInput& held : done_.held)
      out["held"].push_back({{"input", held.input}, {"form", held.form}, {"rule", held.rule}});
    if (!done_.without_micro_batches.empty()) out["without_micro_batches"] = done_.without_micro_batches;
    if (difference_)
      out["verified"] = {
          {"rounds", kVerifyRounds}, {"difference", *difference_}, {"tolerance", tolerance_}, {"equal", equal}};
    if (equal && !options_.output.empty()) out["saved"] = options_.output;
    fmt::print("{}\n", out.dump(2));
  }

  const OptimizeOptions& options_;
  TorchModel& model_;
  std::unique_ptr<TorchModel> original_;
  InputOptions inputs_;
  std::optional<DType> dtype_;
  OptimizeReport done_;
  State before_, after_;
  double tolerance_ = 0;
  std::optional<double> difference_;
};

}  // namespace

int TorchBackend::optimize(const OptimizeOptions& options) {
  prepare_machine(options.threads);
  const std::unique_ptr<Model> model = load(options.file, options.inputs);
  return Optimization(options, dynamic_cast<TorchModel&>(*model)).run();
}

}  // namespace fx::cli
