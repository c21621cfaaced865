#include <gtest/gtest.h>

#include <fxgraph/ops/schema.h>

namespace fx::traits_test {

std::string traits_of(const char* target) {
  const OperatorSchema* schema = find_overload(target);
  if (!schema) return "no schema";
  const OperatorTraits& traits = schema->traits;
  std::string names;
  const auto add = [&](bool has, const char* name) {
    if (has) names += (names.empty() ? "" : " ") + std::string(name);
  };
  add(traits.writes, "writes");
  add(traits.random, "random");
  add(traits.side_effect, "side_effect");
  add(traits.view, "view");
  add(traits.pointwise, "pointwise");
  add(traits.reduction, "reduction");
  add(traits.commutative, "commutative");
  add(traits.zeros_by_order, "zeros_by_order");
  add(traits.reads_strides, "reads_strides");
  add(traits.reads_storage, "reads_storage");
  return names;
}

// A declaration that is made up: what the tables say goes by the names in it, wherever they stand.
TEST(Traits, GoByNames) {
  for (const char* text : {"aten::dropout(Tensor input, float p, bool train) -> Tensor",
                           "aten::dropout(bool train, Tensor input, float p) -> Tensor",
                           "aten::dropout(float p, bool train, Tensor input) -> Tensor"})
    EXPECT_EQ(parse_schema(text).switches.size(), 2u) << text;
  EXPECT_TRUE(parse_schema("aten::_assert_async(Tensor x) -> Tensor").traits.side_effect);
  EXPECT_TRUE(parse_schema("prim::_assert_async(Tensor x) -> Tensor").traits.side_effect);
  EXPECT_FALSE(parse_schema("mine::_assert_async(Tensor x) -> Tensor").traits.side_effect);
}

TEST(Traits, ComeFromTheDeclarationAndTheTables) {
  const std::pair<const char*, const char*> cases[] = {
      {"aten::add.Tensor", "pointwise commutative"},
      {"aten::add.Scalar", "pointwise"},
      {"aten::add_.Tensor", "writes pointwise"},
      {"aten::add.out", "writes pointwise commutative"},
      {"aten::add.int", "commutative"},
      {"aten::add.t", ""},
      {"aten::sub.Tensor", "pointwise"},
      {"aten::relu", "pointwise"},
      {"aten::relu_", "writes pointwise"},
      {"aten::gelu", "pointwise"},
      {"aten::where.self", "pointwise"},
      {"aten::where", ""},
      {"aten::max", "reduction"},
      {"aten::max.dim", "reduction"},
      {"aten::max.other", "pointwise commutative zeros_by_order"},
      {"aten::as_strided", "view reads_storage"},
      {"aten::as_strided_", "writes reads_storage"},
      {"aten::stride.int", "reads_strides"},
      {"aten::is_contiguous.memory_format", "reads_strides"},
      {"aten::storage_offset", "reads_storage"},
      {"aten::view", "view"},
      {"aten::sum.dim_IntList", "reduction"},
      {"aten::linalg_vector_norm", "reduction"},
      {"aten::softmax.int", ""},
      {"aten::matmul", ""},
      {"aten::conv2d", ""},
      {"aten::view", "view"},
      {"aten::reshape", "view"},
      {"aten::contiguous", "view"},
      {"aten::to.dtype", "view"},
      {"aten::split.Tensor", "view"},
      {"aten::chunk", "view"},
      {"aten::detach", "view"},
      {"aten::copy_", "writes pointwise"},
      {"aten::fill_.Scalar", "writes pointwise"},
      {"aten::zero_", "writes pointwise"},
      {"aten::index_put_", "writes"},
      {"aten::rand", "random"},
      {"aten::randn_like", "random"},
      {"aten::bernoulli", "random"},
      {"aten::bernoulli_.float", "writes random"},
      {"aten::normal_", "writes random"},
      {"aten::dropout", "random"},
      {"aten::dropout_", "writes random"},
      {"aten::lstm.input", "random"},
      {"aten::batch_norm", "writes"},
      {"aten::native_batch_norm", "writes"},
      {"aten::_assert_async", "side_effect"},
      {"aten::warn", "side_effect"},
      {"aten::manual_seed", "side_effect"},
      {"prim::RaiseException", "side_effect"},
      {"prim::Print", "side_effect"},
      {"profiler::_record_function_enter_new", "side_effect"},
      {"aten::append.t", "writes"},
      {"aten::size.int", ""},
  };
  for (const auto& [target, traits] : cases) EXPECT_EQ(traits_of(target), traits) << target;
}

TEST(Traits, HiddenAliasesAndWritesAreMarked) {
  const OperatorSchema* dropout = find_overload("aten::dropout");
  EXPECT_TRUE(dropout->arguments[0].hidden_alias);
  const OperatorSchema* norm = find_overload("aten::batch_norm");
  EXPECT_TRUE(norm->arguments[static_cast<std::size_t>(norm->index_of("running_mean"))].hidden_write);
  EXPECT_FALSE(norm->arguments[0].hidden_write);
  EXPECT_EQ(norm->str().find('!'), std::string::npos) << "the declaration is printed as it was made";
}

TEST(Traits, WhatHoldsAnotherSharesItsStorage) {
  const std::pair<const char*, const char*> cases[] = {
      {"aten::set_data(Tensor(a!) self, Tensor new_data) -> ()", "self new_data"},
      {"aten::_reshape_from_tensor(Tensor self, Tensor shape) -> Tensor", "self"},
      {"aten::sparse_coo_tensor.indices(Tensor indices, Tensor values, *, ScalarType? dtype=None) -> Tensor",
       "indices values"},
      {"aten::sparse_csr_tensor.crow_col_value(Tensor crow_indices, Tensor col_indices, Tensor values) -> Tensor",
       "crow_indices col_indices values"},
      {"aten::quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> "
       "Tensor",
       "scales zero_points"},
      {"aten::q_per_channel_scales(Tensor self) -> Tensor", "self"},
      {"quantized::linear_prepack(Tensor W, Tensor? B=None) -> "
       "__torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack",
       "W B"},
      {"mine::linear_prepack(Tensor W, Tensor? B=None) -> Tensor", ""},
      {"aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()", "self el"},
      {"aten::items.str(Dict(str, t) self) -> ((str, t)[])", "self"},
      {"aten::copy.t(t[](a) self) -> t[]", "self"},
      {"aten::pop.t(t[](a!) self, int idx=-1) -> t(*)", ""},  // it says so itself
      {"aten::count.t(t[] self, t el) -> int", ""},
      {"aten::sorted.Tensor(Tensor[](a) input) -> Tensor[]", "input"},
  };
  for (const auto& [declaration, held] : cases) {
    std::string found;
    for (const SchemaArgument& argument : parse_schema(declaration).arguments)
      if (argument.hidden_alias) found += (found.empty() ? "" : " ") + argument.name.str();
    EXPECT_EQ(found, held) << declaration;
  }
  EXPECT_TRUE(parse_schema(cases[0].first).traits.restructures);
  EXPECT_TRUE(parse_schema(cases[1].first).traits.may_copy);
}

// Each operator that may be random must be switchable where its argument says so, or stay random.
TEST(Traits, SwitchesNameArgumentsOfTheirOperator) {
  for (const char* target : {"aten::dropout", "aten::lstm.input", "aten::gru.data", "aten::rrelu", "aten::batch_norm",
                             "aten::scaled_dot_product_attention", "aten::native_dropout"}) {
    EXPECT_FALSE(find_overload(target)->switches.empty()) << target;
  }
}

}  // namespace fx::traits_test
