// Programs to be hostile with: small ones in which anything may stand between any two calls.
//
//   hostile::HostileProgram program = hostile::draw_program(seed, {.motifs = patterns_of(rule)});
//
// Made by running them: each call is tried on values at once and left out when it throws, so that nearly every program
// runs. Among what they do: writes to any value, weight, view or view of a view by in-place calls, methods, augmented
// assignments, setitem and out=; x[…] with numbers, slices, masks and indices; optional arguments that are not their
// defaults; all spellings, everything by keyword, sizes one by one; inputs that callers leave out, None among them;
// weights under two names, in modules below modules, rows of weights, weights that are a module's too, modules under
// two paths and called twice, in training, of parts of which some train; graphs that are called and that cond chooses;
// random draws; sizes that are asked for, computed with and given to other calls; results that are inputs, weights,
// views of either, numbers, None, or the same twice, in nested tuples, lists and dictionaries; tensors of all types,
// complex ones among them, empty ones, numbers, strides of every kind, in the middle of their storage, NaN and
// infinities; inputs of other sizes than those that an optimizer was told.
//
// And on request what a saved form may forget (odd_percent): names that mean something where programs are written,
// weights that read the memory of others as other types, conjugated, negated, turned, expanded, and what nothing reads.
//
// Not among it: two inputs that share storage (callers promise that they do not); set_ and resize_, which show memory
// that nobody has written; loops (while_loop, scan); string formatting; sparse, quantized and named tensors; gradients;
// devices but the CPU; more than some dozens of calls.
// Internal to this library and the tests. Deterministic for a seed.
#pragma once

#include <cstdint>
#include <vector>

#include <fxgraph/matchers/pattern.h>
#include <fxgraph/testing/hostile/hostile_program.h>

namespace fx::hostile {

struct DrawOptions {
  /// Woven in, each with the others, several times: what rules look for.
  std::vector<Pattern> motifs{};
  std::size_t most_steps = 9;
  unsigned common_percent = 40;   ///< of the motifs are common_motifs()
  unsigned motif_percent = 45;    ///< of the steps
  unsigned write_percent = 18;    ///< of the steps; and between the calls of a motif
  unsigned special_percent = 15;  ///< of the programs have NaN and infinities
  bool spellings = true;
  bool modules = true;
  bool rare = true;  ///< rarer operators too; of some (median, mode) the results depend on how a tensor lies in memory
  std::size_t input_sets = 2;
  unsigned other_sizes_percent = 0;  ///< of the programs get one more set of inputs, of other sizes
  /// What a saved form may forget or misread: of the names of inputs and weights this many are words of the languages
  /// that programs are written in; as many programs have weights that read the memory of others otherwise, and what
  /// nothing reads.
  unsigned odd_percent = 0;
};

/// Throws only what is a bug.
HostileProgram draw_program(std::uint64_t seed, const DrawOptions& options);

/// What models do and no rewrite of rules spells out, as patterns: norms after layers, splits put together, constants.
const std::vector<Pattern>& common_motifs();

}  // namespace fx::hostile
