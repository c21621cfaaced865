#include <fxgraph/rewriter/program/passes.h>

#include <fxgraph/module/module_info.h>

namespace fx {

namespace {

FindOptions completed(const GraphModule& module, FindOptions options) {
  options.modules = options.modules.or_else(module_info(module));
  return options;
}

}  // namespace

std::vector<Match> find(const GraphModule& module, const Pattern& pattern, const FindOptions& options) {
  return find(module.graph(), pattern, completed(module, options));
}

bool matches(const GraphModule& module, const Pattern& pattern, const Node& node, const FindOptions& options) {
  return matches(module.graph(), pattern, node, completed(module, options));
}

std::size_t eliminate_common_subexpressions(GraphModule& module, const std::function<bool(const Node&)>& banned) {
  return eliminate_common_subexpressions(module.graph(), module_info(module), banned);
}

}  // namespace fx
