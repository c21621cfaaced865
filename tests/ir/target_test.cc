// Spellings of targets.
#include <fxgraph/ir/target.h>

#include <gtest/gtest.h>

namespace fx::target_test {

TEST(Target, HasOneCanonicalSpelling) {
  EXPECT_EQ(canonical_target("torch.ops.aten.relu.default"), "aten::relu");
  EXPECT_EQ(canonical_target("aten::relu.default"), "aten::relu");
  EXPECT_EQ(canonical_target("aten::relu"), "aten::relu");
  EXPECT_EQ(canonical_target("torch.ops.aten.add.Tensor"), "aten::add.Tensor");
  EXPECT_EQ(canonical_target("torch.ops.aten.add"), "aten::add");
  EXPECT_EQ(canonical_target("torch.ops.my.ns"), "my::ns");
  EXPECT_EQ(canonical_target("_operator.add"), "operator.add");
  EXPECT_EQ(canonical_target("torch.relu"), "torch.relu");
  EXPECT_EQ(canonical_target("torch.ops."), "torch.ops.");
  EXPECT_EQ(canonical_target("torch.ops.aten."), "torch.ops.aten.");
  EXPECT_EQ(canonical_target("torch.ops.aten"), "torch.ops.aten");
  EXPECT_EQ(canonical_target(""), "");
  for (const char* odd : {"a::b.default.default", "torch.ops.a.b.default.default", "a::", "::", "torch.ops.a..b"}) {
    const Symbol once = canonical_target(odd);
    EXPECT_EQ(canonical_target(once), once) << odd;
  }
}

TEST(Target, PrintsAsTorchOps) {
  EXPECT_EQ(target_text("aten::relu"), "torch.ops.aten.relu.default");
  EXPECT_EQ(target_text("aten::add.Tensor"), "torch.ops.aten.add.Tensor");
  EXPECT_EQ(target_text("operator.add"), "operator.add");
  EXPECT_EQ(packet_of("aten::add.Tensor"), "aten::add");
  EXPECT_EQ(packet_of("torch.add"), "torch.add");
}

TEST(Target, MakesIdentifiers) {
  EXPECT_EQ(to_identifier("a.b c"), "a_b_c");
  EXPECT_EQ(to_identifier("3"), "_3");
  EXPECT_EQ(to_identifier(""), "_unnamed");
  EXPECT_TRUE(is_identifier("_a1"));
  EXPECT_FALSE(is_identifier("1a"));
  EXPECT_FALSE(is_identifier("a-b"));
  EXPECT_FALSE(is_identifier(""));
  EXPECT_EQ(to_snake_case("LayerNorm"), "layer_norm");
  EXPECT_EQ(to_snake_case("ALL_CAPS"), "all_caps");
  EXPECT_EQ(to_snake_case("pascalCase"), "pascal_case");
  EXPECT_EQ(to_snake_case("Conv2d"), "conv2d");
}

TEST(Target, MagicMethodsAreNamedByWhatStandsBetween) {
  EXPECT_EQ(name_stem("__add__"), "add");
  EXPECT_EQ(name_stem("torch.Tensor.__getitem__"), "getitem");
  EXPECT_EQ(name_stem("__a"), "__a");
  EXPECT_EQ(name_stem("a__"), "a__");
  for (const char* nothing : {"__", "___", "____"}) EXPECT_EQ(name_stem(nothing), "_unnamed") << nothing;
}

TEST(Target, KnowsReservedNames) {
  for (const char* name : {"None", "True", "inf", "nan", "len", "class", "torch"}) EXPECT_TRUE(is_reserved_name(name));
  for (const char* name : {"x", "none", "relu", ""}) EXPECT_FALSE(is_reserved_name(name));
}

}  // namespace fx::target_test
