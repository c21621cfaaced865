// fxgraph::packed_linear in the place of aten::linear for one row: any number of rows and any strides afterwards, with
// gradients; saved as TorchScript that LibTorch runs alone, and taken back.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <fxgraph/export/save.h>
#include <fxgraph/fx.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/torchscript/import.h>

#include "tests/rules/everywhere.h"
#include "tests/support/scratch_folder.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::row_lowering_test {

using ::testing::HasSubstr;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kFeatures = 6, kOutputs = 4;

struct Form {
  std::size_t rank;
  bool has_bias, has_relu;
};

constexpr Form kForms[] = {{2, true, false}, {2, false, false}, {2, true, true},  {3, true, false},
                           {3, false, true}, {4, true, true},   {4, false, false}};

std::shared_ptr<GraphModule> program_of(const Form& form, at::ScalarType type = at::kFloat) {
  GraphModule::Attributes weights = {{"w", at::randn({kOutputs, kFeatures}).to(type)}};
  Graph graph;
  std::vector<Argument> args = {graph.placeholder("x"), graph.get_attr("w")};
  if (form.has_bias) {
    weights.emplace_back("b", at::randn({kOutputs}).to(type));
    args.emplace_back(graph.get_attr("b"));
  }
  Node* made = &graph.call_function("aten::linear", args);
  if (form.has_relu) made = &graph.call_function("aten::relu", {*made});
  graph.output(*made);
  return std::make_shared<GraphModule>(weights, std::move(graph));
}

std::size_t packed_calls(const GraphModule& module) {
  return module.graph().count(Op::call_function, "fxgraph::packed_linear");
}

Sizes one_row(const Form& form) {
  Sizes sizes(form.rank, 1);
  sizes.back() = kFeatures;
  return sizes;
}

std::shared_ptr<GraphModule> lowered(const GraphModule& original, TensorInfo example) {
  auto made = original.clone_graph_module();
  testing::rewrite_everywhere(*made, {"lowering"}, {"lower-linear/row"},
                              propagate_shapes(*made, std::vector{std::move(example)}));
  return made;
}

/// The same values at other places.
std::vector<at::Tensor> laid_out(const at::Tensor& value) {
  const at::Tensor among_others = at::stack({value, value + 1, value - 1}, -1).select(-1, 0);
  const at::Tensor by_columns = value.transpose(0, -1).contiguous().transpose(0, -1);
  return {value, among_others, by_columns};
}

class Rows : public ::testing::TestWithParam<Form> {};

TEST_P(Rows, AreTheSameForAnyNumberOfThemAndAnyStrides) {
  const at::NoGradGuard no_grad;
  const auto original = program_of(GetParam());
  const auto made = lowered(*original, TensorInfo{.sizes = one_row(GetParam())});
  ASSERT_EQ(packed_calls(*made), 1u);
  std::vector<Sizes> all = {one_row(GetParam())};
  for (std::size_t dim = 0; dim + 1 < GetParam().rank; ++dim) {
    for (const std::int64_t size : {0, 2, 6}) {
      all.push_back(one_row(GetParam()));
      all.back()[dim] = size;
    }
  }
  all.push_back({kFeatures});
  for (const Sizes& sizes : all) {
    for (const at::Tensor& x : laid_out(at::randn(sizes))) {
      const at::Tensor was = original->forward(x), is = made->forward(x);
      EXPECT_LE(relative_difference(was, is), 1e-5) << at::IntArrayRef(sizes) << x.strides();
      EXPECT_EQ(was.strides(), is.strides()) << at::IntArrayRef(sizes) << x.strides();
    }
  }
  for (const Sizes& sizes : {Sizes{1, kFeatures + 1}, Sizes{2, kFeatures / 2}, Sizes{}, Sizes{kFeatures, 1}}) {
    EXPECT_ANY_THROW(original->forward(at::randn(sizes))) << at::IntArrayRef(sizes);
    EXPECT_ANY_THROW(made->forward(at::randn(sizes))) << at::IntArrayRef(sizes);
  }
}

TEST_P(Rows, HaveGradients) {
  const auto original = program_of(GetParam());
  const auto made = lowered(*original, TensorInfo{.sizes = one_row(GetParam())});
  const at::Tensor x = at::randn(one_row(GetParam())).requires_grad_();
  const at::Tensor weight = original->attribute("w").requires_grad_();
  made->set_parameter("w", weight);
  const auto gradients = [&](GraphModule& module) {
    return torch::autograd::grad({module.forward(x).square().sum()}, {x, weight});
  };
  const auto was = gradients(*original), is = gradients(*made);
  for (std::size_t i = 0; i < was.size(); ++i) EXPECT_LE(relative_difference(was[i], is[i]), 1e-5);
}

TEST_P(Rows, AreSavedAsWhatLibTorchRunsAndComeBack) {
  const at::NoGradGuard no_grad;
  const auto original = program_of(GetParam());
  const auto made = lowered(*original, TensorInfo{.sizes = one_row(GetParam())});
  torch::jit::Module plain = testing::saved_and_loaded(*made);
  const auto back = from_torchscript(plain);
  EXPECT_EQ(packed_calls(*back), 1u);
  const auto twice = from_torchscript(testing::saved_and_loaded(*back));
  EXPECT_EQ(packed_calls(*twice), 1u);
  for (const std::int64_t rows : {1, 3}) {
    Sizes sizes = one_row(GetParam());
    sizes[0] = rows;
    const at::Tensor x = at::randn(sizes);
    const at::Tensor expected = original->forward(x);
    EXPECT_LE(relative_difference(expected, plain.forward({x})), 1e-5);
    EXPECT_LE(relative_difference(expected, back->forward(x)), 1e-5);
    EXPECT_LE(relative_difference(expected, twice->forward(x)), 1e-5);
  }
  const testing::ScratchFolder folder;
  try {
    save_exported(*made, (folder.path() / "packed.pt2").string(), {.inputs = {at::randn(one_row(GetParam()))}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("decompose-packed"));
  }
}

TEST_P(Rows, AreUndone) {
  const at::NoGradGuard no_grad;
  const auto original = program_of(GetParam());
  const auto made = lowered(*original, TensorInfo{.sizes = one_row(GetParam())});
  optimize(*made, {.rules = {"decompose-packed"}});
  EXPECT_EQ(packed_calls(*made), 0u);
  EXPECT_EQ(made->graph().count(Op::call_function, "aten::linear"), 1u);
  const at::Tensor x = at::randn(one_row(GetParam()));
  EXPECT_EQ(relative_difference(original->forward(x), made->forward(x)), 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, Rows, ::testing::ValuesIn(kForms), [](const auto& info) {
  const Form& form = info.param;
  return "Of" + std::to_string(form.rank) + "Dimensions" + (form.has_bias ? "Bias" : "") +
         (form.has_relu ? "Relu" : "");
});

TEST(RowLowering, LeavesSeveralRowsAndOtherTypes) {
  const at::NoGradGuard no_grad;
  EXPECT_EQ(packed_calls(*lowered(*program_of(kForms[0]), TensorInfo{.sizes = {2, kFeatures}})), 0u);
  EXPECT_EQ(packed_calls(*lowered(*program_of(kForms[0], at::kDouble),
                                  TensorInfo{.dtype = DType::float64, .sizes = {1, kFeatures}})),
            0u);
}

}  // namespace fx::row_lowering_test
