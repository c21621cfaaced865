// Many matches of one pattern, stored flat: no allocation for each. Internal to matchers/ and rewriter/.
#pragma once

#include <vector>

#include "matchers/engine.h"

namespace fx::internal {

class MatchPool {
 public:
  std::size_t size() const { return starts_.size(); }

  /// Stores the engine's match.
  void add(const Program& program, Engine& engine) {
    if (!pattern_) pattern_ = program.shared_pattern();
    for (std::uint32_t i = 0; i < program.size(); ++i) {
      values_.push_back(engine.is_bound(i) ? engine.value(i).copy() : Argument());
      if (program.has_alternatives()) alternatives_.push_back(engine.is_bound(i) ? engine.alternative(i) : 0);
    }
    starts_.push_back(static_cast<std::uint32_t>(nodes_.size()));
    const std::vector<Node*>& nodes = engine.matched_nodes();
    nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
  }

  /// Makes `match` the one at `i`, reusing its storage.
  void read(std::size_t i, Match& match) const {
    const std::size_t width = pattern_->nodes.size();
    const std::size_t end = i + 1 < starts_.size() ? starts_[i + 1] : nodes_.size();
    MatchBuilder::assign(match, pattern_, std::span(values_).subspan(i * width, width), std::span(nodes_).subspan(starts_[i], end - starts_[i]),
                         alternatives_.empty() ? std::span<const std::uint8_t>() : std::span(alternatives_).subspan(i * width, width));
  }

 private:
  std::shared_ptr<const PatternData> pattern_;
  std::vector<Argument> values_;
  std::vector<Node*> nodes_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint8_t> alternatives_;
};

}  // namespace fx::internal
