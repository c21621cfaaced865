// What patterns, expressions and matches are made of, for what compiles, searches and rewrites. Internal to matchers/
// and rewriter/.
#pragma once

#include <memory>
#include <utility>

#include <fxgraph/matchers/expr_node.h>
#include <fxgraph/matchers/match.h>
#include <fxgraph/matchers/pattern_data.h>

namespace fx::internal {

struct PatternAccess {
  static const PatternData& of(const Pattern& pattern) { return *pattern.data_; }
  /// What Match::values() are numbered by.
  static const PatternData& of(const Match& match) { return *match.pattern_; }
  static const ExprNode& of(const match::Expr& expr) { return *expr.node_; }
  static const std::shared_ptr<const PatternData>& shared(const Pattern& pattern) { return pattern.data_; }
  static match::Expr make(ExprNode node) { return match::Expr(std::make_shared<const ExprNode>(std::move(node))); }
};

}  // namespace fx::internal
