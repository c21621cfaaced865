// A module with members that nobody but it may touch: a hash map, a vector with room of its own, what threads share.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace fx::testing {

// A map of sizes with open addressing: entries and their count belong together.
class SizeMap {
 public:
  void count(std::int64_t size) {
    std::size_t at = static_cast<std::size_t>(size) % slots_.size();
    while (slots_[at].size != 0 && slots_[at].size != size) at = (at + 1) % slots_.size();
    if (slots_[at].size == 0) ++used_;
    slots_[at].size = size;
    ++slots_[at].times;
  }
  bool is_whole() const {
    std::size_t used = 0;
    for (const Slot& slot : slots_) {
      used += slot.size != 0;
      if ((slot.size != 0) != (slot.times != 0)) return false;
    }
    return used == used_;
  }
  std::int64_t times() const {
    std::int64_t all = 0;
    for (const Slot& slot : slots_) all += slot.times;
    return all;
  }

 private:
  struct Slot {
    std::int64_t size = 0, times = 0;
  };
  std::array<Slot, 4096> slots_ = {};
  std::size_t used_ = 0;
};

// Has room for four numbers inside of itself, and a pointer that says where they are.
class SmallVector {
 public:
  SmallVector() = default;
  ~SmallVector() {
    if (data_ != room_.data()) delete[] data_;
  }
  SmallVector(const SmallVector&) = delete;
  SmallVector& operator=(const SmallVector&) = delete;
  void push_back(std::int64_t number) {
    if (size_ == capacity_) {
      auto* more = new std::int64_t[2 * capacity_];
      std::copy(data_, data_ + size_, more);
      if (data_ != room_.data()) delete[] data_;
      data_ = more;
      capacity_ *= 2;
    }
    data_[size_++] = number;
  }
  std::size_t size() const { return size_; }
  std::int64_t operator[](std::size_t i) const { return data_[i]; }

 private:
  std::array<std::int64_t, 4> room_{};
  std::int64_t* data_ = room_.data();
  std::size_t size_ = 0, capacity_ = 4;
};

/// Counts its calls in all of them.
struct Shared : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 4));
  SizeMap sizes;
  SmallVector batches;
  std::int64_t calls = 0;
  std::atomic<std::int64_t> raised{0};
  std::mutex mutex;
  std::condition_variable wakes;
  bool is_done = false;
  torch::Tensor forward(torch::Tensor x) {
    ++calls;
    sizes.count(x.size(0));
    batches.push_back(x.size(0));
    return linear(x).relu() * static_cast<double>(x.size(0));
  }
};

}  // namespace fx::testing
