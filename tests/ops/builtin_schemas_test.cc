#include <fxgraph/ops/records/builtin_schemas.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <fxgraph/ops/schema.h>

namespace fx::builtin_schemas_test {

TEST(BuiltinSchemas, AllParseAndAreWrittenNormalised) {
  for (const std::string_view declaration : internal::builtin_declarations()) {
    EXPECT_EQ(parse_schema(declaration).str(), declaration);
  }
}

TEST(BuiltinSchemas, AreUniqueAndSortedByOperator) {
  std::set<std::string> seen;
  std::string last;
  for (const std::string_view declaration : internal::builtin_declarations()) {
    const Symbol target = parse_schema(declaration).target;
    EXPECT_TRUE(seen.insert(target.str()).second) << target;
    const std::string packet(packet_of(target.view()));
    EXPECT_LE(last, packet);
    last = packet;
  }
}

TEST(BuiltinSchemas, AreFoundByTargetAndByPacket) {
  const std::vector<Symbol> targets = builtin_targets();
  EXPECT_GT(targets.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(targets.begin(), targets.end()));
  for (const Symbol target : targets) {
    const OperatorSchema* schema = find_overload(target);
    ASSERT_NE(schema, nullptr) << target;
    EXPECT_EQ(schema->target, target);
    const std::vector<const OperatorSchema*> overloads = overloads_of(Symbol(packet_of(target.view())));
    EXPECT_EQ(std::count(overloads.begin(), overloads.end(), schema), 1) << target;
  }
}

TEST(BuiltinSchemas, KnowTheOperatorsThatModelsAreMadeOf) {
  for (const char* target : {"aten::conv2d",
                             "aten::linear",
                             "aten::batch_norm",
                             "aten::layer_norm",
                             "aten::relu_",
                             "aten::add.Tensor",
                             "aten::add.Scalar",
                             "aten::add_.Tensor",
                             "aten::add.out",
                             "aten::matmul",
                             "aten::addmm",
                             "aten::bmm",
                             "aten::baddbmm",
                             "aten::cat",
                             "aten::stack",
                             "aten::split.Tensor",
                             "aten::chunk",
                             "aten::unbind.int",
                             "aten::topk",
                             "aten::sort",
                             "aten::max.dim",
                             "aten::embedding",
                             "aten::lstm.input",
                             "aten::gru.input",
                             "aten::dropout",
                             "aten::softmax.int",
                             "aten::_softmax",
                             "aten::max_pool2d",
                             "aten::size",
                             "aten::size.int",
                             "aten::len.t",
                             "aten::floordiv.int",
                             "aten::mul.int",
                             "aten::add.int",
                             "aten::eq.int",
                             "aten::__getitem__.t",
                             "aten::Int.Tensor",
                             "aten::copy_",
                             "aten::index.Tensor",
                             "aten::index_put_",
                             "aten::gather",
                             "aten::scatter_.src",
                             "aten::rand",
                             "aten::randn",
                             "aten::multinomial",
                             "aten::normal_",
                             "aten::rand_like",
                             "aten::to.dtype",
                             "aten::contiguous",
                             "aten::view",
                             "aten::permute",
                             "aten::expand",
                             "aten::_assert_async",
                             "aten::warn",
                             "prim::RaiseException",
                             "aten::group_norm",
                             "aten::arange",
                             "aten::full",
                             "aten::upsample_nearest2d",
                             "aten::grid_sampler",
                             "aten::einsum",
                             "aten::where.self",
                             "aten::masked_fill.Scalar",
                             "aten::clamp",
                             "aten::sum.dim_IntList",
                             "aten::mean.dim",
                             "aten::_to_copy",
                             "aten::scaled_dot_product_attention",
                             "aten::native_batch_norm",
                             "aten::native_layer_norm",
                             "aten::item",
                             "aten::slice.Tensor",
                             "aten::select.int",
                             "aten::as_strided",
                             "aten::_convolution",
                             "aten::adaptive_avg_pool2d"}) {
    EXPECT_NE(find_overload(Symbol(target)), nullptr) << target;
  }
}

TEST(BuiltinSchemas, AreFoundInEverySpelling) {
  const OperatorSchema* relu = find_overload("aten::relu");
  ASSERT_NE(relu, nullptr);
  EXPECT_EQ(find_overload("torch.ops.aten.relu.default"), relu);
  EXPECT_EQ(find_overload("aten::relu.default"), relu);
  EXPECT_EQ(find_overload("torch.relu"), nullptr);
  EXPECT_EQ(find_overload("aten::no_such_operator"), nullptr);
  EXPECT_EQ(find_overload(""), nullptr);
  EXPECT_TRUE(overloads_of("aten::no_such_operator").empty());
}

}  // namespace fx::builtin_schemas_test
