// What tests on hostile programs (rewriter/program/hostile) share.
#pragma once

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace fx::testing {

/// While it lives, LibTorch neither warns of what hostile programs do on purpose nor works out a stack trace for each
/// of the many calls that throw; it uses one thread.
class Quiet {
 public:
  Quiet() : guard_(&silence_) {
    at::set_num_threads(1);
    c10::SetStackTraceFetcher([] { return std::string(); });
  }

 private:
  struct Silence : c10::WarningHandler {
    void process(const c10::SourceLocation&, const std::string&, const bool) override {}
  };
  Silence silence_;
  c10::Warning::WarningHandlerGuard guard_;
};

/// How many programs, and from which seed on, the environment asks for.
inline std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

}  // namespace fx::testing
