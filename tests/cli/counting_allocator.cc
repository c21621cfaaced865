#include "tests/cli/counting_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <limits>

namespace fx::testing {

CountingAllocator& CountingAllocator::installed() {
  static CountingAllocator* const kAllocator = [] {
    auto* made = new CountingAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(made, std::numeric_limits<std::uint8_t>::max());
    return made;
  }();
  return *kAllocator;
}

at::DataPtr CountingAllocator::allocate(std::size_t bytes) const {
  at::DataPtr data = inner_->allocate(bytes);
  const at::Device device = data.device();
  void* const block = data.release_context();
  if (!block) return {nullptr, device};  // 0 bytes
  const std::lock_guard lock(mutex_);
  held_ += bytes_[block] = static_cast<std::int64_t>((bytes + 63) / 64 * 64);
  peak_ = std::max(peak_, held_);
  return {block, block, &release, device};
}

void CountingAllocator::release(void* block) {
  if (!block) return;
  const CountingAllocator& self = installed();
  {
    const std::lock_guard lock(self.mutex_);
    const auto found = self.bytes_.find(block);
    self.held_ -= found->second;
    self.bytes_.erase(found);
  }
  self.inner_->raw_deleter()(block);
}

std::int64_t CountingAllocator::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

std::int64_t CountingAllocator::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void CountingAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = held_;
}

}  // namespace fx::testing
