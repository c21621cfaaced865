// Building, looking, insertion points and erasing. FX: test_graph_fns, test_insertion_point, test_multi_insert_point,
// test_move_before, test_prepend_self, test_erase_node_error, test_wrong_topo.
#include <fxgraph/ir/graph.h>

#include <gmock/gmock.h>

#include <utility>

#include <fxgraph/ir/node_map.h>
#include "tests/support/names.h"

namespace fx::graph_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names;
using testing::order;

template <typename Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::io, "none");
}

class GraphTest : public ::testing::Test {
 protected:
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::relu", {x}, {}, "a");
  Node& b = graph.call_function("aten::add.Tensor", {a, x}, {{"alpha", 2}}, "b");
  Node& out = graph.output(b);
};

TEST_F(GraphTest, HoldsWhatWasBuilt) {
  EXPECT_THAT(order(graph), ElementsAre("x", "a", "b", "output"));
  EXPECT_EQ(graph.size(), 4u);
  EXPECT_EQ(b.op(), Op::call_function);
  EXPECT_EQ(b.target(), "aten::add.Tensor");
  EXPECT_EQ(b.args().size(), 2u);
  EXPECT_EQ(b.arg(0), Argument(a));
  EXPECT_EQ(*b.kwarg("alpha"), Argument(2));
  EXPECT_EQ(b.kwarg("beta"), nullptr);
  EXPECT_EQ(graph.output_node(), &out);
  EXPECT_EQ(graph.find("b"), &b);
  EXPECT_EQ(graph.find("c"), nullptr);
  EXPECT_EQ(graph.node_by_id(b.id()), &b);
  EXPECT_EQ(graph.node_by_id(1000), nullptr);
  EXPECT_EQ(names(graph.placeholders()), std::vector<std::string>{"x"});
  EXPECT_EQ(&b.graph(), &graph);
  EXPECT_THROW(b.arg(2), Error);
  graph.lint();
}

TEST_F(GraphTest, FindsNodesByOpcodeAndTargetInOrder) {
  auto scope = graph.inserting_before(a);
  Node& early = graph.call_function("torch.ops.aten.relu.default", {x});
  EXPECT_EQ(graph.find_nodes(Op::call_function, "aten::relu"), (std::vector<Node*>{&early, &a}));
  EXPECT_EQ(graph.find_nodes(Op::call_function, "torch.ops.aten.relu.default").size(), 2u);
  EXPECT_EQ(graph.find_nodes(Op::call_function).size(), 3u);
  EXPECT_TRUE(graph.find_nodes(Op::call_module, "aten::relu").empty());
  EXPECT_EQ(graph.count(Op::call_function, "aten::relu"), 2u);
  EXPECT_TRUE(a.is_call("torch.ops.aten.relu.default"));
  a.set_target("torch.ops.aten.gelu.default");
  EXPECT_EQ(a.target(), "aten::gelu");
  EXPECT_EQ(graph.count(Op::call_function, "aten::relu"), 1u);
  graph.erase_node(early);
  EXPECT_TRUE(graph.find_nodes(Op::call_function, "aten::relu").empty());
}

TEST(Graph, AsksForTargetsThatAreThere) {
  Graph graph;
  const auto calls = [&](Symbol wanted) {
    return graph.any_called([&](Op op, Symbol target) { return op == Op::call_function && target == wanted; });
  };
  EXPECT_FALSE(graph.any_called([](Op, Symbol) { return true; }));
  Node& x = graph.placeholder("x");
  Node& first = graph.call_function("aten::relu", {x});
  Node& second = graph.call_function("aten::relu", {x});
  EXPECT_TRUE(calls("aten::relu"));
  EXPECT_FALSE(calls("x")) << "an input is called so, no function";
  graph.erase_node(first);
  EXPECT_TRUE(calls("aten::relu"));
  second.set_target("aten::neg");
  EXPECT_FALSE(calls("aten::relu"));
  EXPECT_TRUE(calls("aten::neg"));
}

TEST_F(GraphTest, NewNodesGoBeforeTheOutput) {
  graph.call_function("aten::neg", {b});
  EXPECT_THAT(order(graph), ElementsAre("x", "a", "b", "neg", "output"));
}

TEST_F(GraphTest, ScopesMoveTheInsertionPoint) {
  {
    auto scope = graph.inserting_before(b);
    graph.get_attr("one");
    graph.get_attr("two");
    {
      auto inner = graph.inserting_after(a);
      graph.get_attr("three");
      graph.get_attr("four");
    }
    graph.get_attr("five");
  }
  {
    auto start = graph.inserting_before();
    graph.placeholder("p");
    graph.placeholder("q");
  }
  {
    auto end = graph.inserting_after();
    graph.get_attr("last");
  }
  EXPECT_THAT(order(graph),
              ElementsAre("p", "q", "x", "a", "three", "four", "one", "two", "five", "b", "last", "output"));
  graph.lint();
}

TEST_F(GraphTest, NothingIsPutNextToWhatIsErased) {
  Node& dead = graph.call_function("aten::neg", {b}, {}, "dead");
  graph.erase_node(dead);
  EXPECT_THROW(void(graph.inserting_after(dead)), Error);
  EXPECT_THROW(void(graph.inserting_before(dead)), Error);
  EXPECT_THROW(dead.move_uses_to(a), Error);
  Graph other;
  EXPECT_THROW(void(graph.inserting_before(other.placeholder("x"))), Error);
}

TEST_F(GraphTest, OnlyACallBecomesAnotherKindOfCall) {
  for (const Op op : {Op::call_function, Op::call_method, Op::call_module}) {
    EXPECT_THROW(x.set_target(op, "f"), Error);
    b.set_target(op, "f");
    EXPECT_EQ(b.op(), op);
  }
  for (const Op op : {Op::placeholder, Op::get_attr, Op::output}) EXPECT_THROW(b.set_target(op, "f"), Error);
  b.set_target("torch.ops.aten.relu.default");  // the path of a module
  EXPECT_EQ(b.target(), "torch.ops.aten.relu.default");
  b.set_target(Op::call_method, "aten::relu");
  EXPECT_FALSE(b.is_call("aten::relu"));
}

TEST_F(GraphTest, AnErasedAnchorStillSaysWhere) {
  Node& dead = graph.call_function("aten::neg", {b}, {}, "dead");
  auto scope = graph.inserting_after(dead);
  graph.erase_node(dead);
  graph.get_attr("here");
  EXPECT_THAT(order(graph), ElementsAre("x", "a", "b", "here", "output"));
}

TEST_F(GraphTest, AnchorsOfAnotherGraphAreRefused) {
  Graph other;
  Node& theirs = other.placeholder("z");
  EXPECT_THROW((void)graph.inserting_before(theirs), Error);
  EXPECT_THROW((void)graph.inserting_after(theirs), Error);
  EXPECT_THROW(a.append(theirs), Error);
  EXPECT_THROW(graph.erase_node(theirs), Error);
}

TEST_F(GraphTest, MovesNodes) {
  Node& c = graph.call_function("aten::neg", {x}, {}, "c");
  a.prepend(c);
  EXPECT_THAT(order(graph), ElementsAre("x", "c", "a", "b", "output"));
  b.append(c);
  EXPECT_THAT(order(graph), ElementsAre("x", "a", "b", "c", "output"));
  EXPECT_TRUE(b.is_before(c));
  EXPECT_EQ(c.previous(), &b);
  EXPECT_EQ(c.next(), &out);
  EXPECT_EQ(x.previous(), nullptr);
  EXPECT_EQ(out.next(), nullptr);
}

TEST_F(GraphTest, MovingANodeNextToItselfDoesNothing) {
  const std::uint64_t revision = graph.revision();
  a.prepend(a);
  a.append(a);
  a.append(b);
  b.prepend(a);
  EXPECT_THAT(order(graph), ElementsAre("x", "a", "b", "output"));
  EXPECT_EQ(graph.size(), 4u);
  EXPECT_EQ(graph.revision(), revision);
}

TEST_F(GraphTest, EraseNamesTheUsers) {
  const Error error = error_of([&] { graph.erase_node(a); });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
  EXPECT_EQ(error.node(), "a");
  EXPECT_EQ(error.message(), "cannot erase a: it still has 1 user (b); redirect them with replace_all_uses_with first");
  EXPECT_EQ(graph.size(), 4u);
  for (const char* users : {"2 users (b, neg)", "3 users (b, neg, neg_1)", "4 users (b, neg, neg_1, neg_2)",
                            "5 users (b, neg, neg_1, neg_2, neg_3)", "6 users (b, neg, neg_1, neg_2, neg_3, …)",
                            "7 users (b, neg, neg_1, neg_2, neg_3, …)"}) {
    graph.call_function("aten::neg", {a});
    EXPECT_THAT(error_of([&] { graph.erase_node(a); }).message(), HasSubstr(users));
  }
}

TEST_F(GraphTest, EraseFreesTheInputs) {
  Node& c = graph.call_function("aten::neg", {a}, {{"k", {b, b}}}, "c");
  EXPECT_EQ(a.num_users(), 2u);
  graph.erase_node(c);
  EXPECT_EQ(a.num_users(), 1u);
  EXPECT_EQ(b.num_users(), 1u);
  EXPECT_TRUE(c.is_erased());
  EXPECT_TRUE(c.args().empty());
  EXPECT_EQ(graph.size(), 4u);
  EXPECT_EQ(graph.node_by_id(c.id()), nullptr);
  EXPECT_THROW(graph.erase_node(c), Error) << "erasing twice";
  EXPECT_EQ(graph.size(), 4u);
  EXPECT_THROW(c.set_args({}), Error);
  EXPECT_THROW(graph.call_function("aten::neg", {c}), Error);
  EXPECT_THROW(a.append(c), Error);
}

TEST_F(GraphTest, IterationSurvivesEdits) {
  std::vector<std::string> seen;
  for (Node& node : graph.nodes()) {
    seen.push_back(node.name());
    if (&node == &a) {
      auto scope = graph.inserting_after(node);
      Node& fresh = graph.call_function("aten::neg", {x}, {}, "fresh");
      node.replace_all_uses_with(fresh);
      graph.erase_node(node);
    }
  }
  EXPECT_THAT(seen, ElementsAre("x", "a", "fresh", "b", "output"));
  EXPECT_THAT(names(graph.nodes().reversed()), ElementsAre("output", "b", "fresh", "x"));
}

TEST_F(GraphTest, OneOutputOnly) {
  EXPECT_THAT(error_of([&] { graph.output(a); }).message(), HasSubstr("has an output already"));
  EXPECT_EQ(graph.size(), 4u);
  graph.erase_node(out);
  EXPECT_EQ(graph.output_node(), nullptr);
  graph.output({a, b});
  graph.lint();
}

TEST_F(GraphTest, AFailedCreationLeavesNoTrace) {
  Graph other;
  Node& theirs = other.placeholder("theirs");
  const std::uint32_t ids = graph.id_bound();
  const std::uint64_t revision = graph.revision();
  const Error error = error_of([&] { graph.call_function("aten::add.Tensor", {x, Argument::list({theirs})}); });
  EXPECT_THAT(error.message(), HasSubstr("argument theirs of a new node belongs to another graph"));
  std::vector<NamedArgument> many(70000, {"k", 1});
  EXPECT_THROW(graph.call_function("f", {}, many), Error);
  EXPECT_THROW(b.set_args({theirs}), Error);
  EXPECT_THROW(b.replace_input_with(a, theirs), Error);
  EXPECT_THROW(b.replace_all_uses_with(theirs), Error);
  EXPECT_EQ(graph.id_bound(), ids);
  EXPECT_EQ(graph.revision(), revision);
  EXPECT_EQ(graph.call_function("aten::add.Tensor", {x, x}).name(), "add") << "no name was used up";
  EXPECT_EQ(b.arg(0), Argument(a));
  EXPECT_FALSE(theirs.has_users());
  graph.lint();
}

TEST(Graph, NullPointersAreNoArguments) {
  Graph graph;
  Node& x = graph.placeholder("x");
  const std::size_t nodes = graph.size();
  EXPECT_THROW(graph.call_function("aten::relu", {graph.find("typo")}), Error);
  EXPECT_THROW(x.set_args({graph.find("typo")}), Error);
  EXPECT_EQ(graph.size(), nodes);
  graph.lint();
}

TEST_F(GraphTest, EveryEditChangesTheRevision) {
  std::uint64_t last = graph.revision();
  const auto changed = [&] { return std::exchange(last, graph.revision()) < graph.revision(); };
  Node& c = graph.get_attr("c");
  EXPECT_TRUE(changed());
  b.update_arg(1, c);
  EXPECT_TRUE(changed());
  b.set_target("aten::sub.Tensor");
  EXPECT_TRUE(changed());
  c.rename("d");
  EXPECT_TRUE(changed());
  a.prepend(c);
  EXPECT_TRUE(changed());
  c.replace_all_uses_with(x);
  EXPECT_TRUE(changed());
  graph.erase_node(c);
  EXPECT_TRUE(changed());
  (void)graph.check();
  EXPECT_FALSE(changed());
}

TEST_F(GraphTest, MovesAsAValue) {
  Graph moved = std::move(graph);
  EXPECT_EQ(&b.graph(), &moved);
  EXPECT_EQ(moved.size(), 4u);
  EXPECT_TRUE(graph.empty());  // NOLINT: moved-from graphs are empty
  graph.placeholder("fresh");
  graph = std::move(moved);
  EXPECT_THAT(order(graph), ElementsAre("x", "a", "b", "output"));
  EXPECT_EQ(&b.graph(), &graph);
  graph.lint();
}

TEST(Graph, EmptyIsAGraph) {
  Graph graph;
  graph.lint();
  EXPECT_TRUE(graph.empty());
  EXPECT_EQ(graph.output_node(), nullptr);
  EXPECT_EQ(graph.eliminate_dead_code([](const Node&) { return false; }), 0u);
  EXPECT_TRUE(graph.clone().empty());
  EXPECT_TRUE(graph.nodes().begin() == graph.nodes().end());
}

TEST(Graph, PlaceholdersHaveDefaults) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y", Argument());
  Node& z = graph.placeholder("*rest", Argument(2.5));
  EXPECT_TRUE(x.args().empty());
  EXPECT_EQ(y.args().size(), 1u) << "None is a default";
  EXPECT_EQ(z.arg(0), Argument(2.5));
  EXPECT_EQ(z.target(), "*rest");
  EXPECT_EQ(z.name(), "rest");
}

TEST(Graph, DeadCodeGoesInOnePass) {
  EXPECT_THROW(Graph().eliminate_dead_code({}), Error);
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.placeholder("unused");
  Node* t = &x;
  for (int i = 0; i < 100; ++i) t = &graph.call_function("aten::relu", {t});
  Node& print = graph.call_function("builtins.print", {x});
  graph.output(x);
  EXPECT_EQ(graph.eliminate_dead_code([&](const Node& node) { return &node == &print; }), 100u);
  EXPECT_THAT(order(graph), ElementsAre("x", "unused", "print_1", "output"));
  graph.lint();
}

TEST(Graph, PrintsATable) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& add = graph.call_function("aten::add.Tensor", {x, 1}, {{"alpha", 2}});
  graph.output(Argument::tuple({add}));
  EXPECT_EQ(testing::table(graph),
            "opcode         name    target                     args       kwargs\n"
            "-------------  ------  -------------------------  ---------  ------------\n"
            "placeholder    x       x                          ()         {}\n"
            "call_function  add     torch.ops.aten.add.Tensor  (x, 1)     {'alpha': 2}\n"
            "output         output  output                     ((add,),)  {}\n");
}

TEST(NodeMap, ReadsItsDefaultForNewerNodes) {
  Graph graph;
  Node& x = graph.placeholder("x");
  NodeMap<int> map(graph, 7);
  map[x] = 1;
  Node& y = graph.placeholder("y");
  const NodeMap<int>& view = map;
  EXPECT_EQ(view[x], 1);
  EXPECT_EQ(view[y], 7);
  map[y] = 2;
  EXPECT_EQ(view[y], 2);
}

TEST(Meta, StaysBesideTheNode) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_EQ(x.find_meta(), nullptr);
  x.meta().set(meta_key::kType, std::string("int"));
  x.meta().set("seen", 3);
  EXPECT_EQ(*x.find_meta()->get<std::string>(meta_key::kType), "int");
  EXPECT_EQ(x.find_meta()->get<double>("seen"), nullptr) << "another type";
  EXPECT_EQ(*x.find_meta()->get<int>("seen"), 3);
  x.meta().erase("seen");
  EXPECT_EQ(x.find_meta()->get<int>("seen"), nullptr);
  EXPECT_EQ(x.meta().keys().size(), 1u);
}

}  // namespace fx::graph_test
