// What a condition of one symbol says of it holds of the same numbers.
#include <fxgraph/symbolic/size_solution.h>
#include <gtest/gtest.h>

#include <fxgraph/symbolic/size_text.h>
#include "tests/symbolic/random_expr.h"

namespace fx::size_solution_test {

using Relation = SizeRelation;

std::string solution(Relation relation, const std::string& left, std::int64_t right) {
  const auto name = [](std::string_view text) -> std::optional<NameInText> {
    if (text.empty() || (text[0] != 'n' && text[0] != 'm')) return std::nullopt;
    return NameInText{1, SizeExpr::symbol(std::string(1, text[0]))};
  };
  const auto found = solved({relation, read_size(left, name), right});
  return found ? found->str() : "";
}

TEST(SizeSolution, SaysFromWhichNumberOn) {
  EXPECT_EQ(solution(Relation::at_least, "n//4 + (6*((n//4) % 7)) % 7", 8), "n must be at least 32");
  EXPECT_EQ(solution(Relation::at_most, "n//4 + (6*((n//4) % 7)) % 7", 7), "n must be at most 31");
  EXPECT_EQ(solution(Relation::more, "(n - 1)//2 + 1", 0), "n must be at least 1");
  EXPECT_EQ(solution(Relation::less, "7 - n", 3), "n must be at least 5");
  EXPECT_EQ(solution(Relation::at_least, "n//3", 0), "n must be at least 0");
}

TEST(SizeSolution, SaysNothingOfOthers) {
  EXPECT_EQ(solution(Relation::at_least, "n % 4", 2), "") << "again and again";
  EXPECT_EQ(solution(Relation::at_least, "n - 5*(n % 2)", 3), "") << "and not behind it";
  EXPECT_EQ(solution(Relation::at_least, "n + m", 3), "");
  EXPECT_EQ(solution(Relation::at_least, "n*n", 3), "");
  EXPECT_EQ(solution(Relation::equal, "n//2", 3), "");
  EXPECT_EQ(solution(Relation::at_least, "n//4", 1000000), "") << "far";
}

TEST(SizeSolution, HoldsOfTheSameNumbers) {
  testing::RandomExpr random(11);
  constexpr Relation kOrders[] = {Relation::at_least, Relation::at_most, Relation::more, Relation::less};
  const auto of_one = [](const SizeExpr&) { return SizeExpr::symbol("n"); };
  int found = 0;
  for (int i = 0; i < 4000; ++i) {
    const SizeExpr left = random.tree(3).substituted(of_one), right = static_cast<std::int64_t>(random.draw(30));
    const SizeCondition condition{kOrders[random.draw(4)], left, right};
    const auto said = solved(condition);
    if (!said) continue;
    ++found;
    for (std::int64_t n = 0; n < 400; ++n) {
      const auto value = left.evaluate({{"n", n}});
      ASSERT_TRUE(value);
      const SizeCondition is{condition.relation, *value, right};
      const SizeCondition says{said->relation, n, said->right};
      ASSERT_EQ(SizeFacts().holds(is), SizeFacts().holds(says))
          << condition << " is said to be " << *said << " at " << n;
    }
  }
  EXPECT_GT(found, 300);
}

}  // namespace fx::size_solution_test
