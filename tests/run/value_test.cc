// Arguments and IValues: each is the other, and conversions are Python's.
#include <fxgraph/run/value.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include <fxgraph/module/graph_module.h>
#include <fxgraph/module/interpreter.h>
#include <fxgraph/support/error.h>

namespace fx::value_test {

// LibTorch 1.13's operators of symbolic sizes read what lies before the sizes.
TEST(Value, SymbolicSizesAreCountedFromBehindToo) {
  const at::Tensor x = at::zeros({2, 3, 4});
  for (const std::int64_t dim : {0, 2, -1, -3}) {
    Graph graph;
    Node& input = graph.placeholder("x");
    graph.output(Argument::list({graph.call_function("aten::sym_size.int", {input, dim}),
                                 graph.call_function("aten::sym_stride.int", {input, dim})}));
    const c10::IValue result = GraphModule(GraphModule::Attributes{}, std::move(graph)).run({x});
    EXPECT_EQ(result.toListRef()[0].toInt(), x.size(dim));
    EXPECT_EQ(result.toListRef()[1].toInt(), x.stride(dim));
  }
}

TEST(Value, LiteralsGoThereAndBack) {
  const std::vector<Argument> literals{
      Argument(),
      Argument(true),
      Argument(-7),
      Argument(2.5),
      Argument(std::numeric_limits<double>::infinity()),
      Argument(std::complex<double>(1, -2)),
      Argument("floor"),
      Argument(Device{"cpu", -1}),
      Argument::list({Argument(1), Argument(2)}),
      Argument::list({Argument(true), Argument(false)}),
      Argument::list({Argument("a"), Argument("b")}),
      Argument::tuple({Argument(1), Argument("x"), Argument()}),
      Argument::list({Argument::list({Argument(1)}), Argument::list({Argument(2), Argument(3)})}),
      Argument::dict({Argument("k"), Argument(1.5)}),
      Argument::ellipsis(),
  };
  for (const Argument& literal : literals) {
    const std::optional<Argument> back = to_argument(to_ivalue(literal));
    ASSERT_TRUE(back.has_value()) << to_string(literal);
    EXPECT_EQ(*back, literal);
  }
}

TEST(Value, NumbersThatStandForDtypesNeedTheirType) {
  const c10::IValue six = to_ivalue(Argument(DType::float32));
  EXPECT_EQ(six.toInt(), static_cast<int>(at::kFloat));
  EXPECT_EQ(*to_argument(six), Argument(6));
  const auto* op = &c10::Dispatcher::singleton().findSchemaOrThrow("aten::to", "dtype").schema();
  const c10::TypePtr dtype = op->arguments()[1].real_type();
  EXPECT_EQ(*to_argument(six, dtype), Argument(DType::float32));
  EXPECT_EQ(*to_argument(c10::IValue(), c10::OptionalType::create(dtype)), Argument());
  const c10::TypePtr format = op->arguments()[4].real_type();
  const Argument channels_last(MemoryFormat{"channels_last"});
  EXPECT_EQ(*to_argument(to_ivalue(channels_last), format), channels_last);
  EXPECT_EQ(to_ivalue(Argument(Layout{"strided"})).toInt(), static_cast<int>(c10::kStrided));
}

TEST(Value, TensorsAreNoLiterals) { EXPECT_FALSE(to_argument(torch::ones(2)).has_value()); }

TEST(Value, ListsTakeTheElementTypeThatIsWanted) {
  const Argument ints = Argument::list({Argument(1), Argument(2)});
  EXPECT_TRUE(to_ivalue(ints).isIntList());
  EXPECT_TRUE(to_ivalue(ints, c10::ListType::ofFloats()).isDoubleList());
  const c10::IValue mixed = to_ivalue(Argument::list({Argument(1), Argument(2.5)}));
  EXPECT_TRUE(mixed.toListRef()[0].isInt() && mixed.toListRef()[1].isDouble()) << "as Python has them";
  EXPECT_TRUE(to_ivalue(Argument::list({Argument(1), Argument(2.5)}), c10::ListType::ofFloats()).isDoubleList());
  EXPECT_TRUE(to_ivalue(Argument::tuple({Argument(1)}), c10::ListType::ofInts()).isIntList());
  EXPECT_TRUE(make_list({torch::ones(1), c10::IValue()}).type()->isSubtypeOf(*c10::ListType::ofOptionalTensors()));
}

TEST(Value, CoercesAsPythonDoes) {
  const auto coerced = [](c10::IValue value, const c10::TypePtr& type, int repeat = 1) {
    coerce(value, *type, repeat);
    return value;
  };
  EXPECT_EQ(coerced(3, c10::FloatType::get()).toDouble(), 3.0);
  EXPECT_TRUE(coerced(3, c10::TensorType::get()).toTensor().unsafeGetTensorImpl()->is_wrapped_number());
  EXPECT_EQ(coerced(torch::tensor(5), c10::IntType::get()).toInt(), 5);
  EXPECT_EQ(coerced(2, c10::ListType::ofInts(), 3).toIntVector(), (std::vector<std::int64_t>{2, 2, 2}));
  EXPECT_TRUE(coerced("cpu", c10::DeviceObjType::get()).isDevice());
  EXPECT_TRUE(coerced(c10::IValue(), c10::FloatType::get()).isNone());
  EXPECT_TRUE(coerced(torch::ones(3), c10::FloatType::get()).isTensor());  // no number: left for the operator to refuse
}

TEST(Value, RefusesWhatNoOperatorTakes) {
  EXPECT_THROW(to_ivalue(Argument::opaque("<object>")), Error);
  EXPECT_THROW(to_ivalue(Argument(Layout{"no_such"})), Error);
}

TEST(Value, NumbersThatAreNoEnumeratorsAreRefusedBeforeLibTorchLooksThemUp) {
  struct Case {
    const char *op, *parameter, *says;
    std::int64_t bound;
  };
  for (const auto& [op, parameter, says, bound] :
       {Case{"aten::sum", "dtype", "is no dtype", static_cast<std::int64_t>(at::ScalarType::NumOptions)},
        Case{"aten::zeros_like", "dtype", "is no dtype", static_cast<std::int64_t>(at::ScalarType::NumOptions)},
        Case{"aten::zeros_like", "layout", "is no layout", static_cast<std::int64_t>(at::Layout::NumOptions)},
        Case{"aten::clone", "memory_format", "is no memory format",
             static_cast<std::int64_t>(at::MemoryFormat::NumOptions)}}) {
    for (const std::int64_t code : {std::int64_t{-1}, bound, bound + 1, std::int64_t{300}, std::int64_t{1} << 40}) {
      Graph graph;
      Node& x = graph.placeholder("x");
      Node& code_node = graph.placeholder("code");
      const bool literal = code % 2 == 0;
      graph.output(graph.call_function(op, {x}, {{parameter, literal ? Argument(code) : Argument(code_node)}}));
      for (const bool planned : {true, false}) {
        GraphModule module(graph.clone());
        const std::vector<c10::IValue> inputs{torch::ones(2), code};
        EXPECT_THAT([&] { planned ? module.run(inputs) : Interpreter(module).run(inputs); },
                    ::testing::ThrowsMessage<Error>(::testing::HasSubstr(std::to_string(code) + " " + says)))
            << op << " " << parameter;
      }
    }
  }
}

TEST(Value, QuotientsThatAProcessorHasNotAreErrors) {
  for (const char* op : {"operator.mod", "operator.floordiv", "aten::remainder.int", "aten::floordiv.int"}) {
    for (const auto& [a, b] :
         {std::pair<std::int64_t, std::int64_t>{3, 0}, {0, 0}, {std::numeric_limits<std::int64_t>::min(), -1}}) {
      Graph graph;
      Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
      graph.output(graph.call_function(op, {x, y}));
      GraphModule module(std::move(graph));
      EXPECT_THROW(module.run({a, b}), Error) << op << " " << a << " " << b;
      EXPECT_THROW(Interpreter(module).run({a, b}), Error) << op << " " << a << " " << b;
    }
  }
}

TEST(Value, FindsTensorsInContainers) {
  const c10::IValue value = c10::ivalue::Tuple::create(
      {torch::ones({2, 3}), 5, c10::List<at::Tensor>({torch::ones({4}, torch::kLong).expand({2, 4})})});
  const TensorInfos infos = tensor_infos(value);
  ASSERT_EQ(infos.size(), 2u);
  EXPECT_EQ(infos[0].sizes, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(infos[1].dtype, DType::int64);
  EXPECT_EQ(infos[1].strides, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(to_string(infos[0].device), "cpu");
}

TEST(Value, ErrorsAreOneLineWithoutFrames) {
  try {
    torch::ones({2}).view({3});
    FAIL();
  } catch (const std::exception& error) {
    const std::string line = first_line(error);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_THAT(line, ::testing::HasSubstr("invalid for input of size 2"));
  }
}

}  // namespace fx::value_test
