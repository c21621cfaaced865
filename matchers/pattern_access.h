// What patterns, expressions and matches are made of, for what compiles, searches and rewrites. Internal to matchers/
// and rewriter/.
#pragma once

#include <memory>
#include <utility>

#include <fxgraph/matchers/expr_node.h>
#include <fxgraph/matchers/match.h>
#include <fxgraph/matchers/pattern_data.h>
#include <fxgraph/matchers/pattern_facts.h>

namespace fx::internal {

struct PatternAccess {
  static const PatternData& of(const Pattern& pattern) { return pattern.prepared_->data; }
  /// What Match::values() are numbered by.
  static const PatternData& of(const Match& match) { return *match.pattern_; }
  static const ExprNode& of(const match::Expr& expr) { return *expr.node_; }
  static std::shared_ptr<const PatternData> shared(const Pattern& pattern) {
    return {pattern.prepared_, &pattern.prepared_->data};
  }
  /// The pattern's own facts where they hold: those of a search where all that commutes does, or behind schemas that
  /// were registered since, are made here.
  static std::shared_ptr<const PatternFacts> facts(const Pattern& pattern, const FindOptions& options);
  static match::Expr make(ExprNode node) { return match::Expr(std::make_shared<const ExprNode>(std::move(node))); }
};

}  // namespace fx::internal
