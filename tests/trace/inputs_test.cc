// Parameters and results: how C++ types cross into the graph and back.
#include <array>
#include <map>
#include <optional>
#include <unordered_map>

#include "tests/trace/trace_testing.h"

namespace fx::inputs_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::output_text;
using testing::same_value;
using testing::traced_calls;
using torch::Tensor;

std::string output_of(const Trace& trace) { return output_text(trace.graph); }

TEST(TraceInputs, TuplesNeedNoExample) {
  EXPECT_THAT(
      traced_calls(
          [](std::tuple<Tensor, Tensor> pair, std::array<Tensor, 2> two) { return std::get<1>(pair) * two[0]; }),
      ElementsAre("operator.getitem(x, 1)", "operator.getitem(y, 0)", "aten::mul.Tensor(getitem_1, getitem_2)"));
}

TEST(TraceInputs, ListsTakeTheirLengthFromTheExample) {
  const auto program = [](const std::vector<Tensor>& xs) { return torch::stack(xs).sum(); };
  const std::vector<Tensor> example{torch::rand({2}), torch::rand({2})};
  EXPECT_THAT(traced_calls(program, {example}),
              ElementsAre("builtins.len(x)", "operator.eq(len_1, 2)", ::testing::StartsWith("torch._assert(eq, "),
                          "operator.getitem(x, 0)", "operator.getitem(x, 1)", "aten::stack([getitem, getitem_1])",
                          "aten::sum(stack)"));
  EXPECT_FX_ERROR(traced_calls(program), invalid_argument, HasSubstr("input 0"), HasSubstr("a list or tuple"));
  const auto gm = symbolic_trace(program, {example});
  EXPECT_TRUE(same_value(gm->forward(example), program(example)));
}

TEST(TraceInputs, Dicts) {
  const auto program = [](const std::unordered_map<std::string, Tensor>& x) {
    return std::make_tuple(std::map<std::string, Tensor>{{"sum", x.at("a") + x.at("b")}}, x.at("a"));
  };
  c10::Dict<std::string, Tensor> example;
  example.insert("a", torch::rand({2}));
  example.insert("b", torch::rand({2}));
  const auto gm = symbolic_trace(program, {example});
  EXPECT_EQ(output_text(gm->graph()), "({'sum': add}, getitem)");
  const c10::IValue result = gm->run({example});
  EXPECT_TRUE(
      same_value(result.toTupleRef().elements()[0].toGenericDict().at("sum"), example.at("a") + example.at("b")));
}

TEST(TraceInputs, ContainersOfLibTorch) {
  const auto lists = [](at::TensorList xs, const c10::List<Tensor>& ys) { return torch::cat(xs) + ys.get(0); };
  const std::vector<Tensor> pair{torch::rand({2}), torch::rand({2})}, one{torch::rand({4})};
  EXPECT_TRUE(same_value(symbolic_trace(lists, {pair, one})->forward(pair, one), torch::cat(pair) + one[0]));

  const auto dicts = [](const c10::Dict<std::string, Tensor>& x) {
    c10::Dict<std::string, Tensor> result;
    result.insert("double", x.at("a") * 2);
    return std::make_tuple(result, c10::List<Tensor>({x.at("a")}));
  };
  c10::Dict<std::string, Tensor> example;
  example.insert("a", torch::rand({2}));
  EXPECT_EQ(output_text(symbolic_trace(dicts, {example})->graph()), "({'double': mul}, [getitem])");
}

TEST(TraceInputs, OptionalTensorsAreAbsentPresentOrNone) {
  const auto program = [](Tensor x, const c10::optional<Tensor>& bias) { return bias ? x + *bias : x * 2; };
  EXPECT_THAT(traced_calls(program), ElementsAre("aten::mul.Scalar(x, 2)"));
  EXPECT_THAT(traced_calls(program, {torch::rand({2}), torch::rand({2})}), ElementsAre("aten::add.Tensor(x, y)"));
  const auto gm = symbolic_trace(program, {torch::rand({2}), c10::IValue()});
  EXPECT_TRUE(same_value(gm->forward(torch::ones({2})), torch::full({2}, 2.0F)));
  EXPECT_FX_ERROR(gm->run({torch::ones({2}), torch::ones({2})}), execution,
                  HasSubstr("specialized to have value None"));
}

TEST(TraceInputs, StdOptionalToo) {
  EXPECT_THAT(traced_calls([](Tensor x, std::optional<Tensor> y) { return y ? x + *y : x; },
                           {torch::rand({2}), torch::rand({2})}),
              ElementsAre("aten::add.Tensor(x, y)"));
}

TEST(TraceInputs, NumbersAreSpecialised) {
  const auto program = [](Tensor x, double scale, bool twice, std::int64_t dim) {
    x = (twice ? x * 2 : x) * scale;
    return x.sum(dim);
  };
  EXPECT_FX_ERROR(traced_calls(program), invalid_argument, HasSubstr("input 1"), HasSubstr("example"));
  const auto gm = symbolic_trace(program, {torch::rand({2, 3}), 0.5, true, 1});
  const Tensor x = torch::rand({2, 3});
  EXPECT_TRUE(same_value(gm->forward(x), program(x, 0.5, true, 1)));
  EXPECT_TRUE(same_value(gm->forward(x, 0.5, true, 1), program(x, 0.5, true, 1)));
  EXPECT_FX_ERROR(gm->run({x, 0.25, true, 1}), execution, HasSubstr("arg_1 has been specialized to have value 0.5"));
}

TEST(TraceInputs, PlaceholdersStayInFront) {
  Tracer tracer;
  const Trace trace =
      tracer.trace([](std::tuple<Tensor, Tensor> a, double b, Tensor c) { return std::get<0>(a) * b + c; },
                   {std::make_tuple(torch::rand({2}), torch::rand({2})), 2.0, torch::rand({2})});
  trace.graph.lint();
  std::vector<std::string> names;
  for (const Node* node : trace.graph.placeholders()) names.push_back(node->name());
  EXPECT_THAT(names, ElementsAre("x", "y", "z"));
}

TEST(TraceInputs, TooManyExamples) {
  EXPECT_FX_ERROR(traced_calls([](Tensor x) { return x; }, {torch::rand({1}), torch::rand({1})}), invalid_argument,
                  HasSubstr("2 example inputs for a program that takes 1"));
  EXPECT_FX_ERROR(traced_calls([](Tensor x) { return x; }, {1.5}), invalid_argument, HasSubstr("a tensor"));
}

TEST(TraceOutputs, Structures) {
  Tracer tracer;
  EXPECT_EQ(output_of(tracer.trace([](Tensor x) { return std::vector<Tensor>{x, x + 1}; })), "[x, add]");
  EXPECT_EQ(output_of(tracer.trace([](Tensor x) { return std::make_pair(x, std::make_tuple(x, 3)); })), "(x, (x, 3))");
  EXPECT_EQ(output_of(tracer.trace([](Tensor x) { return std::array<Tensor, 2>{x, x}; })), "[x, x]");
  EXPECT_EQ(output_of(tracer.trace(
                [](Tensor x) { return std::make_tuple(c10::optional<Tensor>(x), c10::optional<Tensor>(), Tensor()); })),
            "(x, None, None)");
  EXPECT_EQ(output_of(tracer.trace([](Tensor x) { return c10::IValue(std::vector<Tensor>{x}); })), "[x]");
  EXPECT_EQ(output_of(tracer.trace([](Tensor x) {
              return std::unordered_map<std::string, Tensor>{{"b", x}, {"a", x}};
            })),
            "{'a': x, 'b': x}");
}

TEST(TraceOutputs, TensorsFromOutside) {
  const Tensor constant = torch::rand({2});
  Tracer tracer;
  EXPECT_EQ(output_of(tracer.trace([&](Tensor) { return constant; })), "_tensor_constant0");
}

}  // namespace fx::inputs_test
