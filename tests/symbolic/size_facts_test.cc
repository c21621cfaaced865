// What is decided, against all small values of the symbols that agree with what is assumed.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <fxgraph/symbolic/size_facts.h>
#include "tests/symbolic/random_expr.h"

namespace fx::size_facts_test {

using Relation = SizeRelation;
using Point = std::map<std::string, std::int64_t>;

constexpr std::int64_t kMost = 9;

bool is_so(const SizeCondition& condition, const Point& at) {
  const std::optional<std::int64_t> left = condition.left.evaluate(at), right = condition.right.evaluate(at);
  if (!left || !right) return true;  // divided by zero: nothing is said of it
  switch (condition.relation) {
    case Relation::equal: return *left == *right;
    case Relation::unequal: return *left != *right;
    case Relation::at_least: return *left >= *right;
    case Relation::at_most: return *left <= *right;
    case Relation::more: return *left > *right;
    case Relation::less: return *left < *right;
    case Relation::multiple: return *right != 0 && *left % *right == 0;
    case Relation::holds: return *left != 0;
  }
  return false;
}
bool is_defined(const SizeCondition& condition, const Point& at) {
  return condition.left.evaluate(at) && condition.right.evaluate(at);
}

std::vector<Point> all_points() {
  std::vector<Point> points;
  for (std::int64_t a = 0; a <= kMost; ++a)
    for (std::int64_t b = 0; b <= kMost; ++b)
      for (std::int64_t c = 0; c <= kMost; ++c) points.push_back({{"a", a}, {"b", b}, {"c", c}});
  return points;
}

SizeCondition random_condition(testing::RandomExpr& random, bool of_trees) {
  SizeCondition condition;
  condition.relation = static_cast<Relation>(random.draw(7));
  condition.left = of_trees ? random.tree(1 + random.draw(3)) : random.linear();
  condition.right = condition.relation == Relation::multiple ? SizeExpr(1 + random.draw(4))
                    : of_trees                               ? random.tree(random.draw(3))
                                                             : random.linear();
  return condition;
}

// Neither `yes` nor `no` is ever said of what differs.
void ask(bool of_trees, int rounds, std::uint64_t seed) {
  testing::RandomExpr random(seed);
  const std::vector<Point> points = all_points();
  std::size_t decided = 0, open = 0;
  for (int round = 0; round < rounds; ++round) {
    SizeFacts facts;
    for (const char* name : {"a", "b", "c"}) facts.declare(name, {0, kMost});
    std::vector<SizeCondition> assumed;
    for (int i = random.draw(4); i > 0; --i) {
      assumed.push_back(random_condition(random, random.draw(4) == 0));
      facts.assume(assumed.back());
    }
    std::vector<Point> possible;
    for (const Point& at : points) {
      if (std::ranges::all_of(assumed, [&](const auto& each) { return is_defined(each, at) && is_so(each, at); }))
        possible.push_back(at);
    }
    if (possible.empty()) continue;
    for (int i = 0; i < 5; ++i) {
      const SizeCondition asked = random_condition(random, of_trees);
      const Answer answer = facts.holds(asked);
      if (answer == Answer::unknown) {
        ++open;
        continue;
      }
      ++decided;
      for (const Point& at : possible) {
        if (!is_defined(asked, at)) continue;
        ASSERT_EQ(is_so(asked, at), answer == Answer::yes)
            << asked << " at a=" << at.at("a") << " b=" << at.at("b") << " c=" << at.at("c") << ", assumed "
            << (assumed.empty() ? "nothing" : assumed[0].str()) << (assumed.size() > 1 ? "; " + assumed[1].str() : "")
            << (assumed.size() > 2 ? "; " + assumed[2].str() : "");
      }
    }
  }
  EXPECT_GT(decided, open / 10);
}

TEST(SizeFacts, DecideNothingWrongOfSums) { ask(false, 4000, 1); }
TEST(SizeFacts, DecideNothingWrongOfAnything) { ask(true, 4000, 2); }

// Of independent symbols: always equal is found to be so, and never by a factor.
TEST(SizeFacts, DecideLinearEqualities) {
  testing::RandomExpr random(3);
  const std::vector<Point> points = all_points();
  const SizeFacts facts;
  for (int i = 0; i < 20000; ++i) {
    SizeCondition asked{Relation::equal, random.linear(), random.linear()};
    if (i % 3 == 0) asked.right = (asked.left + asked.right) - asked.right;
    const bool always = std::ranges::all_of(points, [&](const Point& at) { return is_so(asked, at); });
    ASSERT_EQ(facts.holds(asked) == Answer::yes, always) << asked;
  }
}

TEST(SizeFacts, SayTheSameSimply) {
  testing::RandomExpr random(4);
  const std::vector<Point> points = all_points();
  for (int i = 0; i < 3000; ++i) {
    const SizeCondition said = random_condition(random, i % 2 == 0), simply = said.simplified();
    for (const Point& at : points) {
      ASSERT_TRUE(!is_defined(said, at) || is_so(said, at) == is_so(simply, at)) << said << " as " << simply;
    }
  }
  const SizeExpr h = SizeExpr::symbol("h"), w = SizeExpr::symbol("w");
  EXPECT_EQ((SizeCondition{Relation::at_least, 2 * h - 7, 0}.simplified().str()), "h must be at least 4");
  EXPECT_EQ((SizeCondition{Relation::less, 0, floor_div(h - 3, 4) + 1}.simplified().str()), "h must be at least 3");
  EXPECT_EQ((SizeCondition{Relation::at_most, floor_div(h, 4), 2}.simplified().str()), "h must be at most 11");
  EXPECT_EQ((SizeCondition{Relation::equal, 2 * h - 6, 0}.simplified().str()), "h must be 3");
  EXPECT_EQ((SizeCondition{Relation::equal, h - w, 0}.simplified().str()), "h must be equal to w");
}

TEST(SizeFacts, DecideWhatModelsAsk) {
  const SizeExpr n = SizeExpr::symbol("n"), m = SizeExpr::symbol("m");
  SizeFacts facts;
  facts.declare("n", {1, std::nullopt});
  facts.declare("m", {1, std::nullopt});
  EXPECT_EQ(facts.holds({Relation::equal, floor_div(n, 2) * 2, n}), Answer::unknown);
  EXPECT_EQ(facts.holds({Relation::equal, floor_div(n, 2) + ceil_div(n, 2), n}), Answer::yes);
  EXPECT_EQ(facts.holds({Relation::equal, n - floor_div(n, 2), floor_div(n + 1, 2)}), Answer::yes);
  EXPECT_EQ(facts.holds({Relation::equal, 2 * n + 4 * m + 1, 6}), Answer::no);
  EXPECT_EQ(facts.holds({Relation::at_least, floor_div(n - 1, 2) + 1, 1}), Answer::yes);
  EXPECT_EQ(facts.holds({Relation::equal, n, 0}), Answer::no);
  facts.assume({Relation::multiple, n, 8});
  EXPECT_EQ(facts.holds({Relation::equal, floor_div(n, 8) * 8, n}), Answer::yes);
  EXPECT_EQ(facts.holds({Relation::multiple, n, 4}), Answer::yes);
  facts.assume({Relation::equal, m, 2 * n});
  EXPECT_EQ(facts.simplified(m + 1).str(), "2*n + 1");
  EXPECT_EQ(facts.holds({Relation::more, m, n}), Answer::yes);
}

TEST(SizeFacts, TakeLargeFactors) {
  const SizeExpr a = SizeExpr::symbol("a");
  SizeFacts facts;
  facts.declare("a", {1, std::nullopt});
  for (const std::int64_t factor : {std::int64_t{1} << 31, std::int64_t{1} << 40, std::int64_t{1} << 62, INT64_MAX}) {
    for (const SizeExpr& left : {factor * a, SizeExpr(factor) * a * a, factor * floor_div(a, 3)}) {
      EXPECT_NE(facts.holds({Relation::at_most, left, 3}), Answer::yes) << left;
      EXPECT_NE(facts.holds({Relation::at_least, left, 0}), Answer::no) << left;
      const SizeCondition said{Relation::at_most, left, 3}, simply = said.simplified();
      for (const std::int64_t value : {0, 1, 2})
        EXPECT_EQ(is_so(said, {{"a", value}}), is_so(simply, {{"a", value}})) << said << " as " << simply;
    }
  }
}

TEST(SizeFacts, SayConditionsInWords) {
  const SizeExpr n = SizeExpr::symbol("x[0]");
  EXPECT_EQ((SizeCondition{Relation::at_least, n, 4}.str()), "x[0] must be at least 4");
  EXPECT_EQ((SizeCondition{Relation::equal, n, n * 2 + 1}.str()), "x[0] must be equal to 2*x[0] + 1");
  EXPECT_EQ((SizeCondition{Relation::multiple, n, 8}.str()), "x[0] must be a multiple of 8");
}

}  // namespace fx::size_facts_test
