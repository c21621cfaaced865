// torch.fx's test_fx_reinplace_pass.py, by the names there (the graphs are those that functionalisation gives); and
// random programs with views: what reinplace changes nobody can tell. Scatters are in reinplace_scatters_test.cc.
#include <gmock/gmock.h>

#include <random>

#include "tests/program/reinplace_testing.h"
#include "tests/support/short_graph.h"

namespace fx::reinplace_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::names;
using testing::reinplaced;

const TensorInfo kMatrix{.sizes = {3, 3}};

TEST(ReinplacePass, test_reinplace_basic) {
  const auto result =
      reinplaced(testing::graph_of("a = aten::clone(%x)\nb = aten::add.Tensor(%a, 1)\nreturn b"), {kMatrix});
  EXPECT_THAT(result.changed, ElementsAre("b"));
  EXPECT_EQ(result.after->graph().find("b")->target(), Symbol("aten::add_.Tensor"));
}

TEST(ReinplacePass, test_reinplace_with_view) {
  const auto result = reinplaced(testing::graph_of(R"(
    a = aten::clone(%x)
    a_view = aten::view(%a, [-1])
    b = aten::add.Tensor(%a, 1)
    c = aten::add.Tensor(%b, 1)
    return c)"),
                                 {kMatrix});
  EXPECT_THAT(result.changed, ElementsAre("b", "c"));
}

TEST(ReinplacePass, test_reinplace_different_metadata) {
  const auto result = reinplaced(testing::graph_of(R"(
    a = aten::clone(%x)
    b = aten::add.Tensor(%a, 1)
    c = aten::ge.Tensor(%b, %a)
    return c)"),
                                 {kMatrix});
  EXPECT_THAT(result.changed, IsEmpty());
  EXPECT_EQ(result.kept.at("b"), "%a, or a view of it, is read later");
  EXPECT_EQ(result.kept.at("c"), "its result is bool[3, 3], %b is float32[3, 3]");
}

TEST(ReinplacePass, test_reinplace_overlapping_memory) {
  const auto result = reinplaced(testing::graph_of(R"(
    a = aten::clone(%x)
    b = aten::expand(%a, [4, 4])
    c = aten::add.Tensor(%b, 1)
    return c)"),
                                 {TensorInfo{.sizes = {1, 1}}});
  EXPECT_THAT(result.changed, IsEmpty());
}

TEST(ReinplacePass, KeepsInputsWeightsResultsAndWhatIsReadLater) {
  const auto result = reinplaced(testing::graph_of(R"(
    a = aten::add.Tensor(%x, 1)
    v = aten::view(%x, [-1])
    b = aten::add.Tensor(%v, 1)
    c = aten::clone(%x)
    d = aten::mul.Tensor(%c, 2)
    e = aten::t(%c)
    f = aten::mul.Tensor(%e, %d)
    g = aten::neg(%f)
    t = aten::t(%g)
    h = aten::add.Tensor(%g, %t)
    i = aten::mul.Tensor(%h, %h)
    return (a, b, d, i))"),
                                 {kMatrix});
  EXPECT_THAT(result.changed, ElementsAre("f", "g", "i"));
  EXPECT_EQ(result.kept.at("a"), "%x is an input");
  EXPECT_EQ(result.kept.at("b"), "%v may share storage with an input or a parameter");
  EXPECT_EQ(result.kept.at("d"), "%c, or a view of it, is read later");
  EXPECT_EQ(result.kept.at("h"), "%t may share storage with %g");
}

TEST(ReinplacePass, CallsInPythonsWordsBecomeOperatorsThatWrite) {
  const auto result = reinplaced(testing::graph_of(R"(
    a = aten::clone(%x)
    b = torch.sub(other=2, input=%a)
    c = call_method[target=neg](%b)
    d = operator.mul(3, %c)
    return d)"),
                                 {kMatrix});
  EXPECT_THAT(result.changed, ElementsAre("b", "c", "d"));
  const Graph& graph = result.after->graph();
  EXPECT_EQ(graph.find("b")->target(), Symbol("aten::sub_.Scalar"));
  EXPECT_EQ(graph.find("c")->target(), Symbol("aten::neg_"));
  EXPECT_EQ(graph.find("d")->target(), Symbol("aten::mul_.Scalar"));
}

// Other data give the result another size than what is written over; one operand alone has the size that it has.
TEST(ReinplacePass, SizesThatDataDecideAreNotThoseOfTheExample) {
  GraphModule module(testing::graph_of(R"(
    m = aten::gt.Scalar(%x, 0)
    s = aten::masked_select(%x, %m)
    a = aten::add.Tensor(%s, %y)
    b = aten::relu(%a)
    c = aten::mul.Tensor(%b, 2)
    return c)",
                                       "x y"));
  const torch::Tensor y = torch::ones({1});
  const Shapes shapes = propagate_shapes(module, {torch::tensor({1.0f, -1.0f}), y});
  const ReinplaceReport report = reinplace(module.graph(), shapes);
  EXPECT_THAT(names(report.changed), ElementsAre("b", "c"));
  ASSERT_FALSE(report.kept.empty());
  EXPECT_EQ(report.kept.back().second, "its size, or that of %s, depends on data");
  EXPECT_EQ(module.run({-torch::ones({2}), y}).toTensor().numel(), 0);
}

TEST(ReinplacePass, RandomProgramsComputeTheSame) {
  std::size_t changed = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    Graph graph;
    std::vector<Node*> values = {&graph.placeholder("x"), &graph.placeholder("y")};
    const auto pick = [&]() -> Node& {
      return *values[values.size() - 1 - random() % std::min<std::size_t>(values.size(), 4)];
    };
    for (std::size_t i = 0; i < 5 + seed % 20; ++i) {
      Node& x = pick();
      Node* made = nullptr;
      switch (random() % 9) {
        case 0: made = &graph.call_function("aten::t", {x}); break;
        case 1:
          made = &graph.call_function("aten::view",
                                      {graph.call_function("aten::contiguous", {x}), Argument::list({3, 3})});
          break;
        case 2: made = &graph.call_function("aten::mul_.Tensor", {graph.call_function("aten::clone", {x}), 0.5}); break;
        case 3: made = &graph.call_function("aten::add.Tensor", {x, pick()}); break;
        case 4:
          made = &graph.call_function("aten::expand",
                                      {graph.call_function("aten::select.int", {x, 0, 1}), Argument::list({3, 3})});
          break;
        case 5: made = &graph.call_function("aten::tanh", {x}); break;
        case 6: made = &graph.call_function("aten::relu", {x}); break;
        case 7: made = &graph.call_function("aten::sub.Tensor", {x, x}); break;
        default: made = &graph.call_function("aten::mul.Tensor", {x, pick()}); break;
      }
      values.push_back(made);
    }
    graph.output(Argument::tuple({*values.back(), pick()}));
    changed += reinplaced(std::move(graph), {kMatrix, kMatrix}).changed.size();
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(changed, 200u);
}

}  // namespace fx::reinplace_test
