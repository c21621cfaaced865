// Are two programs equal, as far as running them shows? And if not, where does it begin?
//
//   fx::Verification check = fx::verify_equivalent(before, after, {{x}}, 1e-4);
//   if (!check.equal) std::cout << check;   // differs by 3.1e-02 (relative) from conv1 on: ...
//
// Thread-safety: none; the programs are run, which may write their buffers.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/driver.h>
#include <fxgraph/run/copies.h>

namespace fx {

/// How two programs compare.
struct Verification {
  bool equal = true;       ///< within the tolerance
  std::size_t rounds = 0;  ///< how many sets of inputs were tried
  /// Largest difference over largest magnitude of a tensor; infinite when results do not correspond.
  double largest = 0;
  std::string node;    ///< the first node of `after` that differs from the node of that name in `before`
  std::string detail;  ///< what differs, in words
};
/// Prints one line, `equal` or where and by how much they differ.
std::ostream& operator<<(std::ostream& out, const Verification& verification);

/// Runs both on copies of each set of inputs, random numbers drawn alike, and compares what they return and what they
/// leave in the inputs. `tolerance` is relative to the largest magnitude in a tensor. NaNs and infinities must be in
/// the same places. When one differs, both run again and the first node that differs is named.
Verification verify_equivalent(GraphModule& before, GraphModule& after,
                               const std::vector<std::vector<c10::IValue>>& inputs, double tolerance = 1e-4);

/// The largest difference over the largest magnitude, over all tensors and numbers in both, lists and dicts included;
/// infinite when they do not correspond in number, type or shape, or in where they are not finite. Magnitudes below
/// `least_scale` count as that.
double relative_difference(const c10::IValue& a, const c10::IValue& b, double least_scale = 1e-12);

/// One run of both on copies of the inputs, random numbers drawn alike: relative_difference of what they return, and of
/// what they leave in their inputs.
double run_difference(GraphModule& a, GraphModule& b, const std::vector<c10::IValue>& inputs, std::uint64_t seed);

/// Two calls of both in a row, the results of the first written to in between, as a caller may (but for those that
/// share storage with the program's own tensors): the largest relative_difference of what they return and of what they
/// leave in their inputs.
double calls_difference(GraphModule& a, GraphModule& b, const std::vector<c10::IValue>& inputs, std::uint64_t seed);

/// The largest relative difference that counts as equal when sums are reassociated in that type.
double usual_tolerance(at::ScalarType type);

/// The rewrite that breaks a program.
struct Culprit {
  std::string rule;                ///< the rule that made it
  std::size_t rewrite = 0;         ///< it is the so-manieth, from 1
  std::vector<std::string> nodes;  ///< what it made, by name
  double difference = 0;           ///< relative, as run_difference has it
};

/// Applies the rules to copies of `module`, with ever fewer rewrites, to find the first after which the result differs
/// from the original's by more than `tolerance`; nothing when it never does. `rules` makes the rules for a program.
/// Costs about log2(rewrites) runs. `module` is not changed.
std::optional<Culprit> bisect(const GraphModule& module, const std::function<RuleSet(GraphModule&)>& rules,
                              const std::vector<std::vector<c10::IValue>>& inputs, double tolerance = 1e-4,
                              const DriverOptions& options = {});

}  // namespace fx
