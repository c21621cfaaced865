// Traces in a process whose memory is a pool without headers, of modules whose members other threads use meanwhile.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <new>
#include <thread>

#include "tests/trace/shared_module.h"
#include "tests/trace/trace_testing.h"

// ── The pool ──────────────────────────────────────────────────────────────────────────────────────────────────────

namespace fx::pool_test {

// Slabs of equal pieces. What lies before a piece is another piece: who looks for a header there reads foreign data.
class Pool {
 public:
  void* take(std::size_t size) {
    const Lock lock(busy_);
    const auto kind = static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(size, kSmallest) - 1));
    if (kind >= free_.size()) {
      const std::size_t slabs = (size + kSlab - 1) / kSlab;
      return note(std::aligned_alloc(kSlab, slabs * kSlab), kLarge);
    }
    if (!free_[kind]) fill(kind);
    Piece* piece = free_[kind];
    free_[kind] = piece->next;
    return piece;
  }
  void give_back(void* pointer) {
    if (!pointer) return;
    const Lock lock(busy_);
    std::uint8_t& kind = kinds_[slot_of(pointer)].kind;
    if (kind == kLarge) {
      kind = kGone;
      std::free(pointer);
      return;
    }
    free_[kind] = new (pointer) Piece{free_[kind]};
  }

 private:
  static constexpr std::size_t kSlab = std::size_t{1} << 20, kSmallest = 16;
  static constexpr std::uint8_t kLarge = 254, kGone = 255;
  struct Piece {
    Piece* next;
  };
  struct Slab {
    std::uintptr_t number = 0;
    std::uint8_t kind = 0;
  };
  class Lock {
   public:
    explicit Lock(std::atomic_flag& busy) : busy_(busy) {
      while (busy_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    ~Lock() { busy_.clear(std::memory_order_release); }

   private:
    std::atomic_flag& busy_;
  };

  std::size_t slot_of(const void* pointer) const {
    const std::uintptr_t number = reinterpret_cast<std::uintptr_t>(pointer) / kSlab;
    std::size_t at = number % kinds_.size();
    while (kinds_[at].number != 0 && kinds_[at].number != number) at = (at + 1) % kinds_.size();
    return at;
  }
  void* note(void* slab, std::uint8_t kind) {
    if (!slab) std::abort();
    kinds_[slot_of(slab)] = {reinterpret_cast<std::uintptr_t>(slab) / kSlab, kind};
    return slab;
  }
  void fill(std::size_t kind) {
    auto* slab = static_cast<std::byte*>(note(std::aligned_alloc(kSlab, kSlab), static_cast<std::uint8_t>(kind)));
    const std::size_t each = std::size_t{1} << kind;
    for (std::size_t at = 0; at + each <= kSlab; at += each) free_[kind] = new (slab + at) Piece{free_[kind]};
  }

  std::array<Piece*, 17> free_{};  // by the logarithm of their size
  std::array<Slab, 1 << 16> kinds_{};
  std::atomic_flag busy_{};
};

constinit Pool pool;

}  // namespace fx::pool_test

using fx::pool_test::pool;

void* operator new(std::size_t size) { return pool.take(size); }
void* operator new[](std::size_t size) { return pool.take(size); }
void operator delete(void* pointer) noexcept { pool.give_back(pointer); }
void operator delete[](void* pointer) noexcept { pool.give_back(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { pool.give_back(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { pool.give_back(pointer); }

// ── The guest ─────────────────────────────────────────────────────────────────────────────────────────────────────

namespace fx::pool_test {

using testing::Shared;
using torch::Tensor;

// Any of it that a trace puts back, or reads, is another value than its owner left there.
TEST(GuestInAPool, TracesWhileOtherThreadsUseTheModule) {
  constexpr int kTraces = 200;
  const auto net = std::make_shared<Shared>();
  std::atomic<bool> stops{false}, has_fallen{false};
  std::thread raises([&] {
    for (std::int64_t raised = 0; !stops;) {
      if (net->raised.load() != raised) has_fallen = true;
      net->raised = ++raised;
    }
  });
  std::thread waits([&] {
    std::unique_lock<std::mutex> lock(net->mutex);
    net->wakes.wait(lock, [&] { return net->is_done; });
  });
  const Tensor x = torch::rand({3, 4});
  for (int i = 0; i < kTraces; ++i) {
    const auto gm = symbolic_trace(net, {x});
    EXPECT_TRUE(testing::same_value(gm->forward(x), net->forward(x), 1e-6));
  }
  {
    const std::lock_guard<std::mutex> lock(net->mutex);
    net->is_done = true;
  }
  net->wakes.notify_all();
  waits.join();
  stops = true;
  raises.join();
  EXPECT_FALSE(has_fallen);
  EXPECT_TRUE(net->sizes.is_whole());
  EXPECT_EQ(net->sizes.times(), net->calls);
  ASSERT_EQ(net->batches.size(), static_cast<std::size_t>(net->calls));
  EXPECT_EQ(net->batches[net->batches.size() - 1], 3);
}

}  // namespace fx::pool_test
