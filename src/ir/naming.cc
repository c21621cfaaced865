#include <fxgraph/ir/naming.h>

#include <vector>

#include <fxgraph/ir/graph_storage.h>

namespace fx {

NodeName name_after(Symbol target) {
  const Symbol stem = name_stem(target);
  const std::string_view text = stem.view();
  return text.empty() || text.back() < '0' || text.back() > '9' ? NodeName{stem} : split_name(text);
}

void name_in_order(Graph& graph, const std::function<bool(const Node&)>& keeps) {
  internal::GraphStorage& storage = internal::GraphStorage::of(graph);
  storage.names = Namespace();
  std::vector<Node*> others;
  for (Node& node : graph.nodes()) {
    if (keeps(node)) {
      storage.names.create(storage.name(node));
    } else {
      others.push_back(&node);
    }
  }
  for (Node* node : others) storage.name(*node) = storage.names.create(name_after(node->target()));
  ++storage.revision;
}

}  // namespace fx
