// --target cpu on random programs of convolutions and what stands around them: the same numbers, for other batches,
// too, whoever writes to what; packed calls that pack again when weights change.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/rewriter/rules/weights.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>

#include "tests/rules/everywhere.h"
#include "tests/rules/image_programs.h"
#include "tests/support/night.h"

namespace fx::lowering_test {

using ::testing::HasSubstr;
using testing::image;
using testing::kImage;
using testing::random_image_program;

std::size_t packed_calls(const Graph& graph) {
  return graph.count(Op::call_function, "mkldnn_prepacked::conv2d_run") +
         graph.count(Op::call_function, "prepacked::conv2d_clamp_run") +
         graph.count(Op::call_function, "prepacked::conv2d_transpose_clamp_run");
}

/// Every rule of a lowering, wherever it fits, measured or not; then the passes.
void lower_by(GraphModule& module, const std::vector<std::string_view>& wanted) {
  if (rules::written_if_strides_say_so(module.graph(), rules::ProgramEffects(module))) return;
  optimize(module, {.rules = {"out-of-place"}, .inputs = kImage});
  const auto shapes = [&] {
    const StateKeeper keeper(module);
    return propagate_shapes(module, kImage);
  };
  testing::rewrite_everywhere(module, {"lowering"}, wanted, shapes());
  optimize(module, {.rules = {"channels-last", "in-place"}, .inputs = kImage});
}

void expect_equal(GraphModule& before, GraphModule& after, const std::string& what,
                  std::initializer_list<std::int64_t> batches = {2, 1, 5, 0}) {
  const at::NoGradGuard no_grad;
  for (const std::int64_t batch : batches) {
    for (const auto& [last, part] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
      double differs = 0;
      try {
        differs = run_difference(before, after, {image(batch, last, part)}, 1);
      } catch (const std::exception& error) {
        try {
          before.clone_graph_module()->run({image(batch, last, part)});
        } catch (const std::exception&) {
          continue;  // it does not run before, either: view of other strides, for instance
        }
        FAIL() << what << ", batch " << batch << ": " << error.what() << "\n" << print_graph(after.graph());
      }
      ASSERT_LE(differs, 1e-4) << what << ", batch " << batch << (last ? ", channels last" : "")
                               << (part ? ", part of something larger" : "") << "\n"
                               << print_graph(before.graph()) << print_graph(after.graph());
    }
  }
}

TEST(Lowering, KeepsRandomProgramsWhateverIsFastest) {
  const std::vector<std::vector<std::string_view>> kinds = {
      {"onednn"}, {"lower-convolution/xnnpack", "lower-norm/scaled"}, {"lower-"}};
  std::size_t packed = 0;
  for (std::uint64_t seed = 1; seed <= testing::by_night(150); ++seed) {
    at::manual_seed(seed);
    const auto original = random_image_program(seed, 4 + seed % 9);
    try {
      original->clone_graph_module()->run({image(2, false)});
    } catch (const std::exception&) {
      continue;
    }
    const auto lowered = original->clone_graph_module();
    lower_by(*lowered, kinds[seed % kinds.size()]);
    lowered->graph().lint();
    packed += packed_calls(lowered->graph());
    const auto back = lowered->clone_graph_module();  // before a run writes to its weights
    expect_equal(*original->clone_graph_module(), *lowered, "seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
    // And back.
    optimize(*back, {.rules = {"decompose-packed"}});
    EXPECT_EQ(packed_calls(back->graph()), 0u) << print_graph(back->graph());
    // LibTorch's own conv2d cannot take an empty batch with channels last, which the reorders that stay give it.
    expect_equal(*original->clone_graph_module(), *back, "back, seed " + std::to_string(seed), {2, 1, 5});
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(packed, testing::by_night(150));
}

TEST(Lowering, MeasuresAndKeepsWhatItSays) {
  for (std::uint64_t seed = 1; seed <= testing::by_night(12); ++seed) {
    at::manual_seed(seed);
    const auto original = random_image_program(seed, 8);
    try {
      original->clone_graph_module()->run({image(2, false)});
    } catch (const std::exception&) {
      continue;
    }
    const auto lowered = original->clone_graph_module();
    const OptimizeReport report = optimize(*lowered, {.inputs = kImage, .target = "cpu", .max_slowdown = 1e6});
    expect_equal(*original->clone_graph_module(), *lowered, "seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
    for (const RuleOutcome& outcome : report.rules) {
      std::size_t faster = 0;
      for (const rules::Choice& choice : outcome.choices) {
        EXPECT_GE(choice.measured.size(), 2u);
        faster += choice.fastest ? choice.places : 0;
      }
      if (!outcome.choices.empty()) {
        EXPECT_EQ(outcome.applied, faster) << outcome.rule->name << ", seed " << seed;
      }
    }
  }
}

std::shared_ptr<GraphModule> conv_program() {
  at::manual_seed(1);
  return std::make_shared<GraphModule>(GraphModule::Attributes{{"w", at::randn({3, 4, 3, 3})}, {"b", at::randn({3})}},
                                       parse_graph(R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %w : [num_users=1] = get_attr[target=w]
    %b : [num_users=1] = get_attr[target=b]
    %conv2d : [num_users=1] = call_function[target=torch.ops.aten.conv2d.default](args = (%x, %w, %b), kwargs = {})
    %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%conv2d,), kwargs = {})
    return relu
)"));
}

TEST(Lowering, PacksAgainWhenAWeightIsWritten) {
  const at::NoGradGuard no_grad;
  const auto original = conv_program();
  const auto lowered = original->clone_graph_module();
  Shapes shapes = propagate_shapes(*lowered, kImage);
  for (const rules::OptimizeRule* rule : rules::select({"lower-convolution"}))
    rewrite_once(*lowered, RuleSet{{rule->rules().front()}}, {.shapes = &shapes});
  ASSERT_EQ(packed_calls(lowered->graph()), 1u);
  const at::Tensor x = image(2, false);
  EXPECT_LE(relative_difference(original->forward(x), lowered->forward(x)), 1e-5);
  for (GraphModule* module : {original.get(), lowered.get()}) module->attribute("w").mul_(-0.5);
  EXPECT_LE(relative_difference(original->forward(x), lowered->forward(x)), 1e-5);
  for (GraphModule* module : {original.get(), lowered.get()}) module->set_attribute("b", at::ones({3}));
  EXPECT_LE(relative_difference(original->forward(x), lowered->forward(x)), 1e-5);
}

/// Values with these sizes, of all the strides that views give them.
std::vector<at::Tensor> views_of_sizes(const std::vector<std::int64_t>& sizes) {
  std::vector<at::Tensor> views = {at::randn(sizes)};
  const auto rank = static_cast<std::int64_t>(sizes.size());
  for (std::int64_t dim = 0; dim < rank; ++dim) {
    std::vector<std::int64_t> larger = sizes;
    larger[static_cast<std::size_t>(dim)] += 3;
    views.push_back(at::randn(larger).narrow(dim, 1, sizes[static_cast<std::size_t>(dim)]));
    std::vector<std::int64_t> more = sizes;
    more.insert(more.begin() + dim, 2);
    views.push_back(at::randn(more).select(dim, 1));
    std::vector<std::int64_t> swapped = sizes;
    std::swap(swapped.front(), swapped[static_cast<std::size_t>(dim)]);
    views.push_back(at::randn(swapped).transpose(0, dim));
    std::vector<std::int64_t> one = sizes;
    one[static_cast<std::size_t>(dim)] = 1;
    views.push_back(at::randn(one).expand(sizes));
  }
  return views;
}

TEST(Lowering, TakesLinearInputsOfAnyStrides) {
  const at::NoGradGuard no_grad;
  at::manual_seed(1);
  const GraphModule::Attributes weights = {{"w", at::randn({5, 8})}, {"b", at::randn({5})}};
  for (const bool is_slice : {false, true}) {
    for (const std::vector<std::int64_t>& example : {std::vector<std::int64_t>{3, 8}, {2, 4, 8}, {2, 3, 4, 8}}) {
      Graph graph;
      Node* x = &graph.placeholder("x");
      const auto cut = static_cast<std::int64_t>(example.size()) - 2;
      if (is_slice) x = &graph.call_function("aten::slice.Tensor", {*x, cut, 1, INT64_MAX, 1});
      Node& linear = graph.call_function("aten::linear", {*x, graph.get_attr("w"), graph.get_attr("b")});
      graph.output(graph.call_function("aten::relu", {linear}));
      GraphModule original(weights, std::move(graph));
      for (const char* name : {"lower-linear/onednn-relu", "lower-linear/onednn"}) {
        const auto lowered = original.clone_graph_module();
        Shapes shapes = propagate_shapes(*lowered, {TensorInfo{.sizes = example}});
        RuleSet set;
        for (const Rule& rule : rules::select({"lower-linear"}).front()->rules()) {
          if (rule.name == name) set.add(rule);
        }
        rewrite_once(*lowered, set, {.shapes = &shapes});
        ASSERT_EQ(packed_calls(lowered->graph()), 1u);
        const auto in_place = lowered->clone_graph_module();
        optimize(*in_place, {.rules = {"channels-last"}, .inputs = std::vector{TensorInfo{.sizes = example}}});
        for (const std::int64_t batch : {2, 1, 3}) {
          std::vector<std::int64_t> sizes = example;
          for (std::size_t dim = 0; dim + 1 < sizes.size(); ++dim) {
            sizes[dim] = batch + (is_slice && static_cast<std::int64_t>(dim) == cut ? 1 : 0);
            for (const at::Tensor& view : views_of_sizes(sizes)) {
              EXPECT_LE(relative_difference(original.forward(view), lowered->forward(view)), 1e-5) << view.strides();
              EXPECT_LE(relative_difference(original.forward(view), in_place->forward(view)), 1e-5) << view.strides();
            }
          }
        }
      }
    }
  }
}

// LibTorch's linear adds one number to all outputs; kernels with packed weights read a number for each.
TEST(Lowering, LeavesABiasThatIsBroadcast) {
  const at::NoGradGuard no_grad;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto program = std::make_shared<GraphModule>(
        GraphModule::Attributes{{"w", at::randn({3, 4}).to(type)}, {"b", at::randn({1}).to(type)}},
        parse_graph(R"(graph():
    %x = placeholder[target=x]
    %w = get_attr[target=w]
    %b = get_attr[target=b]
    %linear = call_function[target=aten::linear](args = (%x, %w, %b))
    return linear
)"));
    const auto lowered = program->clone_graph_module();
    Shapes shapes =
        propagate_shapes(*lowered, {TensorInfo{.dtype = tensor_info(program->attribute("w")).dtype, .sizes = {2, 4}}});
    RuleSet set;
    for (const Rule& rule : rules::select({"lower-linear"}).front()->rules()) {
      if (rule.name.find("onednn") != std::string::npos) set.add(rule);
    }
    rewrite_once(*lowered, set, {.shapes = &shapes});
    EXPECT_EQ(packed_calls(lowered->graph()), 0u);
    const at::Tensor x = at::randn({2, 4}).to(type);
    EXPECT_LE(relative_difference(program->forward(x), lowered->forward(x)), 0);
  }
}

// In Python gradients are on, and XNNPACK refuses what takes part in them.
TEST(Lowering, RunsWhereGradientsAreOn) {
  const auto program =
      std::make_shared<GraphModule>(GraphModule::Attributes{{"s", at::randn({1, 4, 1, 1}).requires_grad_()},
                                                            {"w", at::randn({8, 4, 3, 3}).requires_grad_()}},
                                    parse_graph(R"(graph():
    %x = placeholder[target=x]
    %s = get_attr[target=s]
    %w = get_attr[target=w]
    %mul = call_function[target=aten::mul.Tensor](args = (%x, %s))
    %conv = call_function[target=aten::conv2d](args = (%mul, %w))
    return conv
)"));
  for (const char* name : {"s", "w"}) program->set_parameter(name, program->attribute(name));
  const at::Tensor x = at::randn({1, 4, 14, 14}), expected = program->forward(x);
  const at::Tensor kept = program->attribute("s");
  const OptimizeReport report = optimize(*program, {.inputs = {tensor_info(x)}, .target = "cpu"});
  EXPECT_TRUE(kept.requires_grad());  // whoever else holds it
  EXPECT_EQ(program->attribute("s").requires_grad(), packed_calls(program->graph()) == 0);
  EXPECT_LE(relative_difference(expected, program->forward(x)), 1e-4);
}

TEST(Lowering, SaysWhatItNeeds) {
  const auto program = conv_program();
  try {
    optimize(*program, {.target = "gpu"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no target gpu"));
  }
  const OptimizeReport report = optimize(*program, {.target = "cpu"});
  for (const RuleOutcome& outcome : report.rules) {
    if (outcome.rule->name == "lower-convolution") {
      EXPECT_THAT(outcome.refused.at(0).reason, HasSubstr("give --input"));
    }
  }
  const auto in_double = conv_program();
  in_double->to(at::kDouble);
  const OptimizeReport of_double =
      optimize(*in_double, {.inputs = {TensorInfo{.dtype = DType::float64, .sizes = {2, 4, 9, 7}}}, .target = "cpu"});
  EXPECT_EQ(packed_calls(in_double->graph()), 0u);
}

}  // namespace fx::lowering_test
