#include <fxgraph/rewriter/rules/optimize.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fxgraph/module/module_effects.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/nn/leaf_module.h>
#include <fxgraph/nn/module_tree.h>
#include <fxgraph/nn/nn_modules.h>
#include <fxgraph/rewriter/compiled_rules.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/rules/free_sizes.h>
#include <fxgraph/rewriter/rules/packed_checks.h>
#include <fxgraph/rewriter/rules/spelling.h>
#include <fxgraph/rewriter/rules/weights.h>
#include <fxgraph/rewriter/rules/whole_program.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/print.h>

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
    for (const Rule& rewrite : rule->rewrites()) set.add(rewrite);
  }
  FindOptions find;
  find.normalize = true;
  Graph any;
  any.output(Argument());
  return *(made = std::make_unique<const internal::CompiledRules>(set, find, any));
}

/// True when train() and eval() change what the module alone, without those below it, computes.
bool follows_mode_itself(torch::nn::Module& module) {
  const auto text_of = [](const Graph* body) { return body ? print_graph(*body) : std::string(); };
  if (dynamic_cast<const GraphModule*>(&module) || dynamic_cast<const Holder*>(&module)) return false;
  if (const auto* leaf = dynamic_cast<const LeafModule*>(&module)) {
    const std::string training = text_of(leaf->body_in_mode(true).get());
    return training.empty() || training != text_of(leaf->body_in_mode(false).get());
  }
  const ModuleType* type = find_module_type(module);
  if (!type || !type->body) return true;  // nobody knows
  const bool mode = module.is_training();
  const auto text_in = [&](bool training) {
    set_own_mode(module, training);
    const std::optional<Graph> body = type->body(module);
    return text_of(body ? &*body : nullptr);
  };
  const bool follows = text_in(true) != text_in(false);
  set_own_mode(module, mode);
  return follows;
}

bool follows_mode(torch::nn::Module& module) {
  if (!dynamic_cast<const GraphModule*>(&module)) return follows_mode_itself(module);
  return std::ranges::any_of(module.modules(/*include_self=*/false),
                             [](const auto& below) { return follows_mode_itself(*below); });
}

class Optimizer {
 public:
  Optimizer(GraphModule& module, const OptimizeOptions& options) : Optimizer(module, options, select(options)) {}

  Optimizer(GraphModule& module, const OptimizeOptions& options, std::vector<const OptimizeRule*> selected)
      : module_(module), options_(options), selected_(std::move(selected)) {
    for (const OptimizeRule* rule : selected_) {
      report_.rules.push_back({.rule = rule});
      reads_sizes_ |= rule->reads_sizes;
    }
    for (const Node& node : module_.graph().nodes()) {
      if (!node.is(Op::call_module)) continue;
      Called& called = called_[rules::path_of(node)];
      if (called.times++ == 0) called.module = module_.find_submodule(rules::path_of(node));
    }
    find_shapes();
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
      if (report_.rounds++ > 0) find_shapes();
      changed = step_through(first, last);
    }
    if (changed) report_.stop = RewriteStop::max_rewrites;
    lower(last);
    module_.delete_all_unused_submodules();
    module_.delete_all_unused_attributes();
    module_.graph().lint();
    hold_mode();
    return std::move(report_);
  }

 private:
  /// What stands for a module in evaluation does not follow when the mode is switched.
  void hold_mode() {
    if (!module_.fixed_mode().empty()) return;
    for (const Node& node : module_.graph().nodes()) {
      if (node.is(Op::call_module)) --called_[rules::path_of(node)].times;
    }
    for (const auto& [path, called] : called_) {
      if (called.times <= 0 || !called.module || !follows_mode(*called.module)) continue;
      module_.fix_mode("optimize has put what " + path + " does in " +
                       (module_.is_training() ? "training" : "evaluation") +
                       " mode in its place; switch the mode of the module before it is optimized");
      return;
    }
  }

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
    std::vector<const OptimizeRule*> selected = rules::select(names);
    const std::string_view other = options.concurrent ? "lower-convolution" : "lower-convolution-concurrent";
    std::erase_if(selected, [&](const OptimizeRule* rule) { return rule->name == other; });
    return selected;
  }

  /// Once, at the end: nothing is to look for operators that are packed calls by now.
  void lower(std::size_t from) {
    if (from == selected_.size()) return;
    find_shapes(false);
    if (!options_.inputs.empty() && report_.without_shapes.empty()) free_sizes_.find_samples(must_run_);
    const bool compares = !options_.target.empty() && !options_.inputs.empty() && report_.without_shapes.empty();
    const auto plain = compares ? copy_of_program() : nullptr;
    bool changed = false;
    for (std::size_t i = from; i < selected_.size(); ++i) {
      find_shapes(selected_[i]->reads_sizes);  // to be measured, a place needs those of the example
      changed |= run_pass(i);
    }
    eliminate_dead_code(module_.graph(), module_effects(module_));
    rules::assert_packed_inputs(module_);
    if (!changed || !plain) return;
    if (has_rounded()) {
      undo_rounding_if_slower(*plain, from);
    } else {
      undo_if_slower(*plain, from);
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
    rules::RuleContext program{module_, selected_[i]->name, shapes_, &free_sizes_};
    rules::PassResult outcome = selected_[i]->pass(program);
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
    if (outcome.applied > 0 && selected_[i]->group == Group::decomposition) find_shapes();
    return outcome.applied + dropped > 0;
  }

  bool run_rewrites(std::size_t from, std::size_t to) {
    tell(selected_[from]->name);
    const internal::CompiledRules& set = compiled({selected_.data() + from, to - from});
    DriverOptions options;
    options.find.normalize = true;
    options.shapes = &shapes_;
    const RewriteReport done = rewrite_to_fixed_point(module_, set, options);
    std::size_t k = 0;
    for (std::size_t i = from; i < to; ++i) {
      RuleOutcome& sum = report_.rules[i];
      sum.refused.clear();
      for (const std::size_t end = k + selected_[i]->rewrites().size(); k < end; ++k) {
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

  /// Works out the shapes of what is new since the last time, as far as they hold.
  void find_shapes() { find_shapes(reads_sizes_ && any_reader_of_sizes()); }

  /// `any_size`: sizes that differ from call to call are hidden.
  void find_shapes(bool any_size) {
    if (options_.inputs.empty()) return;
    propagate();
    if (!report_.without_shapes.empty()) return;
    if (any_size) {
      if (must_run_) {
        free_sizes_.mark_all(shapes_);
      } else {
        free_sizes_.mark(shapes_);
      }
    }
    rules::forget_branches(module_.graph(), shapes_);
    forget_changing_forms();
  }

  /// True when the graph has an operator at which a rule that reads sizes could start.
  bool any_reader_of_sizes() const {
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
                                                                  "scaled_dot_product_attention",
                                                                  "_scaled_dot_product_attention",
                                                                  "softmax",
                                                                  "squeeze",
                                                                  "unsqueeze",
                                                                  "view"};
    for (const Node& node : module_.graph().nodes()) {
      if (!node.is(Op::call_function) && !node.is(Op::call_method)) continue;
      if (kReaders.contains(rules::last_name(node))) return true;
    }
    return false;
  }

  /// What is known of a value's form is no use where the program changes it in place; of what is computed from a weight
  /// either, whose form the next call finds changed.
  void forget_changing_forms() {
    const Graph& graph = module_.graph();
    const auto changes = [&](const Node& node) { return effects_of(node).restructures; };
    if (std::none_of(graph.nodes().begin(), graph.nodes().end(), changes)) return;
    const rules::ProgramEffects effects(module_);
    NodeMap<bool> carried(graph, false);
    for (const Node& node : graph.nodes()) {
      const bool changes_form = effects.is_restructured(effects.alias_class(node));
      bool from_state = changes_form && node.is(Op::get_attr);
      node.for_each_input([&](const Node& input) { from_state |= carried[input]; });
      carried[node] = from_state;
      if (changes_form || from_state) shapes_[node] = {};
    }
  }

  void propagate() {
    const std::size_t nodes = module_.graph().size();
    if (!must_run_) {
      try {
        if (report_.shapes_worked_out == 0) {
          shape_prop_.propagate(options_.inputs);
          report_.shapes_worked_out = nodes;
        } else {
          report_.shapes_worked_out += shape_prop_.update();
        }
        shapes_ = shape_prop_.shapes();
        return;
      } catch (const std::exception&) {
        must_run_ = true;  // it looks at its numbers, to check them for instance
      }
    }
    const at::NoGradGuard no_grad;
    const StateKeeper keeper(module_);
    try {
      shapes_ = propagate_shapes(module_, options_.inputs);
      report_.shapes_worked_out += nodes;
      report_.without_shapes.clear();
    } catch (const std::exception& error) {
      shapes_ = {};
      report_.without_shapes = error.what();
    }
  }

  void tell(std::string_view rule) const {
    if (options_.progress) options_.progress(rule);
  }

  GraphModule& module_;
  const OptimizeOptions& options_;
  std::vector<const OptimizeRule*> selected_;
  struct Called {
    int times = 0;  ///< before, then those that are gone
    std::shared_ptr<torch::nn::Module> module;
  };
  std::map<std::string, Called> called_;
  ShapeProp shape_prop_{module_};
  rules::FreeSizes free_sizes_{module_, options_.inputs};
  bool reads_sizes_ = false;
  bool must_run_ = false;  // meta tensors do not do for this program
  Shapes shapes_;
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
