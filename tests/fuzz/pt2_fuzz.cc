// Archives of torch.export: a program whose text reads back, or one line that says why not.
#include <fxgraph/export/load.h>

#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fx::fuzz::check_loaded(data, size, [](const std::string& path) { return fx::load_exported(path); });
  return 0;
}
