// How Effects is made. Internal to analysis/effects*.cc.
//
// One walk along the graph gives every value its cells: fresh ones, or those of the inputs that it aliases. Cells that
// turn out to be one storage are united (union-find); at the end the cells are renumbered as sets.
#pragma once

#include <numeric>
#include <vector>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/support/flat_map.h>

namespace fx {

/// R. E. Tarjan, "Efficiency of a good but not linear set union algorithm", 1975; path halving, smaller number wins.
class DisjointCells {
 public:
  using Cell = std::uint32_t;
  Cell add() {
    parent_.push_back(static_cast<Cell>(parent_.size()));
    return parent_.back();
  }
  Cell find(Cell cell) {
    while (parent_[cell] != cell) cell = parent_[cell] = parent_[parent_[cell]];
    return cell;
  }
  void unite(Cell a, Cell b) {
    a = find(a);
    b = find(b);
    if (a < b) {
      parent_[b] = a;
    } else {
      parent_[a] = b;
    }
  }
  std::size_t size() const { return parent_.size(); }
  void reserve(std::size_t count) { parent_.reserve(count); }

 private:
  std::vector<Cell> parent_;
};

class EffectsBuilder {
 public:
  EffectsBuilder(const Graph& graph, const EffectsOptions& options, Effects& result);
  void build();

 private:
  using Cell = DisjointCells::Cell;
  struct Write {
    Cell cell;
    Node* node;
  };

  void add_call(const Node& node);
  void add_writes(const Node& node, const NodeEffects& effects);
  bool add_tuple(const Node& node);
  bool add_element(const Node& node);
  void gather(const Node& input);
  void sort_gathered();
  Effects::Value listed();
  void set_cells(const Node& node);
  void set_fresh(const Node& node) { result_.values_[node.id()] = {external_cell(false), 1}; }
  Cell external_cell(bool external);
  Cell attribute_cell(Symbol path);
  Cell module_cell(Symbol path);
  void join_module_state();
  void add_state_reads();
  Effects::Value written_state(Symbol module);
  void number_sets();
  template <typename ForEach>
  void fill(Effects::Table& table, const ForEach& for_each);
  void fill_members();
  void fill_writers();
  void fill_state_readers();

  const Graph& graph_;
  const EffectsOptions& options_;
  Effects& result_;
  DisjointCells cells_;
  std::vector<Node*> order_;        // the nodes: later passes need not walk the list again
  std::vector<std::uint32_t> ids_;  // of them: nor look into them
  std::vector<bool> external_;      // by cell
  std::vector<bool> is_tuple_;      // by id; empty until there is one
  std::vector<Cell> gathered_;
  std::vector<Write> writes_;
  std::vector<bool> is_written_;        // by root, once the cells are united
  FlatMap<Cell> attributes_, modules_;  // by symbol; 1 + cell
  std::vector<Symbol> attribute_paths_;
  std::vector<std::pair<Symbol, Cell>> module_cells_;  // of those that write
  Cell inputs_ = 0;                                    // 1 + the cell that all inputs share
};

}  // namespace fx
