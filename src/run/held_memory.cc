#include <fxgraph/run/held_memory.h>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

namespace fx {

struct HeldMemory::Blocks {
  struct Free {
    void* data;
    std::int64_t last_run;
  };

  std::multimap<std::size_t, Free> free;  // by size
  std::size_t bytes = 0, num_made = 0;
  std::int64_t run = 0;
  bool closed = false;  // its HeldMemory is gone
};

namespace {

using Blocks = HeldMemory::Blocks;

thread_local const std::shared_ptr<Blocks>* blocks_of_thread = nullptr;

// LibTorch's allocator for main memory, with ours before it. It is put there with the first HeldMemory and stays.
class HoldingAllocator final : public c10::Allocator {
 public:
  explicit HoldingAllocator(c10::Allocator* behind) : behind_(behind) {}

  // Which of the two is virtual, and whether there is a copy_data, depends on LibTorch's version.
  // NOLINTBEGIN(modernize-use-override)
  at::DataPtr allocate(std::size_t size) { return allocate_here(size); }
  at::DataPtr allocate(std::size_t size) const { return allocate_here(size); }
  void copy_data(void* to, const void* from, std::size_t size) const { std::memcpy(to, from, size); }
  // NOLINTEND(modernize-use-override)

  // A block is one of the allocator behind, whole, so that its deleter takes it too.
  c10::DeleterFnPtr raw_deleter() const override { return behind_->raw_deleter(); }

  // One lock for all: a block of this size costs far more to fill.
  mutable std::mutex mutex;

  // With the lock held.
  void release(void* data) const { behind_->raw_deleter()(data); }

 private:
  struct Taken {
    std::shared_ptr<Blocks> owner;
    std::size_t size;
  };

  at::DataPtr allocate_here(std::size_t size) const;
  static void give_back(void* data);

  c10::Allocator* behind_;
  mutable std::unordered_map<void*, Taken> taken_;
};

HoldingAllocator& allocator() {
  static HoldingAllocator& made = *[] {  // tensors in static variables outlive all else
    auto* const holding = new HoldingAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(holding, UINT8_MAX);
    return holding;
  }();
  return made;
}

at::DataPtr HoldingAllocator::allocate_here(std::size_t size) const {
  const std::shared_ptr<Blocks>* const owner = blocks_of_thread;
  if (!owner || size < HeldMemory::kSmallestBlock || !behind_->raw_deleter()) return behind_->allocate(size);
  const std::lock_guard lock(mutex);
  Blocks& blocks = **owner;
  void* data = nullptr;
  const auto found = blocks.free.lower_bound(size);
  if (found != blocks.free.end() && found->first - size <= size / 8) {
    data = found->second.data;
    taken_[data] = {*owner, found->first};
    blocks.free.erase(found);
  } else {
    data = behind_->raw_allocate(size);
    taken_[data] = {*owner, size};
    blocks.bytes += size;
    ++blocks.num_made;
  }
  return {data, data, &give_back, c10::Device(c10::DeviceType::CPU)};
}

void HoldingAllocator::give_back(void* data) {
  const HoldingAllocator& all = allocator();
  const std::lock_guard lock(all.mutex);
  const auto found = all.taken_.find(data);
  const Taken taken = std::move(found->second);
  all.taken_.erase(found);
  if (taken.owner->closed) {
    taken.owner->bytes -= taken.size;
    all.release(data);
  } else {
    taken.owner->free.emplace(taken.size, Blocks::Free{data, taken.owner->run});
  }
}

// Gives back what was free since before `run`.
void release_idle(Blocks& blocks, std::int64_t run) {
  for (auto at = blocks.free.begin(); at != blocks.free.end();) {
    if (at->second.last_run >= run) {
      ++at;
      continue;
    }
    allocator().release(at->second.data);
    blocks.bytes -= at->first;
    at = blocks.free.erase(at);
  }
}

}  // namespace

HeldMemory::Scope::Scope(HeldMemory* memory) : mine_(memory ? &memory->blocks_ : nullptr), outer_(blocks_of_thread) {
  if (mine_) blocks_of_thread = mine_;
}

HeldMemory::Scope::~Scope() {
  if (!mine_) return;
  blocks_of_thread = outer_;
  const std::lock_guard lock(allocator().mutex);
  Blocks& blocks = **mine_;
  release_idle(blocks, ++blocks.run - kIdleRuns);
}

HeldMemory::HeldMemory() : blocks_(std::make_shared<Blocks>()) { allocator(); }

HeldMemory::~HeldMemory() {
  const std::lock_guard lock(allocator().mutex);
  blocks_->closed = true;
  release_idle(*blocks_, INT64_MAX);
}

std::size_t HeldMemory::bytes() const {
  const std::lock_guard lock(allocator().mutex);
  return blocks_->bytes;
}

std::size_t HeldMemory::num_made() const {
  const std::lock_guard lock(allocator().mutex);
  return blocks_->num_made;
}

}  // namespace fx
