// prepacked::linear_clamp_run in the place of aten::linear and what follows it: any number of rows and any strides, as
// a file that LibTorch runs alone, and undone; what XNNPACK would read beyond memory for is refused.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include <fxgraph/fx.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/import.h>

#include "tests/rules/everywhere.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::xnnpack_linear_test {

using ::testing::HasSubstr;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kFeatures = 6, kWidth = 9, kOutputs = 4;

struct Form {
  const char* name;
  std::size_t rank;
  bool has_bias;
  const char* after;  ///< null: nothing
  std::vector<Argument> bounds{};
};

const std::vector<Form>& forms() {
  static const std::vector<Form> kForms = {
      {"Rows", 2, true, nullptr},
      {"RowsWithoutBias", 2, false, nullptr},
      {"Relu", 2, true, "aten::relu"},
      {"Relu6WithoutBias", 3, false, "aten::relu6"},
      {"Hardtanh", 3, true, "aten::hardtanh", {-0.25, 0.5}},
      {"ClampAbove", 2, true, "aten::clamp", {Argument(), 0.125}},
      {"ClampBelow", 3, false, "aten::clamp", {-0.5}},
  };
  return kForms;
}

/// Two layers, so that what enters the second was made by the first.
std::shared_ptr<GraphModule> program_of(const Form& form) {
  GraphModule::Attributes weights = {{"w", at::randn({kWidth, kFeatures})}, {"v", at::randn({kOutputs, kWidth})}};
  Graph graph;
  Node* value = &graph.placeholder("x");
  for (const auto& [name, width] : {std::pair("w", kWidth), {"v", kOutputs}}) {
    std::vector<Argument> args = {*value, graph.get_attr(name)};
    if (form.has_bias) {
      const std::string bias = std::string(name) + "_bias";
      weights.emplace_back(bias, at::randn({width}));
      args.emplace_back(graph.get_attr(bias));
    }
    value = &graph.call_function("aten::linear", args);
    if (!form.after) continue;
    std::vector<Argument> bounded = {*value};
    bounded.insert(bounded.end(), form.bounds.begin(), form.bounds.end());
    value = &graph.call_function(form.after, bounded);
  }
  graph.output(*value);
  return std::make_shared<GraphModule>(weights, std::move(graph));
}

std::size_t packed_calls(const GraphModule& module) {
  return module.graph().count(Op::call_function, "prepacked::linear_clamp_run");
}

Sizes sizes_of(std::size_t rank, std::int64_t rows) {
  Sizes sizes(rank, rows);
  sizes.back() = kFeatures;
  return sizes;
}

/// Everywhere, and with the assertions that optimize() puts there.
std::shared_ptr<GraphModule> lowered(const GraphModule& original, const Sizes& example) {
  auto made = original.clone_graph_module();
  const std::vector<TensorInfo> inputs = {TensorInfo{.sizes = example}};
  testing::rewrite_everywhere(*made, {"lowering"}, {"lower-linear/xnnpack"}, propagate_shapes(*made, inputs));
  optimize(*made, {.rules = {"in-place"}, .inputs = inputs});
  return made;
}

class Linear : public ::testing::TestWithParam<Form> {
 protected:
  const at::NoGradGuard no_grad_;
};

TEST_P(Linear, IsTheSameForAnyRowsAndStridesAndRefusesTheRest) {
  const auto original = program_of(GetParam());
  const auto made = lowered(*original, sizes_of(GetParam().rank, 3));
  ASSERT_EQ(packed_calls(*made), 2u) << print_graph(made->graph());
  EXPECT_EQ(made->graph().count(Op::call_function, "aten::linear"), 0u);
  for (const Node& node : made->graph().nodes())
    EXPECT_TRUE(!GetParam().after || !node.is_call(GetParam().after)) << node.name();
  torch::jit::Module script = testing::saved_and_loaded(*made);
  for (const std::size_t rank : {1, 2, 3}) {
    for (const std::int64_t rows : {0, 1, 2, 7, 15}) {
      const at::Tensor x = at::randn(sizes_of(rank, rows));
      const at::Tensor among_others = at::stack({x, x + 1}, -1).select(-1, 0),
                       by_columns = x.transpose(0, -1).contiguous().transpose(0, -1);
      for (const at::Tensor& laid_out : {x, among_others, by_columns}) {
        const at::Tensor was = original->forward(laid_out), is = made->forward(laid_out);
        EXPECT_LE(relative_difference(was, is), 1e-5) << x.sizes() << laid_out.strides();
        EXPECT_TRUE(is.is_contiguous());
        EXPECT_LE(relative_difference(was, script.forward({laid_out})), 1e-5) << x.sizes() << laid_out.strides();
      }
    }
  }
  for (const Sizes& other :
       {Sizes{2, kFeatures - 1}, Sizes{2, kFeatures + 1}, Sizes{kFeatures, 1}, Sizes{}, Sizes{2, 3, 1, kFeatures}}) {
    EXPECT_ANY_THROW(made->forward(at::randn(other))) << at::IntArrayRef(other);
    EXPECT_ANY_THROW(script.forward({at::randn(other)})) << at::IntArrayRef(other);
  }
}

TEST_P(Linear, ComesBackFromItsFileAndIsUndone) {
  const auto original = program_of(GetParam());
  const auto made = lowered(*original, sizes_of(GetParam().rank, 3));
  const auto back = from_torchscript(testing::saved_and_loaded(*made));
  EXPECT_EQ(packed_calls(*back), 2u);
  const at::Tensor x = at::randn(sizes_of(GetParam().rank, 5));
  EXPECT_LE(relative_difference(original->forward(x), back->forward(x)), 1e-5);
  optimize(*back, {.rules = {"decompose-packed"}});
  EXPECT_EQ(packed_calls(*back), 0u);
  EXPECT_EQ(back->graph().count(Op::call_function, "aten::linear"), 2u);
  EXPECT_EQ(back->contract().str(), made->contract().str());
  EXPECT_LE(relative_difference(original->forward(x), back->forward(x)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Forms, Linear, ::testing::ValuesIn(forms()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(XnnpackLinear, AssertsOnceWhatTheProgramEnsures) {
  const at::NoGradGuard no_grad;
  const auto made = lowered(*program_of(forms()[0]), {3, kFeatures});
  // Of x: dimensions and features. How many the second has is not known, and its features are.
  EXPECT_LE(made->graph().count(Op::call_function, "torch._assert"), 4u) << print_graph(made->graph());
  try {
    made->forward(at::randn({2, kFeatures + 2}));
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("x must be 6 in its last dimension"));
  }
}

// An image with channels last lies in memory otherwise than its last dimension says.
TEST(XnnpackLinear, LeavesImagesAndOtherTypes) {
  const at::NoGradGuard no_grad;
  EXPECT_EQ(packed_calls(*lowered(*program_of(forms()[0]), {2, 3, 4, kFeatures})), 0u);
  const auto made = program_of(forms()[0]);
  const std::vector<TensorInfo> inputs = {TensorInfo{.dtype = DType::float64, .sizes = {2, kFeatures}}};
  for (const char* name : {"w", "v", "w_bias", "v_bias"})
    made->set_parameter(name, made->attribute(name).to(at::kDouble));
  testing::rewrite_everywhere(*made, {"lowering"}, {"lower-linear/xnnpack"}, propagate_shapes(*made, inputs));
  EXPECT_EQ(packed_calls(*made), 0u);
}

/// linear(x) + y, whose weights a gradient is asked of, as a model's are.
std::shared_ptr<GraphModule> with_another_input(const char* linear) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  Node& made = graph.call_function(linear, {x, graph.get_attr("w"), graph.get_attr("b")});
  graph.output(graph.call_function("aten::add.Tensor", {made, y}));
  auto module = std::make_shared<GraphModule>(
      GraphModule::Attributes{{"w", at::randn({kFeatures, kFeatures})}, {"b", at::randn({kFeatures})}},
      std::move(graph));
  for (const char* name : {"w", "b"}) module->set_parameter(name, module->attribute(name).clone().requires_grad_());
  return module;
}

// What is added may be of another size and type in the next call.
TEST(XnnpackLinear, IsNotWrittenOverByWhatMayBeLarger) {
  const at::NoGradGuard no_grad;
  const auto original = with_another_input("aten::linear"), made = original->clone_graph_module();
  const std::vector<TensorInfo> inputs(2, TensorInfo{.sizes = {8, kFeatures}});
  testing::rewrite_everywhere(*made, {"lowering"}, {"lower-linear/xnnpack"}, propagate_shapes(*made, inputs));
  ASSERT_EQ(packed_calls(*made), 1u);
  optimize(*made, {.rules = {"in-place"}, .inputs = inputs});
  const auto lowered_by_itself = original->clone_graph_module();
  optimize(*lowered_by_itself, {.inputs = inputs, .target = "cpu"});
  const at::Tensor one = at::randn({1, kFeatures}), many = at::randn({8, kFeatures});
  for (const auto& other : {many, at::randn({8, 1}), many.to(at::kDouble), many.to(at::kComplexFloat)}) {
    for (const at::Tensor& x : {one, many}) {
      const at::Tensor was = original->run({x, other}).toTensor();
      for (GraphModule* each : {made.get(), lowered_by_itself.get()}) {
        const at::Tensor is = each->run({x, other}).toTensor();
        EXPECT_EQ(was.scalar_type(), is.scalar_type());
        EXPECT_LE(relative_difference(was, is), 1e-5);
      }
    }
  }
}

std::int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// What is tried at other sizes has no elements: some of them make an element of each pair.
TEST(XnnpackLinear, IsTriedAtOtherSizesWithoutMemory) {
  const at::NoGradGuard no_grad;
  constexpr std::int64_t kRows = 3'000, kMostKilobytes = 300'000;  // 1.3 GB for each pair of elements
  const auto made = with_another_input("aten::linear");
  const std::int64_t before = peak_kilobytes();
  optimize(*made, {.inputs = std::vector<TensorInfo>(2, TensorInfo{.sizes = {1, kRows, kFeatures}}), .target = "cpu"});
  EXPECT_LT(peak_kilobytes() - before, kMostKilobytes);
}

bool was_measured(const OptimizeReport& report, std::string_view part) {
  bool found = false;
  for (const RuleOutcome& outcome : report.rules) {
    for (const auto& choice : outcome.choices) {
      for (const auto& each : choice.measured) found |= each.name.find(part) != std::string::npos;
    }
  }
  return found;
}

// XNNPACK keeps state in what it packed, and has threads of its own.
TEST(XnnpackLinear, IsNoCandidateForSeveralThreads) {
  const at::NoGradGuard no_grad;
  const int threads = at::get_num_threads();
  for (const bool concurrent : {false, true}) {
    for (const int count : {1, 2}) {
      at::set_num_threads(count);
      const OptimizeReport report =
          optimize(*program_of(forms()[2])->clone_graph_module(),
                   {.inputs = {TensorInfo{.sizes = {8, kFeatures}}}, .target = "cpu", .concurrent = concurrent});
      EXPECT_TRUE(was_measured(report, "lower-linear/"));
      EXPECT_EQ(was_measured(report, "xnnpack"), !concurrent && count == 1);
    }
  }
  at::set_num_threads(threads);
}

}  // namespace fx::xnnpack_linear_test
