// What tests on hostile programs (testing/hostile) share.
#pragma once

#include <ATen/Parallel.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include <fxgraph/testing/silent_failures.h>

namespace fx::testing {

/// While it lives, LibTorch neither warns of what hostile programs do on purpose nor works out a stack trace for each
/// of the many calls that throw; it uses one thread.
class Quiet {
 public:
  Quiet() { at::set_num_threads(1); }

 private:
  internal::SilentFailures silence_;
};

/// How many programs, and from which seed on, the environment asks for.
inline std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

}  // namespace fx::testing
