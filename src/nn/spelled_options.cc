#include <fxgraph/nn/spelled_options.h>

namespace fx::internal {

std::optional<HyperParameters> read_options(std::span<const OptionReader> readers, std::size_t taken,
                                            const void* options, const void* plain) {
  HyperParameters all;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const Spelled value = readers[i].read(options);
    if (value.cpp.empty()) return std::nullopt;
    const bool by_position = i < taken;
    all.push_back({.name = readers[i].python ? readers[i].python : readers[i].name,
                   .value = value.python,
                   .is_default = !by_position && readers[i].read(plain).cpp == value.cpp,
                   .by_position = by_position,
                   .cpp_value = value.cpp,
                   .cpp_setter = readers[i].name});
  }
  return all;
}

}  // namespace fx::internal
