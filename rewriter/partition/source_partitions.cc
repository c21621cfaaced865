#include <fxgraph/rewriter/partition/source_partitions.h>

#include <algorithm>
#include <map>

#include <fxgraph/ir/node_map.h>

namespace fx {

namespace {

struct Origin {
  std::string name;
  std::string source;
};

std::string type_of(std::string_view path, const SourceOptions& options) {
  const std::string type = options.modules.type_of(path);
  return type.empty() ? std::string(path) : type;
}

Origin origin_of(const Node& node, const SourceOptions& options) {
  const Meta* meta = node.find_meta();
  const SourceFnStack* stack = meta ? meta->get<SourceFnStack>(meta_key::kSourceFn) : nullptr;
  if (stack && !stack->empty()) return {stack->back().first, stack->back().second};
  if (node.is(Op::call_module)) return {node.name(), type_of(node.target().view(), options)};
  const std::string* path = meta ? meta->get<std::string>(meta_key::kModuleStack) : nullptr;
  if (path && !path->empty()) return {*path, type_of(*path, options)};
  return {node.name(), node.target().str()};
}

bool is_wanted(const TargetSet& wanted, const std::string& source) {
  const std::size_t last = source.find_last_of(".:");
  return wanted.contains(Symbol(source)) ||
         (last != std::string::npos && wanted.contains(Symbol(source.substr(last + 1))));
}

void add_new(std::vector<Node*>& to, Node& node) {
  if (std::find(to.begin(), to.end(), &node) == to.end()) to.push_back(&node);
}

}  // namespace

std::vector<SourcePartition> source_partitions(const Graph& graph, const TargetSet& wanted,
                                               const SourceOptions& options) {
  std::vector<SourcePartition> partitions;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  NodeMap<std::size_t> owner(graph, 0);  // 1 + position of the partition
  for (Node& node : const_cast<Graph&>(graph).nodes()) {
    const bool call = node.is(Op::call_function) || node.is(Op::call_method) || node.is(Op::call_module);
    if (!call || (options.filter && !options.filter(node))) continue;
    Origin origin = origin_of(node, options);
    if (!is_wanted(wanted, origin.source)) continue;
    const auto [at, fresh] = known.emplace(std::pair(origin.name, origin.source), partitions.size());
    if (fresh) partitions.push_back({std::move(origin.name), std::move(origin.source), {}, {}, {}, {}});
    partitions[at->second].nodes.push_back(&node);
    owner[node] = at->second + 1;
  }
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    SourcePartition& partition = partitions[i];
    for (Node* node : partition.nodes) {
      node->for_each_input([&](Node& input) {
        if (owner[input] != i + 1) add_new(input.is(Op::get_attr) ? partition.params : partition.input_nodes, input);
      });
      const bool used = std::any_of(node->users().begin(), node->users().end(),
                                    [&](const Node& user) { return owner[user] != i + 1; });
      if (used) partition.output_nodes.push_back(node);
    }
  }
  return partitions;
}

bool are_connected(const SourcePartition& a, const SourcePartition& b) {
  return std::any_of(b.input_nodes.begin(), b.input_nodes.end(), [&](const Node* input) {
    return std::find(a.output_nodes.begin(), a.output_nodes.end(), input) != a.output_nodes.end();
  });
}

}  // namespace fx
