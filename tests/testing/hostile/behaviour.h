// What a program does, as far as whoever calls it can see: results, what is left in inputs and in the module, what
// shares storage with what, and all that once more after the caller wrote to what it was given.
// Internal to this library and the tests.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/testing/hostile/hostile_program.h>

namespace fx::hostile {

struct Tolerance {
  double relative = 0;       ///< to the largest magnitude of a tensor; 0: equal
  double least_scale = 1.0;  ///< magnitudes below count as this
};

/// Whatever can be called, with the tensors that it keeps from call to call, by path.
struct Callable {
  std::function<c10::IValue(std::vector<c10::IValue> inputs)> run;
  std::vector<std::pair<std::string, at::Tensor>> state;
  std::string text{};  ///< to be shown where it does otherwise
};
/// Of a module that outlives it.
Callable callable(GraphModule& module);

/// How far apart the roundings of two orders of summation may be in this type.
Tolerance tolerance_of(at::ScalarType narrowest);

/// Calls both, several times: with each set of inputs two calls one after the other, the state that the first leaves
/// being that of the second, random numbers drawn alike. Between them the caller writes to all results and inputs.
/// Returns in words what the second does that the first does not; nothing when they do the same, or when the first
/// fails. Changes both.
/// @{
std::optional<std::string> difference(const Callable& before, const Callable& after, const std::vector<Tensors>& inputs,
                                      const Tolerance& tolerance);
std::optional<std::string> difference(GraphModule& before, GraphModule& after, const std::vector<Tensors>& inputs,
                                      const Tolerance& tolerance);
/// @}

/// True when the first program runs on its inputs.
bool runs(const HostileProgram& program);

/// True when a NaN or an infinity comes up in a run, be it on the way: what reads it may make finite numbers of it that
/// say which it was (`x == x`).
bool meets_nonfinite(const HostileProgram& program);

/// True when rounding alone makes this program's results differ by as much as `tolerance`: nothing can be said of it.
bool is_ill_conditioned(const HostileProgram& program, const Tolerance& tolerance);

}  // namespace fx::hostile
