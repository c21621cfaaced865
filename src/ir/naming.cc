#include <fxgraph/ir/naming.h>

#include <vector>

#include <fxgraph/ir/graph_storage.h>

namespace fx {

// A stem is never empty, so that nothing remembered is zero.
NodeName name_after(Symbol target) {
  auto& cache = internal::symbol_entry(target).node_name;
  std::uint64_t known = cache.load(std::memory_order_acquire);
  if (known == 0) {
    const NodeName name = split_name(name_stem(target).view());
    known = std::uint64_t{name.stem.id()} << 32 | name.number;
    cache.store(known, std::memory_order_release);
  }
  return {Symbol::from_id(static_cast<std::uint32_t>(known >> 32)), static_cast<std::uint32_t>(known)};
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
