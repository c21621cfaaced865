#include "tests/support/allocations.h"

#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t count = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++count;
  if (bytes == 0) bytes = 1;
  void* memory = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                     ? std::malloc(bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}
}  // namespace

// The array and nothrow forms of the standard library call these.
void* operator new(std::size_t bytes) { return counted(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace fx::testing {

std::size_t allocations() { return count; }

}  // namespace fx::testing
