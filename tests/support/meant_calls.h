// Which calls a pattern means, as the slow matcher sees it: by names alone, one rule after the other.
#pragma once

#include <fxgraph/matchers/pattern_access.h>

namespace fx::testing {

/// True for an operand that is written as a number, or is any.
bool is_number(const internal::PatternData& data, std::uint32_t index);

/// The node calls what the pattern names, in whatever words, or the overload that takes a number where the pattern's
/// takes a tensor, as far as both say a number.
bool is_meant(const internal::PatternData& data, const internal::PatternNode& call, const Node& node);

}  // namespace fx::testing
