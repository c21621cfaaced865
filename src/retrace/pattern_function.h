// PatternFunction: an ordinary C++ function, as a pattern or a replacement.
//
//   [](torch::Tensor x, double c) { return x / c; }
//
// Tensor parameters become placeholders. Parameters that are numbers, bools or strings are literals: in a pattern they
// are placeholders typed `float`, `int`, `bool` or `str` (meta "type"), which stand where the function passed them to
// an operator; in a replacement they have the values that the match has bound, so that it may compute with them (`1.0 /
// c`).
//
// Where a literal goes is found by tracing the function several times, each time with another value of one literal, and
// comparing the graphs. A literal that a pattern computes with, or that decides which operators run, is an Error(trace)
// that names the parameter and the node.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fxgraph/trace/tracer.h>

namespace fx {

/// A function on tensors and literals that graphs are made of; see the top of this file.
class PatternFunction {
 public:
  /// `names` are those of the inputs; those that are missing are called as TraceOptions::names says.
  template <typename Function>
  explicit PatternFunction(Function&& function, std::vector<std::string> names = {})
      : callable_(internal::make_callable(std::forward<Function>(function))), names_(std::move(names)) {}

  /// What the parameters are, in order; placeholders of the graphs below correspond to them.
  const std::vector<Parameter>& parameters() const { return callable_.parameters; }
  /// How many of the parameters are literals.
  std::size_t num_literals() const;

  /// The function with holes for its literals. Shape-free, no modules raised.
  Trace pattern() const;
  /// Whether the graph is another for another value of parameter `i`, a literal, the others being `literals`.
  bool depends_on(std::size_t i, const std::vector<Argument>& literals) const;
  /// The function at the given literals, one for each literal parameter in order. All parameters have placeholders;
  /// those of literals have no users. None stands for any value. Throws Error(invalid_argument) when a literal is of
  /// the wrong kind.
  Trace instance(const std::vector<Argument>& literals) const;

 private:
  Trace trace_at(const std::vector<Argument>& literals) const;

  internal::Callable callable_;
  std::vector<std::string> names_;
};

/// The graph of `function` as a pattern, see PatternFunction.
template <typename Function>
Graph trace_pattern(Function&& function, std::vector<std::string> names = {}) {
  return PatternFunction(std::forward<Function>(function), std::move(names)).pattern().graph;
}

}  // namespace fx
