// May this match be rewritten here? The checks before every rewrite. Internal to rewriter/.
//
//   contained   inner values are used inside the match only
//   convex      no path leaves the match and comes back. With one exit that holds by itself: such a path would start
//               at the exit and end above it. With several, a search from the exits, within the match's span
//   placed      there is a place after all that the replacement takes and before all that uses its results; inputs
//               that do not depend on the match are moved up for it
//   ordered     nothing between the old places and the new one writes what the match reads, or would be passed by a
//               write, a random draw or a side effect of the match
//   forms       nobody gives what the match takes or makes another shape in place: it would do so to what comes instead
//   owned       a write in the match is kept by the replacement, or nobody can see it
//   aliases     no result comes to share, or stops sharing, storage that is written later or that the caller gets
//   layout      nothing depends on how a value lies in memory that may lie otherwise now
//   asked again the condition holds of what earlier rewrites changed
//
// Each costs the match and what lies in its span, never the graph.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/matchers/match.h>
#include <fxgraph/rewriter/replacement_plan.h>

namespace fx::internal {

/// Why not: the node to name, and the reason. Prints as `matmul_3: its value is also used by add_7`.
struct Objection {
  const Node* node = nullptr;
  std::string reason;
};
using Verdict = std::optional<Objection>;

/// A match with what the checks find out about it.
struct Site {
  explicit Site(const Match& match);
  Site(const Site&) = delete;

  const Match& match;
  std::span<Node* const> nodes;  ///< in graph order
  std::span<Node* const> exits;  ///< the calls among the results, each once, in graph order
  Node* at = nullptr;            ///< new nodes go before this one
  std::vector<Node*> to_move;    ///< inputs to move before `at`, in order

  bool contains(const Node& node) const { return is_among(nodes, node); }
  bool is_exit(const Node& node) const { return is_among(exits, node); }
  /// The exit that the value is, or is computed from within the match; null when there is none. A replacement that
  /// takes such a value would come before and after it.
  const Node* exit_behind(const Node& value) const {
    return exits.size() > 1 ? exit_among_several(value) : is_exit(value) ? &value : nullptr;
  }

 private:
  static bool is_among(std::span<Node* const> nodes, const Node& node) {
    for (const Node* one : nodes) {
      if (one == &node) return true;
    }
    return false;
  }
  const Node* exit_among_several(const Node& value) const;

  Node* exit_ = nullptr;  // storage of `exits`: one needs no allocation
  std::vector<Node*> several_;
};

/// True when the pattern names the operator of a matched node, so that its author knew what it does.
bool is_named(const Site& site, const Node& node);

/// Says whether what is computed after the call is computed otherwise: with or without gradients, in another dtype.
bool switches_mode(const Node& call);

Verdict check_alive(const Site& site);
Verdict check_contained(const Site& site);
Verdict check_convex(const Site& site);
/// Chooses the place for a replacement that takes `captures`; fills site.at and site.to_move.
Verdict find_place(Site& site, std::span<const std::uint32_t> captures, const TrackedEffects& effects);
/// `draws` and `acts`: the replacement draws random numbers, or has side effects.
Verdict check_order(const Site& site, bool draws, bool acts, const TrackedEffects& effects);
/// `also_written`: values that the replacement writes to as well.
Verdict check_owned(const Site& site, std::span<Node* const> also_written, const TrackedEffects& effects);

/// After a replacement made by a function: nothing wrote to what the nodes `made` read beyond what the match took,
/// since those values were made. The function saw them as they were there.
Verdict check_reads(const Site& site, std::span<Node* const> made, std::span<const Argument> results,
                    const TrackedEffects& effects);
/// Nothing gives a tensor that the match takes or makes another shape in place: it would do so to what comes instead.
Verdict check_forms(const Site& site, const TrackedEffects& effects);

/// Who could see whether the storage of `value` is written at `from`: a later reader outside the match, or the caller.
/// Null when nobody could; else the value that is seen, and its reader if it is not the caller. In words: seen_by.
std::pair<const Node*, const Node*> find_observer(const Site& site, const Node& from, const Node& value,
                                                  const TrackedEffects& effects);
std::string seen_by(const std::pair<const Node*, const Node*>& observer);

/// Does a wildcard stand for a call with effects that the pattern matches as well? The replacement that takes it would
/// keep it, beside what stands for it. `captures`: what the replacement takes.
Verdict check_taken(const Site& site, std::span<const std::uint32_t> captures, const TrackedEffects& effects);

/// What a replacement may change of where its results lie.
struct MayChange {
  bool layout = false;    ///< they lie as inputs do, where the old ones were laid out anew, or the other way round
  bool operands = false;  ///< they are computed of the same in another order: of several the first decides
};

/// Are the results, just made, in the same alias relation to other values as those they replace, as far as a write or
/// the caller can tell? `made` are the new nodes, not yet known to `effects`.
Verdict check_aliases(const Site& site, std::span<const Argument> results, std::span<Node* const> made,
                      const TrackedEffects& effects, MayChange change, bool allow_output_aliases);

}  // namespace fx::internal
