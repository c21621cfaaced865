// LibTorch's CPU allocator, counting what it holds.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace fx::testing {

/// Counts from its first use to the end of the process, on all threads: SetCPUAllocator cannot be undone, for tensors
/// keep the function that frees them.
class CountingAllocator : public at::Allocator {
 public:
  /// Puts it in place of LibTorch's own.
  static CountingAllocator& installed();

  at::DataPtr allocate(std::size_t bytes) const override;
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
