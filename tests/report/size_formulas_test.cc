// The measures of a report as formulas of the sizes that vary, compared with the report at other sizes.
#include <fxgraph/report/size_formulas.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/text/parse.h>

namespace fx::size_formulas_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// %h has the shape of %x, %m a third dimension of 4, %p half of it in the second, %s the square of it.
Graph program() {
  return parse_graph(R"(graph():
    %x : [num_users=2] = placeholder[target=x]
    %h : [num_users=1] = call_function[target=aten::relu](args = (%x,), kwargs = {})
    %p : [num_users=1] = call_function[target=aten::max_pool1d](args = (%h, [2]), kwargs = {})
    %m : [num_users=1] = call_function[target=aten::mul.Tensor](args = (%p, 2), kwargs = {})
    %s : [num_users=1] = call_function[target=aten::matmul](args = (%x, %m), kwargs = {})
    return s)");
}

TensorInfo tensor(std::vector<std::int64_t> sizes) {
  TensorInfo info;
  info.sizes = std::move(sizes);
  return info;
}

Shapes shapes_of(const Graph& graph, std::int64_t b, std::int64_t t) {
  Shapes shapes(graph);
  const auto set = [&](const char* name, std::vector<std::int64_t> sizes) {
    for (const Node& node : graph.nodes()) {
      if (node.name() == name) shapes[node] = tensor(std::move(sizes));
    }
  };
  set("x", {b, t});
  set("h", {b, t});
  set("p", {b, t / 2});
  set("m", {b, t / 2});
  set("s", {t, t, b});
  return shapes;
}

class SizeFormulas : public ::testing::Test {
 protected:
  Report::SizesPart formulas(std::vector<VaryingSize> varying, std::int64_t b = 2) {
    const ShapesAt at = [this](const std::vector<TensorInfo>& inputs) {
      ++asked_;
      if (inputs[0].sizes[0] > 40) throw Error(ErrorKind::execution, "too many");
      return shapes_of(graph_, inputs[0].sizes[0], inputs[0].sizes[1]);
    };
    return size_formulas(graph_, {tensor({b, 16})}, varying, at, {});
  }
  std::string formula(const Report::SizesPart& part, const std::string& name) const {
    for (const Report::SizesPart::Row& row : part.measures) {
      if (row.name.starts_with(name)) return row.formula;
    }
    return "no row";
  }

  Graph graph_ = program();
  int asked_ = 0;
};

TEST_F(SizeFormulas, AreThoseOfTheBatch) {
  const Report::SizesPart part = formulas({{{{0, 0}}}});
  EXPECT_THAT(part.variables, ElementsAre("x[0]"));
  EXPECT_EQ(part.checked, 3);
  // m and s are there together: 8·b and 256·b numbers of four bytes.
  EXPECT_EQ(formula(part, "peak at s"), "1056·x[0] B");
  EXPECT_EQ(formula(part, "storages"), "1152·x[0] B");
  ASSERT_FALSE(part.at_peak.empty());
  EXPECT_EQ(part.at_peak[0].node, "s");
  EXPECT_EQ(part.at_peak[0].bytes, "x[0] KiB");
  EXPECT_EQ(part.at_peak[0].tensor, "float32[16, 16, x[0]]");
}

TEST_F(SizeFormulas, SayInWhichStepsTheyHold) {
  const Report::SizesPart part = formulas({{{{0, 0}}}, {{{0, 1}}}});
  EXPECT_THAT(part.variables, ElementsAre("x[0]", "x[1] in steps of 2"));
  EXPECT_EQ(formula(part, "peak at s"), "(4·x[0]·x[1]² + 2·x[0]·x[1]) B");
  EXPECT_EQ(part.at_peak[1].tensor, "float32[x[0], x[1]/2]");
}

TEST_F(SizeFormulas, AgreeWithTheReportElsewhere) {
  const Report::SizesPart part = formulas({{{{0, 0}}}});
  for (const std::int64_t b : {1, 9, 33}) {
    const Shapes shapes = shapes_of(graph_, b, 16);
    const Report report = make_report(graph_, {.shapes = &shapes});
    EXPECT_LE(report.liveness->peak_bytes - 1056 * b, 128) << b;  // rounded up to 64 bytes each
    EXPECT_GE(report.liveness->peak_bytes, 1056 * b);
  }
  EXPECT_EQ(formula(part, "peak"), "1056·x[0] B");
}

TEST_F(SizeFormulas, OfSizesThatGoTogether) {
  EXPECT_THAT(formulas({{{{0, 0}, {0, 1}}}}, 16).variables, ElementsAre("x[0] = x[1] in steps of 2"));
}

TEST_F(SizeFormulas, AreNoneWhereNothingVaries) {
  EXPECT_THAT(formulas({}).variables, IsEmpty());
  EXPECT_EQ(asked_, 0);
}

TEST_F(SizeFormulas, AreNotMadeUp) {
  // A size that is a third and rounded, and never in steps of powers of two.
  const ShapesAt at = [this](const std::vector<TensorInfo>& inputs) {
    Shapes shapes = shapes_of(graph_, inputs[0].sizes[0], 16);
    for (const Node& node : graph_.nodes()) {
      if (node.name() == "s") shapes[node] = tensor({inputs[0].sizes[0] / 3, 16, 16});
    }
    return shapes;
  };
  const Report::SizesPart part = size_formulas(graph_, {tensor({64, 16})}, {{{{0, 0}}}}, at, {});
  EXPECT_EQ(formula(part, "peak"), "");
  ASSERT_FALSE(part.at_peak.empty());
  EXPECT_THAT(part.at_peak[0].tensor, HasSubstr("float32[?, 16, 16]"));
  Report report;
  report.sizes = part;
  EXPECT_THAT(to_text(report), HasSubstr("follows no polynomial"));
  EXPECT_THAT(to_json(report), HasSubstr("\"formula\": \"\""));
}

}  // namespace fx::size_formulas_test
