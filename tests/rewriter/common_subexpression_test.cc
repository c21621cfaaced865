#include <fxgraph/rewriter/common_subexpression.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <fxgraph/ir/node_map.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/text/print.h>
#include "tests/support/random_graph.h"
#include "tests/support/short_graph.h"

namespace fx::common_subexpression_test {

// torch.fx's own cases are in cse_pass_test.cc; here are its known defects, and what it does not look at.
TEST(CommonSubexpression, DefaultsKeywordsAndOrderOfCommutativeOperandsDoNotMatter) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& a = graph.call_function("aten::add.Tensor", {x, y});
  Node& b = graph.call_function("aten::add.Tensor", {x, y}, {{"alpha", 1}});
  Node& c = graph.call_function("aten::mul.Tensor", {x, y});
  Node& d = graph.call_function("aten::mul.Tensor", {y, x});
  graph.output(graph.call_function("aten::cat", {{a, b, c, d}}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 2u);
}

TEST(CommonSubexpression, OneOperatorInSeveralSpellingsIsOneExpression) {
  const std::vector<std::vector<std::string>> spellings = {
      {"aten::relu(%x)", "torch.relu(%x)", "torch.nn.functional.relu(%x, inplace=False)",
       "call_method[target=relu](%x)"},
      {"aten::add.Tensor(%x, %y)", "aten::add(%x, %y, alpha=1)", "operator.add(%y, %x)", "torch.add(%x, other=%y)"},
      {"aten::embedding(%y, %x)", "torch.nn.functional.embedding(%x, weight=%y)"},
      {"operator.sub(2, %x)", "torch.rsub(%x, 2)", "aten::rsub.Scalar(%x, 2)"}};
  for (const char* before : {"", "w = call_method[target=add_](%y, 1)\n"}) {
    for (const std::vector<std::string>& calls : spellings) {
      std::string body = before, list;
      for (const std::string& call : calls) {
        const std::string name = "c" + std::to_string(list.size());
        body += name + " = " + call + "\n";
        list += (list.empty() ? "%" : ", %") + name;
      }
      Graph graph = testing::graph_of(body + "r = aten::cat([" + list + "])\nreturn %r", "x y");
      EXPECT_EQ(eliminate_common_subexpressions(graph), calls.size() - 1) << print_graph(graph);
    }
  }
}

TEST(CommonSubexpression, SpellingsDoNotHideWritesNorOtherArguments) {
  for (const char* body : {"a = torch.sin(%x)\nw = call_method[target=add_](%x, 1)\nb = aten::sin(%x)\n",
                           "a = aten::embedding(%x, %y)\nb = torch.nn.functional.embedding(%x, %y)\n",
                           "a = aten::rand_like(%x)\nb = torch.rand_like(%x)\n",
                           "a = aten::sub.Tensor(%x, %y)\nb = operator.sub(%y, %x)\n"}) {
    Graph graph = testing::graph_of(std::string(body) + "r = aten::cat([%a, %b])\nreturn %r", "x y");
    EXPECT_EQ(eliminate_common_subexpressions(graph), 0u) << print_graph(graph);
  }
}

TEST(CommonSubexpression, KeepsLiteralsOfDifferentKindOrSignApart) {
  Graph graph;
  Node& x = graph.placeholder("x");
  std::vector<Argument> values;
  for (const Argument& literal : std::vector<Argument>{1, 1.0, true, 0.0, -0.0}) {
    values.emplace_back(graph.call_function("aten::mul.Scalar", {x, literal}));
  }
  graph.output(graph.call_function("aten::cat", {Argument::list(values)}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 0u);
}

// Calls that do not fit the operator they name are the same when they are written alike.
TEST(CommonSubexpression, CallsThatDoNotFitAreComparedAsTheyAreWritten) {
  const std::vector<std::vector<NamedArgument>> kwargs = {
      {}, {{"a", 1}}, {{"b", 1}}, {{"a", 2}}, {{"a", 1}, {"b", 1}}, {{"b", 1}, {"a", 1}}, {{"a", 1}, {"c", 1}}};
  const auto other_args = [](Node& x) {
    return std::vector<std::vector<Argument>>{
        {x}, {x, 1}, {x, 1, 1}, {x, Argument::list({1})}, {x, Argument::tuple({1})}, {x, Argument::list({1, 1})}};
  };
  const std::size_t forms = 6 * kwargs.size();
  for (std::size_t a = 0; a < forms; ++a) {
    for (std::size_t b = 0; b < forms; ++b) {
      Graph graph;
      const auto args = other_args(graph.placeholder("x"));
      const auto call = [&](std::size_t form) -> Node& {
        std::vector<NamedArgument> named = kwargs[form / args.size()];
        named.push_back({"no_such", 1});
        return graph.call_function("aten::relu", args[form % args.size()], named);
      };
      Node& first = call(a);
      graph.output(
          Argument::tuple({graph.call_function("aten::sin", {first}), graph.call_function("aten::cos", {call(b)})}));
      EXPECT_EQ(eliminate_common_subexpressions(graph), a == b ? 1u : 0u) << a << " " << b;
    }
  }
}

TEST(CommonSubexpression, NeverMergesWritesRandomNumbersOrReadsAcrossAWrite) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& before = graph.call_function("aten::sin", {x});
  graph.call_function("aten::add_.Tensor", {x, 1});
  Node& after = graph.call_function("aten::sin", {x});
  graph.call_function("aten::silu_", {x});
  graph.call_function("aten::silu_", {x});
  Node& r = graph.call_function("aten::rand_like", {before});
  Node& s = graph.call_function("aten::rand_like", {before});
  graph.output(graph.call_function("aten::cat", {{before, after, r, s}}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 0u);
}

TEST(CommonSubexpression, ReadsOfAnAttributeAreTheAttributeHoweverItIsWritten) {
  Graph graph;
  Node& a = graph.get_attr("state");
  Node& before = graph.call_function("aten::sin", {a});
  graph.call_function("aten::add_.Tensor", {a, 1});
  Node& b = graph.get_attr("state");
  graph.output(Argument::tuple({before, graph.call_function("aten::sin", {b})}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 1u);
  EXPECT_TRUE(b.is_erased());
}

TEST(CommonSubexpression, CallsWithoutOverloadDoWhatTheirArgumentsSay) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& before = graph.call_function("aten::sin", {x});
  graph.call_function("aten::sin", {y}, {{"out", x}});
  Node& after = graph.call_function("aten::sin", {x});
  Node& a = graph.call_function("aten::add", {x, y}, {{"alpha", 2}});
  Node& b = graph.call_function("aten::add", {y, x}, {{"alpha", 2}});
  graph.output(graph.call_function("aten::cat", {{before, after, a, b}}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 0u);
  Graph same;
  Node& p = same.placeholder("p");
  Node& q = same.placeholder("q");
  Node& c = same.call_function("aten::add", {p, q}, {{"alpha", 1}});
  same.output(same.call_function("aten::cat", {{c, same.call_function("aten::add", {q, p})}}));
  EXPECT_EQ(eliminate_common_subexpressions(same), 1u);
}

TEST(CommonSubexpression, OperandsAreNotSwappedWhereTheOrderInMemoryShows) {
  for (const char* reader : {"aten::rand_like", "aten::sin"}) {
    Graph graph;
    Node& x = graph.placeholder("x");
    Node& y = graph.placeholder("y");
    Node& a = graph.call_function("aten::add.Tensor", {x, y});
    Node& b = graph.call_function("aten::add.Tensor", {y, x});
    graph.output(Argument::tuple({a, graph.call_function(reader, {b})}));
    EXPECT_EQ(eliminate_common_subexpressions(graph), std::string_view(reader) == "aten::sin" ? 1u : 0u);
  }
}

// Whether gradients are on, and what autocast does, is read by every call.
TEST(CommonSubexpression, CallsInDifferentModesStayApart) {
  for (const char* target : {"aten::set_grad_enabled", "torch._C._set_grad_enabled",
                             "torch.amp.autocast_mode._enter_autocast", "torch.amp.autocast_mode._exit_autocast"}) {
    for (const bool switched : {true, false}) {
      Graph graph;
      Node& x = graph.placeholder("x");
      std::vector<Argument> values;
      for (int i = 0; i < 3; ++i) {
        if (i == 2 && switched) graph.call_function(target, {false});
        values.emplace_back(graph.call_function("aten::matmul", {x, x}));
      }
      graph.output(graph.call_function("aten::cat", {Argument::list(values)}));
      EXPECT_EQ(eliminate_common_subexpressions(graph), switched ? 1u : 2u) << target;
    }
  }
  Graph asked;
  std::vector<Argument> modes;
  for (int i = 0; i < 2; ++i) {
    modes.emplace_back(asked.call_function("aten::is_grad_enabled", {}));
    asked.call_function("aten::set_grad_enabled", {false});
  }
  asked.output(Argument::list(modes));
  EXPECT_EQ(eliminate_common_subexpressions(asked), 0u);
}

// Of 0.0 and -0.0 each gives the one that stands at a certain place.
TEST(CommonSubexpression, ExtremesTellTheirOperandsApart) {
  for (const char* target : {"aten::maximum", "aten::minimum", "aten::fmax", "aten::fmin", "aten::max.other",
                             "aten::min.other", "aten::mul.Tensor"}) {
    for (const bool swapped : {true, false}) {
      Graph graph;
      Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
      Node& a = graph.call_function(target, {x, y});
      Node& b = swapped ? graph.call_function(target, {y, x}) : graph.call_function(target, {x, y});
      graph.output(graph.call_function("aten::sub.Tensor", {a, b}));
      EXPECT_EQ(eliminate_common_subexpressions(graph), !swapped || std::string_view(target) == "aten::mul.Tensor")
          << target << swapped;
    }
  }
}

// A list holds the tensors of the lists that it is made of, and each is a list of its own.
TEST(CommonSubexpression, ListsOfListsHoldTheSameTensors) {
  for (const char* list : {"aten::slice.t(%c, 1)", "aten::add.t(%c, %c)", "aten::list.t(%c)", "aten::mul.left_t(%c, 2)",
                           "operator.getitem(%c, slice(1, None, None))", "operator.add(%c, %c)", "builtins.list(%c)"}) {
    Graph graph = testing::graph_of(std::string("c = aten::chunk(%x, 4)\na = aten::relu(%x)\nl = ") + list +
                                    "\nt = aten::__getitem__.t(%l, 0)\nw = aten::add_.Scalar(%t, 1)\n"
                                    "b = aten::relu(%x)\nr = aten::add.Tensor(%a, %b)\nreturn r");
    EXPECT_EQ(eliminate_common_subexpressions(graph), 0u) << list;
    Graph grown = testing::graph_of(std::string("c = aten::chunk(%x, 4)\nl = ") + list + "\nm = " + list +
                                    "\ng = aten::append.t(%l, %x)\nreturn (l, m)");
    EXPECT_EQ(eliminate_common_subexpressions(grown), 0u) << list;
  }
}

TEST(CommonSubexpression, MergesAroundAWriteToSomethingElse) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& a = graph.call_function("aten::sin", {x});
  graph.call_function("aten::add_.Tensor", {y, 1});
  Node& b = graph.call_function("aten::sin", {x});
  graph.output(graph.call_function("aten::add.Tensor", {a, b}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 1u);
}

TEST(CommonSubexpression, KeepsACopyThatIsWrittenLater) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::clone", {x});
  Node& b = graph.call_function("aten::clone", {x});
  graph.call_function("aten::add_.Tensor", {b, 1});
  graph.output(graph.call_function("aten::add.Tensor", {a, b}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 0u);
}

TEST(CommonSubexpression, DoesNotMakeTwoResultsShareStorage) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(Argument::tuple({graph.call_function("aten::sin", {x}), graph.call_function("aten::sin", {x})}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 0u);
}

// The oracle: on graphs without writes, number every value by the text of its call over the numbers of its inputs.
std::size_t naive_count(const Graph& graph) {
  std::map<std::string, std::size_t> numbers;
  NodeMap<std::size_t> number(graph);
  std::size_t merged = 0;
  for (const Node& node : graph.nodes()) {
    std::string key = std::to_string(node.id());
    if (node.is(Op::call_function)) {
      std::vector<std::size_t> inputs;
      node.for_each_input([&](const Node& input) { inputs.push_back(number[input]); });
      const Call call = call_of(node);
      const std::string_view packet = packet_of(node.target().view());
      const bool extreme = packet.ends_with("max") || packet.ends_with("min") || packet.ends_with("imum");
      if (call && call.schema().traits.commutative && !extreme) std::sort(inputs.begin(), inputs.end());
      key = node.target().str();
      for (const std::size_t input : inputs) key += " " + std::to_string(input);
    }
    const auto [at, fresh] = numbers.emplace(key, node.id());
    number[node] = at->second;
    merged += !fresh;
  }
  return merged;
}

TEST(CommonSubexpression, AgreesWithTheOracleOnRandomGraphs) {
  // One operator without literals, so that a call is its inputs; one result, so that none is kept for sharing storage.
  static const std::vector<testing::OperatorForm> kForms = {{Op::call_function, "aten::sin", "t"},
                                                            {Op::call_function, "aten::add.Tensor", "tt"},
                                                            {Op::call_function, "aten::sub.Tensor", "tt"}};
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    testing::RandomGraphOptions options;
    options.nodes = 30;
    options.inputs = 2;
    options.vocabulary = &kForms;
    Graph graph = testing::random_graph(seed, options);
    Node* output = graph.output_node();
    Node* result = nullptr;
    output->for_each_input([&](Node& input) { result = &input; });
    output->set_args({result});
    const std::size_t expected = naive_count(graph);
    ASSERT_EQ(eliminate_common_subexpressions(graph), expected) << seed << "\n" << print_graph(graph);
    graph.lint();
  }
}

TEST(CommonSubexpression, WithoutInputsThereIsNothingToLookUp) {
  for (const bool written : {false, true}) {
    Graph graph;
    Node& x = graph.placeholder("x");
    if (written) graph.call_function("aten::add_.Tensor", {x, 1});
    Node& a = graph.get_attr("w");
    Node& b = graph.get_attr("w");
    graph.get_attr("v");
    Node& c = graph.call_function("aten::arange", {4});
    Node& d = graph.call_function("aten::arange", {4});
    graph.output(graph.call_function("aten::cat", {{a, b, c, d}}));
    EXPECT_EQ(eliminate_common_subexpressions(graph), 2u) << written;
  }
}

TEST(CommonSubexpression, EachOfManyLiteralsIsFoundAgainBesideWrites) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  graph.call_function("aten::add_.Tensor", {y, 1});
  std::vector<Argument> values;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 50; ++i) values.emplace_back(graph.call_function("aten::add.Tensor", {x, i}));
    for (int i = 0; i < 50; ++i)
      values.emplace_back(graph.call_function("aten::sum.dim_IntList", {x, Argument::list({i})}));
  }
  graph.output(graph.call_function("aten::cat", {Argument::list(values)}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 100u);
}

TEST(CommonSubexpression, TwoReturnedResultsStayTwo) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& a = graph.call_function("aten::sin", {x});
  Node& b = graph.call_function("aten::sin", {x});
  Node& v = graph.call_function("aten::transpose.int", {x, 0, 1});
  Node& w = graph.call_function("aten::transpose.int", {x, 0, 1});
  Node& u = graph.call_function("aten::transpose.int", {x, 0, 1});
  Node& t = graph.call_function("aten::t", {u});
  graph.output(Argument::tuple({a, b, v, w, t}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 1u);  // a view of which the caller gets another view is no result
  EXPECT_TRUE(u.is_erased());
  EXPECT_FALSE(w.is_erased());
}

TEST(CommonSubexpression, WhatACallIsGivenBeyondItsSchemaCounts) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  std::vector<Argument> values;
  const auto call = [&](const char* target, ArgumentSpan args) {
    values.emplace_back(graph.call_function(target, args));
  };
  for (const std::int64_t axis : {0, 1, 1}) {
    call("aten::einsum.sublist", {x, Argument::list({axis}), y, Argument::list({1 - axis})});
    call("aten::relu", {x, axis});
    call("aten::mul.Tensor", {axis + 2, x});
  }
  call("aten::mul.Tensor", {x, 3});
  graph.output(graph.call_function("aten::cat", {Argument::list(values)}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 3u) << print_graph(graph);
}

TEST(CommonSubexpression, AModuleAndAMethodOfOneNameStayTwo) {
  Graph graph;
  Node& x = graph.placeholder("x");
  std::vector<Argument> values;
  for (int i = 0; i < 2; ++i) {
    values.emplace_back(graph.call_module("relu", {x}));
    values.emplace_back(graph.call_method("relu", {x}));
  }
  graph.output(graph.call_function("aten::cat", {Argument::list(values)}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 1u) << "two calls of a module that nobody described stay two";
  EXPECT_EQ(eliminate_common_subexpressions(graph, {.effects = [](const Node&) { return NodeEffects(); }}), 1u);
}

/// `many` calls of each of two equal values, in the order that `values` says, and their sum.
struct ManyUsers {
  explicit ManyUsers(int many) {
    Node& x = graph.placeholder("x");
    Node& p = graph.call_function("aten::relu", {x});
    std::vector<Argument> values;
    for (int i = 0; i < many; ++i) values.emplace_back(graph.call_function("aten::neg", {p}));
    values.emplace_back(first = &graph.call_function("aten::abs", {p}));
    Node& q = graph.call_function("aten::relu", {x});
    for (int i = 0; i < many; ++i) values.emplace_back(graph.call_function("aten::mul.Tensor", {q, i}));
    values.emplace_back(graph.call_function("aten::abs", {q}));
    graph.output(graph.call_function("aten::cat", {Argument::list(values)}));
  }
  Graph graph;
  Node* first;
};

// A value loses users as they become one, and gets those of another that is equal.
TEST(CommonSubexpression, FindsWhatCameWhenAValueHadFewUsers) {
  for (const int many : {1, 7, 8, 9, 10, 20}) {
    ManyUsers program(many);
    EXPECT_EQ(eliminate_common_subexpressions(program.graph), static_cast<std::size_t>(many + 1)) << many;
  }
}

TEST(CommonSubexpression, NothingBecomesACallThatIsBanned) {
  for (const int many : {1, 7, 8, 9, 10, 20}) {
    ManyUsers program(many);
    const auto banned = [&](const Node& node) { return &node == program.first; };
    EXPECT_EQ(eliminate_common_subexpressions(program.graph, {}, banned), static_cast<std::size_t>(many)) << many;
  }
}

TEST(CommonSubexpression, InputsOfOneNameStayTwo) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("x");
  graph.output(graph.call_function("aten::add.Tensor", {x, y}));
  EXPECT_EQ(eliminate_common_subexpressions(graph), 0u);
}

}  // namespace fx::common_subexpression_test
