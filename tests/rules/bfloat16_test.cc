// --dtype bf16: the same numbers to bfloat16's digits, whoever writes to what and whatever strides things have; what is
// no product stays float32; casts go where bfloat16 meets bfloat16, and nowhere else.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/import.h>

#include "tests/rules/everywhere.h"
#include "tests/rules/image_programs.h"
#include "tests/support/night.h"
#include "tests/torchscript/saved_and_loaded.h"

namespace fx::bfloat16_test {

using ::testing::HasSubstr;
using testing::image;
using testing::kImage;
using testing::random_image_program;

/// Every rule of the group wherever it fits, measured or not, then the casts.
void round_everywhere(GraphModule& module, const std::vector<TensorInfo>& inputs) {
  const auto shapes = [&] {
    const StateKeeper keeper(module);
    return propagate_shapes(module, inputs);
  };
  testing::rewrite_everywhere(module, {"precision"}, {""}, shapes());
  optimize(module, {.rules = {"bfloat16-casts"}, .inputs = inputs});
  module.graph().lint();
}

/// What several products in a row may make of rounding, of values that cancel, too; a wrong one is off by far more.
constexpr double kRoundedOften = 0.15;

std::size_t casts(const Graph& graph) { return graph.count(Op::call_function, "aten::_to_copy"); }

TEST(Bfloat16, KeepsRandomImagePrograms) {
  const at::NoGradGuard no_grad;
  std::size_t rounded = 0;
  for (std::uint64_t seed = 1; seed <= testing::by_night(120); ++seed) {
    at::manual_seed(seed);
    const auto original = random_image_program(seed, 3 + seed % 7);
    try {
      original->clone_graph_module()->run({image(2, false)});
    } catch (const std::exception&) {
      continue;
    }
    const auto after = original->clone_graph_module();
    round_everywhere(*after, kImage);
    rounded += casts(after->graph()) > 0;
    for (const std::int64_t batch : {2, 1, 3}) {
      for (const auto& [last, part] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
        const at::Tensor x = image(batch, last, part);
        try {
          original->clone_graph_module()->run({x});
        } catch (const std::exception&) {
          continue;  // view of other strides, for instance
        }
        const auto before = original->clone_graph_module(), now = after->clone_graph_module();
        ASSERT_LE(run_difference(*before, *now, {x}, 1), kRoundedOften)
            << "seed " << seed << ", batch " << batch << (last ? ", channels last" : "") << (part ? ", part" : "")
            << "\n"
            << print_graph(original->graph()) << print_graph(after->graph());
      }
    }
  }
  EXPECT_GT(rounded, testing::at_night() ? 60u : 5u);
}

// ── Casts ────────────────────────────────────────────────────────────────────────────────────────────────────────────

struct Chain {
  const char* name;
  const char* between;  ///< from %a, the first product's result, to %b
  std::size_t casts;    ///< that are left: 2 when bfloat16 goes straight from the first product to the second
  const char* result = "%out";
};

std::ostream& operator<<(std::ostream& out, const Chain& chain) { return out << chain.name; }

class Bfloat16Casts : public ::testing::TestWithParam<Chain> {};

constexpr Chain kChains[] = {
    {"nothing", "%b = call_function[target=aten::detach](args = (%a,))", 4},
    {"relu", "%b = call_function[target=aten::relu](args = (%a,))", 2},
    {"relu6", "%b = call_function[target=aten::relu6](args = (%a,))", 2},
    {"clamp_to_what_it_has", "%b = call_function[target=aten::clamp](args = (%a, -0.5, 0.75))", 2},
    {"clamp_to_what_it_rounds", "%b = call_function[target=aten::clamp](args = (%a, -0.3, 0.7))", 4},
    {"clamp_to_a_large_number", "%b = call_function[target=aten::clamp](args = (%a, 0, 257))", 4},
    {"add_rounds", "%b = call_function[target=aten::add.Tensor](args = (%a, %a))", 4},
    {"softmax_stays_float", "%b = call_function[target=aten::softmax.int](args = (%a, -1))", 4},
    {"views",
     "%v = call_function[target=aten::transpose.int](args = (%a, 0, 1))\n"
     "    %b = call_function[target=aten::reshape](args = (%v, [4, 4]))",
     2},
    {"views_that_others_see",
     "%v = call_function[target=aten::transpose.int](args = (%a, 0, 1))\n"
     "    %b = call_function[target=aten::reshape](args = (%v, [4, 4]))",
     4, "[%v, %out]"},
    {"what_others_read_as_float", "%b = call_function[target=aten::relu](args = (%a,))", 3, "[%b, %out]"},
    {"what_is_written",
     "%b = call_function[target=aten::relu](args = (%a,))\n"
     "    %w = call_function[target=aten::mul_.Scalar](args = (%b, 0.5))",
     4},
    {"what_is_written_through_a_view",
     "%b = call_function[target=aten::relu](args = (%a,))\n"
     "    %v = call_function[target=aten::select.int](args = (%b, 0, 0))\n"
     "    %w = call_function[target=aten::mul_.Scalar](args = (%v, 0.5))",
     4},
    {"cat_of_both", "%b = call_function[target=aten::cat](args = ([%a, %a], 1))", 2},
    {"cat_with_a_float", "%b = call_function[target=aten::cat](args = ([%a, %x], 1))", 4},
};

TEST_P(Bfloat16Casts, GoWhereNothingIsRounded) {
  const at::NoGradGuard no_grad;
  at::manual_seed(1);
  const Chain& chain = GetParam();
  const bool doubled = std::string(chain.between).find("cat") != std::string::npos;
  const std::string text =
      std::string("graph():\n    %x = placeholder[target=x]\n    %w1 = get_attr[target=w1]\n") +
      "    %w2 = get_attr[target=w2]\n    %a = call_function[target=aten::linear](args = (%x, %w1))\n    " +
      chain.between + "\n    %out = call_function[target=aten::linear](args = (%b, %w2))\n    return " + chain.result +
      "\n";
  GraphModule before({{"w1", at::randn({4, 4})}, {"w2", at::randn({4, doubled ? 8 : 4})}}, parse_graph(text));
  const auto after = before.clone_graph_module();
  round_everywhere(*after, {TensorInfo{.sizes = {4, 4}}});
  // Two more stand at the weights: rewriting alone folds nothing.
  EXPECT_EQ(casts(after->graph()), chain.casts + 2) << print_graph(after->graph());
  for (int round = 0; round < 4; ++round)
    EXPECT_LE(calls_difference(before, *after, {at::randn({4, 4})}, 1), 5e-2) << print_graph(after->graph());
}

INSTANTIATE_TEST_SUITE_P(All, Bfloat16Casts, ::testing::ValuesIn(kChains),
                         [](const auto& info) { return std::string(info.param.name); });

// ── Whole programs ───────────────────────────────────────────────────────────────────────────────────────────────────

std::shared_ptr<GraphModule> encoder_block() {
  at::manual_seed(1);
  const GraphModule::Attributes attributes = {{"a", at::randn({512, 512}) / 22},
                                              {"b", at::randn({512})},
                                              {"c", at::randn({512, 512}) / 22},
                                              {"d", at::randn({512})}};
  return std::make_shared<GraphModule>(attributes, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = get_attr[target=a]
    %b = get_attr[target=b]
    %c = get_attr[target=c]
    %d = get_attr[target=d]
    %p = call_function[target=aten::linear](args = (%x, %a, %b))
    %q = call_function[target=aten::relu](args = (%p,))
    %r = call_function[target=aten::linear](args = (%q, %c, %d))
    %s = call_function[target=aten::add.Tensor](args = (%r, %x))
    %t = call_function[target=aten::softmax.int](args = (%s, -1))
    return t
)"));
}

const std::vector<TensorInfo> kRows = {TensorInfo{.sizes = {64, 512}}};

TEST(Bfloat16, IsMeasuredAndSaved) {
  const at::NoGradGuard no_grad;
  const auto original = encoder_block();
  const auto after = original->clone_graph_module();
  const OptimizeReport report =
      optimize(*after, {.inputs = kRows, .target = "cpu", .max_slowdown = 1e6, .dtype = DType::bfloat16});
  std::size_t measured = 0, applied = 0;
  for (const RuleOutcome& outcome : report.rules) {
    if (outcome.rule->name != "bfloat16-matmul") continue;
    for (const rules::Choice& choice : outcome.choices) measured += choice.places;
    applied = outcome.applied;
  }
  EXPECT_EQ(measured, 2u);
  const auto loaded = from_torchscript(testing::saved_and_loaded(*after));
  for (const std::int64_t rows : {64, 1, 7}) {
    const at::Tensor x = at::randn({rows, 512}), expected = original->forward(x);
    for (GraphModule* module : {after.get(), loaded.get()}) {
      const at::Tensor found = module->forward(x);
      EXPECT_EQ(found.scalar_type(), at::kFloat);
      EXPECT_LE(relative_difference(expected, found), 5e-2);
    }
  }
  // Where it is faster its weights are in it, once, and take half the memory.
  std::size_t bytes = 0, bytes_before = 0;
  for (const at::Tensor& tensor : after->buffers()) bytes += tensor.nbytes();
  for (const at::Tensor& tensor : original->buffers()) bytes_before += tensor.nbytes();
  if (applied == 2) {
    EXPECT_LT(bytes, 0.6 * static_cast<double>(bytes_before));
  }
  EXPECT_EQ(original->forward(at::zeros({1, 512})).scalar_type(), at::kFloat);
}

TEST(Bfloat16, SaysWhatItNeeds) {
  const auto throws = [](const OptimizeOptions& options) -> std::string {
    try {
      optimize(*encoder_block(), options);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(throws({.inputs = kRows, .dtype = DType::bfloat16}), HasSubstr("a type needs a target"));
  EXPECT_THAT(throws({.inputs = kRows, .target = "cpu", .dtype = DType::float16}), HasSubstr("float16"));
  const auto module = encoder_block();
  const OptimizeReport report = optimize(*module, {.target = "cpu", .dtype = DType::bfloat16});
  for (const RuleOutcome& outcome : report.rules) {
    if (outcome.rule->name == "bfloat16-matmul") {
      EXPECT_THAT(outcome.refused.at(0).reason, HasSubstr("give --input"));
    }
  }
  EXPECT_EQ(casts(module->graph()), 0u);
}

// Only what was asked to be rounded is: doubles, whole numbers and what is bfloat16 already stay as they are.
TEST(Bfloat16, LeavesOtherTypesAlone) {
  for (const DType type : {DType::float64, DType::bfloat16}) {
    const auto module = encoder_block();
    module->to(type == DType::float64 ? at::kDouble : at::kBFloat16);
    round_everywhere(*module, {TensorInfo{.dtype = type, .sizes = {64, 512}}});
    EXPECT_EQ(casts(module->graph()), 0u);
  }
}

}  // namespace fx::bfloat16_test
