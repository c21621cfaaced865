// Many matches of one pattern, stored flat: no allocation for each. Internal to matchers/ and rewriter/.
#pragma once

#include <vector>

#include <fxgraph/matchers/engine.h>
#include <fxgraph/support/chunked_vector.h>

namespace fx::internal {

class MatchPool {
 public:
  std::size_t size() const { return ends_.size(); }

  /// Stores the engine's match.
  void add(const CompiledPattern& program, Engine& engine) {
    if (!pattern_) pattern_ = program.shared_pattern();
    shapes_ = engine.shapes();
    for (std::uint32_t i = 0; i < program.size(); ++i) {
      const Value value = engine.is_bound(i) ? engine.value(i) : Value{};
      values_.emplace_back(value.copy());
      if (program.has_alternatives()) alternatives_.push_back(engine.is_bound(i) ? engine.alternative(i) : 0);
    }
    for (Node* node : engine.matched_nodes()) nodes_.push_back(node);
    ends_.push_back(static_cast<std::uint32_t>(nodes_.size()));
    if (!program.has_interior()) return;
    interior_.insert(interior_.end(), engine.interior().begin(), engine.interior().end());
    interior_ends_.push_back(interior_.size());
  }

  /// Makes `match` the one at `i`, reusing its storage.
  void read(std::size_t i, Match& match) const { MatchBuilder::read(match, *this, i); }

 private:
  std::shared_ptr<const PatternData> pattern_;
  const Shapes* shapes_ = nullptr;
  friend struct MatchBuilder;

  ChunkedVector<Argument> values_;
  ChunkedVector<Node*> nodes_;
  ChunkedVector<std::uint32_t> ends_;  // of each match's nodes
  std::vector<std::uint8_t> alternatives_;
  std::vector<std::pair<std::uint32_t, Node*>> interior_;  // and their ends, where the pattern can have any
  std::vector<std::size_t> interior_ends_;
};

inline void MatchBuilder::read(Match& match, const MatchPool& pool, std::size_t i) {
  if (match.pattern_ != pool.pattern_) match.pattern_ = pool.pattern_;
  match.shapes_ = pool.shapes_;
  const std::size_t width = pool.pattern_->nodes.size();
  match.values_.resize(width);
  for (std::size_t k = 0; k < width; ++k) match.values_[k] = pool.values_[i * width + k];
  match.nodes_.clear();
  for (std::size_t k = i == 0 ? 0 : pool.ends_[i - 1]; k < pool.ends_[i]; ++k) match.nodes_.push_back(pool.nodes_[k]);
  match.interior_.clear();
  if (!pool.interior_ends_.empty()) {
    const auto begin = static_cast<std::ptrdiff_t>(i == 0 ? 0 : pool.interior_ends_[i - 1]);
    match.interior_.assign(pool.interior_.begin() + begin,
                           pool.interior_.begin() + static_cast<std::ptrdiff_t>(pool.interior_ends_[i]));
  }
  if (pool.alternatives_.empty()) return;
  const auto first = pool.alternatives_.begin() + static_cast<std::ptrdiff_t>(i * width);
  match.alternatives_.assign(first, first + static_cast<std::ptrdiff_t>(width));
}

}  // namespace fx::internal
