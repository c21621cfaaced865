// fxgraph diff: which nodes were added, removed or changed between two programs, by name.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include <fxgraph/cli/commands.h>
#include <fxgraph/cli/options.h>
#include <fxgraph/text/print.h>

namespace fx::cli {

namespace {

// The node's line without the user count, which changes with the users and not with the node.
std::string essence(const Node& node) {
  std::string line = format_node(node);
  const std::size_t from = line.find(" [num_users=");
  if (!node.is(Op::output) && from != std::string::npos) line.erase(from, line.find(']', from) - from + 1);
  return line;
}

struct Difference {
  std::string kind, name, before, after;
};

std::vector<Difference> differences(const Graph& before, const Graph& after) {
  std::unordered_map<std::string, const Node*> old_nodes;
  for (const Node& node : before.nodes()) old_nodes.emplace(node.name(), &node);
  std::vector<Difference> found;
  std::unordered_map<std::string, bool> kept;
  for (const Node& node : after.nodes()) kept.emplace(node.name(), true);
  for (const Node& node : before.nodes()) {
    if (!kept.count(node.name())) found.push_back({"removed", node.name(), essence(node), ""});
  }
  for (const Node& node : after.nodes()) {
    const auto old_node = old_nodes.find(node.name());
    const std::string now = essence(node);
    if (old_node == old_nodes.end()) {
      found.push_back({"added", node.name(), "", now});
    } else if (const std::string was = essence(*old_node->second); was != now) {
      found.push_back({"changed", node.name(), was, now});
    }
  }
  return found;
}

}  // namespace

int diff(const DiffOptions& options, Backend* backend) {
  const auto before = load_model(options.before, backend, options.inputs);
  const auto after = load_model(options.after, backend, options.inputs);
  const std::vector<Difference> found = differences(before->graph(), after->graph());
  if (options.json) {
    nlohmann::ordered_json out = {
        {"before", before->graph().size()}, {"after", after->graph().size()}, {"differences", nlohmann::json::array()}};
    for (const Difference& d : found) {
      out["differences"].push_back({{"kind", d.kind}, {"node", d.name}, {"before", d.before}, {"after", d.after}});
    }
    std::cout << out.dump(2) << '\n';
  } else {
    for (const Difference& d : found) {
      if (!d.before.empty()) fmt::print("- {}\n", d.before);
      if (!d.after.empty()) fmt::print("+ {}\n", d.after);
    }
    fmt::print("{} nodes, {} nodes: {}\n", before->graph().size(), after->graph().size(),
               found.empty() ? "no difference" : fmt::format("{} differ", found.size()));
  }
  return found.empty() ? kDone : kFailed;
}

}  // namespace fx::cli
