// The list of rules: every rewrite keeps its promise on generated programs, and can be told apart from a broken copy.
#include <fxgraph/rewriter/rules/rules.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/rewriter/program/testing.h>

namespace fx::rules {
namespace {

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
      EXPECT_NE(rule->rewrites == nullptr, rule->pass == nullptr) << rule->name << " is one or the other";
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
  EXPECT_EQ(select({"fusion", "simplify", "decomposition"}).size(), all_rules().size());
  try {
    select({"no-such-rule"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no rule or group no-such-rule; there are inference, fusion"));
  }
}

// ── Broken copies ────────────────────────────────────────────────────────────────────────────────────────────────────

/// A rule of the list with one thing wrong in it.
struct Broken {
  const char* rule;
  const char* what;
  void (*breaks)(Rule&);
  friend std::ostream& operator<<(std::ostream& out, const Broken& broken) {
    return out << broken.rule << ": " << broken.what;
  }
};

class BrokenRules : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenRules, AreCaught) {
  for (const auto [rule] : all_rewrites()) {
    if (rule->name != GetParam().rule) continue;
    Rule broken = *rule;
    GetParam().breaks(broken);
    const SelfTestResult result = self_test(broken);
    EXPECT_FALSE(result.counter_example.empty()) << GetParam().what << ": " << result;
    return;
  }
  FAIL() << "there is no rule " << GetParam().rule;
}

void always(Rule& rule) { rule.when = {}; }

INSTANTIATE_TEST_SUITE_P(
    All, BrokenRules,
    ::testing::Values(
        Broken{"recognise-gelu/erf", "the tanh form", [](Rule& r) { r.promise = Promise::bit_exact; }},
        Broken{"recognise-hardswish", "hardsigmoid", [](Rule& r) { r.replacement = "aten::hardsigmoid(x)"; }},
        Broken{"recognise-leaky-relu", "the slope is lost", [](Rule& r) { r.replacement = "aten::leaky_relu(x)"; }},
        Broken{"recognise-linear/sum", "any shape", always},
        Broken{"decompose-relu", "(x > 0) x",
               [](Rule& r) { r.replacement = "aten::mul.Tensor(aten::gt.Scalar(x, 0), x)"; }},
        Broken{"decompose-softmax", "no keepdim",
               [](Rule& r) {
                 r.replacement = "e = aten::exp(x)\nreturn aten::div.Tensor(e, aten::sum.dim_IntList(e, [d], False))";
               }},
        Broken{"identity-arithmetic/add", "any type", always},
        Broken{"identity-arithmetic/mul", "any type", always},
        Broken{"inverse-pairs/abs", "drops both", [](Rule& r) { r.replacement = "x"; }},
        Broken{"division-by-constant", "bit-exact", [](Rule& r) { r.promise = Promise::bit_exact; }},
        Broken{"permutations/identity", "any order",
               [](Rule& r) {
                 r.when = {};
                 r.examples = {"aten::permute(x, [1, 0])"};
               }},
        Broken{"reshapes/own-shape", "any shape", always}, Broken{"squeezes/nothing", "any size", always},
        Broken{"full-slices", "any end",
               [](Rule& r) {
                 r.when = {};
                 r.examples = {"aten::slice.Tensor(x, 0, 0, 1, 1)"};
               }},
        Broken{"concatenations/one", "drops the dimension", [](Rule& r) { r.replacement = "aten::unsqueeze(x, 0)"; }},
        Broken{"drop-no-ops/dropout", "training",
               [](Rule& r) {
                 r.pattern = "aten::dropout(x: node, _, _)";
                 r.examples = {"aten::dropout(x, 0.5, True)"};
               }}),
    [](const auto& info) { return "n" + std::to_string(info.index); });

}  // namespace
}  // namespace fx::rules
