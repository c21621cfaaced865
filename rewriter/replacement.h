// Replacement: what stands in a match's place. One form, three ways to write it:
//
//   a Graph      its placeholders are the pattern's inputs;
//   text         FX text of such a graph, or the expression form of matchers/pattern.h:
//                    aten::clamp_min(aten::sub.Tensor(x, y), 0)
//   a function   (const Match&, Rewriter&) -> Node&, Argument, or a vector of them: makes nodes through the
//                Rewriter, which inserts them at the right place. An empty vector leaves the match alone.
//
// Inputs are bound by name: any name of the pattern, literals included. When the pattern and the replacement are both
// graphs they are bound by position, as in torch.fx.
//
// A Replacement is an immutable value; copies share. Thread-safety: that of the function, if it is one.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/expr.h>
#include <fxgraph/matchers/match.h>
#include <fxgraph/matchers/pattern.h>
#include <fxgraph/rewriter/rewriter.h>

namespace fx {

/// What is put in a match's place; see the top of this file.
class Replacement {
 public:
  /// Returns a value for each result of the pattern.
  using Builder = std::function<std::vector<Argument>(const Match&, Rewriter&)>;

  /// Copies the graph. All forms but functions: Error(invalid_argument) for a call that its operator does not take.
  Replacement(const Graph& graph);
  /// Takes the graph over.
  Replacement(Graph&& graph);
  /// Reads FX text when it starts with `graph(`, else the expression form. Throws Error(syntax) with line and column.
  /// @{
  Replacement(std::string_view text);
  Replacement(const char* text) : Replacement(std::string_view(text)) {}
  Replacement(const std::string& text) : Replacement(std::string_view(text)) {}
  /// @}
  /// What the combinators of matchers/expr.h write, as far as it says one thing: Error(invalid_argument) for
  /// alternatives, optional parts, rest(), sets of operators and wildcards without a name.
  /// @{
  Replacement(const match::Expr& result);
  Replacement(const std::vector<match::Expr>& results);
  /// @}
  /// The graph that the function computes, as tracing it finds.
  template <Traceable F>
  Replacement(const F& function) : Replacement(TracedFunction<F>::replacement(function)) {}
  /// A function that builds nodes through the Rewriter; its result is a Node&, an Argument or a vector of either.
  template <typename F>
  requires(!Traceable<F> && std::invocable<F, const Match&, Rewriter&>) Replacement(F build)
      : builder_(wrap(std::move(build))) {}

  /// The graph to copy, or null for a function.
  const Graph* graph() const { return graph_.get(); }
  const Builder& builder() const { return builder_; }  ///< empty for a graph
  /// True when it was written as a graph, so that its inputs have positions.
  bool is_positional() const { return positional_; }

 private:
  template <typename F>
  static Builder wrap(F build) {
    using Result = std::invoke_result_t<F, const Match&, Rewriter&>;
    if constexpr (std::is_convertible_v<Result, std::vector<Argument>>) {
      return Builder(std::move(build));
    } else {
      return [build = std::move(build)](const Match& match, Rewriter& rewriter) {
        return std::vector<Argument>(1, Argument(build(match, rewriter)));
      };
    }
  }

  std::shared_ptr<const Graph> graph_;
  Builder builder_;
  bool positional_ = false;
};

}  // namespace fx
