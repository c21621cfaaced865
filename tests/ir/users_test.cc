// Inputs, users, and the edits that change them. FX: test_all_input_nodes, test_find_uses,
// test_reassign_args_kwargs_uses, test_insert_arg, test_update_args_api, test_update_kwargs_api, test_replace_input,
// test_remove_uses(_with_custom_filter).
#include <gmock/gmock.h>

#include <fxgraph/ir/graph.h>
#include "tests/support/names.h"

namespace fx::users_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names;
using testing::users;

class UsersTest : public ::testing::Test {
 protected:
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& z = graph.placeholder("z");
};

TEST_F(UsersTest, InputsAreDistinctAndInOrder) {
  Node& call = graph.call_function("f", {y, {x, Argument::slice(z, x)}, y}, {{"k", Argument::dict({"a", x})}});
  EXPECT_THAT(names(call.all_input_nodes()), ElementsAre("y", "x", "z"));
  std::string every;
  call.for_each_input([&](Node& input) { every += input.name(); });
  EXPECT_EQ(every, "yxzxyx");
}

TEST_F(UsersTest, ManyInputsStayDistinct) {
  std::vector<Argument> args;
  std::vector<Node*> inputs;
  for (int i = 0; i < 100; ++i) inputs.push_back(&graph.placeholder("p"));
  for (int i = 0; i < 300; ++i) args.emplace_back(inputs[static_cast<std::size_t>(i * 7 % 100)]);
  std::vector<Node*> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(inputs[static_cast<std::size_t>(i * 7 % 100)]);
  EXPECT_EQ(graph.call_function("cat", {Argument::list(args)}).all_input_nodes(), expected);
}

TEST_F(UsersTest, AUserCountsOnce) {
  Node& a = graph.call_function("add", {x, x}, {}, "a");
  Node& b = graph.call_function("f", {y, x}, {{"k", x}}, "b");
  EXPECT_EQ(x.num_users(), 2u);
  EXPECT_THAT(users(x), ElementsAre("a", "b"));
  std::vector<Node*> by_use;
  for (const Use use : x.uses()) {
    EXPECT_EQ(use.argument(), Argument(x));
    by_use.push_back(&use.user());
  }
  EXPECT_THAT(by_use, ElementsAre(&a, &a, &b, &b));
}

TEST_F(UsersTest, ReassigningMovesTheUserToTheEnd) {
  Node& a = graph.call_function("f", {x}, {}, "a");
  graph.call_function("f", {x}, {}, "b");
  graph.call_function("f", {x}, {}, "c");
  a.set_args({y, x});
  EXPECT_THAT(users(x), ElementsAre("b", "c", "a"));
  EXPECT_THAT(users(y), ElementsAre("a"));
  a.set_kwargs({{"k", z}});
  EXPECT_THAT(users(z), ElementsAre("a"));
  a.set_args({});
  EXPECT_THAT(users(x), ElementsAre("b", "c"));
  EXPECT_THAT(users(z), ElementsAre("a"));
}

TEST_F(UsersTest, ArgumentsMayBeMadeFromTheOldOnes) {
  Node& a = graph.call_function("f", {x, {y, 1}}, {{"k", z}});
  a.set_args(a.args());
  a.set_args_kwargs({a.arg(1), a.arg(0)}, a.kwargs());
  EXPECT_EQ(to_string(a.arg(0)), "[%y, 1]");
  EXPECT_EQ(a.arg(1), Argument(x));
  EXPECT_EQ(*a.kwarg("k"), Argument(z));
  graph.lint();
}

TEST_F(UsersTest, UpdatesSingleArguments) {
  Node& a = graph.call_function("f", {x, 1}, {{"k", y}});
  a.update_arg(0, z);
  a.update_kwarg("k", 3);
  a.update_kwarg("fresh", {x, y});
  EXPECT_EQ(a.arg(0), Argument(z));
  EXPECT_EQ(*a.kwarg("k"), Argument(3));
  EXPECT_EQ(a.kwargs().size(), 2u);
  EXPECT_THAT(names(a.all_input_nodes()), ElementsAre("z", "x", "y"));
  EXPECT_THROW(a.update_arg(2, 0), Error);
}

TEST_F(UsersTest, InsertsArguments) {
  Node& a = graph.call_function("f", {x}, {{"k", x}});
  a.insert_arg(0, y);
  a.insert_arg(2, {x, 1});
  EXPECT_EQ(to_string(Argument::tuple(a.args())), "(%y, %x, [%x, 1])");
  EXPECT_EQ(x.num_users(), 1u);
  EXPECT_EQ(y.num_users(), 1u);
  EXPECT_THROW(a.insert_arg(4, 1), Error);
  graph.lint();
}

TEST_F(UsersTest, ReplacesOneInputEverywhere) {
  Node& a = graph.call_function("f", {x, {x, y}}, {{"k", Argument::slice(x, 1)}}, "a");
  a.replace_input_with(x, z);
  EXPECT_EQ(to_string(Argument::tuple(a.args())), "(%z, [%z, %y])");
  EXPECT_EQ(to_string(*a.kwarg("k")), "slice(%z, 1, None)");
  EXPECT_FALSE(x.has_users());
  EXPECT_THAT(users(z), ElementsAre("a"));
  a.replace_input_with(x, y);  // no input any more
  a.replace_input_with(z, z);
  y.replace_input_with(x, z);  // a node without arguments
  EXPECT_EQ(z.num_users(), 1u);
  EXPECT_THROW(a.replace_input_with(z, a), Error);
  graph.lint();
}

TEST_F(UsersTest, ReplacesAllUses) {
  Node& a = graph.call_function("f", {x, x}, {}, "a");
  Node& b = graph.call_function("f", {y}, {}, "b");
  Node& c = graph.call_function("f", {x, y}, {}, "c");
  EXPECT_THAT(x.replace_all_uses_with(y), ElementsAre(&a, &c));
  EXPECT_THAT(users(y), ElementsAre("b", "c", "a"));
  EXPECT_FALSE(x.has_users());
  EXPECT_THAT(x.replace_all_uses_with(y), IsEmpty());
  EXPECT_THAT(b.replace_all_uses_with(b), IsEmpty());
  graph.erase_node(x);
  graph.lint();
}

TEST_F(UsersTest, ReplacesTheUsesThatAreChosen) {
  Node& a = graph.call_function("f", {x, z}, {}, "a");
  graph.call_function("f", {x, z}, {}, "b");
  graph.call_function("f", {x, z}, {}, "c");
  const auto changed = x.replace_all_uses_with(y, [](const Node& user) { return user.name() != "b"; });
  EXPECT_THAT(names(changed), ElementsAre("a", "c"));
  EXPECT_THAT(users(x), ElementsAre("b"));
  EXPECT_THAT(users(y), ElementsAre("a", "c"));
  EXPECT_THAT(users(z), ElementsAre("a", "b", "c")) << "other inputs keep the order of their users";
  x.replace_all_uses_with(a, except(a));
  EXPECT_THAT(users(a), ElementsAre("b"));
}

TEST_F(UsersTest, RefusesSelfCycles) {
  Node& a = graph.call_function("f", {x}, {}, "a");
  Node& b = graph.call_function("f", {x}, {}, "b");
  try {
    x.replace_all_uses_with(b);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("would make b its own input; pass fx::except(b)"));
  }
  EXPECT_THAT(users(x), ElementsAre("a", "b")) << "nothing was changed";
  x.replace_all_uses_with(b, except(b));
  EXPECT_EQ(a.arg(0), Argument(b));
  EXPECT_EQ(b.arg(0), Argument(x));
}

TEST_F(UsersTest, ReplacesByLiteralsAndContainers) {
  Node& a = graph.call_function("f", {x, {x, y}}, {}, "a");
  Node& b = graph.call_function("f", {x}, {}, "b");
  EXPECT_THAT(x.replace_all_uses_with(Argument(3)), ElementsAre(&a, &b));
  EXPECT_EQ(to_string(Argument::tuple(a.args())), "(3, [3, %y])");
  EXPECT_FALSE(x.has_users());
  y.replace_all_uses_with(Argument::tuple({z, x}));
  EXPECT_EQ(to_string(Argument::tuple(a.args())), "(3, [3, (%z, %x)])");
  EXPECT_THAT(users(z), ElementsAre("a"));
  EXPECT_THROW(z.replace_all_uses_with(Argument::list({z, x})), Error) << "a value that contains what it replaces";
  graph.lint();
}

// Users that use both values: their places and counts must come out right whatever the interleaving.
TEST_F(UsersTest, MergesListsOfUses) {
  Node& a = graph.call_function("f", {x, y, x}, {}, "a");
  graph.call_function("f", {y}, {}, "b");
  graph.call_function("f", {x}, {}, "c");
  Node& d = graph.call_function("f", {y, {x, x}, y}, {}, "d");
  x.replace_all_uses_with(y);
  EXPECT_THAT(users(y), ElementsAre("a", "b", "d", "c"));
  EXPECT_EQ(y.num_users(), 4u);
  graph.lint();
  a.set_args({});
  d.set_args({z});
  EXPECT_THAT(users(y), ElementsAre("b", "c"));
  graph.lint();
}

TEST(Users, InputsAreListedOnceHoweverMany) {
  for (std::size_t count = 1; count < 40; ++count) {
    Graph graph;
    std::vector<Node*> inputs;
    std::vector<Argument> twice;
    for (std::size_t i = 0; i < count; ++i) inputs.push_back(&graph.placeholder("x"));
    for (int round = 0; round < 2; ++round) {
      for (Node* input : inputs) twice.emplace_back(*input);
    }
    EXPECT_EQ(graph.call_function("aten::cat", {Argument::list(twice)}).all_input_nodes(), inputs) << count;
  }
}

}  // namespace fx::users_test
