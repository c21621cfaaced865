// free_sizes: which sizes of a program's inputs may vary, found by trying.
//
// What is asserted to be an expression of other sizes goes with those. Every other dimension is tried at another size:
// alone; if that does not go, in steps; if that does not go either, together with the others of the same size. What the
// program asserts of sizes is asked first, on inputs without memory; what
// passes is run. So traces, whose assertions say all, cost one run for each size that is free, and programs that assert
// nothing a few more. In the end all vary at once.
//
// Costs: as said; the assertions alone are asked some thousand times for their bounds. Thread-safety: as running it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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

/// Places and their sizes in the example, in the order in which they are tried.
using SizePlaces = std::vector<std::pair<std::string, std::int64_t>>;
/// Sizes that are expressions of others, which are not: by place, of places.
using SizeTies = std::map<std::string, SizeExpr>;

/// The expression with those of `sizes` in the place of symbols.
SizeExpr with_sizes(const SizeExpr& expr, const SizeTies& sizes);

/// What `graph` asserts to be equal to an expression of other sizes. `place_of` gives the place of which a node is the
/// size, empty for others.
SizeTies asserted_ties(const Graph& graph, const SizePlaces& places,
                       const std::function<std::string(const Node&)>& place_of);

/// Those of `places` that vary and are not tied. `allowed` asks the assertions alone, `runs` the whole program.
std::vector<FreeSize> find_free_sizes(const SizePlaces& places, const SizeQuestion& allowed, const SizeQuestion& runs,
                                      const SizeTies& ties = {});

/// The part of `graph` that checks sizes of inputs and nothing else.
Graph checks_of(const Graph& graph);

}  // namespace fx::pt2
