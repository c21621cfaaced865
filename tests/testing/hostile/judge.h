// Does a rewrite keep what a program does? And if not, what is the smallest program on which it does not?
// Internal to this library and the tests.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <fxgraph/testing/hostile/behaviour.h>

namespace fx::hostile {

/// What a rewrite says of what it did.
struct Rewritten {
  bool changed = false;
  bool needs_finite = false;  ///< it promises nothing for NaN and infinities
  bool rounds = false;        ///< to bfloat16, on the way
  bool is_exact = false;      ///< computes with the same kernels: nothing may differ
  /// What does the work from now on; without it the module itself.
  std::optional<Callable> instead{};
};
/// Rewrites the module; the program that it was made from tells of its inputs.
using Rewrite = std::function<Rewritten(GraphModule& module, const HostileProgram& program)>;

struct Verdict {
  bool ran = false;      ///< the program itself runs; if not, nothing was tried
  bool changed = false;  ///< the rewrite did something
  std::string wrong;     ///< what is not as it was; empty when nothing is
  std::string after;     ///< the graph that does otherwise
};

/// Rewrites one copy of the program and compares it with another; differences that rounding alone makes do not count.
Verdict judge(const HostileProgram& program, const Rewrite& rewrite);

/// Leaves out of the program what it can, as long as the rewrite gets it wrong. Costs some hundred judgements.
HostileProgram reduce(const HostileProgram& program, const Rewrite& rewrite);

}  // namespace fx::hostile
