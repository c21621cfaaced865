// HeldMemory: the memory of one run, kept for the next.
//
// LibTorch frees a value when its last reader is done and asks for as much again in the next call. What is large goes
// back to the system in between, and comes back a page at a time, each zeroed by the kernel: an eighth of what a
// ResNet-18 takes for 16 images. Here a freed block waits for the next tensor of its size, so that from the second run
// on inputs of the same sizes ask the system for nothing.
//
// XNNPACK's results come from LibTorch's allocator for mobile devices and are not held.
//
// No plan decides where a value lies: a block is free when LibTorch says so, so that views, writes and results that
// are kept need no proof. Values whose lives do not overlap share memory, as they would in a plan.
//
// Thread-safety: one HeldMemory may serve several threads at once.
#pragma once

#include <cstddef>
#include <memory>

namespace fx {

/// Blocks of main memory that are used again; see the top of this file.
class HeldMemory {
 public:
  struct Blocks;

  /// What is smaller is left to malloc, which keeps it anyway and is quicker.
  static constexpr std::size_t kSmallestBlock = std::size_t{32} << 10;
  /// A block that so many runs did not want is given back.
  static constexpr int kIdleRuns = 8;

  HeldMemory();
  /// Gives back what is free; what is in use goes back when its tensor dies.
  ~HeldMemory();
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  /// Bytes of all blocks, those of living tensors included.
  std::size_t bytes() const;
  /// How many blocks were asked of the system so far.
  std::size_t num_made() const;

  /// One run: while it lives, the CPU tensors that its thread makes lie in `memory`; in what they lay in before when
  /// that is null. Scopes nest.
  class Scope {
   public:
    explicit Scope(HeldMemory* memory);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const std::shared_ptr<Blocks>* mine_;
    const std::shared_ptr<Blocks>* outer_;
  };

 private:
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace fx
