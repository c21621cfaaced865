// Archives of torch.export: a program whose text reads back, or one line that says why not.
#include <fxgraph/export/load.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fx::fuzz::MemoryFile file(data, size);
  const auto module = fx::fuzz::made_or_refused([&] { return fx::load_exported(file.path()); });
  if (!module) return 0;
  const std::string printed = fx::print_graph((*module)->graph());
  const auto again = fx::fuzz::made_or_refused([&] { return fx::parse_graph(printed); });
  fx::fuzz::expect(again && fx::print_graph(*again) == printed, "what was loaded prints and parses", printed);
  return 0;
}
