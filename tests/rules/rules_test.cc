// The list of rules: every rewrite keeps its promise on generated programs.
#include <fxgraph/rewriter/rules/rules.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/rewriter/program/testing.h>

namespace fx::rules::rules_test {

using ::testing::HasSubstr;
using testing::KeepsItsPromise;

/// Prints as its name.
struct Rewrite {
  const Rule* rule;
  friend std::ostream& operator<<(std::ostream& out, const Rewrite& rewrite) { return out << rewrite.rule->name; }
};

std::vector<Rewrite> all_rewrites() {
  std::vector<Rewrite> rewrites;
  for (const OptimizeRule* rule : all_rules()) {
    if (!rule->rewrites) continue;
    for (const Rule& rewrite : rule->rewrites()) rewrites.push_back({&rewrite});
  }
  return rewrites;
}

class EveryRewriteSlow : public ::testing::TestWithParam<Rewrite> {};

TEST_P(EveryRewriteSlow, KeepsItsPromise) { EXPECT_THAT(*GetParam().rule, KeepsItsPromise()); }

INSTANTIATE_TEST_SUITE_P(All, EveryRewriteSlow, ::testing::ValuesIn(all_rewrites()), [](const auto& info) {
  std::string name = info.param.rule->name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(Rules, AllTogetherAreAGoodSet) {
  for (const Selection& selection : selections()) {
    RuleSet set;
    for (const OptimizeRule* rule : selection.rules) {
      EXPECT_TRUE(rule->rewrites || rule->pass) << rule->name;
      EXPECT_FALSE(rule->summary.empty() || rule->preconditions.empty()) << rule->name;
      if (!rule->rewrites) continue;
      for (const Rule& rewrite : rule->rewrites()) {
        EXPECT_EQ(rewrite.name.substr(0, rule->name.size()), rule->name);
        EXPECT_LE(static_cast<int>(rewrite.promise), static_cast<int>(rule->promise)) << rewrite.name;
        set.add(rewrite);
      }
    }
    for (const RuleProblem& problem : set.check())
      EXPECT_FALSE(problem.error) << problem.rule << ": " << problem.message;
  }
}

TEST(Rules, SelectNamesWhatThereIs) {
  EXPECT_EQ(select({}), selections()[0].rules);
  EXPECT_EQ(select({"dead-code", "dead-code"}).size(), 1u);
  EXPECT_EQ(select({"fusion", "simplify", "decomposition", "lowering", "precision"}).size(), all_rules().size());
  try {
    select({"no-such-rule"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no rule or group no-such-rule; there are inference, fusion"));
  }
}

}  // namespace fx::rules::rules_test
