#include <fxgraph/ir/naming.h>

#include <vector>

#include <fxgraph/ir/graph_storage.h>

namespace fx {

NodeName name_after(Symbol target) {
  const Symbol stem = name_stem(target);
  const std::string_view text = stem.view();
  const std::size_t last = text.find_last_not_of("0123456789");  // `relu6` has no number of its own, `view_1` has
  return last + 1 < text.size() && last != text.npos && text[last] == '_' ? split_name(text) : NodeName{stem};
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
