// find: every place in a graph where a pattern fits.
//
//   for (const fx::Match& m : fx::find(graph, "aten::relu(sum: aten::add.Tensor(x, y))")) …
//
// The search starts at the pattern's rarest operator in this graph and visits operands first, then users. A pattern
// with an operator that the graph does not have costs O(pattern), whatever the size of the graph; otherwise the cost
// follows the number of nodes with the anchor's operator. Nothing recurses over the graph. Results come in graph order,
// the same each time.
//
// Matching is not injective: two names may stand for one value. A matched value that is no result must not be used
// outside the match (FindOptions::contained).
//
// Thread-safety: reads the graph only; several threads may search one graph.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/matchers/match.h>
#include <fxgraph/matchers/pattern.h>
#include <fxgraph/ops/call.h>

namespace fx {

namespace internal {
class Forms;
}

/// What to do with matches that share a node. Several ways to match the same nodes with the same results are one place,
/// where the first way is kept, except under `all`.
enum class Overlap : std::uint8_t {
  first,         ///< keep the first in graph order, as torch.fx does
  largest,       ///< keep the one with most nodes; of equals the first
  best_benefit,  ///< keep the one with the largest FindOptions::benefit; of equals the first
  all,           ///< keep all, and every way to match at one place
  error,         ///< throw Error(invalid_argument) naming the node they share
};

/// Why a search ended.
enum class SearchStop : std::uint8_t {
  complete,  ///< everything was tried
  budget,    ///< FindOptions::budget was used up: matches may be missing
};
/// Returns the name as it is spelt above.
std::string_view to_string(SearchStop stop);

/// What a search did. The counters are the same on every machine.
struct FindStats {
  SearchStop stop = SearchStop::complete;  ///< whether the result is all there is
  std::uint64_t candidates = 0;            ///< anchors tried
  std::uint64_t nodes_visited = 0;         ///< pairs of a pattern node and a graph node that were compared
  std::uint64_t matches = 0;               ///< complete matches, before containment and overlap
  std::uint64_t escaped = 0;               ///< anchors where each match had an inner value that is used outside
  std::uint64_t explained = 0;             ///< failures that were looked into; none unless an explanation is asked for
};

/// What counts as a match, which matches are kept, and what is known beside the graph.
struct FindOptions {
  Overlap overlap = Overlap::first;  ///< which of the matches that share a node are kept
  bool contained = true;             ///< inner values may not be used outside the match
  bool convex = false;               ///< no result may come back into its own match; the rewriter always sees to it
  bool ignore_literals = false;      ///< literals match any literal, as torch.fx's ignore_literals
  /// Called modules match by their names and types alone. Else those of which it is known match by the operators that
  /// they compute in evaluation, too, unless the pattern names them.
  bool leaves = false;
  /// Values match by what they are defined as, and by what they add up to, too: matchers/definitions.h.
  bool definitions = false;
  bool commutative = false;  ///< operands of every operator whose schema says so may be swapped
  /// What the calls of the graph are that are spelt in other words than the operator's, kept up with edits; without it
  /// each search works out those that it meets.
  const Calls* calls = nullptr;
  /// What the values of the graph are, for patterns that ask, `x: f32[N, C]`, and for Match::info. Nodes without an
  /// entry fit no such test.
  const Shapes* shapes = nullptr;
  /// What is known of modules: types, for patterns that ask; what calls do and which attributes share storage, for
  /// `k: constant` and for rewrites; bodies, where explanations name the module that has what the graph lacks.
  ModuleInfo modules{};
  /// What a match is worth, for Overlap::best_benefit; without it the number of its nodes.
  std::function<double(const Match&)> benefit{};
  std::uint64_t budget = 0;    ///< steps; 0: 20 million and 100 for each node of the graph
  FindStats* stats = nullptr;  ///< filled when given
};

/// Returns the matches in graph order. Throws Error(invalid_argument) for a pattern that asks for shapes or module
/// types which `options` has not got, and under Overlap::error.
std::vector<Match> find(const Graph& graph, const Pattern& pattern, const FindOptions& options = {});

/// True when the pattern's first result can be `node`: a match that ends there. O(pattern), whatever the graph; a
/// NodeMatcher spares the preparation of the next question.
bool matches(const Graph& graph, const Pattern& pattern, const Node& node, const FindOptions& options = {});

/// A pattern prepared for one graph, to be asked about one node after the other while the graph is edited in between:
///
///   fx::NodeMatcher matcher(graph, pattern);
///   … edit …
///   if (std::optional<fx::Match> match = matcher.match(node)) …
///
/// Cost: O(pattern) a question, whatever the size of the graph. Each question has the whole budget. Thread-safety: one
/// thread at a time.
class NodeMatcher {
 public:
  /// `graph`, and what `options` points to, must outlive it.
  NodeMatcher(const Graph& graph, const Pattern& pattern, const FindOptions& options = {});
  ~NodeMatcher();
  /// Keeps its graph and what it has counted.
  NodeMatcher(NodeMatcher&&) noexcept;

  /// True when the pattern's first result can be `node`.
  bool matches(const Node& node);
  /// The first match whose first result is `node`.
  std::optional<Match> match(const Node& node);
  /// What all questions so far did.
  const FindStats& stats() const;

 private:
  friend bool matches(const Graph&, const Pattern&, const Node&, const FindOptions&);
  struct State;
  void see_forms(const internal::Forms& forms);
  bool search(const Node& node);

  std::unique_ptr<State> state_;
};

}  // namespace fx
