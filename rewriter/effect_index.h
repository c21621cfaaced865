// What must not be reordered, which values may share storage, what is written, and what the caller gets: kept up to
// date while a graph is rewritten. Internal to rewriter/ and what edits through it.
//
// Values are put into alias classes by union-find: a view, an in-place result and what getitem yields are in the class
// of what they look at; attributes are one class for each storage, whatever their paths, and a called module reads the
// classes of the tensors that it holds. Distinct inputs are taken not to overlap. Classes only grow, and what is
// written stays written: that errs on the side of refusing. Beside "may share" there is "surely shares": origin_of
// follows views alone. analysis/effects.h answers the same questions, with more detail, for a graph that stands still.
//
// Complexity: O(nodes α) to build, O(different targets) when these say that no node is impure; an edit costs the nodes
// that it changes; O(log impure) and the impure nodes concerned to ask. Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/graph_order.h>
#include <fxgraph/support/flat_map.h>

namespace fx::internal {

class EffectIndex {
 public:
  using Class = std::uint32_t;

  explicit EffectIndex(const Graph& graph, ModuleEffects modules = {});

  /// True when some node of the graph may write: else nothing that follows matters.
  bool any_writes() const { return writes_; }
  bool any_impure() const { return !impure_.empty(); }

  /// From now on alias classes are known though nothing wrote so far: something is about to, or someone asks.
  void expect_writes();
  /// Tells of a node that was made or is about to go. An operator without a schema, made on purpose, is trusted not to
  /// write.
  void add(Node& node);
  void remove(Node& node);
  /// Tells of a node that has other arguments now: what it aliases and writes is so in addition to what was.
  void changed(Node& node);

  /// The impure nodes strictly between two places, in order.
  std::vector<Node*> between(const Node& first, const Node& last) const;
  /// As effects_of() says; calls that run graphs may draw random numbers and have side effects beside.
  NodeEffects of(const Node& node) const {
    const NodeEffects effects = effects_of(node, modules_);
    return effects.unknown ? of_unknown(node, effects) : effects;
  }
  const ModuleEffects& modules() const { return modules_; }

  // ── Classes; known when something writes, or after expect_writes() ────────────────────────────────────────────────
  Class alias_class(const Node& node) const;
  /// The class of the storage of an attribute, read by the graph or not.
  Class attribute_class(Symbol path);
  /// The nodes that may write to the class, in order.
  std::span<Node* const> writers(Class alias_class) const;
  /// The last of them, or null.
  Node* last_write(Class alias_class) const;
  /// The last node strictly between two places that may write to the class, or null.
  Node* write_between(Class alias_class, const Node& first, const Node& last) const;
  /// True when a result may share storage with the class: the caller may write to it, now or before the next call.
  bool is_returned(Class alias_class) const;
  /// Nobody writes to the class, nor hands it to the caller: what an attribute holds now it holds in every call.
  bool is_constant(Class alias_class) const { return writers(alias_class).empty() && !is_returned(alias_class); }
  /// True when something may give a tensor of the class another shape in place: what is known of its sizes is no use.
  bool is_restructured(Class alias_class) const;
  /// Calls `visit(Class)` for each class that `node` may write to.
  template <typename Visit>
  void for_each_written_class(const Node& node, Visit&& visit) const;
  /// Calls `visit(Class)` for the class of each input, and of each tensor of a called module.
  template <typename Visit>
  void for_each_read_class(const Node& node, Visit&& visit) const;
  /// Some get_attr of the same storage, or null.
  Node* attribute(Symbol path) const;
  /// The values in the class of `node`, itself first.
  std::vector<Node*> members(const Node& node) const;

  // ── What is sure ─────────────────────────────────────────────────────────────────────────────────────────────────
  /// Where a value's storage comes from, following what is a view for certain: an input, an attribute's storage, an
  /// element of a tuple, or a call that makes a value of its own or may do so.
  struct Origin {
    const Node* node = nullptr;
    Symbol storage{};           ///< of attributes: equal ones are one origin
    std::int64_t element = -1;  ///< of a tuple
    bool fresh = false;         ///< the node is a call that shares no storage with its inputs
    friend bool operator==(const Origin& a, const Origin& b) {
      return a.element == b.element && (a.storage.empty() ? a.node == b.node : a.storage == b.storage);
    }
  };
  /// O(views on the way), at most kMostViews; beyond that the answer is that value, not fresh.
  Origin origin_of(const Node& value) const;
  /// True when the caller may get the value or a view of it: some result may share its storage. O(views of it).
  bool escapes(const Node& value) const;
  /// True when the node makes a value that shares no storage with its inputs, as far as anything is known of it.
  bool is_fresh(const Node& node) const {
    bool own = false;
    viewed(node, own);
    return own;
  }
  /// True when the result of `user`, which takes the value, may share its storage.
  bool may_share(const Node& user, const Node& value) const;
  /// Calls `visit(const Node& user)` for the uses of the value and of all that may share its storage and is made from
  /// it, until it returns true; true then, or when there are too many to look at.
  template <typename Visit>
  bool any_use(const Node& value, Visit&& visit) const;

 private:
  static constexpr int kMostViews = 1024;
  using Cell = std::uint32_t;  // even: of the node with half that id; odd: of an attribute's storage or a module
  struct Written {
    std::vector<Node*> writers;  // in order
    bool restructured = false;
  };

  static NodeEffects of_unknown(const Node& node, NodeEffects effects);
  static Cell cell_of(const Node& node) { return 2 * node.id(); }
  void build();
  void reserve(Cell cell);
  void classify(Node& node);
  void unite(Cell a, Cell b);
  void note_write(Node& node);
  void add_writer(Cell cell, Node& node, bool restructures);
  Cell root(Cell cell) const;
  Cell new_cell();
  Cell storage_cell(Symbol storage);
  const std::vector<Cell>& state_cells(Symbol module);
  /// The one value that `node` is or looks at for certain, or null; `own` when it shares nothing.
  const Node* viewed(const Node& node, bool& own) const;

  const Graph& graph_;
  const ModuleEffects modules_;
  bool writes_ = false;
  bool built_ = false;
  std::set<Node*, GraphOrder> impure_;
  std::unordered_map<Symbol, std::uint32_t> attributes_;  // storage -> a get_attr of it
  std::vector<std::pair<Symbol, Cell>> storages_;         // in order of appearance
  std::unordered_map<Symbol, Cell> storage_cells_;
  std::unordered_map<Symbol, std::vector<Cell>> states_;  // of modules
  Cell next_odd_ = 1;
  mutable std::vector<Cell> parent_;                          // by cell
  std::vector<Cell> next_;                                    // a ring of the members
  std::unordered_map<Cell, Written> written_;                 // by root; only what is written
  std::unordered_map<const Node*, std::vector<Cell>> noted_;  // where a writer is listed
};

template <typename Visit>
void EffectIndex::for_each_written_class(const Node& node, Visit&& visit) const {
  for_each_written(
      node,
      [&](const Argument& written) { for_each_node(written, [&](const Node& value) { visit(alias_class(value)); }); },
      modules_);
  if (!node.is(Op::call_module)) return;
  const NodeEffects effects = of(node);
  const auto state = states_.find(node.target());
  if (state == states_.end() || !(effects.writes || effects.unknown)) return;
  for (const Cell cell : state->second) visit(root(cell));
}

template <typename Visit>
void EffectIndex::for_each_read_class(const Node& node, Visit&& visit) const {
  node.for_each_input([&](const Node& input) { visit(alias_class(input)); });
  if (!node.is(Op::call_module)) return;
  const auto state = states_.find(node.target());
  if (state == states_.end()) return;
  for (const Cell cell : state->second) visit(root(cell));
}

template <typename Visit>
bool EffectIndex::any_use(const Node& value, Visit&& visit) const {
  std::vector<const Node*> open = {&value};
  for (std::size_t next = 0; next < open.size(); ++next) {
    for (const Node& user : open[next]->users()) {
      if (visit(user)) return true;
      if (!may_share(user, *open[next])) continue;
      // A value may be met twice where views join; few do.
      if (open.size() == kMostViews) return true;
      open.push_back(&user);
    }
  }
  return false;
}

/// True when the program returns the value itself, alone or among others.
inline bool is_result(const Node& node) {
  const auto users = node.users();
  return std::any_of(users.begin(), users.end(), [](const Node& user) { return user.is(Op::output); });
}

}  // namespace fx::internal
