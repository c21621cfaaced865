#include <fxgraph/export/codes.h>

namespace fx::pt2 {
namespace {

struct DTypeCode {
  std::int64_t code;
  DType dtype;
};
constexpr DTypeCode kDTypes[] = {
    {1, DType::uint8},
    {2, DType::int8},
    {3, DType::int16},
    {4, DType::int32},
    {5, DType::int64},
    {6, DType::float16},
    {7, DType::float32},
    {8, DType::float64},
    {9, DType::complex32},
    {10, DType::complex64},
    {11, DType::complex128},
    {12, DType::boolean},
    {13, DType::bfloat16},
    {28, DType::uint16},
    {29, DType::float8_e4m3fn},
    {30, DType::float8_e5m2},
    {31, DType::float8_e4m3fnuz},
    {32, DType::float8_e5m2fnuz},
    {34, DType::uint32},
    {35, DType::uint64},
};

// Names by number; number 0 is "unknown".
constexpr const char* kLayouts[] = {nullptr,      "sparse_coo", "sparse_csr", "sparse_csc",
                                    "sparse_bsr", "sparse_bsc", "_mkldnn",    "strided"};
constexpr const char* kMemoryFormats[] = {nullptr, "contiguous_format", "channels_last", "channels_last_3d",
                                          "preserve_format"};

template <std::size_t size>
const char* name_of_code(const char* const (&names)[size], std::int64_t code) {
  return code > 0 && code < static_cast<std::int64_t>(size) ? names[code] : nullptr;
}

template <std::size_t size>
std::optional<std::int64_t> code_of_name(const char* const (&names)[size], Symbol name) {
  for (std::size_t i = 1; i < size; ++i) {
    if (name == names[i]) return static_cast<std::int64_t>(i);
  }
  return std::nullopt;
}

}  // namespace

std::optional<DType> dtype_of_code(std::int64_t code) {
  for (const DTypeCode& row : kDTypes) {
    if (row.code == code) return row.dtype;
  }
  return std::nullopt;
}

std::optional<std::int64_t> code_of(DType dtype) {
  for (const DTypeCode& row : kDTypes) {
    if (row.dtype == dtype) return row.code;
  }
  return std::nullopt;
}

std::optional<Layout> layout_of_code(std::int64_t code) {
  const char* name = name_of_code(kLayouts, code);
  return name ? std::optional(Layout{Symbol(name)}) : std::nullopt;
}
std::optional<std::int64_t> code_of(const Layout& layout) { return code_of_name(kLayouts, layout.name); }

std::optional<MemoryFormat> memory_format_of_code(std::int64_t code) {
  const char* name = name_of_code(kMemoryFormats, code);
  return name ? std::optional(MemoryFormat{Symbol(name)}) : std::nullopt;
}
std::optional<std::int64_t> code_of(const MemoryFormat& format) { return code_of_name(kMemoryFormats, format.name); }

}  // namespace fx::pt2
