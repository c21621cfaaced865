// The declarations of the built-in operators, as data.
#pragma once

#include <span>
#include <string_view>

namespace fx::internal {

/// All declarations, sorted by operator.
std::span<const std::string_view> builtin_declarations();

/// Those of the overloads of `packet` (`aten::add`), found by binary search.
std::span<const std::string_view> builtin_declarations(std::string_view packet);

}  // namespace fx::internal
