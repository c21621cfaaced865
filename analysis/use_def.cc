#include <fxgraph/analysis/use_def.h>

#include <algorithm>
#include <utility>

namespace fx {

namespace {

Node& mutable_node(const Node& node) { return const_cast<Node&>(node); }

// Room for all nodes: as long as nothing is written there it is an address and no memory.
std::vector<Node*> room_for(const Graph& graph) {
  std::vector<Node*> slice;
  slice.reserve(graph.size());
  return slice;
}

// The slice, with no more room than it takes, or twice that.
std::vector<Node*> trimmed(std::vector<Node*> slice) {
  if (slice.size() < slice.capacity() / 2) slice.shrink_to_fit();
  return slice;
}

NodeIterator<const Node> from(Node& node, bool reverse) { return {&node, nullptr, reverse}; }

template <typename Visit>
void for_each_before(const Node& node, const OrderEdges* order, Visit&& visit) {
  node.for_each_input(visit);
  if (!order) return;
  for (Node* before : order->before(node)) visit(*before);
}

}  // namespace

// The order of the graph is topological, so one walk along it does instead of a search.
std::vector<Node*> backward_slice(const Graph& graph, std::span<Node* const> roots, const OrderEdges* order) {
  if (roots.empty()) return {};
  std::vector<Node*> slice = room_for(graph);
  NodeMap<bool> inside(graph, false);
  Node* last = roots[0];
  for (Node* root : roots) {
    inside[*root] = true;
    if (last->is_before(*root)) last = root;
  }
  for (NodeIterator<const Node> at = from(*last, true), end = graph.nodes().end(); at != end; ++at) {
    if (!inside[*at]) continue;
    slice.push_back(&mutable_node(*at));
    for_each_before(*at, order, [&](Node& input) { inside[input] = true; });
  }
  std::reverse(slice.begin(), slice.end());
  return trimmed(std::move(slice));
}

std::vector<Node*> forward_slice(const Graph& graph, std::span<Node* const> roots, const OrderEdges* order) {
  if (roots.empty()) return {};
  std::vector<Node*> slice = room_for(graph);
  NodeMap<bool> inside(graph, false);
  Node* first = roots[0];
  for (Node* root : roots) {
    inside[*root] = true;
    if (root->is_before(*first)) first = root;
  }
  for (NodeIterator<const Node> at = from(*first, false), end = graph.nodes().end(); at != end; ++at) {
    bool reached = inside[*at];
    for_each_before(*at, order, [&](Node& input) { reached = reached || inside[input]; });
    if (!reached) continue;
    inside[*at] = true;
    slice.push_back(&mutable_node(*at));
  }
  return trimmed(std::move(slice));
}

NodeMap<std::uint32_t> levels(const Graph& graph, const OrderEdges* order) {
  NodeMap<std::uint32_t> level(graph, 0);
  for (const Node& node : graph.nodes()) {
    std::uint32_t longest = 0;
    for_each_before(node, order, [&](Node& input) { longest = std::max(longest, level[input] + 1); });
    level[node] = longest;
  }
  return level;
}

Reachability::Reachability(const Graph& graph, const OrderEdges* order)
    : order_(order), level_(graph.id_bound(), 0), stamp_(graph.id_bound(), 0) {
  for (const Node& node : graph.nodes()) {
    std::uint32_t longest = 0;
    for_each_before(node, order, [&](Node& input) { longest = std::max(longest, level_[input.id()] + 1); });
    level_[node.id()] = longest;
  }
}

bool Reachability::operator()(const Node& a, const Node& b) {
  visited_ = 0;
  if (&a == &b) return true;
  const auto may_lead_back = [&](const Node& node) { return a.is_before(node) && level_[a.id()] < level_[node.id()]; };
  if (!may_lead_back(b)) return false;
  ++question_;
  stack_.assign(1, &b);
  stamp_[b.id()] = question_;
  bool found = false;
  while (!stack_.empty() && !found) {
    const Node& node = *stack_.back();
    stack_.pop_back();
    ++visited_;
    for_each_before(node, order_, [&](const Node& input) {
      found = found || &input == &a;
      if (stamp_[input.id()] == question_ || !may_lead_back(input)) return;
      stamp_[input.id()] = question_;
      stack_.push_back(&input);
    });
  }
  return found;
}

CriticalPath critical_path(const Graph& graph, const std::function<double(const Node&)>& cost,
                           const OrderEdges* order) {
  CriticalPath path;
  const auto cost_of = [&](const Node& node) { return cost ? cost(node) : 1.0; };
  // `until`: the cost of the longest path to and with a node; `slack` first holds that of the longest path from and
  // with it.
  std::vector<double> until(graph.id_bound(), 0.0), from(graph.id_bound(), 0.0), own(graph.id_bound(), 0.0);
  std::vector<Node*> previous(graph.id_bound(), nullptr);
  Node* end = nullptr;
  for (const Node& node : graph.nodes()) {
    double longest = 0;
    for_each_before(node, order, [&](Node& input) {
      if (previous[node.id()] && until[input.id()] <= longest) return;
      longest = until[input.id()];
      previous[node.id()] = &input;
    });
    own[node.id()] = cost_of(node);
    until[node.id()] = longest + own[node.id()];
    if (!end || until[node.id()] > path.length) {
      end = &mutable_node(node);
      path.length = until[node.id()];
    }
  }
  path.slack = NodeMap<double>(graph, 0.0);
  for (const Node& node : graph.nodes().reversed()) {
    const std::uint32_t id = node.id();
    from[id] += own[id];
    for_each_before(node, order, [&](Node& input) { from[input.id()] = std::max(from[input.id()], from[id]); });
    path.slack[node] = std::max(0.0, path.length - (until[id] + from[id] - own[id]));
  }
  for (Node* node = end; node; node = previous[node->id()]) path.nodes.push_back(node);
  std::reverse(path.nodes.begin(), path.nodes.end());
  return path;
}

}  // namespace fx
