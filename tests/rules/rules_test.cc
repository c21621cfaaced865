// The list of rules: every rewrite keeps its promise on generated programs.
#include <fxgraph/rewriter/rules/rules.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/testing/testing.h>

namespace fx::rules::rules_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::KeepsItsPromise;

/// Prints as its name.
struct Named {
  const Rule* rule;
  friend std::ostream& operator<<(std::ostream& out, const Named& rewrite) { return out << rewrite.rule->name; }
};

std::vector<Named> all_rewrites() {
  std::vector<Named> rewrites;
  for (const OptimizeRule* rule : all_rules()) {
    for (const Rule& rewrite : rule->rules()) rewrites.push_back({&rewrite});
  }
  return rewrites;
}

class EveryRewrite : public ::testing::TestWithParam<Named> {};

TEST_P(EveryRewrite, KeepsItsPromise) { EXPECT_THAT(*GetParam().rule, KeepsItsPromise()); }

INSTANTIATE_TEST_SUITE_P(All, EveryRewrite, ::testing::ValuesIn(all_rewrites()), [](const auto& info) {
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
      for (const Rule& rewrite : rule->rules()) set.add(rewrite);
    }
    for (const RuleProblem& problem : set.check())
      EXPECT_FALSE(problem.error) << problem.rule << ": " << problem.message;
  }
}

TEST(Rules, HandTheirNameAndPromiseDown) {
  const OptimizeRule& hardswish = *select({"recognise-hardswish"}).front();
  std::vector<std::string> names;
  for (const Rule& rewrite : hardswish.rules()) {
    names.push_back(rewrite.name);
    EXPECT_EQ(rewrite.promise, hardswish.promise) << rewrite.name;
  }
  EXPECT_THAT(names, ElementsAre("recognise-hardswish", "recognise-hardswish/sigmoid", "recognise-hardswish/product"));
  EXPECT_EQ(&hardswish.rules(), &hardswish.rules());
  EXPECT_TRUE(select({"dead-code"}).front()->rules().empty());
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
