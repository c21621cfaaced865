// Makes the program what a reading of it says, where a match wants it: a called module becomes its operators, a write
// that nobody else sees a new value. Internal to rewriter/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/matchers/reading.h>
#include <fxgraph/rewriter/fact_guard.h>
#include <fxgraph/rewriter/report.h>
#include <fxgraph/rewriter/rewriter.h>

namespace fx::internal {

class WriteOut {
 public:
  /// What it is given must outlive it; `shapes` and `guard` may be null.
  WriteOut(Rewriter& rewriter, TrackedEffects& effects, std::shared_ptr<const Reading> reading, Symbol rule,
           Shapes* shapes, FactGuard* guard)
      : rewriter_(rewriter),
        effects_(effects),
        reading_(std::move(reading)),
        rule_(rule),
        shapes_(shapes),
        guard_(guard) {}

  /// Edits the program until it has the calls of `match`, which was found in the reading. Unless that can be done the
  /// program is as before.
  std::optional<Refusal> make(const Match& match);
  /// The calls that make() wrote out, by name, and by which definition.
  std::vector<std::string> sources() const;
  /// True when it wrote out something.
  bool made_any() const { return !done_.empty(); }
  /// What make() went by, which whoever rewrites the match answers for.
  const FactLog& asked() const { return asked_; }
  /// Undoes what make() did; the rewrite behind it has been undone.
  void undo();
  /// The program's node for a node of the reading that make() was asked for; null when it is gone.
  Node* in_program(const Node& read) const;

 private:
  struct Done {
    std::string source;
    std::vector<const Node*> parts;
  };

  Refusal refused(const Node& node, std::string reason) const { return {rule_.str(), node.name(), std::move(reason)}; }
  std::vector<Node*> needed(const Match& match) const;
  std::optional<Refusal> write(Node& source);
  std::optional<Refusal> make_forms(const Match& match);
  std::optional<Refusal> write_form(const Form& form);
  std::optional<Refusal> note_read(const Form& form);
  const Node* written_among(const Form& form) const;
  bool is_of_one_type(const Form& form) const;
  Node& copy(const Node& part, bool& is_there);
  std::optional<Refusal> check(const Node& source);
  std::optional<Refusal> check_types(const Node& source);
  Argument value_of(const Node& read) const;
  void redirect(Node& from, const Argument& to);
  void erase(Node& node);

  Rewriter& rewriter_;
  TrackedEffects& effects_;
  std::shared_ptr<const Reading> reading_;
  Symbol rule_;
  Shapes* shapes_;
  FactGuard* guard_;
  std::unordered_map<const Node*, Node*> made_;  // by the reading's nodes; look-up only
  std::vector<Done> done_;                       // for the last match
  std::vector<Node*> erased_;                    // for it
  FactLog asked_;                                // for it
  Rewriter::Mark mark_ = 0;
};

}  // namespace fx::internal
