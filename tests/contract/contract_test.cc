// What assertions say of inputs is read from what they compute, in any spelling, and never from their messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/contract/assertions.h>
#include <fxgraph/contract/contract.h>
#include "tests/support/short_graph.h"

namespace fx::contract_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The conditions of a graph whose assertion is `holds`, computed by `body` of x, y and xs.
std::vector<std::string> conditions(const std::string& body, const std::string& message = "x") {
  const Graph graph = testing::graph_of(body + "\na = torch._assert(%holds, '" + message + "')\nreturn x", "x y xs");
  std::vector<std::string> said;
  for (const Condition& condition : Contract(graph).conditions()) {
    EXPECT_EQ(condition.reason, message);
    said.push_back(condition.str());
  }
  return said;
}

TEST(Contract, SaysWhatAssertionsCompute) {
  struct Case {
    const char *body, *said;
  };
  for (const Case& c :
       {Case{"n = aten::size.int(%x, 0)\nholds = operator.eq(%n, 4)", "x[0] must be 4"},
        Case{"n = aten::size.int(%x, -1)\nholds = aten::eq.int(%n, 4)", "x[-1] must be 4"},
        Case{"n = call_method[target=size](%x, 1)\nholds = operator.ge(%n, 2)", "x[1] must be at least 2"},
        Case{"n = aten::size.int(%x, 1)\nholds = operator.le(%n, 9)", "x[1] must be at most 9"},
        Case{"n = aten::size.int(%x, 1)\nholds = operator.gt(%n, 9)", "x[1] must be more than 9"},
        Case{"n = aten::size.int(%x, 1)\nholds = operator.ne(%n, 1)", "x[1] must not be 1"},
        Case{"n = aten::size.int(%x, 2)\nm = operator.mod(%n, 8)\nholds = operator.eq(%m, 0)",
             "x[2] must be a multiple of 8"},
        Case{"n = aten::size.int(%x, 2)\nm = aten::remainder.int(%n, 8)\nholds = aten::eq.int(%m, 0)",
             "x[2] must be a multiple of 8"},
        Case{"n = aten::size.int(%x, 0)\nm = aten::size.int(%y, 1)\nt = operator.mul(%m, 2)\nu = operator.add(%t, 1)\n"
             "holds = operator.eq(%n, %u)",
             "x[0] must be equal to y[1]*2 + 1"},
        Case{"n = aten::dim(%x)\nholds = operator.eq(%n, 4)", "x must be of 4 dimensions"},
        Case{"n = call_method[target=dim](%x)\nholds = operator.eq(%n, 4)", "x must be of 4 dimensions"},
        Case{"n = prim::dtype(%x)\nholds = operator.eq(%n, torch.float32)", "x.dtype must be torch.float32"},
        Case{"n = builtins.getattr(%x, 'dtype')\nholds = operator.eq(%n, torch.int64)", "x.dtype must be torch.int64"},
        Case{"p = operator.getitem(%xs, 1)\nn = aten::size.int(%p, 0)\nholds = operator.eq(%n, 3)",
             "xs[1].size(0) must be 3"},
        Case{"n = builtins.len(%xs)\nholds = operator.eq(%n, 2)", "xs.len() must be 2"},
        Case{"holds = operator.is_not(%x, None)", "x must not be None"},
        Case{"holds = aten::is_contiguous(%x)", "x.is_contiguous() must hold"},
        Case{"n = aten::numel(%x)\nholds = operator.gt(%n, 0)", "x.numel() must be more than 0"}}) {
    EXPECT_THAT(conditions(c.body), ElementsAre(c.said)) << c.body;
    EXPECT_THAT(conditions(c.body, "x[7] must be 9: nobody reads this"), ElementsAre(c.said)) << c.body;
  }
}

// What the program computes is not an input, and what is no arithmetic says nothing.
TEST(Contract, IsAboutInputs) {
  for (const char* body : {"r = aten::relu(%x)\nn = aten::size.int(%r, 0)\nholds = operator.eq(%n, 4)",
                           "s = aten::sum(%x)\nn = aten::item(%s)\nholds = operator.eq(%n, 4)",
                           "n = aten::size.int(%x, 0)\nr = aten::relu(%x)\nm = aten::size.int(%r, 0)\n"
                           "holds = operator.eq(%n, %m)",
                           "holds = aten::is_floating_point(%x)"})
    EXPECT_THAT(conditions(body), IsEmpty()) << body;
}

TEST(Contract, MessagesBeginWithWhatMustHold) {
  const auto message = [](const std::string& written) {
    const Graph graph = testing::graph_of(
        "n = aten::size.int(%x, 0)\nholds = operator.eq(%n, 4)\na = torch._assert(%holds, '" + written + "')\nreturn x",
        "x");
    return Contract(graph).conditions().front().message();
  };
  EXPECT_EQ(message("x[0] must be 4: because"), "x[0] must be 4: because");
  EXPECT_EQ(message("because"), "x[0] must be 4: because");
}

// An assertion is followed through a few numbers, however long its graph is.
TEST(Contract, LongArithmeticIsLeftAlone) {
  std::string body = "n0 = aten::size.int(%x, 0)\n";
  for (int i = 0; i < 50'000; ++i)
    body += "n" + std::to_string(i + 1) + " = operator.add(%n" + std::to_string(i) + ", 1)\n";
  EXPECT_THAT(conditions(body + "holds = operator.eq(%n50000, 50004)"), IsEmpty());
}

TEST(Contract, IsSaidOnce) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  const AssertionWriter write(graph);
  const auto size = [&](Node& of, int dim) -> Node& { return graph.call_function("aten::size.int", {of, dim}); };
  write.add(SizeRelation::equal, graph.call_function("operator.mod", {size(x, 2), 16}), 0, "sixteen");
  write.add(SizeRelation::more, size(x, 0), 2, "three");
  write.add(SizeRelation::equal, graph.call_function("operator.mod", {size(x, 2), 8}), 0, "eight");
  write.add(SizeRelation::at_least, size(x, 0), 3, "three again");
  write.add(SizeRelation::at_least, size(x, 0), 4, "four");
  write.add(SizeRelation::equal, size(y, 0), size(x, 0), "alike");
  write.add(SizeRelation::at_least, size(y, 0), 2, "two");
  write.add(SizeRelation::equal, graph.call_function("prim::dtype", {x}), 6, "float");
  write.add(SizeRelation::equal, graph.call_function("prim::dtype", {x}), 6, "float again");
  graph.output(x);
  EXPECT_EQ(drop_implied_assertions(graph), 3u);
  std::string reasons;
  for (const Condition& condition : Contract(graph).conditions()) reasons += condition.reason + "\n";
  EXPECT_EQ(reasons, "sixteen\nthree\nfour\nalike\nfloat\nfloat again\n");
  EXPECT_EQ(drop_implied_assertions(graph), 0u);
}

// Numbers are no sizes: 2.5 is more than 2 and not 3 or more.
TEST(Contract, IsLeftWhereItIsNotOfSizes) {
  Graph graph;
  Node &x = graph.placeholder("x"), &n = graph.placeholder("n");
  const AssertionWriter write(graph);
  write.add(SizeRelation::more, n, 2, "more than two");
  write.add(SizeRelation::at_least, n, 3, "three");
  Node& turned = graph.call_function("aten::size.int", {x, 0});
  write.add(SizeRelation::at_least, turned, 3, "three");
  graph.output(x);
  EXPECT_EQ(drop_implied_assertions(graph), 0u);
  Graph in_place;
  Node& z = in_place.placeholder("z");
  const AssertionWriter again(in_place);
  again.add(SizeRelation::at_least, in_place.call_function("aten::size.int", {z, 0}), 3, "three");
  in_place.call_function("aten::t_", {z});
  again.add(SizeRelation::at_least, in_place.call_function("aten::size.int", {z, 0}), 3, "three");
  in_place.output(z);
  EXPECT_EQ(drop_implied_assertions(in_place), 0u);
}

}  // namespace fx::contract_test
