#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/ops/schema.h>

namespace fx::schema_parser_test {

using Base = SchemaType::Base;
using ::testing::HasSubstr;

TEST(SchemaParser, ReadsWhatTheOperatorTakesAndReturns) {
  const OperatorSchema add =
      parse_schema("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  EXPECT_EQ(add.target, "aten::add_.Tensor");
  ASSERT_EQ(add.arguments.size(), 3u);
  EXPECT_EQ(add.num_positional(), 2u);
  EXPECT_EQ(add.arguments[0].name, "self");
  EXPECT_TRUE(add.arguments[0].alias.writes);
  EXPECT_EQ(add.arguments[0].alias.sets, 1u);
  EXPECT_FALSE(add.arguments[1].alias.writes);
  EXPECT_EQ(add.arguments[1].type.base, Base::tensor);
  EXPECT_TRUE(add.arguments[2].keyword_only);
  EXPECT_EQ(add.arguments[2].type.base, Base::scalar);
  EXPECT_EQ(add.arguments[2].default_value, Argument(1));
  ASSERT_EQ(add.returns.size(), 1u);
  EXPECT_TRUE(add.returns[0].alias.writes);
  EXPECT_EQ(add.index_of("alpha"), 2);
  EXPECT_EQ(add.index_of("beta"), -1);
}

struct TypeCase {
  const char* text;
  Base base;
  bool optional, list, optional_elements;
  int fixed_size;
};

TEST(SchemaParser, ReadsEveryKindOfType) {
  const TypeCase cases[] = {
      {"Tensor", Base::tensor, false, false, false, 0},
      {"Tensor?", Base::tensor, true, false, false, 0},
      {"Tensor[]", Base::tensor, false, true, false, 0},
      {"Tensor?[]", Base::tensor, false, true, true, 0},
      {"Tensor?[]?", Base::tensor, true, true, true, 0},
      {"int", Base::integer, false, false, false, 0},
      {"SymInt", Base::integer, false, false, false, 0},
      {"SymInt[]", Base::integer, false, true, false, 0},
      {"SymInt[2]?", Base::integer, true, true, false, 2},
      {"int[1]?", Base::integer, true, true, false, 1},
      {"float[]?", Base::floating, true, true, false, 0},
      {"bool[3]", Base::boolean, false, true, false, 3},
      {"SymBool", Base::boolean, false, false, false, 0},
      {"SymFloat", Base::floating, false, false, false, 0},
      {"str?", Base::string, true, false, false, 0},
      {"ScalarType?", Base::dtype, true, false, false, 0},
      {"Device?", Base::device, true, false, false, 0},
      {"Layout", Base::layout, false, false, false, 0},
      {"MemoryFormat?", Base::memory_format, true, false, false, 0},
      {"Generator?", Base::generator, true, false, false, 0},
      {"Scalar[]", Base::scalar, false, true, false, 0},
      {"number", Base::scalar, false, false, false, 0},
      {"complex", Base::complex, false, false, false, 0},
      {"Storage", Base::other, false, false, false, 0},
      {"Stream", Base::other, false, false, false, 0},
      {"t", Base::other, false, false, false, 0},
      {"t[]", Base::other, false, true, false, 0},
      {"Any", Base::other, false, false, false, 0},
      {"Dict(str, Tensor)", Base::other, false, false, false, 0},
      {"Dict(int, Tensor[])?", Base::other, true, false, false, 0},
      {"(Tensor, int?)", Base::other, false, false, false, 0},
      {"Tensor[][]", Base::other, false, true, false, 0},
      {"Future(t)", Base::other, false, false, false, 0},
      {"__torch__.torch.classes.profiler._RecordFunction", Base::other, false, false, false, 0},
  };
  for (const TypeCase& wanted : cases) {
    const std::string declaration = std::string("my::op(") + wanted.text + " x) -> " + wanted.text + " y";
    const OperatorSchema schema = parse_schema(std::string("my::op(") + wanted.text + " x) -> (" + wanted.text + " y)");
    const SchemaType& type = schema.arguments.at(0).type;
    EXPECT_EQ(type.text, wanted.text);
    EXPECT_EQ(type.base, wanted.base) << wanted.text;
    EXPECT_EQ(type.optional, wanted.optional) << wanted.text;
    EXPECT_EQ(type.list, wanted.list) << wanted.text;
    EXPECT_EQ(type.optional_elements, wanted.optional_elements) << wanted.text;
    EXPECT_EQ(type.fixed_size, wanted.fixed_size) << wanted.text;
    EXPECT_EQ(schema.returns.at(0).type.text, wanted.text);
    if (wanted.text[0] != '(') {
      EXPECT_EQ(schema.str(), declaration);
    }
  }
}

TEST(SchemaParser, ReadsEveryKindOfDefault) {
  const std::pair<const char*, Argument> cases[] = {
      {"int a=-1", Argument(-1)},
      {"int a=9223372036854775807", Argument(INT64_MAX)},
      {"int a=+1", Argument(1)},
      {"int a=9223372036854775808", Argument(9223372036854775808.0)},  // no int: as Python prints it, a float
      {"float a=1e-05", Argument(1e-05)},
      {"float a=1e-5", Argument(1e-05)},
      {"float a=1.", Argument(1.0)},
      {"float a=.5", Argument(0.5)},
      {"float a=1", Argument(1.0)},
      {"float a=0.33333333333333331", Argument(1.0 / 3)},
      {"float a=inf", Argument(std::numeric_limits<double>::infinity())},
      {"float a=+inf", Argument(std::numeric_limits<double>::infinity())},
      {"float a=-inf", Argument(-std::numeric_limits<double>::infinity())},
      {"float? a=None", Argument()},
      {"bool a=True", Argument(true)},
      {"bool a=False", Argument(false)},
      {"str a=\"mean\"", Argument("mean")},
      {"str a='fro'", Argument("fro")},
      {"str a=\"\\\"\\'\\\\\\n\"", Argument("\"'\\\n")},
      {"int[] a=[]", Argument::list({})},
      {"int[2] a=1", Argument::list({1, 1})},
      {"int[] a=[0, 1]", Argument::list({0, 1})},
      {"bool[2] a=[True, False]", Argument::list({true, false})},
      {"int a=Mean", Argument(1)},
      {"MemoryFormat a=contiguous_format", Argument(MemoryFormat{"contiguous_format"})},
      {"MemoryFormat? a=0", Argument(MemoryFormat{"contiguous_format"})},
      {"Layout a=strided", Argument(Layout{"strided"})},
      {"MemoryFormat a=3", Argument(MemoryFormat{"channels_last_3d"})},
      {"MemoryFormat a=4", Argument(4)},  // LibTorch has no such
      {"MemoryFormat a=-1", Argument(-1)},
      {"Layout a=1", Argument(Layout{"sparse_coo"})},
      {"Layout a=7", Argument(Layout{"jagged"})},
      {"Layout a=8", Argument(8)},
      {"ScalarType a=6", Argument(DType::float32)},
      {"ScalarType a=29", Argument(DType::uint64)},
      {"ScalarType a=20", Argument(20)},
      {"ScalarType a=262", Argument(262)},
      {"ScalarType a=long", Argument(DType::int64)},
      {"Device a=\"cpu\"", Argument(Device{"cpu"})},
  };
  for (const auto& [text, value] : cases) {
    const OperatorSchema schema = parse_schema(std::string("my::op(") + text + ") -> ()");
    EXPECT_EQ(schema.arguments.at(0).default_value, value) << text << " read as " << *schema.arguments[0].default_value;
    EXPECT_EQ(parse_schema(schema.str()).arguments.at(0).default_value, value) << schema.str();
  }
}

// LibTorch prints the number of what has a name; another number stays one.
TEST(SchemaParser, ADefaultIsNamedWhereItsNumberHasAName) {
  const std::vector<std::string> formats = {"contiguous_format", "preserve_format", "channels_last",
                                            "channels_last_3d"};
  const std::vector<std::string> layouts = {"strided",    "sparse_coo", "sparse_csr", "mkldnn",
                                            "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
  for (std::int64_t number = -300; number <= 600; ++number) {
    const auto of = [&](const std::string& type) {
      return *parse_schema("my::op(" + type + " a=" + std::to_string(number) + ") -> ()").arguments.at(0).default_value;
    };
    const auto at = static_cast<std::size_t>(number);
    const bool is_type = at < 256 && element_size(static_cast<DType>(number)) > 0;
    EXPECT_EQ(of("ScalarType?"), is_type ? Argument(static_cast<DType>(number)) : Argument(number));
    EXPECT_EQ(of("MemoryFormat"), at < formats.size() ? Argument(MemoryFormat{formats[at]}) : Argument(number));
    EXPECT_EQ(of("Layout"), at < layouts.size() ? Argument(Layout{layouts[at]}) : Argument(number));
    EXPECT_EQ(of("bool"), Argument(number != 0));
    EXPECT_EQ(of("float?"), Argument(static_cast<double>(number)));
    for (const char* type : {"int", "Scalar", "Tensor?", "str", "Device"})
      EXPECT_EQ(of(type), Argument(number)) << type;
  }
}

TEST(SchemaParser, ReadsAliasAnnotations) {
  const OperatorSchema schema = parse_schema(
      "my::op(Tensor(a) v, Tensor(b!)[] w, Tensor(c -> *) x, t[](d! -> e) y, Tensor(*) z, Tensor(g)? g) -> "
      "(Tensor(a|b), t(*))");
  const auto& arguments = schema.arguments;
  EXPECT_EQ(arguments[0].alias.sets, 1u);
  EXPECT_FALSE(arguments[0].alias.writes);
  EXPECT_TRUE(arguments[1].alias.writes);
  EXPECT_EQ(arguments[1].type.text, "Tensor[]");
  EXPECT_TRUE(arguments[2].alias.wildcard_after);
  EXPECT_FALSE(arguments[2].alias.wildcard);
  EXPECT_EQ(arguments[3].alias.sets, 8u);
  EXPECT_EQ(arguments[3].alias.sets_after, 16u);
  EXPECT_TRUE(arguments[4].alias.wildcard);
  EXPECT_TRUE(arguments[5].type.optional);
  EXPECT_EQ(schema.returns[0].alias.sets, 3u);
  EXPECT_TRUE(schema.returns[1].alias.wildcard);
  EXPECT_EQ(schema.str(),
            "my::op(Tensor(a) v, Tensor(b!)[] w, Tensor(c -> *) x, t[](d! -> e) y, Tensor(*) z, Tensor(g)? g) -> "
            "(Tensor(a|b), t(*))");
}

TEST(SchemaParser, WritesSetsAsTheyWereRead) {
  for (const char* text : {"my::op(Tensor(a|b) x) -> Tensor(a|b)", "my::op(Tensor(*|a|c!) x) -> Tensor(*|a)",
                           "my::op(Tensor(a|z) x) -> Tensor(z)", "my::op(Tensor(a -> *|a) x) -> Tensor(*|b -> b)"})
    EXPECT_EQ(parse_schema(text).str(), text);
}

TEST(SchemaParser, ReadsReturnsOfEveryShape) {
  EXPECT_TRUE(parse_schema("my::op() -> ()").returns.empty());
  EXPECT_EQ(parse_schema("my::op() -> Tensor").returns.size(), 1u);
  EXPECT_EQ(parse_schema("my::op() -> (Tensor values, Tensor indices)").returns.at(1).name, "indices");
  EXPECT_EQ(parse_schema("my::op() -> ((str, t)[])").returns.at(0).type.text, "(str, t)[]");
  EXPECT_TRUE(parse_schema("my::op(...) -> ...").varreturns);
  EXPECT_TRUE(parse_schema("my::op(int x, ...) -> ()").varargs);
  for (const char* text :
       {"my::op(...) -> ...", "my::op() -> ((str, t)[])", "my::op(int x, ...) -> ()", "my::op() -> (Tensor, ...)"}) {
    EXPECT_EQ(parse_schema(text).str(), text);
  }
}

TEST(SchemaParser, CanonicalisesTheName) {
  EXPECT_EQ(parse_schema("aten::relu.default(Tensor self) -> Tensor").target, "aten::relu");
  EXPECT_EQ(parse_schema("my_module.scale(Tensor x, float by) -> Tensor").target, "my_module.scale");
  EXPECT_EQ(parse_schema("  my::op ( int  x = 1 )  ->  Tensor ").str(), "my::op(int x=1) -> Tensor");
}

struct BadCase {
  const char* text;
  int column;
  const char* expected;
};

TEST(SchemaParser, SaysWhereAndWhatWasExpected) {
  const BadCase cases[] = {
      {"", 1, "the operator's name"},
      {"aten::add", 10, "'('"},
      {"aten::add(", 11, "a type"},
      {"aten::add(Tensor", 17, "the argument's name"},
      {"aten::add(Tensor self", 22, "')' or ','"},
      {"aten::add(Tensor self)", 23, "'->'"},
      {"aten::add(Tensor self) ->", 26, "a type"},
      {"aten::add(Tensor self) -> Tensor y z", 36, "the end of the declaration"},
      {"aten::add(Tensor self, Tensor self) -> Tensor", 31, "not taken"},
      {"aten::add(*, int a, *, int b) -> Tensor", 22, "one '*' only"},
      {"aten::add(int a=) -> Tensor", 17, "a default value"},
      {"aten::add(int a=no) -> Tensor", 17, "a default value"},
      {"aten::add(int a=1x) -> Tensor", 17, "a number"},
      {"aten::add(float a=1e999) -> Tensor", 19, "a number"},
      {"aten::add(str a=\"x) -> Tensor", 17, "a string that is closed"},
      {"aten::add(int[999] a) -> Tensor", 18, "a list's size"},
      {"aten::add(int[x] a) -> Tensor", 15, "a list's size"},
      {"aten::add(Tensor(A) a) -> Tensor", 18, "an alias set"},
      {"aten::add(Tensor(ab) a) -> Tensor", 18, "an alias set"},
      {"aten::add(Tensor({) a) -> Tensor", 18, "an alias set"},
      {"aten::add(Tensor(a a) -> Tensor", 20, "')'"},
      {"aten::add(int[] a=[1) -> Tensor", 21, "','"},
      {"aten::add(..., int a) -> Tensor", 14, "')' after '...'"},
      {"aten::add() -> (Tensor", 23, "')' or ','"},
  };
  for (const BadCase& bad : cases) {
    try {
      parse_schema(bad.text);
      FAIL() << bad.text << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::syntax);
      EXPECT_EQ(error.location().column, bad.column) << bad.text << "\n" << error.what();
      EXPECT_THAT(error.message(), HasSubstr(bad.expected)) << bad.text;
    }
  }
}

TEST(SchemaParser, RefusesTypesNestedWithoutEnd) {
  const std::string deep = "my::op(" + std::string(100000, '(');
  EXPECT_THROW(parse_schema(deep), Error);
  const auto nested = [](int depth) {
    return "my::op(" + std::string(depth, '(') + "int" + std::string(depth, ')') + " x) -> ()";
  };
  EXPECT_EQ(parse_schema(nested(Argument::kMaxNesting)).str(), nested(Argument::kMaxNesting));
  EXPECT_THROW(parse_schema(nested(Argument::kMaxNesting + 1)), Error);
}

}  // namespace fx::schema_parser_test
