#include <fxgraph/trace/proxy_memory.h>

#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <new>

namespace fx::internal {
namespace {

constexpr std::size_t kReserved = std::size_t{1} << 38;  // addresses, no memory: 800 million proxies
constexpr std::size_t kSlab = std::size_t{1} << 18;      // what is taken and given back at once
constexpr std::size_t kAlignment = 16;

std::atomic<int> exact{0};

class Arena {
 public:
  void* allocate(std::size_t size) {
    size = (size + kAlignment - 1) / kAlignment * kAlignment;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (size > end_ - next_ && !take_slab()) return nullptr;
    const std::uintptr_t memory = next_;
    next_ += size;
    ++slab(memory).alive;
    return reinterpret_cast<void*>(memory);  // NOLINT: addresses are what this is about
  }

  bool release(void* memory) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    if (!contains(address)) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    Slab& left = slab(address);
    if (--left.alive == 0 && address / kSlab != (end_ - 1) / kSlab) give_back(left);
    return true;
  }

  bool contains(std::uintptr_t address) const {
    const std::uintptr_t begin = begin_.load(std::memory_order_acquire);
    return begin != 0 && address - begin < kReserved;
  }

 private:
  struct Slab {
    std::size_t alive;
  };

  static Slab& slab(std::uintptr_t address) { return *reinterpret_cast<Slab*>(address / kSlab * kSlab); }  // NOLINT
  static void give_back(Slab& slab) { madvise(&slab, kSlab, MADV_DONTNEED); }

  bool take_slab() {
    if (!reserve() || end_ == begin_.load() + kReserved) return false;
    if (end_ != begin_.load() && slab(end_ - 1).alive == 0) give_back(slab(end_ - 1));
    auto* const memory = reinterpret_cast<void*>(end_);  // NOLINT
    if (mprotect(memory, kSlab, PROT_READ | PROT_WRITE) != 0) return false;
#ifdef MADV_POPULATE_WRITE
    madvise(memory, kSlab, MADV_POPULATE_WRITE);  // all pages at once; where that is not known, one by one
#endif
    next_ = end_ + sizeof(Slab) + kAlignment - sizeof(Slab) % kAlignment;
    end_ += kSlab;
    return true;
  }

  bool reserve() {
    if (begin_.load() != 0) return true;
    if (failed_) return false;
    void* const memory =
        mmap(nullptr, kReserved + kSlab, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    failed_ = memory == MAP_FAILED;
    if (failed_) return false;
    next_ = end_ = (reinterpret_cast<std::uintptr_t>(memory) + kSlab - 1) / kSlab * kSlab;
    begin_.store(end_, std::memory_order_release);
    return true;
  }

  std::mutex mutex_;
  std::atomic<std::uintptr_t> begin_{0};
  std::uintptr_t next_ = 0, end_ = 0;  // of the slab that is being filled
  bool failed_ = false;
};

Arena& arena() {
  static Arena& made = *new Arena;  // proxies in static variables outlive all others
  return made;
}

}  // namespace

ExactProxies::ExactProxies() { ++exact; }
ExactProxies::~ExactProxies() { --exact; }

void* allocate_proxy(std::size_t size) {
  void* const memory = exact.load(std::memory_order_relaxed) > 0 ? arena().allocate(size) : nullptr;
  return memory ? memory : ::operator new(size);
}

void release_proxy(void* memory) noexcept {
  if (!arena().release(memory)) ::operator delete(memory);
}

bool is_proxy_memory(std::uintptr_t address) { return arena().contains(address); }

}  // namespace fx::internal
