// What makes expressions that are in canonical form already.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <fxgraph/symbolic/size_expr.h>

namespace fx {

/// See the top of this file.
struct CanonicalForm {
  /// In canonical form where its operands are.
  static SizeExpr call(const char* function, std::vector<SizeExpr> operands) {
    return SizeExpr::make(SizeExpr::Kind::call, function, std::move(operands), true);
  }
  /// A power multiplied out; nothing where it is none of a small whole number.
  static std::optional<SizeExpr> power(const SizeExpr& power);
};

}  // namespace fx
