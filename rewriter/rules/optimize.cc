#include <fxgraph/rewriter/rules/optimize.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fxgraph/module/module_info.h>
#include <fxgraph/rewriter/program/called_modules.h>
#include <fxgraph/rewriter/program/compiled_rules.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/rules/batch.h>
#include <fxgraph/rewriter/rules/free_sizes.h>
#include <fxgraph/rewriter/rules/operator_of.h>
#include <fxgraph/rewriter/rules/packed_checks.h>
#include <fxgraph/rewriter/rules/program_facts.h>
#include <fxgraph/rewriter/rules/whole_program.h>

namespace fx {

namespace {

using rules::Group;
using rules::OptimizeRule;

/// The rewrites of neighbouring rules as one set: made when they are first wanted, by whatever program.
const internal::CompiledRules& compiled(std::span<const OptimizeRule* const> neighbours) {
  static std::mutex mutex;
  static std::map<std::vector<const OptimizeRule*>, std::unique_ptr<const internal::CompiledRules>> known;
  const std::lock_guard lock(mutex);
  auto& made = known[{neighbours.begin(), neighbours.end()}];
  if (made) return *made;
  RuleSet set;
  for (const OptimizeRule* rule : neighbours) {
    for (const Rule& rewrite : rule->rules()) set.add(rewrite);
  }
  FindOptions find;
  Graph any;
  any.output(Argument());
  return *(made = std::make_unique<const internal::CompiledRules>(set, find, any));
}

class Optimizer {
 public:
  Optimizer(GraphModule& module, const OptimizeOptions& options) : Optimizer(module, options, select(options)) {}

  Optimizer(GraphModule& module, const OptimizeOptions& options, std::vector<const OptimizeRule*> selected)
      : module_(module), options_(options), selected_(std::move(selected)) {
    for (const OptimizeRule* rule : selected_) report_.rules.push_back({.rule = rule});
  }

  OptimizeReport run() {
    std::size_t first = 0;
    while (first < selected_.size() && selected_[first]->group == Group::decomposition) ++first;
    step_through(0, first);
    std::size_t last = first;
    while (last < selected_.size() && selected_[last]->group < Group::lowering) ++last;
    bool changed = first < last;
    while (changed && report_.rounds < options_.max_rounds) {
      // What the last round made is not in the table.
      if (report_.rounds++ > 0) facts_.find();
      changed = step_through(first, last);
    }
    if (changed) report_.stop = RewriteStop::max_rewrites;
    find_whether_cut();
    lower(last);
    module_.delete_all_unused_submodules();
    module_.delete_all_unused_attributes();
    module_.graph().lint();
    called_.fix_mode_where_one_is_gone("optimize");
    cut_batches();
    report_.shapes_worked_out = facts_.worked_out();
    report_.without_shapes = facts_.unknown_because();
    report_.held = facts_.held();
    return std::move(report_);
  }

 private:
  static std::vector<const OptimizeRule*> select(const OptimizeOptions& options) {
    if (options.dtype && *options.dtype != DType::bfloat16) {
      throw Error(ErrorKind::unsupported, "nothing is lowered to " + std::string(to_string(*options.dtype)) +
                                              "; there is bfloat16, and quantize() for whole numbers");
    }
    if (options.target.empty()) {
      if (options.dtype)
        throw Error(ErrorKind::invalid_argument, "a type needs a target, on which it is measured; give cpu");
      return rules::select(options.rules);
    }
    if (options.target != "cpu")
      throw Error(ErrorKind::not_found, "there is no target " + options.target + "; there is cpu");
    std::vector<std::string> names = options.rules;
    if (names.empty()) names.push_back("inference");
    names.insert(names.end(), {"inline-modules", "lowering"});
    if (options.dtype) names.emplace_back("precision");
    return rules::select(names);
  }

  /// Once, at the end: nothing is to look for operators that are packed calls by now.
  void lower(std::size_t from) {
    if (from == selected_.size()) return;
    const bool compares = !options_.target.empty() && facts_.known();
    const auto plain = compares ? copy_of_program() : nullptr;
    bool changed = false;
    for (std::size_t i = from; i < selected_.size(); ++i) {
      facts_.find();
      changed |= run_pass(i);
    }
    eliminate_dead_code(module_);
    rules::assert_packed_inputs(module_);
    if (changed && plain) {
      if (has_rounded()) {
        undo_rounding_if_slower(*plain, from);
      } else {
        undo_if_slower(*plain, from);
      }
    }
    if (changed && !report_.lowering_undone) drop_gradients();
  }

  /// Of the program before it is lowered, which computes the same of every batch in operators that are known.
  void find_whether_cut() {
    if (options_.target.empty() || !options_.micro_batches || !is_batch(options_.inputs)) return;
    const auto takes_default = [](const Node* input) { return !input->args().empty() && input->has_users(); };
    facts_.find();
    Shapes shapes;
    const auto across = facts_.across_samples(shapes);
    if (!facts_.known()) return;
    if (across) report_.without_micro_batches = across->node + ": " + across->reason;
    if (across || std::ranges::any_of(module_.graph().placeholders(), takes_default)) return;
    cut_.emplace();
    for (const Node* input : module_.graph().placeholders()) {
      const TensorInfo* known = std::as_const(shapes)[*input].tensor();
      MicroBatches::Sizes& sizes = cut_->inputs.emplace_back();
      if (!known || !input->has_users()) continue;
      for (const std::int64_t size : known->sizes) sizes.push_back(rules::is_free(size) ? -1 : size);
      if (!sizes.empty()) sizes[0] = -1;
    }
  }

  static bool is_batch(const std::vector<TensorInfo>& inputs) {
    return std::ranges::any_of(inputs, [](const TensorInfo& info) { return !info.sizes.empty() && info.sizes[0] > 1; });
  }

  /// Last: an edit would put an end to it.
  void cut_batches() {
    if (!cut_) return;
    tell("micro-batches");
    try {
      report_.micro_batches = rules::cut_into_micro_batches(module_, options_.inputs, *cut_);
    } catch (const std::exception& error) {
      report_.without_micro_batches = error.what();
    }
  }

  /// Kernels for inference refuse values that take part in gradients, and LibTorch has those on unless they are
  /// switched off. What a module that is called holds stays its own.
  void drop_gradients() {
    std::vector<std::string> called;
    for (const Node& node : module_.graph().nodes()) {
      if (node.is(Op::call_module)) called.push_back(rules::path_of(node) + ".");
    }
    const auto is_in_called = [&](const std::string& path) {
      return std::ranges::any_of(called, [&](const std::string& prefix) { return path.starts_with(prefix); });
    };
    std::map<const c10::TensorImpl*, at::Tensor> dropped;  // tied ones stay tied
    for (const Node& node : module_.graph().nodes()) {
      if (!node.is(Op::get_attr)) continue;
      const std::string path = rules::path_of(node);
      if (!module_.is_parameter(path) || is_in_called(path)) continue;
      const at::Tensor parameter = module_.attribute(path);
      if (!parameter.requires_grad()) continue;
      at::Tensor& alone = dropped[parameter.unsafeGetTensorImpl()];
      if (!alone.defined()) alone = parameter.detach();
      module_.set_parameter(path, alone);
    }
  }

  /// Another graph over the same tensors.
  std::shared_ptr<GraphModule> copy_of_program() {
    return std::make_shared<GraphModule>(module_, module_.graph().clone());
  }

  bool has_rounded() const {
    return std::ranges::any_of(report_.rules, [](const RuleOutcome& outcome) {
      return outcome.rule->group == Group::precision && outcome.applied > 0;
    });
  }

  /// `plain` is the program before the rules from `from` on, over the same tensors.
  void undo_if_slower(GraphModule& plain, std::size_t from) {
    tell("the whole");
    report_.lowering_undone = rules::slower_in_turn(plain, module_, options_.inputs, options_.max_slowdown);
    if (!report_.lowering_undone) return;
    for (std::size_t i = from; i < selected_.size(); ++i) report_.rules[i].applied = 0;
    module_.set_graph(plain.graph().clone());
  }

  /// The same, beside what lowering alone makes of it.
  void undo_rounding_if_slower(GraphModule& plain, std::size_t from) {
    const auto rounded = copy_of_program();
    std::vector<const OptimizeRule*> others(selected_.begin() + static_cast<std::ptrdiff_t>(from), selected_.end());
    std::erase_if(others, [](const OptimizeRule* rule) { return rule->group == Group::precision; });
    module_.set_graph(plain.graph().clone());
    Optimizer alone(module_, options_, others);
    alone.lower(0);
    tell("the whole");
    report_.rounding_undone = rules::slower_in_turn(module_, *rounded, options_.inputs, options_.max_rounded);
    if (!report_.rounding_undone) return module_.set_graph(rounded->graph().clone());
    report_.lowering_undone = alone.report_.lowering_undone;
    for (RuleOutcome& outcome : report_.rules) {
      const auto found = std::ranges::find(alone.report_.rules, outcome.rule, &RuleOutcome::rule);
      if (found != alone.report_.rules.end()) outcome = std::move(*found);
      if (outcome.rule->group == Group::precision) outcome.applied = 0;
    }
  }

  /// Applies the rules [from, to) in order; neighbouring rewrites together.
  bool step_through(std::size_t from, std::size_t to) {
    bool changed = false;
    while (from < to) {
      if (selected_[from]->pass) {
        changed |= run_pass(from++);
        continue;
      }
      std::size_t end = from;
      while (end < to && !selected_[end]->pass) ++end;
      changed |= run_rewrites(from, end);
      from = end;
    }
    return changed;
  }

  bool run_pass(std::size_t i) {
    tell(selected_[i]->name);
    const auto start = std::chrono::steady_clock::now();
    rules::RuleContext program{module_, *selected_[i], facts_, options_.concurrent};
    rules::PassResult outcome = selected_[i]->pass(program);
    facts_.assert_required();
    RuleOutcome& sum = report_.rules[i];
    sum.time += std::chrono::steady_clock::now() - start;
    sum.applied += outcome.applied;
    sum.refused = std::move(outcome.refused);
    sum.choices.insert(sum.choices.end(), outcome.choices.begin(), outcome.choices.end());
    std::size_t dropped = 0;
    for (std::size_t k = 0; k < outcome.dropped.size(); ++k) {
      if (sum.dropped.size() <= k) sum.dropped.push_back({outcome.dropped[k].first, 0});
      sum.dropped[k].second += outcome.dropped[k].second;
      dropped += outcome.dropped[k].second;
    }
    // These run once: those that follow must know what this one made.
    if (outcome.applied > 0 && selected_[i]->group == Group::decomposition) facts_.find();
    return outcome.applied + dropped > 0;
  }

  bool run_rewrites(std::size_t from, std::size_t to) {
    tell(selected_[from]->name);
    const internal::CompiledRules& set = compiled({selected_.data() + from, to - from});
    const RewriteReport done = internal::rewrite_to_fixed_point(module_, set, facts_.driver());
    facts_.assert_required();
    std::size_t k = 0;
    for (std::size_t i = from; i < to; ++i) {
      RuleOutcome& sum = report_.rules[i];
      sum.refused.clear();
      for (const std::size_t end = k + selected_[i]->rules().size(); k < end; ++k) {
        sum.tried += done.rules[k].tried;
        sum.matched += done.rules[k].matched;
        sum.applied += done.rules[k].applied;
        sum.time += done.rules[k].time;
        for (const Refusal& refusal : done.refused) {
          if (refusal.rule == set.rule(k).name) sum.refused.push_back(refusal);
        }
      }
    }
    if (done.stop >= RewriteStop::max_rewrites) report_.stop = done.stop;
    return done.changed();
  }

  void tell(std::string_view rule) const {
    if (options_.progress) options_.progress(rule);
  }

  GraphModule& module_;
  const OptimizeOptions& options_;
  std::vector<const OptimizeRule*> selected_;
  internal::CalledModules called_{module_};
  rules::ProgramFacts facts_{module_, options_.inputs, options_.keep_sizes};
  std::optional<MicroBatches> cut_;  // where a batch may be
  OptimizeReport report_;
};

}  // namespace

std::size_t OptimizeReport::applied() const {
  std::size_t sum = 0;
  for (const RuleOutcome& rule : rules) sum += rule.applied;
  return sum;
}

OptimizeReport optimize(GraphModule& module, const OptimizeOptions& options) {
  return Optimizer(module, options).run();
}

}  // namespace fx
