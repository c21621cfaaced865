// A small random number generator whose numbers are the same on every platform, unlike those of std distributions.
// Internal: the generators of rewriter/program and of the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace fx::internal {

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// A number in [0, bound); 0 when `bound` is 0.
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : static_cast<std::size_t>(next() % bound); }
  /// A number in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low) + 1));
  }
  /// A number in [0, 1).
  double fraction() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// True in `percent` of the cases.
  bool chance(unsigned percent) { return below(100) < percent; }
  /// An element of a container or array.
  template <typename Container>
  auto& pick(Container& from) {
    return from[below(std::size(from))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace fx::internal
