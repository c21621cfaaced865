#include <gtest/gtest.h>

#include <thread>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ops/call.h>

namespace fx::registry_test {

TEST(Registry, KnowsWhatAProgramRegisters) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& call = graph.call_function("registry_test::scale", {x, 2.0});
  EXPECT_TRUE(effects_of(call).unknown);
  EXPECT_EQ(find_overload("registry_test::scale"), nullptr);

  const OperatorSchema& schema =
      register_schema("registry_test::scale(Tensor x, float by) -> Tensor", {.pointwise = true});
  EXPECT_EQ(find_overload("registry_test::scale"), &schema);
  EXPECT_EQ(find_overload("torch.ops.registry_test.scale.default"), &schema);
  EXPECT_TRUE(schema.traits.pointwise);
  EXPECT_FALSE(effects_of(call).impure());

  const OperatorSchema& later = register_schema("registry_test::scale(Tensor(a!) x, float by) -> Tensor(a!)");
  EXPECT_EQ(find_overload("registry_test::scale"), &later);
  EXPECT_TRUE(effects_of(call).writes);
  EXPECT_FALSE(schema.traits.writes) << "who holds the old schema keeps it";
  EXPECT_EQ(overloads_of("registry_test::scale").size(), 1u);
}

TEST(Registry, TakesPlainFunctions) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& call = graph.call_function("registry_test.twice", {x});
  EXPECT_TRUE(effects_of(call).unknown);
  register_schema("registry_test.twice(Tensor x) -> Tensor");
  EXPECT_EQ(effects_of(call), NodeEffects{});
  EXPECT_EQ(&call_of(call).schema(), find_overload("registry_test.twice"));
}

TEST(Registry, TraitsAddEffects) {
  register_schema("registry_test::log(Tensor x) -> Tensor", {.side_effect = true});
  register_schema("registry_test::noise.like(Tensor x) -> Tensor", {.random = true});
  register_schema("registry_test::poke(Tensor x, int n) -> Tensor", {.writes = true});
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_TRUE(effects_of(graph.call_function("registry_test::log", {x})).side_effect);
  EXPECT_TRUE(effects_of(graph.call_function("registry_test::noise", {x})).random)
      << "a packet has its overload's effects";
  Node& poke = graph.call_function("registry_test::poke", {x, 1});
  EXPECT_TRUE(effects_of(poke).writes);
  int written = 0;
  for_each_written(poke, [&](const Argument& argument) {
    ++written;
    EXPECT_EQ(argument, Argument(x));
  });
  EXPECT_EQ(written, 1) << "which argument is written is not known: all that hold nodes";
}

std::vector<std::string> test_source(std::string_view packet) {
  if (packet == "registry_test::foreign") {
    return {"registry_test::foreign(Tensor x) -> Tensor", "registry_test::foreign.new_syntax(Tensor x <- y) -> Tensor"};
  }
  if (packet == "aten::relu") return {"aten::relu(Tensor self, *, bool newer=False) -> Tensor"};
  return {};
}

TEST(Registry, AsksItsSourceBeforeTheBuiltInList) {
  EXPECT_EQ(find_overload("registry_test::foreign"), nullptr);
  const OperatorSchema* builtin = find_overload("aten::relu");
  set_schema_source({test_source});
  EXPECT_NE(find_overload("registry_test::foreign"), nullptr) << "the answer before is not kept";
  EXPECT_EQ(find_overload("registry_test::foreign.new_syntax"), nullptr) << "what cannot be read counts as absent";
  EXPECT_EQ(find_overload("aten::relu")->index_of("newer"), 1);
  EXPECT_NE(find_overload("aten::add.Tensor"), nullptr) << "what the source does not know is built in";
  set_schema_source({});
  EXPECT_EQ(find_overload("registry_test::foreign"), nullptr);
  EXPECT_EQ(find_overload("aten::relu")->str(), builtin->str());
}

TEST(Registry, AnswersManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> found{0};
  const std::vector<Symbol> targets = builtin_targets();
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < targets.size(); ++i) found += find_overload(targets[i]) != nullptr;
      register_schema("registry_test::thread" + std::to_string(t) + "() -> Tensor");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, static_cast<int>(4 * targets.size()));
  EXPECT_NE(find_overload("registry_test::thread3"), nullptr);
}

}  // namespace fx::registry_test
