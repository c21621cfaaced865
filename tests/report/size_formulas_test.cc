// The measures of a report as formulas of the sizes that vary, compared with the report at other sizes.
#include <fxgraph/report/size_formulas.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/text/parse.h>

namespace fx::size_formulas_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A program, its sizes as expressions, and as numbers where the symbols are.
class SizeFormulas : public ::testing::Test {
 protected:
  void program(const char* text, std::vector<AbstractValue> inputs, std::vector<OpenProgram::Size> sizes) {
    graph_ = parse_graph(text);
    inputs_ = std::move(inputs);
    for (const OpenProgram::Size& size : sizes) example_[size.symbol] = size.example;
    open_.emplace(OpenProgram{std::move(sizes), SymbolicShapes(graph_, inputs_)});
  }
  Shapes shapes_at(const std::map<std::string, std::int64_t>& sizes) const {
    std::vector<AbstractValue> inputs;
    for (const AbstractValue& input : inputs_) {
      TensorType type = *input.tensor();
      for (SizeExpr& size : type.sizes) size = *size.evaluate(sizes);
      type.strides = contiguous_strides(type.sizes);
      inputs.emplace_back(std::move(type));
    }
    const SymbolicShapes found(graph_, std::move(inputs));
    Shapes shapes(graph_);
    for (const Node& node : graph_.nodes()) {
      const TensorType* type = found[node].tensor();
      if (!type || node.is(Op::output)) continue;
      TensorInfo info;
      for (const SizeExpr& size : type->sizes) info.sizes.push_back(size.value());
      shapes[node] = std::move(info);
    }
    return shapes;
  }
  Report::SizesPart formulas() {
    const Shapes shapes = shapes_at(example_);
    return size_formulas(graph_, *open_, {.shapes = &shapes});
  }
  static std::string formula(const Report::SizesPart& part, std::string_view name) {
    for (const Report::SizesPart::Row& row : part.measures) {
      if (row.name == name) return row.formula;
    }
    return "no row";
  }

  Graph graph_;
  std::vector<AbstractValue> inputs_;
  std::optional<OpenProgram> open_;
  std::map<std::string, std::int64_t> example_;
};

constexpr const char* kPooled = R"(graph():
    %x = placeholder[target=x]
    %h = call_function[target=aten::relu](args = (%x,))
    %p = call_function[target=aten::slice.Tensor](args = (%h, 1, 0, 8))
    %m = call_function[target=aten::mul.Tensor](args = (%p, 2))
    %t = call_function[target=aten::t](args = (%x,))
    %s = call_function[target=aten::matmul](args = (%t, %m))
    return s)";

TEST_F(SizeFormulas, AreThoseOfTheBatch) {
  program(kPooled, {dims("b", 16)}, {{"b", "x[0]", 2}});
  const Report::SizesPart part = formulas();
  EXPECT_THAT(part.variables, ElementsAre("x[0]"));
  // h and m are there together: 16 and 8 numbers of four bytes in each row.
  EXPECT_EQ(formula(part, "peak at s"), "(32*b + 512) B");
  EXPECT_EQ(formula(part, "storages"), "(96*b + 512) B");
  EXPECT_EQ(formula(part, "MACs"), "128*b");
  EXPECT_EQ(formula(part, "peak at m where x[0] >= 8"), "96*b B");
  ASSERT_EQ(part.at_peak.size(), 2u);
  EXPECT_EQ(part.at_peak[0].bytes, "512 B");
  EXPECT_EQ(part.at_peak[1].tensor, "float32[b, 8]");
}

TEST_F(SizeFormulas, AgreeWithTheReportElsewhere) {
  program(kPooled, {dims("b", 16)}, {{"b", "x[0]", 2}});
  const Report::SizesPart part = formulas();
  for (const std::int64_t b : {2, 3, 7, 8, 33}) {
    const Shapes shapes = shapes_at({{"b", b}});
    const Report report = make_report(graph_, {.shapes = &shapes});
    const std::int64_t bytes = b < 8 ? 32 * b + 512 : 96 * b;
    EXPECT_LE(report.liveness->peak_bytes - bytes, 128) << b;  // rounded up to 64 bytes each
    EXPECT_GE(report.liveness->peak_bytes, bytes) << b;
    EXPECT_EQ(report.liveness->peak_bytes_at, b < 8 ? "s" : "m") << b;
    EXPECT_EQ(report.cost->total.macs, 128.0 * static_cast<double>(b));
  }
}

TEST_F(SizeFormulas, SayInWhichStepsSizesGo) {
  program(R"(graph():
    %x = placeholder[target=x]
    %h = call_function[target=aten::relu](args = (%x,))
    return h)",
          {AbstractValue(TensorType{DType::float32, {SizeExpr::symbol("b"), SizeExpr(4) * SizeExpr::symbol("t")}, {}})},
          {{"b", "x[0]", 3}, {"t", "x[1]", 2, 4}});
  const Report::SizesPart part = formulas();
  EXPECT_THAT(part.variables, ElementsAre("x[0]", "x[1] in steps of 4"));
  EXPECT_EQ(formula(part, "peak at h"), "16*(t//4)*b B");
  EXPECT_EQ(part.at_peak[0].tensor, "float32[b, 4*(t//4)]");
}

TEST_F(SizeFormulas, AreNoneWhereNothingVaries) {
  program(kPooled, {dims(2, 16)}, {});
  EXPECT_THAT(formulas().variables, IsEmpty());
  EXPECT_THAT(formulas().measures, IsEmpty());
}

TEST_F(SizeFormulas, AreNotMadeUp) {
  // How many there are nobody knows.
  program(R"(graph():
    %x = placeholder[target=x]
    %h = call_function[target=aten::relu](args = (%x,))
    %n = call_function[target=aten::nonzero](args = (%h,))
    %y = call_function[target=aten::mul.Tensor](args = (%n, 2))
    return (h, y))",
          {dims("b", 16)}, {{"b", "x[0]", 2}});
  Shapes shapes(graph_);
  for (const Node& node : graph_.nodes()) {
    TensorInfo info;
    info.sizes =
        node.name() == "n" || node.name() == "y" ? std::vector<std::int64_t>{7, 2} : std::vector<std::int64_t>{2, 16};
    if (!node.is(Op::output)) shapes[node] = std::move(info);
  }
  const Report::SizesPart part = size_formulas(graph_, *open_, {.shapes = &shapes});
  EXPECT_EQ(formula(part, "peak at y"), "");
  Report report;
  report.sizes = part;
  EXPECT_THAT(to_text(report), ::testing::HasSubstr("has no formula"));
  EXPECT_THAT(to_json(report), ::testing::HasSubstr("\"formula\": \"\""));
}

}  // namespace fx::size_formulas_test
