// Partitions for a back end: the calls that it supports, in as few pieces as run one after the other.
//
//   fx::Partitioning parts = fx::propose_partitions(graph, why_not, {.order = &edges});
//   for (const fx::Partition& part : parts.partitions()) …          // in an order in which they can run
//   std::cout << parts.report();                                    // which nodes, why not the others, why so many
//
// FX's CapabilityBasedPartitioner, with what it lacks: partitions are as few as any choice could make them (with one
// colour and nothing kept apart), no two of them could be one, uses and order edges never run in a circle, and
// the time is linear in nodes and edges. Elements of a tuple stay with the call that makes it. A node goes as late as
// it can, to where it is used.
//
// Why two partitions are not one: a value leaves the first, passes a node outside and comes back in the second.
//
// Cost: O(nodes + uses + order edges) with one colour. With several, and for pairs kept apart, also the nodes between
// two partitions for each pair that is looked at. Thread-safety: reads the graph only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/analysis/order_edges.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>

namespace fx {

/// Nodes that may stand in one place, in graph order.
struct Partition {
  std::int64_t colour = 0;   ///< of all its nodes
  std::vector<Node*> nodes;  ///< calls; attributes that they read are not among them
};

/// What else may and may not share a partition, and which partitions are worth it.
struct PartitionOptions {
  /// What else must keep its order: Effects::order_edges(). Without it uses alone count.
  const OrderEdges* order = nullptr;
  /// Partitions hold nodes of one colour; without it all have the same. FX's tags.
  std::function<std::int64_t(const Node&)> colour{};
  /// Pairs that may not share a partition.
  std::vector<std::pair<const Node*, const Node*>> keep_apart{};
  /// A value for which it says no does not leave its partition: what makes it and all that uses it are in one, with all
  /// that comes between them, or in none. FX's fusion groups.
  std::function<bool(const Node&)> crosses{};
  /// A partition with fewer nodes that compute is given up. FX's allows_single_node_partition = False is 2.
  std::size_t min_size = 0;
  /// Which nodes count for that; without it all but views and getitem.
  std::function<bool(const Node&)> computes{};
  /// Nodes that do not compute are taken off the ends of partitions. FX's remove_bookend_non_compute_ops.
  bool trim = false;
};

/// The partitions of a graph, and the reasons for what is outside; refers to the graph and to the order edges.
class Partitioning {
 public:
  /// In an order in which they can run, each at one go.
  const std::vector<Partition>& partitions() const { return partitions_; }
  /// The place of the node's partition in partitions(); nothing when it is in none.
  std::optional<std::size_t> of(const Node& node) const;
  /// Why a call is in no partition; empty when it is in one, and for what is no call.
  std::string why_not(const Node& node) const;
  /// Why two partitions are not one: a way from the first to the second through nodes outside of both, as
  /// `%add feeds %relu (…), which feeds %add_1`; that they have two colours or hold a pair kept apart. Empty when there
  /// is no reason. O(nodes between).
  std::string why_apart(std::size_t first, std::size_t second) const;
  /// All of it in words, a line a partition, a line for what separates it from the one before, a line for each reason
  /// why nodes stay outside.
  std::string report() const;

 private:
  friend class Partitioner;
  const Graph* graph_ = nullptr;
  PartitionOptions options_;
  std::vector<Partition> partitions_;
  NodeMap<std::uint32_t> part_of_;    // 1 + index
  NodeMap<std::uint32_t> reason_of_;  // 1 + index
  std::vector<std::string> reasons_;
};

/// Returns the partitions of the calls for which `why_not` returns nothing. Calls alone are asked for; get_attr nodes
/// belong to none. Throws Error(invalid_argument) when `keep_apart` names a node of another graph.
Partitioning propose_partitions(const Graph& graph,
                                const std::function<std::optional<std::string>(const Node&)>& why_not,
                                const PartitionOptions& options = {});

}  // namespace fx
