#include <fxgraph/rewriter/program/replace_pattern.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fxgraph/module/module_info.h>
#include <fxgraph/rewriter/program/called_modules.h>
#include <fxgraph/rewriter/program/compiled_rules.h>

namespace fx {

namespace {

/// What a caller does not say about modules, the program does.
template <typename Options>
Options completed(const GraphModule& module, const Options& options) {
  Options complete = options;
  complete.find.modules = options.find.modules.or_else(module_info(module));
  return complete;
}

/// What was written out of modules is what they do in evaluation.
template <typename Rewrite>
RewriteReport keeping_mode(GraphModule& module, std::string_view who, Rewrite&& rewrite) {
  internal::CalledModules called(module);
  RewriteReport report = rewrite();
  if (!report.written_out.empty()) called.fix_mode_where_one_is_gone(who);
  return report;
}

/// Gives what a graph names other paths: those of a module that it moves to.
class Adoption {
 public:
  Adoption(GraphModule& module, const GraphModule& source) : module_(module), source_(source) {}

  /// The source's graph with its new paths.
  Graph rename() {
    Graph graph = source_.graph().clone();
    for (Node& node : graph.nodes()) {
      if (!node.is(Op::get_attr) && !node.is(Op::call_module)) continue;
      node.set_target(new_path(node.target(), node.is(Op::call_module)));
    }
    return graph;
  }

  void install() {
    for (const auto& [path, place] : moved_) {
      if (place.is_module) {
        module_.add_submodule(place.path, source_.submodule(path.str()));
      } else if (source_.is_parameter(path.str())) {
        module_.set_parameter(place.path, source_.attribute(path.str()));
      } else {
        module_.set_buffer(place.path, source_.attribute(path.str()));
      }
    }
  }

 private:
  struct Place {
    std::string path;
    bool is_module;
  };

  std::string new_path(Symbol path, bool is_module) {
    const auto [known, fresh_here] = known_.emplace(path, moved_.size());
    if (!fresh_here) return moved_[known->second].second.path;
    // Dots would put it among modules of that name which are there already.
    std::string stem = path.str();
    for (char& c : stem) c = c == '.' ? '_' : c;
    std::string fresh = module_.fresh_path(stem);
    for (int i = 1; !taken_.insert(fresh).second; ++i) fresh = module_.fresh_path(stem + "_" + std::to_string(i));
    moved_.push_back({path, {fresh, is_module}});
    return fresh;
  }

  GraphModule& module_;
  const GraphModule& source_;
  std::vector<std::pair<Symbol, Place>> moved_;
  std::unordered_map<Symbol, std::size_t> known_;  // path -> position in moved_
  std::unordered_set<std::string> taken_;
};

}  // namespace

RewriteReport replace_pattern(GraphModule& module, const Pattern& pattern, const Replacement& replacement,
                              const ReplaceOptions& options) {
  return keeping_mode(module, options.name, [&] {
    return replace_pattern(module.graph(), pattern, replacement, completed(module, options));
  });
}

RewriteReport replace_pattern(GraphModule& module, const Pattern& pattern, const GraphModule& replacement,
                              const ReplaceOptions& options) {
  Adoption adoption(module, replacement);
  const Replacement renamed(adoption.rename());
  RewriteReport report = replace_pattern(module, pattern, renamed, options);
  if (report.changed() && !options.dry_run) {
    adoption.install();
    module.delete_all_unused_submodules();
  }
  return report;
}

std::vector<ReplacedPattern> replace_pattern_with_filters(GraphModule& module, const Pattern& pattern,
                                                          const Replacement& replacement,
                                                          std::vector<MatchFilter> filters,
                                                          const ReplaceOptions& options, RewriteReport* report) {
  RewriteReport own;
  RewriteReport& done = report ? *report : own;
  std::vector<ReplacedPattern> replaced;
  keeping_mode(module, options.name, [&] {
    replaced = replace_pattern_with_filters(module.graph(), pattern, replacement, std::move(filters),
                                            completed(module, options), &done);
    return done;
  });
  return replaced;
}

RewriteReport rewrite_once(GraphModule& module, const RuleSet& rules, const DriverOptions& options) {
  return keeping_mode(module, "rewrite_once",
                      [&] { return rewrite_once(module.graph(), rules, completed(module, options)); });
}

RewriteReport rewrite_to_fixed_point(GraphModule& module, const RuleSet& rules, const DriverOptions& options) {
  return keeping_mode(module, "rewrite_to_fixed_point",
                      [&] { return rewrite_to_fixed_point(module.graph(), rules, completed(module, options)); });
}

RewriteReport internal::rewrite_to_fixed_point(GraphModule& module, const CompiledRules& rules,
                                               const DriverOptions& options) {
  Rewriter rewriter(module.graph());
  return rewrite_to_fixed_point(rewriter, rules, completed(module, options));
}

}  // namespace fx
