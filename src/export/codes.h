// The numbers that torch.export's schema gives to element types, layouts and memory formats, as tables both ways.
//
// They are the schema's own: not LibTorch's, not ours. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include <fxgraph/ir/types.h>

namespace fx::pt2 {

/// The element type with this number; nothing when the schema or fxgraph knows none.
std::optional<DType> dtype_of_code(std::int64_t code);
std::optional<std::int64_t> code_of(DType dtype);

std::optional<Layout> layout_of_code(std::int64_t code);
std::optional<std::int64_t> code_of(const Layout& layout);

std::optional<MemoryFormat> memory_format_of_code(std::int64_t code);
std::optional<std::int64_t> code_of(const MemoryFormat& format);

}  // namespace fx::pt2
