// free_sizes: which sizes of a program's inputs may vary, found by trying.
//
// Every dimension is tried at another size: alone; if that does not go, in steps; if that does not go either, together
// with the others of the same size. What the program asserts of sizes is asked first, on inputs without memory; what
// passes is run. So traces, whose assertions say all, cost one run for each size that is free, and programs that assert
// nothing a few more. In the end all vary at once.
//
// Costs: as said; the assertions alone are asked some thousand times for their bounds. Thread-safety: as running it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fxgraph/export/value_shapes.h>

namespace fx::pt2 {

/// Sizes that vary together: each is `step` times one number.
struct FreeSize {
  std::vector<std::string> places;
  std::int64_t step = 1;
  std::int64_t example = 0;  ///< of the number
  SizeRange range{};         ///< of the number
};

/// A question about one choice of sizes; by place.
using SizeQuestion = std::function<bool(const Symbols&)>;

/// `places` and their sizes in the example, in the order in which they are tried. `allowed` asks the assertions alone,
/// `runs` the whole program.
std::vector<FreeSize> find_free_sizes(const std::vector<std::pair<std::string, std::int64_t>>& places,
                                      const SizeQuestion& allowed, const SizeQuestion& runs);

/// The part of `graph` that checks sizes of inputs and nothing else.
Graph checks_of(const Graph& graph);

}  // namespace fx::pt2
