// Tensor vocabulary that the graph knows without LibTorch: element types, devices, layouts, memory formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fxgraph/support/symbol.h>

namespace fx {

/// Element types, numbered as LibTorch numbers its scalar types.
enum class DType : std::uint8_t {
  uint8 = 0,
  int8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  float16 = 5,
  float32 = 6,
  float64 = 7,
  complex32 = 8,
  complex64 = 9,
  complex128 = 10,
  boolean = 11,
  qint8 = 12,
  quint8 = 13,
  qint32 = 14,
  bfloat16 = 15,
  quint4x2 = 16,
  quint2x4 = 17,
  float8_e5m2 = 23,
  float8_e4m3fn = 24,
  float8_e5m2fnuz = 25,
  float8_e4m3fnuz = 26,
  uint16 = 27,
  uint32 = 28,
  uint64 = 29,
};

/// Returns Python's name without `torch.`: `float32`, `bool`.
std::string_view to_string(DType dtype);
/// Reads Python's name, with or without `torch.`, aliases (`float`, `long`, `half`) included.
std::optional<DType> parse_dtype(std::string_view name);
/// Bytes of one element.
int element_size(DType dtype);

/// A device such as `cpu` or `cuda:1`; index -1 means "the current one".
struct Device {
  Symbol type;              ///< `cpu`, `cuda`, `meta`, …
  std::int32_t index = -1;  ///< which of several; -1: the current one
  /// Same type, same index: `cuda` and `cuda:0` differ.
  friend bool operator==(const Device&, const Device&) = default;
};

/// Reads `cpu`, `cuda:0`.
std::optional<Device> parse_device(std::string_view text);
/// Prints `cpu`, `cuda:0`.
std::string to_string(const Device& device);

/// `strided`, `sparse_coo`, …
struct Layout {
  Symbol name;  ///< as Python has it, without the `torch` before it
  /// Same name.
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// `contiguous_format`, `channels_last`, `preserve_format`, …
struct MemoryFormat {
  Symbol name;  ///< as Python has it, without the `torch` before it
  /// Same name.
  friend bool operator==(const MemoryFormat&, const MemoryFormat&) = default;
};

}  // namespace fx
