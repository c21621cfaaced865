// Which storages each value of a graph is in, or looks at. Internal to src/effects and analysis/effects*.cc.
//
// What makes a value of its own makes a cell: an input, the storage of an attribute, a call that shares nothing, each
// element that is taken of a tuple. What may share storage is in the cells of what it may share with. The cells of a
// value follow from the graph alone, never from the order of edits: an analysis that follows edits says what one made
// afterwards says. Some calls unite cells: a list that takes an element, a result of too many sources. They are the
// same storage from then on (union-find), and until the call goes.
//
// Complexity: classify() costs the inputs, and users where these take elements; forgetting a call that united cells
// costs all cells, which is rare.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/support/flat_map.h>

namespace fx {
class EffectsBuilder;
}

namespace fx::internal {

/// A storage, or what may be several that nobody can tell apart.
using Cell = std::uint32_t;

/// A short list of cells: one is kept in place.
struct CellList {
  std::uint32_t at = 0;  ///< the cell, or where in `lists` they begin
  std::uint32_t count : 31 = 0;
  std::uint32_t own : 1 = false;  ///< the value shares them with nobody that it was made from

  std::span<const Cell> in(const std::vector<Cell>& lists) const {
    return {count == 1 ? &at : lists.data() + at, count};
  }
};

/// R. E. Tarjan, "Efficiency of a good but not linear set union algorithm", 1975; path halving, smaller number wins.
class DisjointCells {
 public:
  Cell add() {
    const auto cell = static_cast<Cell>(parent_.size());
    parent_.push_back(cell);
    return cell;
  }
  Cell find(Cell cell) const {
    while (parent_[cell] != cell) cell = parent_[cell] = parent_[parent_[cell]];
    return cell;
  }
  void unite(Cell a, Cell b);
  /// Each is by itself again.
  void part();
  std::size_t size() const { return parent_.size(); }
  void reserve(std::size_t count) { parent_.reserve(count); }

  /// All that are one with `cell`, it among them.
  template <typename Visit>
  void for_each_united(Cell cell, Visit&& visit) const {
    Cell one = cell;
    do {
      visit(one);
      one = one < next_.size() ? next_[one] : cell;
    } while (one != cell);
  }

 private:
  mutable std::vector<Cell> parent_;
  std::vector<Cell> next_;  // a ring of those that are one, as far as any were united
};

class AliasCells {
 public:
  static constexpr std::size_t kMaxCells = 4;  ///< of one value; when there would be more they are united

  /// The graph must outlive it; its nodes are told one by one, each after what it takes.
  AliasCells(const Graph& graph, ModuleInfo modules, bool inputs_may_alias = false,
             std::function<bool(const Node& call)> is_own = {});
  /// Remembers who unites what, to be told of edits.
  void follow_edits() { follows_edits_ = true; }
  /// Looks for elements that are taken, before the nodes are told: of the whole graph, or of one tuple behind an edit.
  /// @{
  void find_elements();
  void count_elements(const Node& tuple);
  /// @}

  /// Gives the value of `node` its cells, once more after its inputs, users or effects have changed. True when they are
  /// others than before.
  bool classify(const Node& node, const NodeEffects& effects);
  /// Tells of a node that is about to go; nothing uses it.
  void forget(const Node& node);

  /// True behind forget().
  bool is_gone(const Node& node) const { return node.id() < values_.size() && values_[node.id()].at == kGone; }

  /// None for the output.
  std::span<const Cell> of(const Node& node) const {
    return node.id() < values_.size() ? values_[node.id()].in(lists_) : std::span<const Cell>();
  }
  /// The first of those that are one with it.
  Cell find(Cell cell) const { return united_.find(cell); }
  /// All that are one with `cell`, it among them.
  template <typename Visit>
  void for_each_united(Cell cell, Visit&& visit) const {
    united_.for_each_united(cell, visit);
  }
  /// The storage of inputs, attributes and modules: what is written there can be seen outside. Of the cell alone.
  bool is_external(Cell cell) const { return external_[cell]; }
  /// That of an attribute, made when it is new.
  Cell attribute_cell(Symbol path) { return attribute(path).cell; }
  std::size_t size() const { return united_.size(); }
  void reserve(std::size_t nodes);
  const ModuleInfo& modules() const { return modules_; }

  /// Calls `visit(Cell)` for each cell that the call may write to, module state included.
  void for_each_written(const Node& call, const NodeEffects& effects, const std::function<void(Cell)>& visit) const;
  /// Calls `visit(Cell)` for the cells of what a called module, or the graphs that the call runs, hold: what it reads
  /// beside its inputs. Of tensors that no node has, or writes, there are none.
  void for_each_state(const Node& call, const NodeEffects& effects, const std::function<void(Cell)>& visit) const;

 private:
  friend class fx::EffectsBuilder;
  static constexpr std::uint32_t kGone = ~std::uint32_t{0};
  struct Held {
    Cell cell = 0;
    std::uint32_t holders = 0;  // nodes that name it
  };
  struct Attribute : Held {
    Symbol path;
  };

  bool classify_call(const Node& node, const NodeEffects& effects);
  void gather(const Node& input);
  bool gather_element(const Node& node);
  bool set(const Node& node);
  bool set_own(const Node& node, bool external);
  bool set_own_elements(const Node& node);
  Cell new_cell(bool external);
  Attribute& attribute(Symbol path);
  void hold(Attribute& named);
  Cell module_cell(const Node& node, Symbol path);
  void unite_state(Symbol module, Cell cell);
  void unite_for(const Node& node, std::span<const Cell> cells);
  void let_go(const Node& node);
  void unite_all();
  void visit_state(Symbol module, const std::function<void(Cell)>& visit) const;

  const Graph& graph_;
  const ModuleInfo modules_;
  const bool inputs_may_alias_;
  const std::function<bool(const Node&)> is_taken_for_own_;
  bool follows_edits_ = false;
  std::vector<CellList> values_;  // by id
  std::vector<Cell> lists_;
  DisjointCells united_;
  std::vector<bool> external_;          // by cell
  std::vector<std::uint8_t> elements_;  // by id: 1 + the last that is taken; empty where none is
  std::vector<Cell> gathered_;
  Cell inputs_ = 0;                      // 1 + the cell that all inputs share
  FlatMap<std::uint32_t> attribute_at_;  // by symbol: where in attributes_
  std::vector<Attribute> attributes_;
  std::unordered_map<Symbol, Held> module_cells_;
  std::unordered_map<std::string_view, std::vector<Symbol>> below_;  // the attributes under a path, where nobody says
  std::unordered_map<std::uint32_t, std::vector<Symbol>> named_;     // the modules that a node holds
  std::unordered_map<std::uint32_t, std::vector<Cell>> unions_;      // pairs, by the node that unites them
};

}  // namespace fx::internal
