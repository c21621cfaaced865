// A growing array whose elements never move, in chunks from an arena.
//
// For long sequences that come and go: a std::vector copies what it holds as it grows and gives its memory back to the
// system, where the next one pays a page fault for every 4 KiB; an arena's blocks are used again.
//
// Thread-safety: that of std::vector.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include <fxgraph/support/arena.h>

namespace fx {

template <typename T>
class ChunkedVector {
 public:
  ChunkedVector() = default;
  ChunkedVector(const ChunkedVector&) = delete;
  ChunkedVector& operator=(const ChunkedVector&) = delete;
  ~ChunkedVector() { shrink(0); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  const T& operator[](std::size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
  T& back() { return (*this)[size_ - 1]; }

  template <typename... Args>
  T& emplace_back(Args&&... args) {
    if (next_ == limit_) [[unlikely]]
      next_chunk();
    T* made = new (next_) T(std::forward<Args>(args)...);
    ++next_;
    ++size_;
    return *made;
  }
  void push_back(const T& value) { emplace_back(value); }
  void pop_back() {
    (*this)[--size_].~T();
    set_end();
  }
  /// Drops all elements from `size` on; their room is kept.
  void shrink(std::size_t size) {
    while (size_ > size) (*this)[--size_].~T();
    set_end();
  }

 private:
  static_assert(alignof(T) <= 16);
  static constexpr std::size_t kChunk = std::bit_floor(std::max<std::size_t>(2048 / sizeof(T), 1));

  // Where the next element goes, unless a chunk ends there.
  void set_end() {
    const std::size_t used = size_ % kChunk;
    limit_ = used == 0 ? nullptr : chunks_[size_ / kChunk] + kChunk;
    next_ = used == 0 ? nullptr : limit_ - kChunk + used;
  }

  [[gnu::noinline]] void next_chunk() {
    const std::size_t at = size_ / kChunk;
    if (at == chunks_.size()) chunks_.push_back(static_cast<T*>(arena_.allocate(kChunk * sizeof(T))));
    next_ = chunks_[at];
    limit_ = next_ + kChunk;
  }

  Arena arena_;
  std::vector<T*> chunks_;
  std::size_t size_ = 0;
  T* next_ = nullptr;
  T* limit_ = nullptr;
};

}  // namespace fx
