// Calls that no partition may part: what makes a value that stays inside, and all that uses it; FX's
// FxNetAccFusionsFinder. Internal to rewriter/partition/partitioner.cc.
//
// A value that may not cross ties its maker to its users. What stands on a way from a group through others back into it
// belongs to it. A group with a call that is in no partition, with calls of two colours, with a pair to be kept apart,
// or whose value is returned, is none: its calls are in no partition either.
//
// Cost: O(nodes + uses + order edges).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/rewriter/partition/partitioner.h>

namespace fx {

class TiedCalls {
 public:
  /// `colour`: of each call, 0 for one that is in no partition. `element_of`: what makes the tuple that a call takes an
  /// element of, when the two stay together anyway; else null.
  TiedCalls(const Graph& graph, const PartitionOptions& options, const NodeMap<std::uint32_t>& colour,
            const NodeMap<Node*>& element_of);

  /// Calls of one number stay together; 0: by itself.
  std::uint32_t of(const Node& node) const { return group_[node]; }
  /// The calls that are in no partition for it, and why.
  const std::vector<std::pair<Node*, std::string>>& refused() const { return refused_; }

 private:
  using Place = std::uint32_t;

  void tie();
  void refuse_broken();
  void join_what_is_between();
  std::uint32_t colour_of(Place place) const { return refused_at_[place] ? 0 : colours_[place]; }
  Place find(Place place);
  void unite(const Node& a, const Node& b);
  void refuse(Place head, const std::string& why);
  std::vector<Place> circles();

  const PartitionOptions& options_;
  const NodeMap<Node*>& element_of_;
  std::vector<Node*> calls_;
  NodeMap<Place> place_;
  std::vector<std::uint32_t> colours_;
  std::vector<Place> parent_;
  std::vector<bool> fused_, refused_at_;  // by place; fused_ counts at heads
  std::vector<const Node*> inside_;       // by head: a value that stays inside
  std::vector<std::vector<Place>> members_;
  NodeMap<std::uint32_t> group_;
  std::vector<std::pair<Node*, std::string>> refused_;
};

}  // namespace fx
