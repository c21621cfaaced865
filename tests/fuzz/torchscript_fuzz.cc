// Saved modules of TorchScript: a program whose text reads back, or one line that says why not. What is changed gets
// the checksums that belong to it, so that it comes to the checks behind them, and to LibTorch's own reader
// (SECURITY.md).
#include <fxgraph/torchscript/import.h>

#include "tests/fuzz/memory_file.h"
#include "tests/support/zip_of.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file = fx::testing::with_right_checksums(std::string(fx::fuzz::text_of(data, size)));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  fx::fuzz::check_loaded(bytes, file.size(), [](const std::string& path) { return fx::load(path); });
  return 0;
}
