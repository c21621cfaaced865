// Rule: a rewrite as data. RuleSet: rules in order of priority, checked before they run.
//
//   const fx::Rule kDivByConstant{
//       .name = "div-by-constant",
//       .pattern = "aten::div.Tensor(x, c: float)",
//       .when = [](const fx::Match& m) { return m.literal("c") != 0; },
//       .replacement = [](const fx::Match& m, fx::Rewriter& r) -> fx::Node& {
//         return r.call_function("aten::mul.Tensor", {m["x"], 1 / m.literal("c")}); },
//       .promise = fx::Promise::approximate,
//   };
//
// Thread-safety: a rule and a set may be used by several threads at once if their functions may.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <fxgraph/matchers/definitions.h>
#include <fxgraph/matchers/pattern.h>
#include <fxgraph/rewriter/replacement.h>

namespace fx {

/// What must hold for the rule to be right; who runs the rules knows whether it does.
struct RuleNeeds {
  bool eval_mode = false;       ///< training is off
  bool frozen_weights = false;  ///< parameters are constants: nobody changes or trains them later
  bool finite_inputs = false;   ///< where inputs are infinite or NaN, others may come out that are
};

/// What a condition says: yes; no; or no, because.
class Decision {
 public:
  /// Yes, or no without a reason.
  Decision(bool accepted) : accepted_(accepted) {}
  /// No, with a reason for the report; see refuse().
  explicit Decision(std::string reason) : accepted_(false), reason_(std::move(reason)) {}

  /// True for yes.
  explicit operator bool() const { return accepted_; }
  /// Empty when there is nothing to say about it.
  const std::string& reason() const { return reason_; }

 private:
  bool accepted_;
  std::string reason_;
};

/// A place that nearly fits, worth a line in the report: `return refuse("the bias is computed");`.
inline Decision refuse(std::string reason) { return Decision(std::move(reason)); }

/// What to look for, what to put in its place, and when.
struct Rule {
  std::string name;  ///< unique in a set; reports and new nodes' notes have it
  Pattern pattern;   ///< what is looked for
  /// Must accept the match; reads the match, its nodes and what it knows of their shapes.
  std::function<Decision(const Match&)> when{};
  Replacement replacement;               ///< what stands there afterwards
  Promise promise = Promise::bit_exact;  ///< how results compare
  RuleNeeds needs{};                     ///< who runs the rule sees to it
  /// The replacement may contain the pattern again; `when` or the limits of the driver end it.
  bool may_repeat = false;
  /// One line for lists of rules.
  std::string description{};
  /// Programs on which the rule fires, as FX text or in the form of patterns, for its self-test
  /// (testing/self_test.h); needed when the pattern alone does not spell one out.
  std::vector<std::string> examples{};
};

/// Something wrong with a set of rules.
struct RuleProblem {
  bool error = true;    ///< false: a warning
  std::string rule;     ///< the rule that is at fault
  std::string message;  ///< names the other rule where there is one
};

/// Rules in order: at one place the first that fits wins.
class RuleSet {
 public:
  RuleSet() = default;
  /// In this order; nothing is checked yet.
  /// @{
  RuleSet(std::initializer_list<Rule> rules) : rules_(rules) {}
  RuleSet(std::vector<Rule> rules) : rules_(std::move(rules)) {}
  /// @}

  /// Adds the rule behind the others; it is checked by the next validate().
  void add(Rule rule) {
    rules_.push_back(std::move(rule));
    valid_ = false;
  }
  /// The rules, in their order; the index is not checked.
  /// @{
  std::size_t size() const { return rules_.size(); }
  const Rule& operator[](std::size_t i) const { return rules_[i]; }
  const std::vector<Rule>& rules() const { return rules_; }
  /// @}
  /// The rule of this name, or null.
  const Rule* find(std::string_view name) const;
  /// The rules of these names, in this set's order. Throws Error(not_found) for a name that is not there.
  RuleSet only(const std::vector<std::string>& names) const;

  /// Everything that is wrong: names missing or given twice; inputs of a replacement that its pattern does not bind;
  /// results that do not agree in number; a replacement that contains its own pattern; a rule that can never apply
  /// because one before it matches all that it matches.
  std::vector<RuleProblem> check() const;
  /// Throws Error(invalid_argument) that lists the errors among check(). A set that was found to be good is not checked
  /// again until a rule is added.
  void validate() const;

 private:
  /// May be set by several threads at once, which all found the same; copied with the rules.
  class Flag {
   public:
    Flag() = default;
    Flag(const Flag& other) : set_(other.set_.load()) {}
    Flag& operator=(const Flag& other) { return *this = other.set_.load(); }
    Flag& operator=(bool set) {
      set_ = set;
      return *this;
    }
    operator bool() const { return set_; }

   private:
    std::atomic<bool> set_ = false;
  };

  std::vector<Rule> rules_;
  mutable Flag valid_;
};

}  // namespace fx
