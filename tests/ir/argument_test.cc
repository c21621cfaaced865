// Values that stand in args and kwargs.
#include <fxgraph/ir/argument.h>

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>
#include "tests/support/random.h"

namespace fx::argument_test {

Argument nested(int depth) {
  Argument value = 1;
  for (int i = 0; i < depth; ++i) value = Argument::list({std::vector<Argument>{value}});
  return value;
}

TEST(Argument, IsSixteenBytesAndKnowsItsKind) {
  EXPECT_EQ(sizeof(Argument), 16u);
  EXPECT_EQ(Argument().kind(), ArgumentKind::none);
  EXPECT_EQ(Argument(true).kind(), ArgumentKind::boolean);
  EXPECT_EQ(Argument(1).kind(), ArgumentKind::integer);
  EXPECT_EQ(Argument(std::size_t{1}).kind(), ArgumentKind::integer);
  EXPECT_EQ(Argument(1.0f).kind(), ArgumentKind::floating);
  EXPECT_EQ(Argument("s").kind(), ArgumentKind::string);
  EXPECT_EQ(Argument(std::string("s")).kind(), ArgumentKind::string);
  EXPECT_EQ(Argument(DType::int8).kind(), ArgumentKind::dtype);
  EXPECT_EQ(Argument(Device{"cuda", 1}).kind(), ArgumentKind::device);
  EXPECT_EQ(Argument(std::complex<double>(1, 2)).kind(), ArgumentKind::complex);
  EXPECT_EQ(Argument({1, 2}).kind(), ArgumentKind::list);
  EXPECT_EQ(Argument::tuple({1}).kind(), ArgumentKind::tuple);
}

TEST(Argument, PrintsAsPython) {
  EXPECT_EQ(to_string(Argument()), "None");
  EXPECT_EQ(to_string(Argument(false)), "False");
  EXPECT_EQ(to_string(Argument(std::numeric_limits<std::int64_t>::min())), "-9223372036854775808");
  EXPECT_EQ(to_string(Argument("it's")), "\"it's\"");
  EXPECT_EQ(to_string(Argument("a'b\"c\n\x01")), "'a\\'b\"c\\n\\x01'");
  EXPECT_EQ(to_string(Argument("\x1f\x7f\x80 ~")), "'\\x1f\\x7f\x80 ~'");
  EXPECT_EQ(to_string(Argument(DType::boolean)), "torch.bool");
  EXPECT_EQ(to_string(Argument(Device{"cuda", 1})), "device(type='cuda', index=1)");
  EXPECT_EQ(to_string(Argument(Device{"cpu"})), "device(type='cpu')");
  EXPECT_EQ(to_string(Argument(MemoryFormat{"channels_last"})), "torch.channels_last");
  EXPECT_EQ(to_string(Argument::ellipsis()), "Ellipsis");
  EXPECT_EQ(to_string(Argument::tuple({1})), "(1,)");
  EXPECT_EQ(to_string(Argument::tuple({})), "()");
  EXPECT_EQ(to_string(Argument::list({1})), "[1]");
  EXPECT_EQ(to_string(Argument::dict({"a", 1, 2, Argument::list({})})), "{'a': 1, 2: []}");
  EXPECT_EQ(to_string(Argument::slice(nullptr, 3)), "slice(None, 3, None)");
  EXPECT_EQ(to_string(Argument(std::complex<double>(0, -1))), "complex(0.0, -1.0)");
}

// The texts are Python 3's repr of the same doubles.
TEST(Argument, FloatsPrintAsPythonsRepr) {
  const std::pair<double, const char*> cases[] = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {0.1, "0.1"},
      {1e-05, "1e-05"},
      {0.0001, "0.0001"},
      {123456.789, "123456.789"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {1.5e300, "1.5e+300"},
      {5e-324, "5e-324"},
      {1.0 / 3, "0.3333333333333333"},
      {1e22, "1e+22"},
      {-2.5, "-2.5"},
      {100.0, "100.0"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {INFINITY, "inf"},
      {-INFINITY, "-inf"},
      {NAN, "nan"},
      {123456789012345680.0, "1.2345678901234568e+17"},
  };
  for (const auto& [value, text] : cases) EXPECT_EQ(to_string(Argument(value)), text);
}

TEST(Argument, EqualityIsKindAndValue) {
  EXPECT_EQ(Argument(1), Argument(1));
  EXPECT_NE(Argument(1), Argument(1.0));
  EXPECT_NE(Argument(1), Argument(true));
  EXPECT_NE(Argument(0.0), Argument(-0.0));
  EXPECT_EQ(Argument(NAN), Argument(NAN));
  EXPECT_NE(Argument("a"), Argument::opaque("a"));
  EXPECT_EQ(Argument({1, {2, "x"}}), Argument({1, {2, "x"}}));
  EXPECT_NE(Argument({1, 2}), Argument::tuple({1, 2}));
  EXPECT_NE(Argument({1, 2}), Argument({1, 2, 3}));
  EXPECT_EQ(Argument({1, {2, "x"}}).hash(), Argument({1, {2, "x"}}).hash());
  EXPECT_NE(Argument({1, 2}).hash(), Argument::tuple({1, 2}).hash());
}

TEST(Argument, AskingForAnotherKindNamesBoth) {
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      return error.message();
    }
    return "no error";
  };
  EXPECT_EQ(message([] { Argument("floor").as_int(); }), "argument 'floor' is a str, not a int");
  EXPECT_EQ(message([] { Argument(1.5).as_int(); }), "argument 1.5 is a float, not a int");
  EXPECT_EQ(message([] { Argument(1).node(); }), "argument 1 is a int, not a node");
  EXPECT_EQ(Argument(2).as_float(), 2.0) << "an int is a float where one is asked for";
  EXPECT_EQ(Argument(2).as_complex(), std::complex<double>(2, 0));
  EXPECT_EQ(Argument(2).node_or_null(), nullptr);
}

TEST(Argument, NestsToALimit) {
  EXPECT_NO_THROW(nested(Argument::kMaxNesting));
  EXPECT_THROW(nested(Argument::kMaxNesting + 1), Error);
  EXPECT_THROW(Argument::dict({1}), Error);
}

// However often they share each other: what counts is how many values stand there when all is written out.
TEST(Argument, HoldsSoManyValues) {
  const auto doubled = [](int times) {  // 3 * 2^times - 1 values
    Argument list = Argument::list({1});
    for (int i = 0; i < times; ++i) list = Argument::list({list, list});
    return list;
  };
  const Argument rest = Argument::list(std::vector<Argument>(262145, 7));
  const std::vector<Argument> most = {doubled(22), doubled(20), doubled(18), rest};  // 2^24, with the list of them
  EXPECT_NO_THROW(Argument::list(most));
  std::vector<Argument> more = most;
  more.push_back(Argument::list({}));
  EXPECT_THROW(Argument::list(more), Error);
  EXPECT_THROW(Argument::list({Argument::list(most), Argument::list({})}), Error);
}

TEST(Argument, CopiesAreIndependentOfTheGraph) {
  Argument kept;
  {
    Graph graph;
    Node& x = graph.placeholder("x", Argument({1, {2, 3}}));
    kept = x.arg(0);
    x.set_args({});
  }
  EXPECT_EQ(kept, Argument({1, {2, 3}}));
}

TEST(Argument, CopyingSharesAndMovingEmpties) {
  Argument a = {1, 2};
  Argument b = a;
  EXPECT_EQ(&a.elements()[0], &b.elements()[0]);
  Argument c = std::move(a);
  EXPECT_EQ(c, b);
  EXPECT_TRUE(a.is_none());  // NOLINT: that is the point
  b = b.elements()[1];       // an element outlives its container
  EXPECT_EQ(b, Argument(2));
}

TEST(Argument, OfEachKindIsAssignedToEach) {
  Graph graph;
  Node& x = graph.placeholder("x");
  const auto each = [&] {
    return std::vector<Argument>{Argument(),
                                 x,
                                 1,
                                 2.5,
                                 "s",
                                 Argument::list({x, 2}),
                                 Argument::tuple({}),
                                 std::complex<double>(1, 2),
                                 Argument::dict({"k", Argument::list({1})})};
  };
  const std::size_t count = each().size();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      Argument copied = each()[i], moved = each()[i], self = each()[i];
      {
        Argument from = each()[j];
        copied = from;
        moved = std::move(from);
      }
      self = *&self;
      EXPECT_EQ(copied, each()[j]) << i << " " << j;
      EXPECT_EQ(moved, each()[j]) << i << " " << j;
      EXPECT_EQ(self, each()[i]) << i;
    }
  }
}

TEST(Argument, MapsAndVisitsNodesLeftToRight) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  const Argument value =
      Argument::tuple({x, Argument::list({y, 1, Argument::slice(x, nullptr)}), Argument::dict({"k", y})});
  std::string seen;
  for_each_node(value, [&](Node& node) { seen += node.name(); });
  EXPECT_EQ(seen, "xyxy");
  const Argument mapped = map_nodes(value, [&](Node& node) { return &node == &x ? Argument(7) : Argument(node); });
  EXPECT_EQ(to_string(mapped), "(7, [%y, 1, slice(7, None, None)], {'k': %y})");
  EXPECT_TRUE(names_nodes(x) && names_nodes(value));
  EXPECT_FALSE(names_nodes(1) || names_nodes(Argument({1, {2}, "s"})));
  const Argument doubled = map_leaves(
      Argument({1, {2}, "s"}), [](const Argument& leaf) { return leaf.is_int() ? Argument(2 * leaf.as_int()) : leaf; });
  EXPECT_EQ(to_string(doubled), "[2, [4], 's']");
}

TEST(Argument, ReadsDTypesAndDevices) {
  EXPECT_EQ(parse_dtype("torch.float32"), DType::float32);
  EXPECT_EQ(parse_dtype("long"), DType::int64);
  EXPECT_EQ(parse_dtype("float33"), std::nullopt);
  EXPECT_EQ(to_string(*parse_dtype("half")), "float16");
  EXPECT_EQ(element_size(DType::complex128), 16);
  EXPECT_EQ(parse_device("cuda:1"), (Device{"cuda", 1}));
  EXPECT_EQ(parse_device("cuda:-1"), std::nullopt);
  EXPECT_EQ(parse_device("cuda:"), std::nullopt);
  EXPECT_EQ(parse_device("cuda:1x"), std::nullopt);
  EXPECT_EQ(parse_device("cuda:99999999999"), std::nullopt);
  EXPECT_EQ(parse_device("tpu"), std::nullopt);
  EXPECT_EQ(to_string(Device{"cuda", 1}), "cuda:1");
}

TEST(Argument, AComplexNumberIsOneLeaf) {
  const Argument number(std::complex<double>(1, 2));
  EXPECT_TRUE(number.is_number());
  std::vector<Argument> leaves;
  const auto note = [&](const Argument& leaf) {
    leaves.push_back(leaf);
    return leaf;
  };
  EXPECT_EQ(map_leaves(Argument::list({number, Argument::slice(1, nullptr, 2)}), note),
            Argument::list({number, Argument::slice(1, nullptr, 2)}));
  EXPECT_EQ(leaves, (std::vector<Argument>{number, 1, nullptr, 2}));
}

// As many as it takes to the end of the element that lies furthest, where nobody says how large the storage is.
TEST(TensorInfo, HoldsOnToItsStorage) {
  testing::Random random(1);
  for (int round = 0; round < 2000; ++round) {
    TensorInfo info{.dtype = round % 2 ? DType::float32 : DType::int8};
    std::int64_t furthest = 0;
    for (std::size_t i = random.below(4); i > 0; --i) {
      info.sizes.push_back(random.between(round % 8 ? 1 : 0, 4));
      if (round % 3) info.strides.push_back(random.between(0, 5));
      if (round % 3) furthest += (info.sizes.back() - 1) * info.strides.back();
    }
    const std::int64_t elements = info.strides.empty() || info.numel() == 0 ? info.numel() : furthest + 1;
    EXPECT_EQ(info.held_bytes(), elements * (round % 2 ? 4 : 1));
    for (const std::int64_t whole : {0, 1, 7, 1000}) {
      info.storage_bytes = whole;
      EXPECT_EQ(info.held_bytes(), whole);
    }
  }
}

TEST(TensorInfo, IsReadAsItIsWritten) {
  EXPECT_EQ(parse_tensor_info("0x3")->sizes, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(parse_tensor_info("2x3:int64")->dtype, DType::int64);
  EXPECT_EQ(parse_tensor_info(":int64"), (TensorInfo{.dtype = DType::int64}));
  const std::string most = std::to_string(std::int64_t{1} << 48), more = std::to_string((std::int64_t{1} << 48) + 1);
  for (const std::string& good : {most, "1x" + most, most + "x1", "0x" + most, std::string("16777216x16777216")})
    EXPECT_TRUE(parse_tensor_info(good)) << good;
  for (const std::string& bad :
       {std::string(), std::string(":"), std::string(":no"), std::string("x"), std::string("2x"), std::string("-1x2"),
        std::string("2x-3"), std::string("axb"), std::string("2x3a"), std::string("2x:int64"), std::string("2x3:no"),
        std::string("99999999999999999999"), more, "2x" + most})
    EXPECT_FALSE(parse_tensor_info(bad)) << bad;
}

}  // namespace fx::argument_test
