// Random patterns over the pointwise vocabulary, for comparing matchers.
#pragma once

#include <cstdint>

#include <fxgraph/matchers/pattern.h>

namespace fx::testing {

struct RandomPatternOptions {
  int depth = 3;            ///< of nested calls
  bool commutative = true;  ///< and so on: which features may occur
  bool alternatives = true;
  bool several_results = true;
  bool sets = true;
  bool uses = true;
  bool constructs = false;  ///< negations, copies, paths, repetitions, unordered lists, tails, constants
  bool shapes = false;      ///< tests of dtypes and sizes
  bool conditions = false;  ///< tests in code, of what is anywhere in the graph
  bool names = false;       ///< operators without an overload, in Python's words, and of the other kind of number
};

/// A pattern of a few operators of pointwise_vocabulary(), with constructs of copying_vocabulary(). The same seed gives
/// the same pattern on every platform.
Pattern random_pattern(std::uint64_t seed, const RandomPatternOptions& options = {});

}  // namespace fx::testing
