// How much a test tries: with every change a tenth, at night (tools/test --night) all. Suites with Night in their names
// run at night only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <type_traits>
#include <vector>

namespace fx::testing {

/// Whether FXGRAPH_NIGHT is set.
inline bool at_night() {
  const char* const night = std::getenv("FXGRAPH_NIGHT");
  return night && *night;
}

/// `all` at night, a tenth by day.
inline std::uint64_t by_night(std::uint64_t all) { return at_night() ? all : (all + 9) / 10; }

/// `all` at night, each fourth by day.
template <typename Values>
auto some_by_day(const Values& all) {
  std::vector<std::decay_t<decltype(*std::begin(all))>> some;
  std::size_t i = 0;
  for (const auto& each : all) {
    if (i++ % 4 == 0 || at_night()) some.push_back(each);
  }
  return some;
}

}  // namespace fx::testing
