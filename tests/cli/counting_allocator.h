// LibTorch's CPU allocator, counting what it holds.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace fx::testing {

/// Counts from its first use to the end of the process, on all threads: SetCPUAllocator cannot be undone, for tensors
/// keep the function that frees them.
class CountingAllocator : public at::Allocator {
 public:
  /// Puts it in place of LibTorch's own.
  static CountingAllocator& installed();

  // Not marked override: a version of LibTorch has the first or the other two.
  virtual at::DataPtr allocate(std::size_t bytes) const;
  virtual at::DataPtr allocate(std::size_t bytes) { return std::as_const(*this).allocate(bytes); }
  virtual void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  at::DeleterFnPtr raw_deleter() const override { return &release; }

  /// What was allocated since the installation and is not freed, rounded up block by block to LibTorch's alignment.
  std::int64_t held() const;
  /// The most held since the last reset_peak().
  std::int64_t peak() const;
  void reset_peak();

 private:
  explicit CountingAllocator(at::Allocator* inner) : inner_(inner) {}
  static void release(void* block);

  at::Allocator* inner_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<void*, std::int64_t> bytes_;  // by block
  mutable std::int64_t held_ = 0, peak_ = 0;
};

}  // namespace fx::testing
