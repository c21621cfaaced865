// What the tests of programs of two inputs share: traced at one pair of shapes, run at others, and loaded from a file.
#pragma once

#include <ostream>
#include <vector>

#include "tests/trace/round_trips.h"
#include "tests/trace/sizes_testing.h"

namespace fx::testing {

struct ShapePair {
  std::vector<std::int64_t> x, y;
};

/// A program, the shapes of its example, and others: at which the graph does what the program does, and at which it
/// refuses.
struct PairProgram {
  const char* name;
  torch::Tensor (*program)(torch::Tensor, torch::Tensor);
  ShapePair example;
  std::vector<ShapePair> equal, refused;
};

inline std::ostream& operator<<(std::ostream& out, const PairProgram& c) { return out << c.name; }

inline void expect_followed_or_asserted(const PairProgram& c) {
  const auto gm = symbolic_trace(c.program, {torch::rand(c.example.x), torch::rand(c.example.y)});
  gm->graph().lint();
  const auto loaded = from_torchscript(saved_and_loaded(*gm));
  const auto expect_at = [&](const ShapePair& shapes, AtSizes wanted) {
    const torch::Tensor x = torch::rand(shapes.x), y = torch::rand(shapes.y);
    for (GraphModule* each : {gm.get(), loaded.get()}) {
      EXPECT_EQ(at_sizes(
                    *each, [&]() -> c10::IValue { return c.program(x, y); }, {x, y}, 0),
                wanted)
          << x.sizes() << y.sizes() << each->graph();
    }
  };
  expect_at(c.example, AtSizes::equal);
  for (const ShapePair& shapes : c.equal) expect_at(shapes, AtSizes::equal);
  for (const ShapePair& shapes : c.refused) expect_at(shapes, AtSizes::refused);
}

}  // namespace fx::testing
