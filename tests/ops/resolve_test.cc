#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/call.h>

namespace fx::resolve_test {

using ::testing::HasSubstr;

class Resolve : public ::testing::Test {
 protected:
  std::string resolve(const char* packet, ArgumentSpan args, KwargSpan kwargs = {}) {
    std::string why;
    const OperatorSchema* schema = resolve_overload(packet, args, kwargs, &why);
    EXPECT_EQ(schema == nullptr, !why.empty());
    return schema ? schema->target.str() : "none";
  }

  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
};

TEST_F(Resolve, LiteralsDecide) {
  EXPECT_EQ(resolve("aten::add", {x, y}), "aten::add.Tensor");
  EXPECT_EQ(resolve("aten::add", {x, 1}), "aten::add.Scalar");
  EXPECT_EQ(resolve("aten::add", {x, 1.5}), "aten::add.Scalar");
  EXPECT_EQ(resolve("aten::add", {1, x}), "aten::add.Tensor") << "a node counts as a tensor";
  EXPECT_EQ(resolve("aten::add", {1, 2}), "aten::add.int");
  EXPECT_EQ(resolve("aten::add", {1, 2.5}), "aten::add.int_float");
  EXPECT_EQ(resolve("aten::add", {x, y}, {{"out", x}}), "aten::add.out");
  EXPECT_EQ(resolve("aten::pow", {x, 2}), "aten::pow.Tensor_Scalar");
  EXPECT_EQ(resolve("aten::pow", {2, x}), "aten::pow.Scalar");
  EXPECT_EQ(resolve("aten::pow", {x, y}), "aten::pow.Tensor_Tensor");
  EXPECT_EQ(resolve("aten::where", {x, y, 0.0}), "aten::where.ScalarOther");
  EXPECT_EQ(resolve("aten::where", {x, y, y}), "aten::where.self");
  EXPECT_EQ(resolve("aten::where", {x}), "aten::where");
  EXPECT_EQ(resolve("aten::clamp", {x, 0, 1}), "aten::clamp");
  EXPECT_EQ(resolve("aten::clamp", {x, y}), "aten::clamp.Tensor");
  EXPECT_EQ(resolve("aten::div", {x, y}, {{"rounding_mode", "floor"}}), "aten::div.Tensor_mode");
  EXPECT_EQ(resolve("aten::div", {x, 2}, {{"rounding_mode", "floor"}}), "aten::div.Scalar_mode");
}

TEST_F(Resolve, DimensionsAndLists) {
  EXPECT_EQ(resolve("aten::sum", {x}), "aten::sum");
  EXPECT_EQ(resolve("aten::sum", {x, 1}), "aten::sum.dim_IntList");
  EXPECT_EQ(resolve("aten::sum", {x, Argument::list({1, 2})}), "aten::sum.dim_IntList");
  EXPECT_EQ(resolve("aten::sum", {x, Argument::tuple({1, 2}), true}), "aten::sum.dim_IntList");
  EXPECT_EQ(resolve("aten::max", {x}), "aten::max");
  EXPECT_EQ(resolve("aten::max", {x, 1}), "aten::max.dim");
  EXPECT_EQ(resolve("aten::max", {x, y}), "aten::max.other");
  EXPECT_EQ(resolve("aten::transpose", {x, 0, 1}), "aten::transpose.int");
  EXPECT_EQ(resolve("aten::size", {x}), "aten::size");
  EXPECT_EQ(resolve("aten::size", {x, 0}), "aten::size.int");
  EXPECT_EQ(resolve("aten::split", {x, 2}), "aten::split.Tensor");
  EXPECT_EQ(resolve("aten::split", {x, Argument::list({1, 2})}), "aten::split.sizes");
  EXPECT_EQ(resolve("aten::flatten", {x, 1}), "aten::flatten.using_ints");
  EXPECT_EQ(resolve("aten::squeeze", {x}), "aten::squeeze");
  EXPECT_EQ(resolve("aten::squeeze", {x, 1}), "aten::squeeze.dim");
  EXPECT_EQ(resolve("aten::std", {x, true}), "aten::std");
  EXPECT_EQ(resolve("aten::std", {x, 1}), "aten::std.dim");
  EXPECT_EQ(resolve("aten::cat", {Argument::list({Argument(x), Argument(y)}), 1}), "aten::cat");
  EXPECT_EQ(resolve("aten::mean", {x, Argument::list({2, 3})}), "aten::mean.dim");
  EXPECT_EQ(resolve("aten::select", {x, 1, 0}), "aten::select.int");
  EXPECT_EQ(resolve("aten::index", {x, Argument::list({Argument(y)})}), "aten::index.Tensor");
}

TEST_F(Resolve, DtypesDevicesAndStrings) {
  EXPECT_EQ(resolve("aten::to", {x, DType::float16}), "aten::to.dtype");
  EXPECT_EQ(resolve("aten::to", {x, "cuda"}), "aten::to.prim_Device");
  EXPECT_EQ(resolve("aten::to", {x, Device{"cpu"}, DType::float16}), "aten::to.device");
  EXPECT_EQ(resolve("aten::to", {x, y}), "aten::to.other");
  EXPECT_EQ(resolve("aten::view", {x, Argument::list({2, -1})}), "aten::view");
  EXPECT_EQ(resolve("aten::view", {x, DType::int32}), "aten::view.dtype");
  EXPECT_EQ(resolve("aten::conv2d", {x, y, nullptr, 1, "same"}), "aten::conv2d.padding");
  EXPECT_EQ(resolve("aten::conv2d", {x, y, nullptr, 1, 1}), "aten::conv2d");
  EXPECT_EQ(resolve("aten::softmax", {x, 1}), "aten::softmax.int");
}

TEST_F(Resolve, OnlyAnOpaqueValueIsAGenerator) {
  const Argument sizes = Argument::list({2});
  EXPECT_EQ(resolve("aten::randn", {sizes}, {{"generator", 3}}), "none");
  EXPECT_EQ(resolve("aten::randn", {sizes}, {{"generator", "seed"}}), "none");
}

TEST_F(Resolve, KnowsWhatNodesYield) {
  Node& n = graph.call_method("size", {x, 0});
  EXPECT_EQ(resolve("aten::add", {x, n}), "aten::add.Scalar");
  EXPECT_EQ(resolve("aten::add", {n, 1}), "aten::add.int");
  Node& shape = graph.call_function("builtins.getattr", {x, "shape"});
  Node& width = graph.call_function("operator.getitem", {shape, -1});
  Node& half = graph.call_function("operator.floordiv", {width, 2});
  EXPECT_EQ(resolve("aten::mul", {y, half}), "aten::mul.Scalar");
  EXPECT_EQ(resolve("aten::split", {x, half}), "aten::split.Tensor");
  EXPECT_EQ(resolve("aten::view", {x, shape}), "aten::view");
  Node& dtype = graph.call_function("builtins.getattr", {y, "dtype"});
  EXPECT_EQ(resolve("aten::to", {x, dtype}), "aten::to.dtype");
  Node& length = graph.call_function("aten::size.int", {x, 0});
  EXPECT_EQ(resolve("aten::mul", {length, 2}), "aten::mul.int");
  Node& pieces = graph.call_function("aten::chunk", {x, 2});
  Node& piece = graph.call_function("operator.getitem", {pieces, 0});
  EXPECT_EQ(resolve("aten::mul", {piece, 2}), "aten::mul.Scalar");
}

TEST_F(Resolve, ArithmeticOfNumbersIsANumberAndOfNothingElse) {
  using Base = SchemaType::Base;
  Node& flag = graph.placeholder("flag");
  flag.meta().set(meta_key::kType, std::string("bool"));
  struct Case {
    Argument operand;
    bool known;
    Base base;
  };
  for (const Case& one :
       {Case{1, true, Base::integer}, Case{true, true, Base::integer}, Case{1.5, true, Base::floating},
        Case{flag, true, Base::integer}, Case{x, false, Base::other}, Case{"a", false, Base::other},
        Case{Argument(), false, Base::other}, Case{Argument::list({1}), false, Base::other}}) {
    for (const bool first : {true, false}) {
      const std::vector<Argument> args = {first ? one.operand : Argument(2), first ? Argument(2) : one.operand};
      const internal::ArgumentType kind = internal::argument_type(graph.call_function("operator.add", args));
      EXPECT_EQ(kind.known, one.known) << to_string(one.operand) << first;
      EXPECT_EQ(kind.base, one.base) << to_string(one.operand) << first;
      EXPECT_FALSE(kind.list) << to_string(one.operand);
    }
  }
}

// What an operator returns is of its type's kind, but None may be returned instead of anything optional.
TEST_F(Resolve, ResultsAreOfTheKindThatTheirTypeSays) {
  using Base = SchemaType::Base;
  constexpr std::pair<const char*, Base> kBases[] = {
      {"Tensor", Base::tensor}, {"int", Base::integer}, {"float", Base::floating},   {"bool", Base::boolean},
      {"Scalar", Base::scalar}, {"str", Base::string},  {"Future(int)", Base::other}};
  const auto kind_of = [&](const std::string& returned) {
    const OperatorSchema& schema = register_schema("resolve_test::give(Tensor x) -> " + returned);
    return internal::argument_type(graph.call_function(schema.target, {x}));
  };
  for (const auto& [name, base] : kBases) {
    for (const bool list : {false, true}) {
      const std::string type = std::string(name) + (list ? "[]" : "");
      const internal::ArgumentType wanted =
          base == Base::other && !list ? internal::kUnknownType : internal::ArgumentType{base, list};
      EXPECT_EQ(kind_of(type), wanted) << type;
      EXPECT_EQ(kind_of(type + "?"), internal::kUnknownType) << type;
      EXPECT_EQ(kind_of("(" + type + ", " + type + ")"), internal::kUnknownType) << type;
      EXPECT_EQ(kind_of("()"), internal::kUnknownType);
    }
  }
}

// A program may declare an operator anew, as one of any number of arguments or without a required one.
TEST_F(Resolve, TakesDeclarationsInPlaceOfThoseThatAreBuiltIn) {
  const std::string builtin = find_overload("aten::mish")->str();
  const auto called = [&](const Node& node) {
    const Call call = call_of(node);
    Graph copy = graph.clone();
    normalize_operators(copy);
    for (const Node& made : copy.nodes()) {
      if (made.name() == node.name())
        return call ? call.schema().str() + " of " + std::to_string(made.args().size()) : "none";
    }
    return std::string("lost");
  };
  const std::string any = "aten::mish(...) -> Tensor", some = "aten::mish(Tensor? self=None) -> Tensor";
  register_schema(any);
  EXPECT_EQ(called(graph.call_method("mish", {x})), any + " of 1");
  EXPECT_EQ(called(graph.call_method("mish", {x, y})), any + " of 2");
  EXPECT_EQ(called(graph.call_function("torch.nn.functional.mish", {x})), any + " of 1");
  register_schema(some);
  EXPECT_EQ(called(graph.call_function("torch.nn.functional.mish", {x})), some + " of 1");
  EXPECT_EQ(called(graph.call_function("torch.nn.functional.mish", {nullptr})), some + " of 0");
  register_schema(builtin);
  EXPECT_EQ(called(graph.call_method("mish", {x})), builtin + " of 1");
  EXPECT_EQ(called(graph.call_method("mish", {x, y})), "none");
}

TEST_F(Resolve, AttributesAreThoseOfGetattrAlone) {
  const auto known = [&](const char* function) {
    return internal::argument_type(graph.call_function(function, {x, "ndim"})).known;
  };
  EXPECT_TRUE(known("builtins.getattr"));
  EXPECT_FALSE(known("mine.look_up"));
}

TEST_F(Resolve, BelievesAnnotations) {
  Node& n = graph.placeholder("n");
  n.meta().set(meta_key::kType, std::string("int"));
  EXPECT_EQ(resolve("aten::mul", {x, n}), "aten::mul.Scalar");
}

TEST_F(Resolve, SaysWhatWasTried) {
  std::string why;
  EXPECT_EQ(resolve_overload("aten::relu", {x, y}, {}, &why), nullptr);
  EXPECT_EQ(why, "no overload of aten::relu fits: aten::relu takes 1 positional argument, got 2");
  EXPECT_EQ(resolve_overload("aten::no_such", {x}, {}, &why), nullptr);
  EXPECT_EQ(why, "no operator aten::no_such is known");
  EXPECT_EQ(resolve_overload("aten::no_such", {x}, {}), nullptr);
  EXPECT_EQ(resolve_overload("aten::transpose", {x, "a"}, {}, &why), nullptr);
  EXPECT_THAT(why, HasSubstr("aten::transpose.int"));
}

// Integer arithmetic as long as one likes must neither recurse nor take time for one question.
TEST_F(Resolve, LongChainsAreCheap) {
  Node* n = &graph.call_method("size", {x, 0});
  for (int i = 0; i < 100000; ++i) n = &graph.call_function("operator.add", {*n, *n});
  EXPECT_EQ(resolve("aten::mul", {y, *n}), "aten::mul.Tensor") << "too far back to be known: a tensor";
}

}  // namespace fx::resolve_test
