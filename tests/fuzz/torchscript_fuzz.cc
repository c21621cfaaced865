// Saved modules of TorchScript: a program whose text reads back, or one line that says why not.
#include <fxgraph/torchscript/import.h>

#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fx::fuzz::check_loaded(data, size, [](const std::string& path) { return fx::load(path); });
  return 0;
}
