// Finding one call of a leaf module among the operators that it left in a trace.
//
// The leaf was traced alone into a small graph, the pattern. Its parameters are the same get_attr nodes in both, and a
// trace keeps operators in the order in which they ran; so the match is found by walking the pattern once and looking,
// for each node, among the users of what its arguments matched. Cost: the pattern's size times the users of its least
// used argument.
#pragma once

#include <unordered_set>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>

namespace fx::internal {

/// A call found in the traced graph.
struct LeafMatch {
  NodeMap<Node*> image;        ///< from pattern nodes to nodes of the traced graph; null for results that nobody takes
  std::vector<Node*> claimed;  ///< the operators of the call, in order
};

class LeafMatcher {
 public:
  /// `near` is an operator of the call in `graph`: operators without arguments are looked for around it.
  LeafMatcher(const Graph& pattern, Node& near) : pattern_(pattern), near_(near) {}

  /// `inputs` are what the pattern's placeholders stand for, `attribute` finds the get_attr of a path (or null).
  template <typename FindAttribute>
  bool match(const std::vector<Node*>& inputs, FindAttribute&& attribute, LeafMatch& match) {
    match.image = NodeMap<Node*>(pattern_, nullptr);
    match.claimed.clear();
    taken_.clear();
    std::size_t next_input = 0;
    for (const Node& node : pattern_.nodes()) {
      Node* image = nullptr;
      switch (node.op()) {
        case Op::placeholder: image = next_input < inputs.size() ? inputs[next_input++] : nullptr; break;
        case Op::get_attr: image = attribute(node.target()); break;
        case Op::output: continue;
        default: image = find_call(node, match);
      }
      if (!image && !may_be_absent(node)) return false;
      match.image[node] = image;
    }
    return !match.claimed.empty();
  }

 private:
  Node* find_call(const Node& wanted, LeafMatch& match);
  static bool may_be_absent(const Node& wanted);
  bool fits(const Node& wanted, const Node& candidate, const LeafMatch& match) const;

  const Graph& pattern_;
  Node& near_;
  std::unordered_set<const Node*> taken_;
};

}  // namespace fx::internal
