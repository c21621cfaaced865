#include <fxgraph/ir/graph_order.h>
#include <fxgraph/ir/subgraph.h>

#include <algorithm>
#include <string>

namespace fx {

namespace {

std::vector<Node*> sorted(std::span<Node* const> nodes) {
  std::vector<Node*> order(nodes.begin(), nodes.end());
  std::sort(order.begin(), order.end(), GraphOrder{});
  return order;
}

void require_convex(const Graph& graph, const std::vector<Node*>& nodes) {
  const auto path = find_path_outside(graph, nodes);
  if (!path) return;
  std::string names;
  for (const Node* node : *path) names += (names.empty() ? "" : " -> ") + node->name();
  throw Error(ErrorKind::invalid_argument,
              "cannot extract a piece that a path leaves and enters again (" + names + "); add the nodes between",
              path->front()->name());
}

}  // namespace

std::vector<Node*> piece_of(const Graph& graph, std::span<Node* const> nodes) {
  for (const Node* node : nodes) {
    if (!node) throw Error(ErrorKind::invalid_argument, "cannot extract a null node");
    if (&node->graph() != &graph || node->is_erased()) {
      throw Error(ErrorKind::invalid_argument, "cannot extract " + node->name() + ": it is not in this graph",
                  node->name());
    }
    if (node->is(Op::placeholder) || node->is(Op::output)) {
      throw Error(ErrorKind::invalid_argument,
                  "cannot extract " + node->name() + ": a piece gets inputs and an output of its own; leave it out",
                  node->name());
    }
  }
  std::vector<Node*> piece = sorted(nodes);
  if (const auto twice = std::ranges::adjacent_find(piece); twice != piece.end())
    throw Error(ErrorKind::invalid_argument, "cannot extract " + (*twice)->name() + " twice", (*twice)->name());
  return piece;
}

std::optional<std::vector<Node*>> find_path_outside(const Graph& graph, std::span<Node* const> nodes) {
  if (nodes.empty()) return std::nullopt;
  NodeMap<bool> inside(graph, false);
  const Node *first = nodes[0], *last = nodes[0];
  for (const Node* node : nodes) {
    inside[*node] = true;
    if (node->is_before(*first)) first = node;
    if (last->is_before(*node)) last = node;
  }
  // For nodes outside that the set reaches: the node they were reached from.
  NodeMap<Node*> from(graph, nullptr);
  for (const Node* node = first; node; node = node->next()) {
    Node* reached_from = nullptr;
    node->for_each_input([&](Node& input) {
      const bool leaves = inside[*node] ? !inside[input] && from[input] : inside[input] || from[input];
      if (leaves && !reached_from) reached_from = &input;
    });
    if (!inside[*node]) {
      from[*node] = reached_from;
    } else if (reached_from) {
      std::vector<Node*> path{const_cast<Node*>(node)};
      for (Node* at = reached_from; at; at = inside[*at] ? nullptr : from[*at]) path.push_back(at);
      std::reverse(path.begin(), path.end());
      return path;
    }
    if (node == last) break;
  }
  return std::nullopt;
}

Subgraph extract_subgraph(const Graph& graph, std::span<Node* const> nodes, const ExtractOptions& options) {
  const std::vector<Node*> piece = piece_of(graph, nodes);
  require_convex(graph, piece);
  NodeMap<bool> inside(graph, false);
  for (const Node* node : piece) inside[*node] = true;

  Subgraph result;
  result.copies = NodeMap<Node*>(graph, nullptr);
  NodeMap<bool> seen(graph, false);
  std::vector<Node*> attributes;
  for (const Node* node : piece) {
    node->for_each_input([&](Node& input) {
      if (inside[input] || seen[input]) return;
      seen[input] = true;
      const bool copied = options.copy_attributes && input.is(Op::get_attr);
      (copied ? attributes : result.inputs).push_back(&input);
    });
  }
  result.inputs = sorted(result.inputs);
  for (Node* input : result.inputs) result.copies[*input] = &result.graph.placeholder(input->name());
  const auto copy_of = [&](Node& node) { return Argument(result.copies[node]); };
  for (Node* attribute : sorted(attributes)) result.copies[*attribute] = &result.graph.node_copy(*attribute, copy_of);
  for (Node* node : piece) result.copies[*node] = &result.graph.node_copy(*node, copy_of);

  std::vector<Argument> returned;
  for (Node* node : piece) {
    bool escapes = !node->has_users();
    for (const Node& user : node->users()) escapes = escapes || !inside[user];
    if (!escapes) continue;
    result.outputs.push_back(node);
    returned.push_back(copy_of(*node));
  }
  result.graph.output(returned.size() == 1 ? returned[0] : Argument::tuple(returned));
  return result;
}

}  // namespace fx
