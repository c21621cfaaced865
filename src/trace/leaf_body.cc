#include <fxgraph/trace/leaf_body.h>

#include <string>
#include <unordered_map>

namespace fx::internal {

std::optional<Graph> body_of_leaf(const Graph& alone, const Session& session, const torch::nn::Module& leaf) {
  std::unordered_map<Symbol, std::string> inner_path;  // look-up only
  for (const auto& tensors : {leaf.named_parameters(), leaf.named_buffers()}) {
    for (const auto& item : tensors) {
      if (const std::string* path = session.attribute_path(item.value())) inner_path.emplace(*path, item.key());
    }
  }
  Graph body = alone.clone();
  for (Node& node : body.nodes()) {
    if (!node.is(Op::get_attr)) continue;
    const auto path = inner_path.find(node.target());
    if (path == inner_path.end()) return std::nullopt;
    node.set_target(path->second);
  }
  return body;
}

}  // namespace fx::internal
