// A bump allocator: many small allocations of trivial lifetime, freed together.
//
// Blocks grow with the arena, a sixteenth of it at a time, from 4 KiB to 2 MiB, so that a small graph stays small and a
// large one makes few calls. Large blocks are handed back to a process-wide pool and used again: fresh memory costs a
// page fault per 4 KiB, which on graphs of 10^5 nodes is most of the time of a copy. The pool keeps at most kPoolLimit
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fx {

/// Hands out storage that lives until the arena ends; runs no destructors.
class Arena {
 public:
  static constexpr std::size_t kPoolLimit = std::size_t{256} << 20;  ///< bytes that the process-wide pool keeps

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  /// Returns `bytes` of uninitialised storage aligned to 16.
  void* allocate(std::size_t bytes) {
    bytes = (bytes + 15) & ~std::size_t{15};
    if (bytes > left_) refill(bytes);
    void* place = next_;
    next_ += bytes;
    left_ -= bytes;
    return place;
  }

  /// The same, aligned to a cache line.
  void* allocate_line(std::size_t bytes) {
    const std::size_t skip = -reinterpret_cast<std::uintptr_t>(next_) & 63;
    if (bytes + skip > left_) {
      refill(bytes);
    } else {
      next_ += skip;
      left_ -= skip;
    }
    return allocate(bytes);
  }

  /// The storage held, in bytes.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Block {
    char* memory;
    std::size_t bytes;
  };
  void refill(std::size_t bytes);

  std::vector<Block> blocks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t bytes_ = 0;
};

/// Gives the pool's unused blocks back to the system.
void trim_memory();

}  // namespace fx
