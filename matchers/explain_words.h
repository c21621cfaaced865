// Patterns, values and failed comparisons in words. Internal to matchers/.
#pragma once

#include <string>

#include <fxgraph/matchers/engine.h>

namespace fx::internal {

/// "aten::add.Tensor or aten::sub.Tensor", "a view operator", in the words of the pattern text.
std::string describe_targets(const TargetSet& set);

/// What a pattern node wants: "aten::add.Tensor", "an int", "a list of at least 2".
std::string describe(const PatternData& data, std::uint32_t index);

/// What stands there: "conv2d_3 (aten::conv2d)", "6.5", "nothing".
std::string describe(const Value& value);

/// Why a call of the pattern's operator is of no overload that the pattern's arguments fit: "aten::add.Tensor takes 2
/// by position, write alpha=… for the next". Empty when they fit, or the call is of another operator.
std::string misfit(const PatternNode& node, const Call& call);

/// One failed comparison: what is wanted and what is there.
struct Failure {
  std::uint32_t pattern;
  Value value;
  const Node* user;  ///< whose argument the value is; null for the anchor
  Mismatch why;
  std::uint32_t detail;
};
std::string explain_failure(const CompiledPattern& program, const Engine& engine, const Failure& failure);

}  // namespace fx::internal
