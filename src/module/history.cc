#include <fxgraph/module/history.h>

#include <algorithm>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/module/module_info.h>

namespace fx::internal {

void refuse_history(const std::string& path) {
  throw Error(
      ErrorKind::unsupported,
      "the tensor '" + path +
          "' was computed of one that is trained before the program runs; compute it in forward, or detach() it");
}

void refuse_history(const GraphModule& module, const Graph& graph) {
  std::vector<const Node*> with_history;
  for (const Node* node : graph.find_nodes(Op::get_attr)) {
    const at::Tensor tensor = module.find_attribute(node->target().str());
    if (tensor.defined() && has_history(tensor)) with_history.push_back(node);
  }
  if (with_history.empty()) return;
  const Effects effects(graph, {.modules = module_info(module)});
  for (const Node* node : with_history) {
    const auto sets = effects.sets(*node);
    const bool is_written =
        std::any_of(sets.begin(), sets.end(), [&](Effects::Set set) { return !effects.writers(set).empty(); });
    if (!is_written) refuse_history(node->target().str());
  }
}

}  // namespace fx::internal
