// Bytes as a file that has a path, without a disk; and what holds of every program that is loaded from one.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "tests/fuzz/fuzz.h"
#include "tests/support/allocations.h"

namespace fx::fuzz {

class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : file_(memfd_create("input", 0)) {
    expect(file_ >= 0 && write(file_, data, size) == static_cast<ssize_t>(size), "a file in memory can be made");
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

/// `load(path)` gives a module whose text reads back, or refuses in one line.
template <typename Load>
void check_loaded(const std::uint8_t* data, std::size_t size, const Load& load) {
  testing::limit_allocations(std::size_t{1} << 31);  // LibTorch takes the lengths that a damaged file says
  const MemoryFile file(data, size);
  const auto module = made_or_refused([&] { return load(file.path()); });
  if (!module) return;
  const std::string printed = print_graph((*module)->graph());
  const auto again = made_or_refused([&] { return parse_graph(printed); });
  expect(again && print_graph(*again) == printed, "what was loaded prints and parses", printed);
}

}  // namespace fx::fuzz
