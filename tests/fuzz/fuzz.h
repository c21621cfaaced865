// What the fuzz targets share. A target is one file <name>_fuzz.cc with LLVMFuzzerTestOneInput: it does something with
// the bytes, and ends the process when what comes out breaks a promise. An fx::Error of one line is a right answer.
//
// Built with -D FXGRAPH_FUZZ=ON (Clang), each is a libFuzzer program (tools/fuzz runs them); otherwise replay.cc makes
// it a test that goes through the seeds and what was found before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fxgraph/support/error.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fx::fuzz {

inline void expect(bool holds, std::string_view promise, std::string_view shown = {}) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n%s\n", std::string(promise).c_str(), std::string(shown).c_str());
  std::abort();
}

/// What `make` returns, or nothing when it throws an Error, which must be one line.
template <typename Make>
auto made_or_refused(const Make& make) -> std::optional<decltype(make())> {
  try {
    return make();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    expect(!message.empty() && message.find('\n') == std::string_view::npos, "an error is one line", message);
    return std::nullopt;
  }
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace fx::fuzz
