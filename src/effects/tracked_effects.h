// What must not be reordered, which values may share storage, what is written, and what the caller gets: kept up to
// date while a graph is rewritten. Internal to matchers/, rewriter/ and what edits through it.
//
// Which storages a value is in, alias_cells.h says; analysis/effects.h answers more questions of the same for a graph
// that stands still. Beside "may share" there is "surely shares": origin_of follows views alone. Distinct inputs are
// taken not to overlap.
//
// Told of every edit, it says what one made afterwards says. Complexity: O(nodes α) to build, O(different targets) when
// these say that no node is impure; an edit costs the nodes that it changes and those that share their storage (see
// alias_cells.h for what is rare); O(log impure) and the impure nodes concerned to ask. Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include <boost/container/small_vector.hpp>

#include <fxgraph/effects/alias_cells.h>
#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/graph_order.h>
#include <fxgraph/support/flat_map.h>

namespace fx::internal {

class TrackedEffects {
 public:
  /// `told`: of every edit; who tells of none is answered for the graph as it was, and pays less.
  explicit TrackedEffects(const Graph& graph, ModuleInfo modules = {}, bool told = true);

  /// True when some node of the graph may write: else nothing that follows matters.
  bool any_writes() const { return writes_; }
  bool any_impure() const { return !impure_.empty(); }

  /// From now on cells are known though nothing wrote so far: something is about to, or someone asks.
  void expect_writes();
  /// Tells of a node that was made or is about to go.
  void add(Node& node);
  void remove(Node& node);
  /// Tells of a node that has other arguments now, or calls something else.
  void changed(Node& node);

  /// The impure nodes strictly between two places, and, where there are any in the graph, the modules that nobody has
  /// described; in order.
  std::vector<Node*> between(const Node& first, const Node& last) const;
  /// As effects_of() says; calls that run graphs may draw random numbers and have side effects beside.
  NodeEffects of(const Node& node) const;
  const ModuleInfo& modules() const { return cells_.modules(); }

  // ── Storage; known when something writes, or after expect_writes() ────────────────────────────────────────────────
  /// Calls `visit(Cell)` for the storages that a value is in, by one number each.
  template <typename Visit>
  void for_each_cell(const Node& value, Visit&& visit) const {
    for (const Cell cell : cells_.of(value)) visit(cells_.find(cell));
  }
  /// The same for those that the call may write to.
  void for_each_written_cell(const Node& call, const std::function<void(Cell)>& visit) const;
  /// The same for those of each input, and of the tensors of a called module.
  void for_each_read_cell(const Node& call, const std::function<void(Cell)>& visit) const;
  /// True when a write to one may change the other.
  bool may_alias(const Node& a, const Node& b) const;
  /// True when every storage of the value is in `cells`, as for_each_cell() gives them.
  bool is_within(const Node& value, std::span<const Cell> cells) const;
  /// True when the call may write to a storage of the value.
  bool may_write(const Node& call, const Node& value) const;
  /// Calls `visit(Node& writer)` for the nodes that may write to a storage of the value until it returns true, those of
  /// one storage in order; true then.
  template <typename Visit>
  bool any_writer(const Node& value, Visit&& visit) const;
  bool is_written(const Node& value) const {
    return any_writer(value, [](const Node&) { return true; });
  }
  /// The last node that may write to a storage of the value, or null.
  Node* last_write(const Node& value) const { return write_between(value, nullptr, nullptr); }
  /// The last node strictly between two places that may write to a storage of the value, or null.
  Node* write_between(const Node& value, const Node& first, const Node& last) const {
    return write_between(value, &first, &last);
  }
  /// True when a result may share storage with the value: the caller may write to it, now or before the next call.
  bool is_returned(const Node& value) const;
  /// True when something may give a tensor of that storage another shape in place: what is known of its sizes is no
  /// use.
  /// @{
  bool has_inplace_view(Cell cell) const {
    return any_writer_in(cell, [&](const Node& writer) { return of(writer).restructures; });
  }
  bool has_inplace_view(const Node& value) const {
    return any_writer(value, [&](const Node& writer) { return of(writer).restructures; });
  }
  /// @}
  /// Some get_attr of the same storage, or null.
  Node* attribute(Symbol path) const;
  /// A node that may write to the storage of an attribute, read by the graph or not; null when there is none.
  const Node* attribute_writer(Symbol path);
  bool is_attribute_returned(Symbol path);
  /// The values that share a storage with `value`, it among them, in graph order.
  std::vector<Node*> members(const Node& value) const;

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

  /// True of inputs, attributes and calls of modules that may return what they hold: others see that memory, too.
  bool is_outside(const Node& node) const {
    return node.is(Op::placeholder) || node.is(Op::get_attr) || (node.is(Op::call_module) && of(node).may_alias_state);
  }

  // ── Step by step ─────────────────────────────────────────────────────────────────────────────────────────────────
  /// Calls `visit(Node&)` for the inputs whose storage the result may share.
  void for_each_source(const Node& node, const std::function<void(Node&)>& visit) const;
  /// Calls `visit(std::uint64_t)` with a number for what makes each storage that the value may share, `value` itself if
  /// nothing else: of attributes, one for each storage. Cells need not be known. Of a value
  /// that looks at many others it is kAnyRoot.
  static constexpr std::uint64_t kAnyRoot = std::uint64_t{1} << 33;
  template <typename Visit>
  void for_each_root(const Node& value, Visit&& visit) const {
    const bool is_own = value.is(Op::placeholder) || (value.is_callable() && !of(value).may_alias);
    return is_own ? visit(value.id()) : walk_to_roots(value, visit);
  }
  /// True when the result of `user`, which takes the value, may share its storage.
  bool may_alias_input(const Node& user, const Node& value) const;
  /// Calls `visit(const Node& user)` for the uses of the value and of all that may share its storage and is made from
  /// it, until it returns true; true then, or when there are too many to look at.
  template <typename Visit>
  bool any_use(const Node& value, Visit&& visit) const;

 private:
  static constexpr int kMostViews = 1024;

  template <typename Visit>
  bool any_writer_in(Cell cell, Visit&& visit) const {
    bool found = false;
    cells_.for_each_united(cell, [&](Cell one) {
      for (Node* writer : writers(one)) found = found || visit(*writer);
    });
    return found;
  }
  void walk_to_roots(const Node& value, const std::function<void(std::uint64_t)>& visit) const;
  void build();
  void classify(Node& node);
  void note_writes(Node& node);
  void drop_writes(Node& node);
  void spread(Node& node);
  void see_elements(const Node& node);
  Node* write_between(const Node& value, const Node* first, const Node* last) const;
  std::span<Node* const> writers(Cell cell) const;
  /// The one value that `node` is or looks at for certain, or null; `own` when it shares nothing.
  const Node* viewed(const Node& node, bool& own) const;

  const Graph& graph_;
  AliasCells cells_;
  const bool told_;
  bool writes_ = false;
  bool built_ = false;
  std::set<Node*, GraphOrder> impure_;
  mutable std::set<Node*, GraphOrder> undescribed_;  // modules, once somebody asks among effects
  mutable bool undescribed_known_ = false;
  std::unordered_map<Symbol, std::vector<Node*>> attributes_;      // by storage: the get_attrs
  FlatMap<std::uint32_t> writers_at_, noted_at_;                   // by cell, by node id: 1 + where in the next two
  std::vector<boost::container::small_vector<Node*, 2>> writers_;  // of a cell, in order
  std::vector<boost::container::small_vector<Cell, 2>> noted_;     // where a writer is listed
  mutable std::unordered_map<Cell, std::vector<Node*>> held_;  // who is in a cell, once somebody asks; some are not now
  mutable bool members_known_ = false;
};

template <typename Visit>
bool TrackedEffects::any_writer(const Node& value, Visit&& visit) const {
  if (writers_.empty()) return false;
  const std::span<const Cell> cells = cells_.of(value);
  return std::any_of(cells.begin(), cells.end(), [&](Cell cell) { return any_writer_in(cell, visit); });
}

template <typename Visit>
bool TrackedEffects::any_use(const Node& value, Visit&& visit) const {
  std::vector<const Node*> open = {&value};
  for (std::size_t next = 0; next < open.size(); ++next) {
    for (const Node& user : open[next]->users()) {
      if (visit(user)) return true;
      if (!may_alias_input(user, *open[next])) continue;
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
