// A heap in disorder: free chunks of every size, full of what real programs leave in them: addresses of tensors that
// are alive, of tensors that are not, of chunks in use and free, small numbers, ones and zeros.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace fx::testing {

class HeapShaker {
 public:
  explicit HeapShaker(std::uint32_t seed) : random_(seed) {
    for (int i = 0; i < 8; ++i) alive_.push_back(torch::ones({i + 1}));
    for (const torch::Tensor& tensor : alive_) words_.push_back(word(tensor.unsafeGetTensorImpl()));
    words_.push_back(word(torch::Tensor().unsafeGetTensorImpl()));
  }
  ~HeapShaker() {
    for (void* chunk : kept_) std::free(chunk);
  }
  HeapShaker(const HeapShaker&) = delete;
  HeapShaker& operator=(const HeapShaker&) = delete;

  /// Leaves free chunks behind, and chunks in use between them.
  void shake() {
    for (void* chunk : kept_) std::free(chunk);
    kept_.clear();
    std::vector<void*> chunks;
    for (int i = 0; i < 600; ++i) {
      const std::size_t size = 16 * (1 + below(i % 4 == 0 ? 160 : 24));
      void* chunk = std::malloc(size);
      for (std::size_t at = 0; at + 8 <= size; at += 8) {
        const std::uintptr_t value = garbage();
        std::memcpy(static_cast<char*>(chunk) + at, &value, sizeof(value));
      }
      chunks.push_back(chunk);
      if (below(4) == 0) words_.push_back(word(chunk));
      if (words_.size() > 200) words_.erase(words_.begin() + 9, words_.begin() + 100);
    }
    // Tensors that die leave their addresses to others.
    std::vector<torch::Tensor> dying;
    for (int i = 0; i < 20; ++i) dying.push_back(torch::zeros({2}));
    for (const torch::Tensor& tensor : dying) words_.push_back(word(tensor.unsafeGetTensorImpl()));
    std::shuffle(chunks.begin(), chunks.end(), random_);
    for (void* chunk : chunks) {
      if (below(3) == 0) {
        kept_.push_back(chunk);
      } else {
        std::free(chunk);
      }
    }
  }

 private:
  static std::uintptr_t word(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }  // NOLINT
  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::uintptr_t garbage() {
    switch (below(6)) {
      case 0: return 0;
      case 1: return below(4);
      case 2: return 0x0101010101010101U * below(2) + below(2);
      case 3: return random_();
      default: return words_[below(words_.size())];
    }
  }

  std::mt19937 random_;
  std::vector<torch::Tensor> alive_;
  std::vector<std::uintptr_t> words_;
  std::vector<void*> kept_;
};

}  // namespace fx::testing
