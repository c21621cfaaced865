// replace_pattern on a program with its weights.
//
//   fx::RewriteReport report = fx::replace_pattern(*gm, pattern, replacement);
//
// The same as on a bare graph (rewriter/replace_pattern.h), and beside it: effects of called modules are known, modules
// can be matched by type, and a replacement may be a module itself, whose parameters and submodules come along.
#pragma once

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/driver.h>
#include <fxgraph/rewriter/program/traced_functions.h>
#include <fxgraph/rewriter/replace_pattern.h>

namespace fx {

/// Rewrites every match, see replace_pattern on a graph.
RewriteReport replace_pattern(GraphModule& module, const Pattern& pattern, const Replacement& replacement,
                              const ReplaceOptions& options = {});

/// The replacement computes what `replacement` does, with its own tensors and modules: they are put into `module` under
/// free paths if at least one match is rewritten, shared by all matches, and submodules that nothing uses any more go,
/// as in torch.fx. Throws as above; then nothing is added.
RewriteReport replace_pattern(GraphModule& module, const Pattern& pattern, const GraphModule& replacement,
                              const ReplaceOptions& options = {});

/// See replace_pattern_with_filters on a graph.
std::vector<ReplacedPattern> replace_pattern_with_filters(GraphModule& module, const Pattern& pattern,
                                                          const Replacement& replacement,
                                                          std::vector<MatchFilter> filters,
                                                          const ReplaceOptions& options = {},
                                                          RewriteReport* report = nullptr);

/// The drivers of rewriter/driver.h on a program.
RewriteReport rewrite_once(GraphModule& module, const RuleSet& rules, const DriverOptions& options = {});
/// The same, again and again; see rewrite_to_fixed_point on a graph.
RewriteReport rewrite_to_fixed_point(GraphModule& module, const RuleSet& rules, const DriverOptions& options = {});

}  // namespace fx
