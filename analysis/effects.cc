#include <fxgraph/analysis/effects.h>

#include <algorithm>

#include <fxgraph/ir/graph_order.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

namespace {

/// The first of `nodes` that is after `node`; they are in graph order.
auto first_after(std::span<Node* const> nodes, const Node& node) {
  return std::partition_point(nodes.begin(), nodes.end(), [&](const Node* n) { return !node.is_before(*n); });
}
/// The first of `nodes` that is `node` or after it.
auto first_not_before(std::span<Node* const> nodes, const Node& node) {
  return std::partition_point(nodes.begin(), nodes.end(), [&](const Node* n) { return n->is_before(node); });
}

bool intersect(std::span<const Effects::Set> a, std::span<const Effects::Set> b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

}  // namespace

std::span<const Effects::Set> Effects::written_sets(const Node& node) const {
  if (!of(node).impure()) return {};
  const auto i = static_cast<std::size_t>(first_not_before(impure_, node) - std::span<Node* const>(impure_).begin());
  return {written_.data() + written_start_[i], written_.data() + written_start_[i + 1]};
}

bool Effects::may_alias(const Node& a, const Node& b) const { return intersect(sets(a), sets(b)); }

std::size_t Effects::version(const Node& value, const Node& at) const {
  std::size_t count = 0;
  for (const Set set : sets(value)) {
    count += static_cast<std::size_t>(first_not_before(writers(set), at) - writers(set).begin());
  }
  return count;
}

Node* Effects::last_write_before(const Node& value, const Node& at) const {
  Node* last = nullptr;
  for (const Set set : sets(value)) {
    const auto it = first_not_before(writers(set), at);
    if (it != writers(set).begin() && (!last || last->is_before(*it[-1]))) last = it[-1];
  }
  return last;
}

Node* Effects::write_between(const Node& value, const Node& a, const Node& b) const {
  Node* first = nullptr;
  for (const Set set : sets(value)) {
    const auto it = first_after(writers(set), a);
    if (it != writers(set).end() && (*it)->is_before(b) && (!first || (*it)->is_before(*first))) first = *it;
  }
  return first;
}

std::vector<Node*> Effects::readers(const Node& write) const {
  std::vector<Node*> found;
  for (const Set set : written_sets(write)) {
    for (Node* holder : state_readers(set)) {
      if (write.is_before(*holder)) found.push_back(holder);
    }
    for (const Node* member : members(set)) {
      for (Node& user : member->users()) {
        if (write.is_before(user)) found.push_back(&user);
      }
    }
  }
  std::sort(found.begin(), found.end(), GraphOrder{});
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::span<Node* const> Effects::between(const Node& a, const Node& b) const {
  const auto begin = first_after(impure_, a), end = first_not_before(impure_, b);
  return begin < end ? std::span<Node* const>(begin, end) : std::span<Node* const>();
}

bool Effects::touches(const Node& writer, const Node& other) const {
  const auto written = written_sets(writer);
  if (written.empty()) return false;
  bool found = intersect(written, written_sets(other)) || intersect(written, state_sets(other));
  other.for_each_input([&](const Node& input) { found = found || intersect(written, sets(input)); });
  return found;
}

bool Effects::may_swap(const Node& a, const Node& b) const {
  bool used = false;
  a.for_each_input([&](const Node& input) { used |= &input == &b; });
  b.for_each_input([&](const Node& input) { used |= &input == &a; });
  const auto ordered = [&](const Node& n) { return of(n).random || of(n).side_effect || of(n).unknown; };
  const auto passes = [&](const Node& n, const Node& other) { return of(n).undescribed && of(other).impure(); };
  return !used && !(ordered(a) && ordered(b)) && !passes(a, b) && !passes(b, a) && !touches(a, b) && !touches(b, a);
}

// Per set: a read follows the last write, a write follows the last write and the reads since.
OrderEdges Effects::order_edges() const {
  struct State {
    Node* write = nullptr;
    std::vector<Node*> reads;
  };
  if (impure_.empty()) return {};
  std::vector<State> states(num_sets());
  std::vector<OrderEdge> edges;
  Node* last_impure = nullptr;
  // Modules that nobody has described may do anything but among themselves: with one, all effects keep their order.
  bool strict = false;
  for (const Node& node : graph_->nodes()) strict |= of(node).undescribed;
  std::vector<Node*> undescribed;  // since the last effect
  for (const Node& const_node : graph_->nodes()) {
    Node* node = const_cast<Node*>(&const_node);
    const auto written = written_sets(*node);
    const auto read = [&](std::span<const Set> sets_read) {
      for (const Set set : sets_read) {
        State& state = states[set];
        if (writers(set).empty() || std::find(written.begin(), written.end(), set) != written.end()) continue;
        if (!state.reads.empty() && state.reads.back() == node) continue;
        if (state.write) edges.push_back({state.write, node});
        state.reads.push_back(node);
      }
    };
    node->for_each_input([&](Node& input) { read(sets(input)); });
    read(state_sets(*node));
    for (const Set set : written) {
      State& state = states[set];
      if (state.write == node) continue;
      if (state.write) edges.push_back({state.write, node});
      for (Node* read : state.reads) edges.push_back({read, node});
      state.reads.clear();
      state.write = node;
    }
    const NodeEffects& own = of(*node);
    if (own.undescribed) {
      if (last_impure) edges.push_back({last_impure, node});
      undescribed.push_back(node);
    } else if (own.random || own.side_effect || own.unknown || (strict && own.writes)) {
      if (last_impure) edges.push_back({last_impure, node});
      for (Node* before : undescribed) edges.push_back({before, node});
      undescribed.clear();
      last_impure = node;
    }
  }
  return OrderEdges(*graph_, edges);
}

}  // namespace fx
