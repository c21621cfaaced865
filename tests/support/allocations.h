// How often the heap was asked for memory: a cost that is the same on every machine and every run.
//
//   const std::size_t before = allocations();
//   …work…
//   EXPECT_EQ(allocations() - before, 0u);
//
// A program that calls this has the global operator new replaced by one that counts. Memory that an Arena takes is not
// counted: it comes by the block (Graph::memory_bytes says how much).
#pragma once

#include <cstddef>

namespace fx::testing {

/// The calls of operator new that this thread has made.
std::size_t allocations();

/// From now on this thread's operator new throws where more is asked for at once. The address sanitizer's own ends the
/// process where there is not as much.
void limit_allocations(std::size_t bytes);

/// The calls of operator new that `work()` makes.
template <typename Work>
std::size_t allocations_of(Work&& work) {
  const std::size_t before = allocations();
  work();
  return allocations() - before;
}

}  // namespace fx::testing
