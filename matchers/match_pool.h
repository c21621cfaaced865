// Many matches of one pattern, stored flat: a row of an arena for each. Internal to matchers/ and rewriter/.
#pragma once

#include <algorithm>
#include <memory>

#include <fxgraph/matchers/engine.h>
#include <fxgraph/support/chunked_vector.h>

namespace fx::internal {

class MatchPool {
 public:
  MatchPool() = default;
  MatchPool(const MatchPool&) = delete;
  ~MatchPool() {
    for (std::size_t i = 0; i < rows_.size(); ++i) std::destroy_n(rows_[i].values, width_);
  }

  std::size_t size() const { return rows_.size(); }

  /// Stores the engine's match.
  void add(const CompiledPattern& program, Engine& engine) {
    if (!pattern_) {
      pattern_ = program.shared_pattern();
      width_ = program.size();
      shapes_ = engine.shapes();
      has_alternatives_ = program.has_alternatives();
    }
    const std::vector<Node*>& nodes = engine.matched_nodes();
    const auto& interior = engine.interior();
    const Row row = new_row(nodes.size(), interior.size());
    for (std::uint32_t i = 0; i < width_; ++i)
      new (row.values + i) Argument(engine.is_bound(i) ? engine.value(i).copy() : Argument());
    for (std::uint32_t i = 0; has_alternatives_ && i < width_; ++i)
      alternatives(row)[i] = engine.is_bound(i) ? engine.alternative(i) : 0;
    std::copy(nodes.begin(), nodes.end(), nodes_of(row));
    std::copy(interior.begin(), interior.end(), interior_of(row));
    rows_.push_back(row);
  }

  /// Makes `match` the one at `i`, reusing its storage.
  void read(std::size_t i, Match& match) const { MatchBuilder::read(match, *this, i); }

 private:
  friend struct MatchBuilder;
  using Interior = std::pair<std::uint32_t, Node*>;

  /// The values; behind them the nodes, the interior, and the alternatives of each pattern node.
  struct Row {
    Argument* values;
    std::uint32_t num_nodes;
    std::uint32_t num_interior;
  };

  Row new_row(std::size_t nodes, std::size_t interior) {
    const std::size_t bytes = width_ * (sizeof(Argument) + 1) + nodes * sizeof(Node*) + interior * sizeof(Interior);
    return {static_cast<Argument*>(arena_.allocate(bytes)), static_cast<std::uint32_t>(nodes),
            static_cast<std::uint32_t>(interior)};
  }
  Node** nodes_of(const Row& row) const { return reinterpret_cast<Node**>(row.values + width_); }
  Interior* interior_of(const Row& row) const { return reinterpret_cast<Interior*>(nodes_of(row) + row.num_nodes); }
  std::uint8_t* alternatives(const Row& row) const {
    return reinterpret_cast<std::uint8_t*>(interior_of(row) + row.num_interior);
  }

  std::shared_ptr<const PatternData> pattern_;
  std::size_t width_ = 0;
  const Shapes* shapes_ = nullptr;
  bool has_alternatives_ = false;
  Arena arena_;
  ChunkedVector<Row> rows_;
};

inline void MatchBuilder::read(Match& match, const MatchPool& pool, std::size_t i) {
  if (match.pattern_ != pool.pattern_) {
    match.pattern_ = pool.pattern_;
    match.values_.resize(pool.width_);
  }
  match.shapes_ = pool.shapes_;
  const MatchPool::Row& row = pool.rows_[i];
  std::copy_n(row.values, pool.width_, match.values_.begin());
  match.nodes_.assign(pool.nodes_of(row), pool.nodes_of(row) + row.num_nodes);
  match.interior_.assign(pool.interior_of(row), pool.interior_of(row) + row.num_interior);
  if (pool.has_alternatives_) match.alternatives_.assign(pool.alternatives(row), pool.alternatives(row) + pool.width_);
}

}  // namespace fx::internal
