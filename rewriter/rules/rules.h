// The rules that come with fxgraph: one ordered list of what `fxgraph optimize` can do.
//
// A rule is one of two things. Most are rewrites: patterns and what stands in their place, data that tests itself
// (testing/self_test.h). The others are passes: functions on the whole program, such as those that compute
// with weights. Both say where they do not apply and why.
//
// A family of rules is one file in a subfolder: `<group>/<family>.cc` defines `<group>_<family>::family()`, which
// returns the family's table. The build lists the files (rule_families.h, generated): adding a rule touches its file
// alone. A row says its name and its promise once: its rewrites take both from it.
//
// Thread-safety: any thread may ask for the list and its rewrites.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fxgraph/ir/tensor_info.h>
#include <fxgraph/matchers/pattern.h>
#include <fxgraph/module/graph_module.h>
#include <fxgraph/rewriter/replacement.h>
#include <fxgraph/rewriter/report.h>
#include <fxgraph/rewriter/rewriter.h>
#include <fxgraph/rewriter/rule.h>
#include <fxgraph/rewriter/rules/value_facts.h>

namespace fx::rules {

struct OptimizeRule;

/// What passes work on.
struct RuleContext {
  GraphModule& module;       ///< the program
  const OptimizeRule& rule;  ///< that is applied
  ValueFacts& values;        ///< of the module's graph
  /// Only kernels that several threads may run at once in one copy of the program: not XNNPACK's.
  bool concurrent = false;
  /// Through it a pass edits the graph.
  Rewriter rewriter{module.graph()};
};

/// A time that was measured turn about with others: lower quartile, and from there to the upper one.
struct Measured {
  std::string name;  ///< of what was measured
  /// Per run.
  /// @{
  double seconds = 0;
  double spread = 0;
  /// @}
};

/// What was chosen because it is fastest on this machine.
struct Choice {
  std::string what;                  ///< the first place of its kind, and what enters it
  std::size_t places = 0;            ///< that are alike
  std::vector<Measured> measured{};  ///< one for each that could be chosen
  std::size_t fastest = 0;           ///< in `measured`
};

/// What one application of a pass did.
struct PassResult {
  std::size_t applied = 0;         ///< how often it did what it is for
  std::vector<Refusal> refused{};  ///< places that looked like fitting; `rule` may be left empty
  /// More that is worth counting: {"module", 53} prints as "53 modules dropped".
  std::vector<std::pair<std::string, std::size_t>> dropped{};
  std::vector<Choice> choices{};  ///< what was measured
};

/// What a rule is for.
enum class Group : std::uint8_t {
  fusion,         ///< several operations become one
  decomposition,  ///< one operation becomes simpler ones
  simplify,       ///< less of the same
  lowering,       ///< what one kind of machine computes fastest; see OptimizeOptions::target
  precision,      ///< types with fewer digits; see OptimizeOptions::dtype
};

/// Returns the name as it is spelt above.
std::string_view to_string(Group group);

/// One of the rewrites of a rule: an fx::Rule but for what the rule says for all of them.
struct Rewrite {
  std::string name{};  ///< of the case: `erf` of `recognise-gelu/erf`; empty for the one that is named as the rule is
  Pattern pattern;     ///< what is looked for
  std::function<Decision(const Match&)> when{};  ///< must accept the match
  Replacement replacement;                       ///< what stands there afterwards
  RuleNeeds needs{};                             ///< who runs the rule sees to it
  std::vector<std::string> examples{};           ///< needed when the pattern alone does not spell one out
};

/// One line of the list: a family of rewrites, or a pass, with what `fxgraph rules` says of it.
struct OptimizeRule {
  std::string_view name;           ///< as `--rules` takes it
  std::string_view summary;        ///< what it does, in a line
  std::string_view preconditions;  ///< when it may, in a line
  /// The place among all rules when they are applied: what takes apart comes first (up to 120), then what makes others
  /// possible (250), what looks for written-out forms (330), what folds and merges weights, what cleans up (from 380),
  /// what lowers (from 500).
  int order;
  Group group;  ///< what it is for
  /// Among the rules that run when none are asked for.
  bool inference = false;
  Promise promise;  ///< how results compare, of each of its rewrites too
  // One of the two, or both: then the pass decides where the rewrites apply.
  std::vector<Rewrite> (*rewrites)() = nullptr;  ///< makes them; tried in this order
  PassResult (*pass)(RuleContext&) = nullptr;    ///< may be null

  /// Its rewrites as the rewriter takes them, made when they are first asked for; empty for a pass alone.
  const std::vector<Rule>& rules() const;
  /// The same of `cases`: each with its promise, and named `<name>` or `<name>/<case>`.
  std::vector<Rule> rules(std::vector<Rewrite> cases) const;
};

/// All rules, in the order in which they are applied.
std::span<const OptimizeRule* const> all_rules();

/// A named selection of rules.
struct Selection {
  std::string_view name;                   ///< as `--rules` takes it
  std::string_view summary;                ///< what is in it, in a line
  std::vector<const OptimizeRule*> rules;  ///< in the order in which they are applied
};
/// `inference`, then one for each Group.
const std::vector<Selection>& selections();

/// The rules that `names` select, rules or selections, in the order of the list; empty selects `inference`. Throws
/// Error(not_found) that lists what there is.
std::vector<const OptimizeRule*> select(const std::vector<std::string>& names);

}  // namespace fx::rules
