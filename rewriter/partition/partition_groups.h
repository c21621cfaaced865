// What propose_partitions works on: nodes in groups that nothing takes apart, and groups in sets that run at one go.
// Internal to rewriter/partition/partitioner*.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <fxgraph/analysis/order_edges.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

using Group = std::uint32_t;

/// Pairs of groups that may not be in one set.
class Rivals {
 public:
  void add(Group a, Group b) {
    rivals_[a].push_back(b);
    rivals_[b].push_back(a);
  }
  bool empty() const { return rivals_.empty(); }
  std::span<const Group> of(Group group) const {
    const auto found = rivals_.find(group);
    return found == rivals_.end() ? std::span<const Group>() : std::span<const Group>(found->second);
  }

 private:
  std::map<Group, std::vector<Group>> rivals_;
};

class PartitionGroups {
 public:
  PartitionGroups(const Graph& graph, const OrderEdges* order)
      : graph_(graph), order_(order), group_of_(graph, kNone) {}

  // ── Making groups, in graph order ────────────────────────────────────────────────────────────────────────────────
  void add(Node& node, std::uint32_t colour) {
    colours_.push_back(colour);
    nodes_.push_back({});
    add_to(static_cast<Group>(colours_.size() - 1), node);
  }
  void add_to(Group group, Node& node) {
    group_of_[node] = group;
    nodes_[group].push_back(&node);
  }
  Group of(const Node& node) const { return group_of_[node]; }
  Group size() const { return static_cast<Group>(colours_.size()); }
  std::uint32_t colour(Group group) const { return colours_[group]; }
  const std::vector<Node*>& nodes(Group group) const { return nodes_[group]; }
  /// Finds who comes before whom; no groups are made after it.
  void connect();

  // ── Taking them from the end ─────────────────────────────────────────────────────────────────────────────────────
  std::uint32_t waiting(Group group) const { return waiting_[group]; }
  /// One that `group` came before has been taken; true when it was the last.
  bool arrived(Group group) { return --waiting_[group] == 0; }
  /// The groups that must run before `group`, once for each edge.
  std::span<const Group> before(Group group) const {
    return {before_.data() + starts_[group], before_.data() + starts_[group + 1]};
  }
  /// These run at one go, before all that was placed before.
  void place(std::vector<Group> set) { sets_.push_back(std::move(set)); }

  // ── Sets ─────────────────────────────────────────────────────────────────────────────────────────────────────────
  /// Joins sets of one colour until no two could be one.
  void join_where_possible(const Rivals& rivals);
  /// The sets, the first to run first.
  const std::vector<std::vector<Group>>& in_order_of_execution();

 private:
  static constexpr Group kNone = ~Group{0};
  using Set = std::uint32_t;

  bool has_rival_in(const std::vector<Group>& groups, Set set, const Rivals& rivals) const;
  bool try_join(std::size_t first, std::size_t second);

  const Graph& graph_;
  const OrderEdges* order_;
  NodeMap<Group> group_of_;
  std::vector<std::uint32_t> colours_;
  std::vector<std::vector<Node*>> nodes_;
  std::vector<std::uint32_t> starts_, waiting_;
  std::vector<Group> before_;
  std::vector<std::vector<Group>> sets_;  // until in_order_of_execution: the last to run first
  std::vector<Set> set_of_;               // by group
  std::vector<Set> sequence_;             // sets in order of execution
  std::vector<std::size_t> rank_;         // by set: its place in sequence_
  bool turned_ = false;
};

}  // namespace fx
