#include "tests/support/allocations.h"

#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t count = 0;
thread_local std::size_t most = ~std::size_t{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  ++count;
  if (bytes > most) throw std::bad_alloc();
  if (bytes == 0) bytes = 1;
  void* memory = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                     ? std::malloc(bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

void* counted_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  try {
    return counted(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
}  // namespace

// Every form: what one of them gives another may free, and sanitizers bring their own for those that are missing.
void* operator new(std::size_t bytes) { return counted(bytes, 0); }
void* operator new[](std::size_t bytes) { return counted(bytes, 0); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted_or_null(bytes, 0); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted_or_null(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace fx::testing {

std::size_t allocations() { return count; }
void limit_allocations(std::size_t bytes) { most = bytes; }

}  // namespace fx::testing
