// Operators that this LibTorch may lack, in files: what stands in for them is saved along, and read back.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include <fxgraph/text/parse.h>
#include <fxgraph/torchscript/import.h>

#include "tests/torchscript/saved_and_loaded.h"

namespace fx::missing_operators_test {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

at::Tensor attention(const at::Tensor& x, double scale, const at::Tensor& bias) {
  return at::matmul(at::softmax(at::matmul(x, x.transpose(-2, -1)) * scale + bias, -1), x);
}

at::Tensor rms(const at::Tensor& x, double eps) {
  const at::Tensor wide = x.to(at::promote_types(x.scalar_type(), at::kFloat));
  return (wide * at::rsqrt(wide.pow(2).mean({-1}, true) + eps)).to(x.scalar_type());
}

/// One call of an operator on `x` (1, 3, 4), and `m` (3, 3), and what it gives.
struct Case {
  const char* name;
  const char* call;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& m)> expected;
  at::ScalarType type = at::kFloat;
  at::ScalarType mask = at::kFloat;
};

const Case kCases[] = {
    {"attention", "scaled_dot_product_attention.default](args = (%x, %x, %x)",
     [](const auto& x, const auto&) { return attention(x, 0.5, at::zeros({})); }},
    {"attention_of_negative_scale",
     "scaled_dot_product_attention.default](args = (%x, %x, %x, None, 0.0, False), kwargs = {scale: -0.3}",
     [](const auto& x, const auto&) { return attention(x, -0.3, at::zeros({})); }},
    {"attention_that_is_causal", "scaled_dot_product_attention.default](args = (%x, %x, %x, None, 0.0, True)",
     [](const auto& x, const auto&) {
       return attention(x, 0.5, at::full({3, 3}, kNothing).triu(1));
     }},
    {"attention_with_a_mask", "scaled_dot_product_attention.default](args = (%x, %x, %x, %m)",
     [](const auto& x, const auto& m) { return attention(x, 0.5, m); }},
    {"attention_with_a_mask_of_infinities", "scaled_dot_product_attention.default](args = (%x, %x, %x, %m)",
     [](const auto& x, const auto& m) { return attention(x, 0.5, m); }, at::kDouble, at::kDouble},
    {"attention_with_a_mask_of_bools", "scaled_dot_product_attention.default](args = (%x, %x, %x, %m)",
     [](const auto& x, const auto& m) {
       return attention(x, 0.5, at::zeros({3, 3}).masked_fill(m.logical_not(), kNothing));
     },
     at::kFloat, at::kBool},
    {"rms_norm", "rms_norm.default](args = (%x, [4], None, 0.01)",
     [](const auto& x, const auto&) { return rms(x, 0.01); }},
    {"rms_norm_of_half", "rms_norm.default](args = (%x, [4])",
     [](const auto& x, const auto&) { return rms(x, 0x1p-23); }, at::kHalf},
    {"rms_norm_of_double", "rms_norm.default](args = (%x, [4])",
     [](const auto& x, const auto&) { return rms(x, 0x1p-52); }, at::kDouble},
    {"squeeze", "squeeze.dims](args = (%x, [1, 0])", [](const auto& x, const auto&) { return x.squeeze(0); }},
    {"squeeze_from_the_end", "squeeze.dims](args = (%x, [-1, -3])",
     [](const auto& x, const auto&) { return x.squeeze(0); }},
    {"squeeze_from_both_ends", "squeeze.dims](args = (%x, [0, -1])",
     [](const auto& x, const auto&) { return x.squeeze(0); }},
    {"squeeze_from_both_ends_in_another_order", "squeeze.dims](args = (%x, [-2, 2, -3])",
     [](const auto& x, const auto&) { return x.squeeze(0); }},
    {"squeeze_copy_from_both_ends", "squeeze_copy.dims](args = (%x, [-3, 1])",
     [](const auto& x, const auto&) { return x.squeeze(0).clone(); }},
    {"squeeze_copy", "squeeze_copy.dims](args = (%x, [0, 2])",
     [](const auto& x, const auto&) { return x.squeeze(0).clone(); }},
    {"any", "any.dims](args = (%x,)", [](const auto& x, const auto&) { return x.any(); }},
    {"all_kept", "all.dims](args = (%x, None, True)",
     [](const auto& x, const auto&) {
       return x.all().view({1, 1, 1});
     }},
};

void PrintTo(const Case& row, std::ostream* out) { *out << row.name; }

class MissingOperators : public ::testing::TestWithParam<Case> {};

TEST_P(MissingOperators, AreSavedAlongAndReadBack) {
  const Case& row = GetParam();
  at::manual_seed(1);
  const at::Tensor x = at::randn({1, 3, 4}).to(row.type);
  at::Tensor m = at::randn({3, 3});
  if (row.mask == at::kBool) m = m.gt(-0.5).logical_or(at::eye(3).to(at::kBool));
  if (row.mask == at::kDouble) m = m.masked_fill(m.gt(0.5), kNothing).to(at::kDouble);
  const at::Tensor expected = row.expected(x, m);
  const auto agrees = [&](const at::Tensor& got) {
    EXPECT_EQ(got.scalar_type(), expected.scalar_type());
    ASSERT_EQ(got.sizes(), expected.sizes());
    const double tolerance = row.type == at::kHalf ? 1e-3 : 1e-6;
    EXPECT_TRUE(got.to(at::kDouble).allclose(expected.to(at::kDouble), tolerance, tolerance)) << got << "\n"
                                                                                              << expected;
  };
  GraphModule module(GraphModule::Attributes{},
                     parse_graph(std::string("graph():\n    %x : [num_users=1] = placeholder[target=x]\n"
                                             "    %m : [num_users=1] = placeholder[target=m]\n"
                                             "    %y : [num_users=1] = call_function[target=torch.ops.aten.") +
                                 row.call + ")\n    return y\n"));
  agrees(module.run({x, m}).toTensor());
  torch::jit::Module loaded = testing::saved_and_loaded(module);
  agrees(loaded.forward({x, m}).toTensor());
  agrees(from_torchscript(loaded)->run({x, m}).toTensor());
}

INSTANTIATE_TEST_SUITE_P(All, MissingOperators, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace fx::missing_operators_test
