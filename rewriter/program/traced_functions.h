// Ordinary C++ functions as patterns and replacements.
//
//   auto pattern     = [](torch::Tensor x, double c) { return x / c; };
//   auto replacement = [](torch::Tensor x, double c) { return x * (1.0 / c); };
//   fx::replace_pattern(*gm, pattern, replacement);
//
// With this header in reach, a Pattern, a Replacement and a Rule take functions of tensors and literals; see
// retrace/pattern_function.h for what they may do. They are bound by position, as in torch.fx. A replacement that takes
// literals is traced at each match, with the literals found there, so that it may compute with them.
//
// A function that takes a Match and a Rewriter is no such function: it builds, see rewriter/replacement.h. A generic
// lambda, `[](auto x)`, is taken to be a function of tensors.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <fxgraph/retrace/pattern_function.h>
#include <fxgraph/rewriter/replacement.h>

namespace fx {

namespace internal {

struct CallOperator {
  void operator()() const;
};
template <typename F>
struct WithCallOperator : F, CallOperator {};

/// False for everything that already means something else: texts, expressions, graphs, builders.
template <typename F>
constexpr bool is_function_of_tensors() {
  if constexpr (std::is_pointer_v<F>) {
    return std::is_function_v<std::remove_pointer_t<F>> && !std::is_invocable_v<F, const Match&, Rewriter&>;
  } else if constexpr (!std::is_class_v<F> || std::is_final_v<F> || std::is_polymorphic_v<F> ||
                       std::is_same_v<F, match::Expr>) {
    return false;
  } else if constexpr (requires { &F::operator(); }) {
    return !std::is_invocable_v<const F&, const Match&, Rewriter&>;
  } else {
    // A call operator that is a template has no address. A class that has none can be given one.
    return !requires { &WithCallOperator<F>::operator(); };
  }
}

/// The replacement that `function` computes; captured tensors are refused.
Replacement replacement_from(PatternFunction function);
/// The graph of `function` as a pattern; captured tensors are refused.
Graph pattern_from(const PatternFunction& function);

}  // namespace internal

/// A function of tensors and literals, and nothing else that a pattern or a replacement can be made of.
template <typename F>
concept FunctionOfTensors = internal::is_function_of_tensors<F>();

/// Makes functions of tensors and literals patterns and replacements, by tracing them.
template <FunctionOfTensors F>
struct TracedFunction<F> {
  /// What the pattern looks for. Throws what tracing throws.
  static Graph graph(const F& function) { return internal::pattern_from(PatternFunction(function)); }
  /// What stands in its place: a graph, or for a function of literals, one that is traced at each match.
  static Replacement replacement(const F& function) { return internal::replacement_from(PatternFunction(function)); }
};

}  // namespace fx
