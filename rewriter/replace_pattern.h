// replace_pattern: rewrites every place where a pattern fits.
//
//   fx::RewriteReport report = fx::replace_pattern(graph, "aten::relu(aten::add.Tensor(x, y))",
//                                                  "aten::clamp_min(aten::sub.Tensor(x, y), 0)");
//   std::cout << report;   // applied 12; refused 1 (add_3: its value is also used by mul_7)
//
// All matches are found first, then rewritten in graph order; matches do not see each other's results, but a match
// whose input was replaced by an earlier one uses what it was replaced by. A match is rewritten only when that changes
// nothing but the nodes it replaces: rewriter/legality.h lists the checks. One that is refused stays as it is, and the
// report says why.
//
// An exception, from a callback for instance, leaves the graph as it was. New nodes get the notes of the value they
// replace (type, module stack, stack trace) and `from_node`: the rule's name and the nodes they came from.
//
// Complexity: the search, plus O(match + uses of its results) for each match. Never the size of the graph for each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/matchers/matcher.h>
#include <fxgraph/rewriter/fact_guard.h>
#include <fxgraph/rewriter/replacement.h>
#include <fxgraph/rewriter/report.h>
#include <fxgraph/rewriter/rewriter.h>

namespace fx {

/// Says whether a match is to be rewritten. All matches are asked before the first is rewritten, and those again whose
/// inputs an earlier rewrite has replaced.
using MatchFilter = std::function<bool(const Match&)>;

/// What counts as a match, which matches are rewritten, and what is known beside the graph.
struct ReplaceOptions {
  std::string name = "replace_pattern";        ///< of the rule, for the report and the new nodes' notes
  FindOptions find{};                          ///< contained is always on
  std::vector<MatchFilter> filters{};          ///< all must accept
  bool allow_output_aliases = false;           ///< a returned value may become an input or another returned value
  Shapes* shapes = nullptr;                    ///< kept up to date as in DriverOptions
  FactGuard* guard = nullptr;                  ///< answers for what is read of `shapes`, as in DriverOptions
  bool dry_run = false;                        ///< check everything, then undo it
  std::size_t max_rewrites = ~std::size_t{0};  ///< stop behind this many; RewriteStop::max_rewrites says that it did
};

/// Rewrites every match and returns what was done and refused. Throws Error(invalid_argument) when `replacement` takes
/// inputs that the pattern does not bind or returns another number of values, and what a callback throws.
RewriteReport replace_pattern(Graph& graph, const Pattern& pattern, const Replacement& replacement,
                              const ReplaceOptions& options = {});
/// The same as part of a larger rewrite: it can be undone through the rewriter. Throws like the other, undoing its own
/// part.
RewriteReport replace_pattern(Rewriter& rewriter, const Pattern& pattern, const Replacement& replacement,
                              const ReplaceOptions& options = {});

/// One rewritten match, as torch.fx returns it.
struct ReplacedPattern {
  Node* anchor = nullptr;                                   ///< the matched node of the first result; it is erased now
  std::vector<std::pair<std::string, Argument>> nodes_map;  ///< the pattern's names and what they stood for
  std::vector<Node*> replacements;  ///< the new nodes, in graph order; empty when an input is passed on
};

/// replace_pattern with filters, and what torch.fx's function of this name returns. `report` is filled when given.
std::vector<ReplacedPattern> replace_pattern_with_filters(Graph& graph, const Pattern& pattern,
                                                          const Replacement& replacement,
                                                          std::vector<MatchFilter> filters,
                                                          const ReplaceOptions& options = {},
                                                          RewriteReport* report = nullptr);

}  // namespace fx
