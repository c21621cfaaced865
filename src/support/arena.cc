#include <fxgraph/support/arena.h>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

namespace fx {

namespace {

constexpr std::size_t kSmallestBlock = std::size_t{4} << 10;
constexpr std::size_t kLargestBlock = std::size_t{2} << 20;
constexpr int kClasses = 10;  // 4 KiB … 2 MiB

char* fresh_block(std::size_t bytes) {
  const std::size_t alignment = bytes >= kLargestBlock ? kLargestBlock : 64;
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
  if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (bytes >= kLargestBlock) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: failure changes nothing
#endif
  return static_cast<char*>(memory);
}

class Pool {
 public:
  char* take(std::size_t bytes) {
    if (const int index = class_of(bytes); index >= 0) {
      std::lock_guard lock(mutex_);
      if (std::vector<char*>& free = free_[static_cast<std::size_t>(index)]; !free.empty()) {
        char* memory = free.back();
        free.pop_back();
        held_ -= bytes;
        return memory;
      }
    }
    return fresh_block(bytes);
  }

  void give(char* memory, std::size_t bytes) {
    const int index = class_of(bytes);
    if (index >= 0) {
      std::lock_guard lock(mutex_);
      if (held_ + bytes <= Arena::kPoolLimit) {
        free_[static_cast<std::size_t>(index)].push_back(memory);
        held_ += bytes;
        return;
      }
    }
    std::free(memory);
  }

  void trim() {
    std::lock_guard lock(mutex_);
    for (std::vector<char*>& free : free_) {
      for (char* memory : free) std::free(memory);
      free.clear();
    }
    held_ = 0;
  }

 private:
  // The pool's sizes are powers of two; others are not pooled.
  static int class_of(std::size_t bytes) {
    if (!std::has_single_bit(bytes) || bytes < kSmallestBlock || bytes > kLargestBlock) return -1;
    return std::countr_zero(bytes) - std::countr_zero(kSmallestBlock);
  }

  std::mutex mutex_;
  std::array<std::vector<char*>, kClasses> free_;
  std::size_t held_ = 0;
};

// Never destroyed: graphs may live in static objects.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

}  // namespace

Arena::~Arena() {
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) pool().give(block->memory, block->bytes);
}

void Arena::refill(std::size_t bytes) {
  const std::size_t wanted = std::clamp(bytes_ / 16, kSmallestBlock, kLargestBlock);
  const std::size_t block = bytes > kLargestBlock ? bytes : std::bit_ceil(std::max(bytes, std::bit_floor(wanted)));
  blocks_.reserve(blocks_.size() + 1);
  blocks_.push_back({pool().take(block), block});
  next_ = blocks_.back().memory;
  left_ = block;
  bytes_ += block;
}

void trim_memory() { pool().trim(); }

}  // namespace fx
