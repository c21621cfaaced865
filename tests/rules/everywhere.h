// Rules whose places are measured, applied wherever they fit: what is fastest on one machine is not on the next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/rules/rules.h>

namespace fx::testing {

/// Applies the rewrites of these groups whose names have one of `parts`, until none fits.
inline void rewrite_everywhere(GraphModule& module, const std::vector<std::string>& groups,
                               const std::vector<std::string_view>& parts, Shapes shapes) {
  RuleSet set;
  for (const rules::OptimizeRule* rule : rules::select(groups)) {
    for (const Rule& rewrite : rule->rules()) {
      for (const std::string_view part : parts) {
        if (rewrite.name.find(part) != std::string::npos) set.add(rewrite);
      }
    }
  }
  rewrite_to_fixed_point(module, set, {.shapes = &shapes});
}

}  // namespace fx::testing
