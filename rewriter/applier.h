// Rewrites one match: checks, builds, redirects, erases. Internal to rewriter/.
#pragma once

#include <functional>
#include <vector>

#include <fxgraph/rewriter/fact_guard.h>
#include <fxgraph/rewriter/legality.h>
#include <fxgraph/rewriter/provenance.h>
#include <fxgraph/rewriter/replacement_plan.h>
#include <fxgraph/rewriter/rewriter.h>

namespace fx::internal {

/// What became of a match.
enum class ApplyResult : std::uint8_t { applied, refused, declined };

class Applier {
 public:
  /// What it is given must outlive it. `shapes`, if not null, is kept up to date: a new value has the type and sizes of
  /// the one it replaces. `guard`, if not null, must answer for what the match was asked.
  Applier(Rewriter& rewriter, TrackedEffects& effects, const ReplacementPlan& replacement, Symbol rule,
          bool allow_output_aliases, Shapes* shapes = nullptr, FactGuard* guard = nullptr)
      : rewriter_(rewriter),
        effects_(effects),
        replacement_(replacement),
        nodes_(replacement.nodes()),
        rule_(rule),
        provenance_(rule),
        allow_output_aliases_(allow_output_aliases),
        shapes_(shapes),
        guard_(guard) {}

  /// Rewrites `match` after bringing its values up to date: where an earlier rewrite has changed what it takes, the
  /// pattern's own conditions and `accepts` are asked again. Unless it is applied the graph is as before.
  ApplyResult apply(Match& match, const std::function<bool(const Match&)>& accepts = {});

  /// Why the last match was refused.
  const Objection& objection() const { return objection_; }
  /// The nodes made for the last match, in graph order.
  const std::vector<Node*>& made() const { return made_; }

 private:
  ApplyResult refuse(Verdict& verdict);
  Verdict update(Match& match, bool& changed);
  bool is_made(const Node* node) const;
  Verdict check(Site& site) const;
  ApplyResult try_to_apply(Match& match, const std::function<bool(const Match&)>& accepts);
  void trust_named(const Site& site);
  void forget_named(bool refused);
  void build(const Site& site);
  Verdict check_function(const Site& site) const;
  Verdict check_built(const Site& site);
  Verdict check_facts(const Site& site);
  void annotate(const Site& site);
  void note_shape(const Node& old, const Node& made);
  void make_known();
  void redirect(const Site& site);
  void erase(const Site& site);

  Rewriter& rewriter_;
  TrackedEffects& effects_;
  const ReplacementPlan& replacement_;
  std::vector<TemplateNode> nodes_;  // the replacement's, filled in for the last match
  Symbol rule_;
  ProvenanceLog provenance_;
  bool allow_output_aliases_;
  Shapes* shapes_;
  FactGuard* guard_;
  Objection objection_;
  std::vector<Node*> named_;  // trusted for the last match
  std::vector<Node*> made_;
  std::vector<Argument> results_;
};

}  // namespace fx::internal
