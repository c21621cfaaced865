// What must not be reordered: impure nodes by place, and which values may share storage, kept up to date while a graph
// is rewritten. Internal to rewriter/.
//
// Values are put into alias classes by union-find: a view, an in-place result and what getitem yields are in the class
// of what they look at; get_attr of one path are one class. Distinct inputs are taken not to overlap. Classes only
// grow: that errs on the side of refusing. analysis/effects.h answers the same questions for a graph that stands still.
//
// Complexity: O(nodes α) to build, and only when the graph has an impure node at all is more than one look at each node
// taken; O(log impure) and the impure nodes concerned to ask. Thread-safety: none.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/effects.h>
#include <fxgraph/support/flat_map.h>

namespace fx::internal {

class EffectIndex {
 public:
  EffectIndex(const Graph& graph, const ModuleEffects& modules);

  /// True when some node of the graph may write: else nothing that follows matters.
  bool any_writes() const { return writes_; }
  bool any_impure() const { return !impure_.empty(); }

  /// From now on alias classes are known though nothing wrote so far: something is about to.
  void expect_writes();
  /// Tells of a node that was made or is about to go. An operator without a schema, made on purpose, is trusted not to
  /// write.
  void add(Node& node);
  void remove(Node& node);

  /// The impure nodes strictly between two places, in order.
  std::vector<Node*> between(const Node& first, const Node& last) const;
  NodeEffects of(const Node& node) const { return effects_of(node, modules_); }
  /// True when the node's operator is known to have no effect, whatever its arguments. A quick answer to most
  /// questions.
  bool surely_pure(const Node& node) const;
  const ModuleEffects& modules() const { return modules_; }

  /// The alias class of a value.
  std::uint32_t alias_class(const Node& node) const;
  /// The last node that may write to the class, or null.
  Node* last_write(std::uint32_t alias_class) const;
  /// Calls `visit(std::uint32_t)` for each class that `node` may write to.
  template <typename Visit>
  void for_each_written_class(const Node& node, Visit&& visit) const;
  /// Some get_attr of this path, or null.
  Node* attribute(Symbol path) const;
  /// The values in the class of `node`, itself first.
  std::vector<Node*> members(const Node& node) const;

 private:
  struct Before {
    bool operator()(const Node* a, const Node* b) const { return a->is_before(*b); }
  };

  void build();
  void classify(Node& node);
  void unite(std::uint32_t a, std::uint32_t b);
  void note_write(Node& node);
  std::uint32_t root(std::uint32_t id) const;
  const Graph& graph_;
  const ModuleEffects& modules_;
  bool writes_ = false;
  mutable FlatMap<std::uint8_t> pure_;  // opcode and target -> 1 ask, 2 pure
  std::set<Node*, Before> impure_;
  std::unordered_map<Symbol, std::uint32_t> attributes_;  // path -> a get_attr of it
  // By id; empty while nothing writes.
  mutable std::vector<std::uint32_t> parent_;
  std::vector<std::uint32_t> next_;  // a ring of the members
  // Of the class that an id represents.
  std::vector<Node*> last_write_;
  std::vector<std::uint32_t> num_writes_;
};

template <typename Visit>
void EffectIndex::for_each_written_class(const Node& node, Visit&& visit) const {
  for_each_written(
      node,
      [&](const Argument& written) { for_each_node(written, [&](const Node& value) { visit(alias_class(value)); }); },
      modules_);
}

}  // namespace fx::internal
