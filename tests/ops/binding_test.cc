#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/element.h>

namespace fx::binding_test {

using ::testing::HasSubstr;

class Binding : public ::testing::Test {
 protected:
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
};

// What every argument is bound to, as text.
std::string bound(const OperatorSchema& schema, ArgumentSpan args, KwargSpan kwargs) {
  const Call call(schema, args, kwargs);
  std::string text;
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    const Argument* value = call.argument(i);
    text += (i ? ", " : "") + schema.arguments[i].name.str() + "=" + (value ? to_string(*value) : "missing");
  }
  return text;
}

TEST_F(Binding, SpellingsOfOneCallBindAlike) {
  const OperatorSchema& add = *find_overload("aten::add.Tensor");
  const std::string wanted = "self=%x, other=%y, alpha=1";
  EXPECT_EQ(bound(add, {x, y}, {}), wanted);
  EXPECT_EQ(bound(add, {x}, {{"other", y}}), wanted);
  EXPECT_EQ(bound(add, {}, {{"other", y}, {"self", x}}), wanted);
  EXPECT_EQ(bound(add, {x, y}, {{"alpha", 1}}), wanted);
  EXPECT_EQ(bound(add, {x, y}, {{"alpha", 2}}), "self=%x, other=%y, alpha=2");
  EXPECT_EQ(bound(add, {x}, {}), "self=%x, other=missing, alpha=1");
}

TEST_F(Binding, KeywordOnlyArgumentsAreNeverPositional) {
  const OperatorSchema& add = *find_overload("aten::add.Tensor");
  EXPECT_EQ(bound(add, {x, y, 5}, {}), "self=%x, other=%y, alpha=1");
}

TEST_F(Binding, OfANodeByName) {
  const Call conv = call_of(graph.call_function("aten::conv2d", {x, y}, {{"stride", 2}}));
  EXPECT_EQ(*conv.argument("stride"), Argument(2));
  EXPECT_EQ(*conv.argument("weight"), Argument(y));
  EXPECT_EQ(*conv.argument("groups"), Argument(1));
  EXPECT_EQ(conv.argument("no_such"), nullptr);
  EXPECT_EQ(call_of(x).argument("self"), nullptr);
  const Call in_python = call_of(graph.call_function("torch.conv2d", {x, y}));
  EXPECT_EQ(*in_python.argument("weight"), Argument(y));
  const Call packet = call_of(graph.call_function("aten::add", {x, y}));
  EXPECT_EQ(*packet.argument("alpha"), Argument(1)) << "the overload is resolved";
}

TEST_F(Binding, ValuesAreComparedAsTheirTypeSays) {
  const auto same = [](const char* type, const Argument& a, const Argument& b) {
    const OperatorSchema schema = parse_schema(std::string("my::op(") + type + " a) -> ()");
    const bool forth = same_argument(schema.arguments[0].type, a, b);
    EXPECT_EQ(forth, same_argument(schema.arguments[0].type, b, a));
    return forth;
  };
  EXPECT_TRUE(same("int[2]", 1, Argument::list({1, 1})));
  EXPECT_TRUE(same("int[2]", Argument::tuple({1, 1}), Argument::list({1, 1})));
  EXPECT_FALSE(same("int[2]", 1, Argument::list({1, 2})));
  EXPECT_FALSE(same("int[2]", 1, Argument::list({1, 1, 1})));
  EXPECT_FALSE(same("int[]", 1, Argument::list({1})));
  EXPECT_TRUE(same("float", 1, 1.0));
  EXPECT_FALSE(same("Scalar", 1, 1.0)) << "an int and a float give different dtypes";
  EXPECT_FALSE(same("float", 1.0, 2.0));
  EXPECT_FALSE(same("float", 0.0, -0.0));
  EXPECT_FALSE(same("int?", 0, Argument()));
  EXPECT_FALSE(same("int[2]?", Argument(), Argument::list({1, 1})));
  EXPECT_FALSE(same("int[2]?", Argument(), Argument::list({})));
  EXPECT_TRUE(same("float[]", Argument::list({1, 2}), Argument::list({1.0, 2.0})));
  EXPECT_TRUE(same("str", "a", "a"));
}

// One value stands for as many copies as the list has by its type, and for no list of any length.
TEST_F(Binding, ANumberStandsForItsCopiesAlone) {
  for (int size = 0; size < 4; ++size) {
    const std::string type = size == 0 ? "int[]" : "int[" + std::to_string(size) + "]";
    const OperatorSchema schema = parse_schema("my::op(" + type + " a) -> ()");
    for (int length = 0; length < 5; ++length) {
      for (int other = 0; other <= length; ++other) {  // where another number stands; at the end: nowhere
        std::vector<Argument> many(static_cast<std::size_t>(length), 7);
        if (other < length) many[static_cast<std::size_t>(other)] = 8;
        const bool same = size > 0 && length == size && other == length;
        EXPECT_EQ(same_argument(schema.arguments[0].type, 7, Argument::list(many)), same) << type << " " << length;
        EXPECT_EQ(same_argument(schema.arguments[0].type, Argument::tuple(many), 7), same) << type << " " << length;
      }
    }
  }
}

TEST_F(Binding, CallsThatFitHaveNoComplaint) {
  const OperatorSchema& add = *find_overload("aten::add.Tensor");
  EXPECT_EQ(check_call(add, {x, y}, {{"alpha", 2.5}}), std::nullopt);
  EXPECT_EQ(check_call(add, {x, 1}, {}), std::nullopt) << "a number stands for a tensor";
  const OperatorSchema& conv = *find_overload("aten::conv2d");
  EXPECT_EQ(check_call(conv, {x, y, nullptr, Argument::list({1, 1}), 0}, {}), std::nullopt);
  EXPECT_EQ(check_call(conv, {x, y, nullptr, Argument::list({Argument(x), 1})}, {}), std::nullopt)
      << "nodes fit everything";
  EXPECT_EQ(check_call(*find_overload("aten::to.dtype"), {x, DType::float16}, {}), std::nullopt);
  EXPECT_EQ(check_call(*find_overload("aten::to.dtype"), {x, 6}, {}), std::nullopt) << "TorchScript's dtypes are ints";
  EXPECT_EQ(check_call(*find_overload("prim::Print"), {x, 1, "text"}, {}), std::nullopt) << "varargs";
  EXPECT_EQ(check_call(*find_overload("aten::index.Tensor"), {x, Argument::list({Argument(), Argument(y)})}, {}),
            std::nullopt);
}

TEST_F(Binding, CallsThatDoNotFitSayWhy) {
  const OperatorSchema& add = *find_overload("aten::add.Tensor");
  const OperatorSchema& conv = *find_overload("aten::conv2d");
  EXPECT_EQ(check_call(add, {x, y, 1}, {}), "aten::add.Tensor takes 2 positional arguments, got 3");
  EXPECT_EQ(check_call(add, {x, y}, {{"beta", 1}}),
            "aten::add.Tensor has no argument 'beta'; it takes self, other, alpha");
  EXPECT_EQ(check_call(add, {x, y}, {{"other", y}}), "aten::add.Tensor is given argument 'other' twice");
  EXPECT_EQ(check_call(add, {x}, {}), "aten::add.Tensor is missing argument 'other' (Tensor)");
  EXPECT_EQ(check_call(add, {x, "y"}, {}), "aten::add.Tensor wants Tensor for argument 'other', got str 'y'");
  EXPECT_THAT(check_call(add, {x, Argument()}, {}).value(), HasSubstr("wants Tensor for argument 'other', got"));
  EXPECT_THAT(check_call(conv, {x, y, nullptr, Argument::list({1.5, 1})}, {}).value(), HasSubstr("'stride'"));
  EXPECT_THAT(check_call(conv, {x, y}, {{"groups", true}, {"padding", "same"}}).value(), HasSubstr("'padding'"));
  EXPECT_THAT(check_call(*find_overload("aten::relu"), {Argument::list({Argument(x)})}, {}).value(),
              HasSubstr("wants Tensor"));
}

TEST_F(Binding, ElementsOfWhatIsWrittenOut) {
  for (const Argument& whole : {Argument::list({1, x, "s"}), Argument::tuple({1, x, "s"})}) {
    for (const auto& [index, found] :
         {std::pair(0, Argument(1)), std::pair(1, Argument(x)), std::pair(2, Argument("s")),
          std::pair(-1, Argument("s")), std::pair(-3, Argument(1))})
      EXPECT_EQ(element_of(whole, index), found) << index;
    for (const int index : {3, -4, 100}) EXPECT_EQ(element_of(whole, index), std::nullopt) << index;
  }
  for (const Argument& other : {Argument(x), Argument(3), Argument(), Argument::dict({"k", 1})})
    EXPECT_EQ(element_of(other, 0), std::nullopt) << other;
}

}  // namespace fx::binding_test
