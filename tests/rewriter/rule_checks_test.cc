// What is wrong with a set of rules: which rule can never apply because of one before it.
#include <gtest/gtest.h>

#include <fxgraph/rewriter/report.h>
#include <fxgraph/rewriter/rule.h>

namespace fx::rule_checks_test {

std::string problems_of(const RuleSet& rules) {
  std::string found;
  for (const RuleProblem& problem : rules.check()) found += problem.message + "\n";
  return found;
}

Rule rule(std::string name, const char* pattern) {
  return {.name = std::move(name), .pattern = pattern, .replacement = "aten::sin(x)"};
}

TEST(RuleChecks, WhatTheEarlierTakesOfTheLater) {
  struct Case {
    const char *earlier, *later;
    bool shadowed;
  };
  const Case cases[] = {
      {"mine.f(x)", "mine.f(x)", true},
      {"mine.f(x)", "mine.f(mine.g(x))", true},
      {"mine.f(mine.g(x))", "mine.f(x)", false},
      {"mine.f(x, 1.0)", "mine.f(x, 1.0)", true},
      {"mine.f(x, _)", "mine.f(x, 1.0)", true},
      {"mine.f(x, 1.0)", "mine.f(x, near(1.0, 0.1))", false},
      {"mine.f(x, 1.0)", "mine.f(x, near(1.0, 0.0))", false},  // which any number as near as that is, of any kind
      {"mine.f(x, y: node)", "mine.f(x, c: float)", false},
      {"mine.f(x)", "mine.f(x, ...)", false},
      {"mine.f(x, ...)", "mine.f(x)", true},
      {"mine.f(aten::g)", "mine.f(aten::g(y))", true},
      {"mine.f(aten::g())", "mine.f(aten::g)", false},
      {"mine.f(mine.g(x), y)", "commutative(mine.f(mine.g(x), y))", false},
      {"commutative(mine.f(mine.g(x), y))", "mine.f(mine.g(x), y)", true},
      {"mine.f(x.used_once)", "mine.f(x.used_once)", false},
      {"mine.f(mine.g(x) | mine.h(x))", "mine.f(mine.g(x))", true},
      {"mine.f(mine.g(x))", "mine.f(mine.g(x) | mine.h(x))", false},
  };
  for (const Case& c : cases) {
    RuleSet rules;
    rules.add(rule("first", c.earlier));
    rules.add(rule("second", c.later));
    EXPECT_EQ(problems_of(rules).find("first") != std::string::npos, c.shadowed)
        << c.earlier << " then " << c.later << ": " << problems_of(rules);
  }
}

TEST(RuleChecks, ARuleThatWouldNeverEnd) {
  for (const bool may_repeat : {false, true}) {
    RuleSet rules;
    rules.add({.name = "again", .pattern = "mine.f(x)", .replacement = "mine.g(mine.f(x))", .may_repeat = may_repeat});
    EXPECT_EQ(problems_of(rules).empty(), may_repeat);
  }
}

TEST(RuleChecks, AReportSaysWhetherAnythingChanged) {
  RewriteReport report;
  EXPECT_FALSE(report.changed());
  report.applied = 1;
  EXPECT_TRUE(report.changed());
}

}  // namespace fx::rule_checks_test
