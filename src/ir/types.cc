#include <fxgraph/ir/types.h>

#include <array>
#include <charconv>

namespace fx {

namespace {

struct DTypeRow {
  std::string_view name;
  DType dtype;
  int bytes;
};

// The first row of a type names it; later rows are aliases.
constexpr DTypeRow kDTypes[] = {
    {"uint8", DType::uint8, 1},
    {"int8", DType::int8, 1},
    {"int16", DType::int16, 2},
    {"int32", DType::int32, 4},
    {"int64", DType::int64, 8},
    {"float16", DType::float16, 2},
    {"float32", DType::float32, 4},
    {"float64", DType::float64, 8},
    {"complex32", DType::complex32, 4},
    {"complex64", DType::complex64, 8},
    {"complex128", DType::complex128, 16},
    {"bool", DType::boolean, 1},
    {"qint8", DType::qint8, 1},
    {"quint8", DType::quint8, 1},
    {"qint32", DType::qint32, 4},
    {"bfloat16", DType::bfloat16, 2},
    {"quint4x2", DType::quint4x2, 1},
    {"quint2x4", DType::quint2x4, 1},
    {"float8_e5m2", DType::float8_e5m2, 1},
    {"float8_e4m3fn", DType::float8_e4m3fn, 1},
    {"float8_e5m2fnuz", DType::float8_e5m2fnuz, 1},
    {"float8_e4m3fnuz", DType::float8_e4m3fnuz, 1},
    {"uint16", DType::uint16, 2},
    {"uint32", DType::uint32, 4},
    {"uint64", DType::uint64, 8},
    {"short", DType::int16, 2},
    {"int", DType::int32, 4},
    {"long", DType::int64, 8},
    {"half", DType::float16, 2},
    {"float", DType::float32, 4},
    {"double", DType::float64, 8},
    {"cfloat", DType::complex64, 8},
    {"cdouble", DType::complex128, 16},
};

const DTypeRow* row_of(DType dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

}  // namespace

std::string_view to_string(DType dtype) {
  const DTypeRow* row = row_of(dtype);
  return row ? row->name : "unknown_dtype";
}

int element_size(DType dtype) {
  const DTypeRow* row = row_of(dtype);
  return row ? row->bytes : 0;
}

std::optional<DType> parse_dtype(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<Device> parse_device(std::string_view text) {
  static constexpr std::array<std::string_view, 14> kTypes = {"cpu",  "cuda",   "meta",          "mps",   "xpu",
                                                              "xla",  "vulkan", "hip",           "hpu",   "ipu",
                                                              "mtia", "npu",    "privateuseone", "mkldnn"};
  const std::size_t colon = text.find(':');
  const std::string_view type = text.substr(0, colon);
  bool known = false;
  for (const std::string_view candidate : kTypes) known |= candidate == type;
  if (!known) return std::nullopt;
  Device device{Symbol(type), -1};
  if (colon != std::string_view::npos) {
    const std::string_view index = text.substr(colon + 1);
    const char* end = index.data() + index.size();
    if (std::from_chars(index.data(), end, device.index).ptr != end || device.index < 0) return std::nullopt;
  }
  return device;
}

std::string to_string(const Device& device) {
  std::string text = device.type.str();
  if (device.index >= 0) text += ":" + std::to_string(device.index);
  return text;
}

}  // namespace fx
