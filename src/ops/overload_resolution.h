// Which conversions a call needs to fit a schema: the one judge behind check_call and overload resolution.
#pragma once

#include <span>
#include <string>

#include <fxgraph/ops/schema.h>

namespace fx::internal {

/// What the conversions that a call needs cost: one each, dear ones several times that.
struct ConversionCost {
  int value = 0;        ///< 0: none; negative: the call does not fit
  bool forced = false;  ///< needs one that no operator does by itself: a number for a tensor or a dtype, a node known
                        ///< to be another kind

  bool wrong = false;  ///< needs a node to be of another kind than it is known to be

  bool viable() const { return value >= 0; }
};

/// Judges the call; when it does not fit, `why`, if given, says why.
ConversionCost conversion_cost(const OperatorSchema& schema, ArgumentSpan args, KwargSpan kwargs,
                               std::string* why = nullptr);

/// The first overload that fits with the fewest conversions, or null; with forced ones only if `allow_forced`.
const OperatorSchema* best_overload(std::span<const OperatorSchema* const> overloads, ArgumentSpan args,
                                    KwargSpan kwargs, bool allow_forced);

}  // namespace fx::internal
