// The operators that hostile programs are made of, by name; their arguments are drawn by schema.
// Internal to this library and the tests.
#pragma once

#include <span>
#include <string_view>

namespace fx::hostile {

std::span<const std::string_view> computing_operators();
/// In-place forms, and those that write to `out`.
std::span<const std::string_view> writing_operators();
std::span<const std::string_view> random_operators();
/// All others that can be drawn.
std::span<const std::string_view> rare_operators();
/// Programs in the form of patterns. What a placeholder is called says what it takes: `image_…`, `kernel_…`,
/// `matrix_…`, `vector_…`, `number_…`; any other name takes anything.
std::span<const std::string_view> motif_texts();

}  // namespace fx::hostile
