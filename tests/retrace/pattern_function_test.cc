// Functions as patterns: where literals go, and what patterns may not do with them.
#include <fxgraph/retrace/pattern_function.h>

#include "tests/trace/trace_testing.h"

namespace fx::pattern_function_test {

using testing::calls;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using torch::Tensor;

std::string type_of(const Graph& graph, std::string_view name) {
  const Meta* meta = graph.find(name)->find_meta();
  return meta ? *meta->get<std::string>(meta_key::kType) : "";
}

TEST(PatternFunction, TensorsAreWildcards) {
  const Graph graph = trace_pattern([](Tensor x, Tensor w) { return torch::relu(torch::matmul(x, w)); }, {"x", "w"});
  graph.lint();
  EXPECT_THAT(calls(graph), ElementsAre("aten::matmul(x, w)", "aten::relu(matmul)"));
}

TEST(PatternFunction, NumbersAreHoles) {
  const Graph graph =
      trace_pattern([](Tensor x, double p, bool train) { return torch::dropout(x, p, train); }, {"x", "p", "train"});
  graph.lint();
  EXPECT_THAT(calls(graph), ElementsAre("aten::dropout(x, p, train)"));
  EXPECT_EQ(type_of(graph, "p"), "float");
  EXPECT_EQ(type_of(graph, "train"), "bool");
  EXPECT_EQ(graph.find("x")->find_meta(), nullptr);
}

TEST(PatternFunction, HolesInsideListsAndKeywords) {
  const Graph graph = trace_pattern([](Tensor x, std::int64_t a, std::int64_t b, double alpha) {
    return torch::add(x.permute({a, b}), x, alpha);
  });
  EXPECT_THAT(calls(graph),
              ElementsAre("aten::permute(arg_0, [arg_1, arg_2])", "aten::add.Tensor(permute, arg_0, alpha=arg_3)"));
  EXPECT_EQ(type_of(graph, "arg_1"), "int");
}

// At one of its values a literal is the default, and C++ does not say that it was given.
TEST(PatternFunction, HolesStandForDefaultsToo) {
  EXPECT_THAT(calls(trace_pattern([](Tensor x, bool k) { return x.mean({1}, k); })),
              ElementsAre("aten::mean.dim(x, [1], y)"));
  EXPECT_THAT(calls(trace_pattern([](Tensor x, bool k) { return std::get<0>(torch::sort(x, 1, k)); })),
              ElementsAre("aten::sort(x, 1, y)", "operator.getitem(sort, 0)"));
  EXPECT_THAT(calls(trace_pattern([](Tensor x, std::int64_t dim, bool k) { return x.argmax(dim, k).sum({1}, k); })),
              ElementsAre("aten::argmax(x, y, z)", "aten::sum.dim_IntList(argmax, [1], z)"));
}

TEST(PatternFunction, ALiteralMayBeUsedTwiceOrNever) {
  const Graph graph = trace_pattern([](Tensor x, double c, double) { return (x * c) + c; });
  EXPECT_THAT(calls(graph), ElementsAre("aten::mul.Scalar(x, y)", "aten::add.Scalar(mul, y)"));
  EXPECT_FALSE(graph.find("z")->has_users());
}

TEST(PatternFunction, Strings) {
  EXPECT_THAT(calls(trace_pattern([](Tensor x, std::string how) { return torch::gelu(x, how); })),
              ElementsAre("aten::gelu(x, approximate=y)"));
}

TEST(PatternFunction, ReplacementsMayCompute) {
  const PatternFunction function([](Tensor x, double c) { return x * (1.0 / c); });
  EXPECT_EQ(function.num_literals(), 1U);
  const Trace instance = function.instance({4.0});
  instance.graph.lint();
  EXPECT_THAT(calls(instance.graph), ElementsAre("aten::mul.Scalar(x, 0.25)"));
  EXPECT_EQ(instance.graph.placeholders().size(), 2U);
  EXPECT_FX_ERROR(function.instance({}), invalid_argument, HasSubstr("1 literals"));
  EXPECT_FX_ERROR(function.instance({"four"}), invalid_argument, HasSubstr("a number"));
}

TEST(PatternFunction, PatternsMayNotCompute) {
  EXPECT_FX_ERROR(trace_pattern([](Tensor x, double c) { return x * (1.0 / c); }, {"x", "c"}), trace, HasSubstr("`c`"),
                  HasSubstr("%mul"), HasSubstr("computed"));
  EXPECT_FX_ERROR(trace_pattern([](Tensor x, std::int64_t n) { return x * static_cast<double>(n); }), trace,
                  HasSubstr("converted"));
  EXPECT_FX_ERROR(trace_pattern([](Tensor x, bool b) { return b ? x * 2 : x; }), trace,
                  HasSubstr("decides which operators run"));
  EXPECT_FX_ERROR(trace_pattern([](Tensor x, bool b) { return b ? x * 2 : x + 2; }), trace, HasSubstr("%"),
                  HasSubstr("decides"));
}

TEST(PatternFunction, ModulesAndConstants) {
  const Tensor constant = torch::rand({2});
  const Trace trace = PatternFunction([&](Tensor x, double c) { return x * constant + c; }).pattern();
  ASSERT_EQ(trace.attributes.size(), 1U);
  EXPECT_TRUE(trace.attributes[0].tensor.is_same(constant));
}

TEST(PatternFunction, FunctionsStayFunctions) {
  const auto function = [](Tensor x, double c) { return x / c; };
  trace_pattern(function);
  EXPECT_TRUE(function(torch::full({1}, 3.0), 2).equal(torch::full({1}, 1.5)));
}

}  // namespace fx::pattern_function_test
