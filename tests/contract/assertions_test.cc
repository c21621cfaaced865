// Assertions are read as they are written.
#include <fxgraph/contract/assertions.h>
#include <fxgraph/contract/contract.h>
#include <gtest/gtest.h>

#include <fxgraph/ir/graph.h>
#include <fxgraph/support/error.h>

#include "tests/symbolic/random_expr.h"

namespace fx::assertions_test {

using Relation = SizeRelation;

struct Program {
  Graph graph;
  std::map<std::string, Node*> numbers;

  Program() {
    for (const char* name : {"a", "b", "c"}) numbers[name] = &graph.placeholder(name);
  }
  AssertionWriter::NumberOf number_of() {
    return [this](const std::string& symbol) { return Argument(*numbers.at(symbol)); };
  }
  std::optional<SizeExpr> read() const {
    const std::vector<Node*> assertions = graph.find_nodes(Op::call_function, "torch._assert");
    return assertions.empty() ? std::nullopt : asserted(*assertions.back(), [](const Node& node) {
      return node.is(Op::placeholder) ? node.name() : std::string();
    });
  }
};

TEST(Assertions, AreReadAsTheyAreWritten) {
  testing::RandomExpr random(7);
  constexpr Relation kAll[] = {Relation::equal, Relation::unequal, Relation::at_least, Relation::at_most,
                               Relation::more,  Relation::less,    Relation::multiple};
  int compared = 0;
  for (int i = 0; i < 4000; ++i) {
    SizeCondition condition{kAll[random.draw(7)], random.draw(2) ? random.linear() : random.tree(3), random.tree(2)};
    if (condition.relation == Relation::multiple) condition.right = 1 + random.draw(5);
    Program program;
    AssertionWriter(program.graph).add(condition, program.number_of(), "said");
    const std::optional<SizeExpr> read = program.read();
    if (!read) continue;  // of numbers alone, or of too many
    ++compared;
    for (int point = 0; point < 20; ++point) {
      const auto at = random.point(9);
      const auto left = condition.left.evaluate(at), right = condition.right.evaluate(at), holds = read->evaluate(at);
      if (!left || !right) continue;
      const bool is_so = SizeFacts().holds({condition.relation, *left, *right}) == Answer::yes;
      ASSERT_EQ(holds, is_so) << condition << " is read as " << *read;
    }
  }
  EXPECT_GT(compared, 3000);
}

TEST(Assertions, SayOneAnswerOfOneValue) {
  Program program;
  Graph& graph = program.graph;
  Node &a = *program.numbers["a"], &b = *program.numbers["b"];
  const auto answer = [&](Node& holds) {
    return asserted_answer(graph.call_function("torch._assert", {holds, "said"}));
  };
  const auto equal = answer(graph.call_function("aten::eq.int_list", {a, Argument::list({1, 2})}));
  ASSERT_TRUE(equal);
  EXPECT_EQ(equal->value, &a);
  EXPECT_EQ(equal->answer, Argument::list({1, 2}));
  const auto turned = answer(graph.call_function("operator.eq", {3, a}));
  ASSERT_TRUE(turned);
  EXPECT_EQ(turned->answer, Argument(3));
  const auto negated = answer(graph.call_function("aten::__not__", {a}));
  ASSERT_TRUE(negated);
  EXPECT_EQ(negated->value, &a);
  EXPECT_EQ(negated->answer, Argument(false));
  EXPECT_FALSE(answer(graph.call_function("operator.ne", {a, 3})));
  const auto itself = answer(graph.call_function("operator.eq", {a, b}));
  ASSERT_TRUE(itself);
  EXPECT_EQ(itself->answer, Argument(true));
}

TEST(Assertions, AreOfOtherThingsThanNumbers) {
  Program program;
  Node& a = *program.numbers["a"];
  const AssertionWriter write(program.graph);
  write.add(Relation::equal, a, Argument(), "none");
  EXPECT_EQ(program.read()->str(), "a == None");
  write.add(Relation::unequal, a, Argument(), "something");
  EXPECT_EQ(program.read()->str(), "a != None");
  write.add(Relation::equal, a, true, "true");
  EXPECT_EQ(program.read()->str(), "a");
  write.add(Relation::equal, a, std::nan(""), "is no number");
  EXPECT_EQ(program.read()->str(), "a != a");
  const SizeExpr b = SizeExpr::symbol("b");
  const SizeExpr either =
      SizeExpr::call("Or", {SizeExpr::call("GreaterThan", {b, 1}), SizeExpr::call("Equality", {b, 0})});
  write.add({Relation::holds, either, {}}, program.number_of(), "either");
  EXPECT_EQ(program.read()->str(), "b >= 1 or b == 0");
}

TEST(Assertions, RefuseWhatIsNoArithmetic) {
  Program program;
  const std::size_t before = program.graph.size();
  const SizeCondition real{Relation::equal, SizeExpr::call("TruncToInt", {SizeExpr::real(2.5)}), 2};
  EXPECT_THROW(AssertionWriter(program.graph).add(real, program.number_of(), ""), Error);
  EXPECT_EQ(program.graph.size(), before);
}

}  // namespace fx::assertions_test
