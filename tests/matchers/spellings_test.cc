// Calls as torch.fx prints them, found by patterns that say the same in ATen's words.
#include <fxgraph/matchers/matcher.h>

#include <gmock/gmock.h>

#include <fxgraph/text/print.h>
#include "tests/support/error_of.h"
#include "tests/support/short_graph.h"
#include "tests/support/spellings.h"

namespace fx::spellings_test {

using testing::error_of;
using ::testing::HasSubstr;

TEST(Spellings, AreFoundByTheirOperators) {
  const std::vector<testing::Spelling> all = testing::all_spellings();
  EXPECT_GE(all.size(), 350u);
  for (const testing::Spelling& each : all) {
    const std::vector<Match> matches = find(each.graph, each.pattern, {.contained = false});
    ASSERT_EQ(matches.size(), 1u) << each.pattern << "\n" << print_graph(each.graph);
    EXPECT_EQ(matches[0].anchor().name(), each.root) << each.pattern;
  }
}

// A pattern in Python's words means the same as in the operator's.
TEST(Spellings, PatternsAreFoundByOneAnother) {
  const std::vector<testing::Spelling> all = testing::all_spellings();
  for (const testing::Spelling& each : all) {
    const Pattern pattern(each.graph);
    const std::vector<Match> matches = find(each.graph, pattern, {.contained = false});
    ASSERT_EQ(matches.size(), 1u) << pattern << print_graph(each.graph);
    EXPECT_TRUE(pattern.problems().empty()) << pattern;
  }
}

TEST(Spellings, WhoWantsOneSaysSo) {
  const Graph graph = testing::graph_of("a = torch.relu(%x)\nb = aten::relu(%a)\nreturn b");
  EXPECT_EQ(find(graph, "aten::relu(x)", {.contained = false}).size(), 2u);
  EXPECT_EQ(find(graph, R"(spelt("torch.relu")(x))", {.contained = false}).size(), 1u);
  EXPECT_EQ(find(graph, R"({spelt("torch.relu"), aten::neg}(x))", {.contained = false}).size(), 1u);
  EXPECT_EQ(find(graph, match::op(match::spelt("aten::relu"), match::any()), {.contained = false}).size(), 1u);
  EXPECT_EQ(Pattern(R"(spelt("torch.relu")(x))").str(), "return spelt('torch.relu')(x)\n");
}

// Its arguments are in Python's order, and True for `inplace` is another operator.
TEST(Spellings, OnesOwnOrderIsThatOfTheSpelling) {
  const Graph graph = testing::graph_of(
      "a = torch.nn.functional.embedding(%i, %w)\nb = torch.nn.functional.leaky_relu(%a, 0.1, inplace=True)\n"
      "c = torch.nn.functional.leaky_relu(%b, 0.1)\nreturn c",
      "i w");
  const std::vector<Match> rows = find(graph, R"(spelt("torch.nn.functional.embedding")(i, w))", {.contained = false});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["i"].name(), "i");
  const auto at = [&](const char* arguments) {
    std::string names;
    const std::string pattern = R"(spelt("torch.nn.functional.leaky_relu"))" + std::string(arguments);
    for (const Match& match : find(graph, pattern, {.contained = false})) names += match.anchor().name();
    return names;
  };
  EXPECT_EQ(at("(x, 0.1)"), "c");
  EXPECT_EQ(at("(x, 0.1, inplace=True)"), "b");
  EXPECT_EQ(at("(x, 0.1, True)"), "b");
  EXPECT_EQ(at("(x, ...)"), "c");
  EXPECT_EQ(at(""), "bc");
}

// What a pattern leaves open may be written in any way, and so may what it writes.
TEST(Spellings, OpenPatternsBindPositionsAndKeywordsAlike) {
  const Graph graph = testing::graph_of(
      "a = torch.nn.functional.batch_norm(%x, %m, %v, weight=%w, bias=None, training=False, momentum=0.1, eps=0.001)\n"
      "b = torch.nn.functional.batch_norm(%a, %m, %v, %w)\nc = torch.nn.functional.dropout(%b, 0.5, False)\n"
      "d = torch.softmax(%c, 1)\ne = torch.sum(%d, dim=(1,))\nf = torch.functional.einsum('ij,jk', %e, %w)\n"
      "g = torch.nn.functional.cross_entropy(%f, %v, reduction='sum')\nreturn g",
      "x m v w");
  const auto at = [&](const char* pattern) {
    std::string names;
    for (const Match& match : find(graph, pattern, {.contained = false})) names += match.anchor().name();
    return names;
  };
  EXPECT_EQ(at("torch.nn.functional.batch_norm(x, m, v, w, ...)"), "ab");
  EXPECT_EQ(at("torch.nn.functional.batch_norm(x, m, v, weight=w, ...)"), "ab");
  EXPECT_EQ(at("torch.nn.functional.batch_norm(input=x, running_mean=m, ...)"), "ab");
  EXPECT_EQ(at("torch.nn.functional.dropout(x, training=False, ...)"), "c");
  EXPECT_EQ(at("torch.nn.functional.dropout(x, p=q, ...)"), "c");
  EXPECT_EQ(at("torch.nn.functional.softmax(x, dim=d, ...)"), "d");
  EXPECT_EQ(at("torch.sum(x, 1, ...)"), "e");
  EXPECT_EQ(at("torch.sum(x, axis=d, ...)"), "e");
  EXPECT_EQ(at("torch.einsum(e, ...)"), "f");
  EXPECT_EQ(at("torch.nn.functional.cross_entropy(x, y, reduction=r)"), "g");
  EXPECT_EQ(at("torch.nn.functional.cross_entropy(x, y, reduction='mean')"), "");
}

TEST(Spellings, ADefaultMayBeWrittenInFull) {
  const Graph graph =
      testing::graph_of("a = torch.conv2d(%x, %w)\nb = torch.conv2d(%a, %w, stride=(1,))\nreturn b", "x w");
  for (const char* pattern : {"aten::conv2d(x, w)", "aten::conv2d(x, w, None, [1, 1], [0, 0], [1, 1], 1)",
                              "aten::conv2d(x, w, stride=[s, s], ...)", "aten::conv2d(x, w, None, 1, 0, 1, 1)"})
    EXPECT_EQ(find(graph, pattern, {.contained = false}).size(), 2u) << pattern;
}

TEST(Spellings, OperandsMayBeTurnedRound) {
  const Graph graph = testing::graph_of(
      "a = operator.add(%x, 2)\nb = aten::relu(%a)\nc = torch.neg(%b)\n"
      "d = operator.setitem(%c, 0, %x)\nreturn c");
  EXPECT_EQ(find(graph, "commutative(aten::add(2, x))", {.contained = false}).size(), 1u);
  EXPECT_EQ(find(graph, "commutative(aten::add(x, 2))", {.contained = false}).size(), 1u);
  EXPECT_EQ(find(graph, "commutative(aten::add(x, 3))", {.contained = false}).size(), 0u);
  EXPECT_EQ(find(graph, "#mutating(x, ...)", {.contained = false}).size(), 1u);
}

// Of a call of a number, and one of a tensor, each says what it takes.
TEST(Spellings, ANumberForATensorIsTheOverloadForNumbers) {
  const Graph graph = testing::graph_of(
      "a = aten::add.Tensor(%x, 2)\nb = aten::add.Scalar(%a, 2)\nc = torch.add(%b, 2)\nd = aten::add.Tensor(%c, %x)\n"
      "return d");
  const FindOptions loose{.contained = false};
  EXPECT_EQ(find(graph, "aten::add.Tensor(x, 2)", loose).size(), 3u);
  EXPECT_EQ(find(graph, "aten::add.Scalar(x, 2)", loose).size(), 3u);
  EXPECT_EQ(find(graph, "aten::add.Scalar(x, y)", loose).size(), 3u) << "what is no number is not its";
  EXPECT_EQ(find(graph, "aten::add.Tensor(x, y)", loose).size(), 2u) << "as it is written; a wildcard may be a tensor";
  EXPECT_EQ(find(graph, "aten::add(x, y)", loose).size(), 4u);
}

TEST(Spellings, TheRestHoldsKeywords) {
  const Graph graph = testing::graph_of("a = aten::max_pool2d(%x, [2, 2], stride=[1, 1], ceil_mode=True)\nreturn a");
  const Match match = find(graph, "aten::max_pool2d(r, [2, 2], ...others)").at(0);
  EXPECT_EQ(to_string(match.argument("others")), "[[1, 1], [0, 0], [1, 1], True]");
  EXPECT_EQ(match.rest("others").args.size(), 4u);
  EXPECT_TRUE(match.rest("others").kwargs.empty());

  const Graph sums = testing::graph_of("a = aten::sum.dim_IntList(%x, [1], dtype=torch.float64)\nreturn a");
  const Match sum = find(sums, "aten::sum(r, ...others)").at(0);
  ASSERT_EQ(sum.rest("others").kwargs.size(), 1u);
  EXPECT_EQ(sum.rest("others").kwargs[0].name, "dtype");
  EXPECT_EQ(sum.rest("others").args.size(), 1u);
  EXPECT_THROW(sum.rest("r"), Error);
}

TEST(Spellings, NamesThatNobodyHasAreProblems) {
  const auto problem = [](const char* pattern) {
    const Pattern read(pattern);
    return read.problems().empty() ? std::string() : read.problems()[0].message;
  };
  EXPECT_EQ(problem("aten::sofmax(x)"), "no operator aten::sofmax is known; did you mean aten::softmax?");
  EXPECT_EQ(problem("relu(x)"), "no function relu is known; did you mean aten::relu?");
  EXPECT_THAT(problem("aten::relu(x, y)"), HasSubstr("aten::relu does not take these arguments"));
  EXPECT_THAT(problem("aten::relu(x, inplace=True)"), HasSubstr("does not take these arguments"));
  EXPECT_THAT(problem("aten::relu(x, self=y)"), HasSubstr("does not take these arguments"));
  EXPECT_THAT(problem("aten::add.Tensr(x, y)"), HasSubstr("has no overload Tensr; it has Tensor, Scalar"));
  EXPECT_THAT(problem("torch.nn.functional.relux(x)"), HasSubstr("did you mean aten::relu?"));
  EXPECT_EQ(problem("aten::add(x, y)"), "");
  EXPECT_EQ(problem("torch.relu(x)"), "");
  const Pattern own("mylib::attend(q, k)");
  ASSERT_EQ(own.problems().size(), 1u);
  EXPECT_TRUE(own.problems()[0].foreign_namespace);
}

// Which overload a list is for lies in what its elements are.
TEST(Spellings, ListsOfNumbersAndOfTensorsAreTwoKinds) {
  const Graph graph = testing::graph_of(
      "a = aten::tensor_split.indices(%x, [1, 2])\nb = aten::index.Tensor(%y, [%x, %y])\nreturn (a, b)", "x y");
  EXPECT_EQ(find(graph, "torch.tensor_split(x, [1, 2])", {.contained = false}).size(), 1u);
  EXPECT_EQ(find(graph, "torch.tensor_split(x, [n: int, m: int])", {.contained = false}).size(), 1u);
  EXPECT_EQ(find(graph, "operator.getitem(y, [x, y])", {.contained = false}).size(), 0u);
}

TEST(Spellings, ExpressionsWriteTensorOptions) {
  const Graph graph = testing::graph_of("a = aten::to.dtype(%x, torch.float16)\nreturn a");
  EXPECT_EQ(find(graph, "aten::to.dtype(x, torch.float16)").size(), 1u);
  EXPECT_EQ(find(graph, "aten::to.dtype(x, torch.float32)").size(), 0u);
  EXPECT_THAT(error_of([] { Pattern("aten::to.dtype(x, float16)"); }), HasSubstr("write torch.float16"));
  EXPECT_THAT(error_of([] { Pattern("aten::contiguous(x, channels_last)"); }), HasSubstr("write torch.channels_last"));
}

}  // namespace fx::spellings_test
