// Pattern: what to look for in a graph. One form, three ways to write it:
//
//   a Graph        its placeholders are wildcards, its returned values the outputs; a traced function arrives so
//   combinators    matchers/expr.h
//   text           FX text of such a graph, or the expression form that every pattern prints as:
//                      conv = aten::conv2d(x, w: get_attr, maybe(b: get_attr), ...)
//                      return aten::relu(conv.used_once)
//
// docs/matching.md has the grammar and an example of everything.
//
// A Pattern is an immutable value; copies share. It does not refer to the graph it was made from.
// Thread-safety: immutable; may be used from several threads at once.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/expr.h>
#include <fxgraph/ops/call_check.h>

namespace fx {

namespace internal {
struct PatternAccess;
struct PreparedPattern;
}  // namespace internal

/// Predicates that a pattern's text may call by name: `c: int.if(even)`.
using Predicates = std::vector<std::pair<std::string, std::function<bool(const Argument&)>>>;

/// How a Graph is read as a pattern.
struct PatternOptions {
  bool match_output = false;       ///< the output node takes part: the pattern covers the end of the graph
  bool match_placeholder = false;  ///< placeholders match placeholders only
  bool exact_attributes = false;   ///< get_attr nodes match the same path only; else any get_attr
};

/// How a C++ function becomes a pattern, `static Graph graph(const F&)`, and a replacement. Nothing here;
/// rewriter/program/traced_functions.h specialises it for functions on tensors.
template <typename F>
struct TracedFunction;

/// A function on tensors that a Pattern or a replacement can be made of.
template <typename F>
concept Traceable = requires(const F& function) {
  { TracedFunction<F>::graph(function) } -> std::same_as<Graph>;
};

/// What to look for; see the top of this file.
class Pattern {
 public:
  /// The pattern of one result, and of everything that it is made of.
  Pattern(const match::Expr& result);
  /// Several results, which make several outputs.
  Pattern(const std::vector<match::Expr>& results);
  /// The same with the results in braces.
  Pattern(std::initializer_list<match::Expr> results) : Pattern(std::vector<match::Expr>(results)) {}

  /// Placeholders are wildcards: annotated `Tensor` they match nodes only, annotated `int`, `float`, `bool` or `str`
  /// literals of that kind. Every node's name is a capture. Throws for a graph that computes nothing or holds dead
  /// code.
  Pattern(const Graph& graph, const PatternOptions& options = {});

  /// The graph that the function computes, as tracing it finds.
  template <Traceable F>
  Pattern(const F& function) : Pattern(TracedFunction<F>::graph(function)) {}

  /// Reads FX text when it starts with `graph(`, else the expression form. Throws Error(syntax) with line and column.
  Pattern(std::string_view text);
  /// The same as from a std::string_view.
  /// @{
  Pattern(const char* text) : Pattern(std::string_view(text)) {}
  Pattern(const std::string& text) : Pattern(std::string_view(text)) {}
  /// @}
  /// The same with predicates that the text calls by name.
  Pattern(std::string_view text, const Predicates& predicates);

  /// The same pattern, where each call may be reached through calls that hand their input on as it is: contiguous,
  /// clone, detach, conversions to the dtype that is there, dropout outside training. Match::skipped says which.
  Pattern seeing_through() const;

  /// The names that a match binds, in the order in which the pattern mentions them.
  std::vector<Symbol> captures() const;
  /// The wildcards and literal holes that have names: what a replacement takes as inputs.
  std::vector<Symbol> inputs() const;
  std::size_t num_outputs() const;  ///< how many values a match hands on, and a replacement returns
  /// The expression form. Reading it back, with the predicates that it names, gives the same pattern.
  std::string str() const;
  /// Its calls that nobody can make, by name or arguments. Where LibTorch knows the operators the constructor throws
  /// Error(invalid_argument) for those whose namespace it knows.
  const std::vector<CallProblem>& problems() const;
  /// True when it can only be looked for with FindOptions::shapes.
  bool needs_shapes() const;
  /// True when it can only be looked for with the types in FindOptions::modules.
  bool needs_module_types() const;

 private:
  friend struct internal::PatternAccess;
  std::shared_ptr<const internal::PreparedPattern> prepared_;
};

/// Prints str().
std::ostream& operator<<(std::ostream& out, const Pattern& pattern);

}  // namespace fx
