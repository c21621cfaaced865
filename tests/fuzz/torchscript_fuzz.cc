// Saved modules of TorchScript: a program whose text reads back, or one line that says why not. What is damaged is
// refused by its checksum, so that few inputs get as far as LibTorch's own reader (SECURITY.md).
#include <fxgraph/torchscript/import.h>

#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fx::fuzz::check_loaded(data, size, [](const std::string& path) { return fx::load(path); });
  return 0;
}
