// Memory for proxies: while members of modules are remembered, at addresses that nothing else ever had.
//
// Memory that a program has not written yet, or not written again, holds what was there: old addresses. malloc() gives
// the same addresses again and again, so such a word may be the address of a tensor that is alive, by chance. A proxy
// that lies where nothing ever lay is told from it: whatever holds its address was given a handle on it.
//
// Cost: like malloc(), and what touching new memory costs; addresses are not used again, memory is given back. Without
// an ExactProxies alive, it is malloc() itself. Thread-safety: full.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fx::internal {

/// While one is alive, in any thread, new proxies lie at new addresses.
class ExactProxies {
 public:
  ExactProxies();
  ~ExactProxies();
  ExactProxies(const ExactProxies&) = delete;
  ExactProxies& operator=(const ExactProxies&) = delete;
};

void* allocate_proxy(std::size_t size);
void release_proxy(void* memory) noexcept;
/// Whether proxies lie, have lain or will lie there, and nothing else does.
bool is_proxy_memory(std::uintptr_t address);

}  // namespace fx::internal
