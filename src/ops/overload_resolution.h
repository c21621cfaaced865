// How well a call fits a schema: the one judge behind check_call and overload resolution.
#pragma once

#include <string>

#include <fxgraph/ops/schema.h>

namespace fx::internal {

/// How many conversions a call needs, dear ones counted several times.
struct Fit {
  int cost = 0;         ///< 0: none; negative: the call does not fit
  bool forced = false;  ///< needs one that no operator does by itself: a number for a tensor or a dtype, a node known
                        ///< to be another kind

  bool fits() const { return cost >= 0; }
};

/// Judges the call; when it does not fit, `why`, if given, says why.
Fit fit_call(const OperatorSchema& schema, ArgumentSpan args, KwargSpan kwargs, std::string* why = nullptr);

/// The first overload that fits with the fewest conversions, or null; with forced ones only if `allow_forced`.
const OperatorSchema* best_overload(const std::vector<const OperatorSchema*>& overloads, ArgumentSpan args,
                                    KwargSpan kwargs, bool allow_forced);

}  // namespace fx::internal
