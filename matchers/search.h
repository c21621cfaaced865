// A search with its overlap policy: what find(), PatternSet and the rewriter share. Internal to matchers/ and
// rewriter/.
#pragma once

#include <unordered_map>
#include <vector>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/matchers/engine.h>
#include <fxgraph/matchers/match_pool.h>

namespace fx::internal {

class WriteOrder;

/// An anchor where the pattern fits, but each match has an inner value that is used outside.
struct Escape {
  Match match;
  Node* value;
  Node* user;
};

/// Tries one pattern at one anchor after the other and keeps what the options ask for.
class Search {
 public:
  /// In the graph that `present` is about. `claimed` marks the nodes of kept matches under Overlap::first; searches
  /// that share it keep disjoint matches.
  Search(const Pattern& pattern, const PresentCalls& present, const FindOptions& options, std::vector<bool>& claimed)
      : Search(pattern, PatternAccess::facts(pattern, options), present, options, claimed) {}
  Search(const Pattern& pattern, std::shared_ptr<const PatternFacts> facts, const PresentCalls& present,
         const FindOptions& options, std::vector<bool>& claimed)
      : Search(pattern, facts, facts->plan(present), present.graph, options, claimed) {}
  /// With the plan that the facts have for the graph.
  Search(const Pattern& pattern, std::shared_ptr<const PatternFacts> facts, SearchPlan plan, const Graph& graph,
         const FindOptions& options, std::vector<bool>& claimed);
  Search(const Search&) = delete;

  /// Calls may be forms, too; `results`: a match does not end at a part of one.
  void see_forms(const Forms& forms, bool results) {
    engine_.see_forms(forms);
    ends_ = results && forms.size() > 0 ? &forms : nullptr;
  }

  const SearchPlan& plan() const { return plan_; }
  CompiledPattern& program() { return program_; }
  const FindStats& stats() const { return stats_; }

  /// Tries `anchor`, which may be the plan's anchor; false when the budget is used up.
  bool try_at(Node& anchor);
  /// Tries every node of the graph.
  void try_all();

  /// What try_at found so far; the caller may move it away.
  std::vector<Match> matches;
  /// Where matches go instead, when set; for Overlap::first.
  MatchPool* pool = nullptr;
  /// Matches that a write in between splits are none, when set.
  WriteOrder* order = nullptr;
  /// Anchors without a contained match, when wanted.
  std::vector<Escape> escapes;
  bool want_escapes = false;

 private:
  bool keep();
  bool is_claimed() const;
  bool ends_at_part() const;

  const Graph& graph_;
  const FindOptions& options_;
  CompiledPattern program_;
  SearchPlan plan_;
  FindStats stats_;
  Engine engine_;
  const Forms* ends_ = nullptr;
  std::vector<bool>& claimed_;
  std::unordered_multimap<std::size_t, std::size_t> kept_here_;  // hash of the bindings -> match, at this anchor
};

/// Resolves overlaps as the options say, and puts the matches into the order of their anchors.
void apply_overlap(std::vector<Match>& matches, const FindOptions& options, const Graph& graph);

}  // namespace fx::internal
