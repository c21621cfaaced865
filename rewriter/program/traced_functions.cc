#include <fxgraph/rewriter/program/traced_functions.h>

#include <map>
#include <mutex>

#include <fxgraph/matchers/pattern_access.h>
#include <fxgraph/rewriter/replacement_plan.h>

namespace fx::internal {

namespace {

Graph without_attributes(Trace trace, const char* what) {
  if (!trace.attributes.empty()) {
    throw Error(ErrorKind::unsupported,
                std::string(what) + ": the function uses a tensor from outside (" + trace.attributes.front().path +
                    "); make it a parameter, or trace the function with symbolic_trace and pass that module");
  }
  return std::move(trace.graph);
}

/// Traces the function at the literals of each match; equal literals share a trace.
class TracedReplacement {
 public:
  explicit TracedReplacement(PatternFunction function) : function_(std::move(function)) {}

  std::vector<Argument> operator()(const Match& match, Rewriter& rewriter) {
    const PatternData& pattern = PatternAccess::of(match);
    const std::vector<Parameter>& parameters = function_.parameters();
    if (pattern.inputs.size() != parameters.size()) {
      throw Error(ErrorKind::invalid_argument, "the pattern takes " + std::to_string(pattern.inputs.size()) +
                                                   " inputs, the replacement " + std::to_string(parameters.size()));
    }
    std::vector<Argument> literals;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].is_literal()) literals.push_back(match.values()[pattern.inputs[i]]);
    }
    const ReplacementPlan plan(pattern, graph_at(literals, pattern));
    std::vector<TemplateNode> nodes = plan.nodes();
    std::vector<Node*> made;
    std::vector<Argument> results;
    plan.build(match, rewriter, nodes, made, results);
    return results;
  }

 private:
  Replacement graph_at(const std::vector<Argument>& literals, const PatternData& pattern) {
    std::string key;
    for (const Argument& literal : literals) key += to_string(literal) + ",";
    const std::lock_guard lock(mutex_);
    const auto known = graphs_.find(key);
    if (known != graphs_.end()) return known->second;
    require_bound(literals, pattern);
    return graphs_.emplace(key, Replacement(without_attributes(function_.instance(literals), "replacement")))
        .first->second;
  }

  /// Asked once for each set of literals: it takes two traces.
  void require_bound(const std::vector<Argument>& literals, const PatternData& pattern) const {
    for (std::size_t i = 0; i < pattern.inputs.size(); ++i) {
      if (!function_.parameters()[i].is_literal() || is_bound(pattern, pattern.inputs[i])) continue;
      if (!function_.depends_on(i, literals)) continue;
      throw Error(ErrorKind::invalid_argument,
                  "the replacement takes '" + pattern.nodes[pattern.inputs[i]].name.str() +
                      "', a literal that the pattern does not use, so that no match has a value for it");
    }
  }

  const PatternFunction function_;
  std::mutex mutex_;
  std::map<std::string, Replacement> graphs_;
};

}  // namespace

Graph pattern_from(const PatternFunction& function) { return without_attributes(function.pattern(), "pattern"); }

Replacement replacement_from(PatternFunction function) {
  if (function.num_literals() == 0) return Replacement(pattern_from(function));
  const auto traced = std::make_shared<TracedReplacement>(std::move(function));
  return Replacement([traced](const Match& match, Rewriter& rewriter) { return (*traced)(match, rewriter); });
}

}  // namespace fx::internal
