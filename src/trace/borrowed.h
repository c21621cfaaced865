// The deleter of a shared pointer to an object that somebody else owns, a module on the stack: it knows where the
// object lies, which a trace must know to put back its members.
#pragma once

#include <cstddef>

namespace fx::internal {

struct Borrowed {
  const void* begin;
  std::size_t size;
  void operator()(const void*) const {}
};

}  // namespace fx::internal
