// Programs rewritten by rules that were prepared once. Internal to rewriter/.
#pragma once

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/compiled_rules.h>

namespace fx::internal {

/// rewrite_to_fixed_point on a program, for rules that were prepared with `options.find`.
RewriteReport rewrite_to_fixed_point(GraphModule& module, const CompiledRules& rules,
                                     const DriverOptions& options = {});

}  // namespace fx::internal
