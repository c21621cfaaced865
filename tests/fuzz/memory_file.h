// Bytes as a file that has a path, without a disk.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

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

}  // namespace fx::fuzz
