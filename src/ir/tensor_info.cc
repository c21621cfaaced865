#include <fxgraph/ir/tensor_info.h>

#include <charconv>

namespace fx {

std::int64_t TensorInfo::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

std::int64_t TensorInfo::held_bytes() const {
  if (storage_bytes >= 0) return storage_bytes;
  if (strides.empty() || numel() == 0) return bytes();
  std::int64_t last = 0;  // the place of the last element
  for (std::size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
  return (last + 1) * element_size(dtype);
}

bool TensorInfo::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = strides.empty() ? 0 : sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

std::string to_string(const TensorInfo& tensor) {
  std::string text(to_string(tensor.dtype));
  text += '[';
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(tensor.sizes[i]);
  }
  return text + ']';
}

std::int64_t ValueInfo::bytes() const {
  std::int64_t sum = 0;
  for (const TensorInfo& tensor : tensors) sum += tensor.bytes();
  return sum;
}

std::optional<TensorInfo> parse_tensor_info(std::string_view text) {
  TensorInfo info;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    const std::optional<DType> dtype = parse_dtype(text.substr(colon + 1));
    if (!dtype) return std::nullopt;
    info.dtype = *dtype;
    text = text.substr(0, colon);
    if (text.empty()) return info;
  }
  std::int64_t total = 1;
  for (;;) {
    const std::size_t x = text.find('x');
    const std::string_view number = text.substr(0, x);
    std::int64_t size = -1;
    const char* const end = std::from_chars(number.data(), number.data() + number.size(), size).ptr;
    if (end != number.data() + number.size() || size < 0) return std::nullopt;    // what is too large leaves it at -1
    if (size > 0 && total > (std::int64_t{1} << 48) / size) return std::nullopt;  // more than any machine holds
    total *= size > 0 ? size : 1;
    info.sizes.push_back(size);
    if (x == std::string_view::npos) return info;
    text = text.substr(x + 1);
  }
}

}  // namespace fx
