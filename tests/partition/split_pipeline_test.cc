// Plans of pipelines: memory, micro-batches, what is told of results that cannot be joined, and files of stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include <fxgraph/rewriter/partition/pipeline_plan.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/trace/symbolic_trace.h>
#include "tests/partition/pipeline_models.h"
#include "tests/partition/run_stages.h"
#include "tests/support/error_of.h"
#include "tests/trace/trace_testing.h"

namespace fx::split_pipeline_test {

using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::PipelineCase;
using torch::Tensor;

std::shared_ptr<GraphModule> program(const std::string& body) {
  return std::make_shared<GraphModule>(GraphModule::Attributes{{"w", torch::ones({4, 4})}},
                                       parse_graph("graph():\n    " + body));
}

TEST(SplitPipeline, BoundsWeightsAndActivationsTogether) {
  // Wide in the middle: 64 KiB where the ends have 1.
  const auto gm = program(R"(%x = placeholder[target=x]
    %a = call_function[target=aten::neg](args = (%x,))
    %e = call_function[target=aten::repeat](args = (%a, [64, 1]))
    %f = call_function[target=aten::exp](args = (%e,))
    %g = call_function[target=aten::sum.dim_IntList](args = (%f, [0]))
    %b = call_function[target=aten::neg](args = (%g,))
    return b)");
  const Tensor x = torch::ones({4, 64});
  PipelineOptions options;
  options.max_memory = 160 * 1024;
  const PipelineStages stages = split_pipeline(*gm, 2, {x}, options);
  for (const StageForecast& stage : stages.plan.stages)
    EXPECT_LE(stage.peak_bytes + stage.weight_bytes, options.max_memory) << stages.plan.str();
  EXPECT_TRUE(torch::equal(testing::run_stages(stages, {x}).toTensor(), gm->forward(x)));
  options.max_memory = 100 * 1024;
  EXPECT_THAT(error_of([&] { split_pipeline(*gm, 2, {x}, options); }),
              HasSubstr("2 stages do not do with 102400 bytes of weights and activations each"));
  // Smaller micro-batches hold less.
  const auto wide = program(R"(%x = placeholder[target=x]
    %a = call_function[target=aten::neg](args = (%x,))
    %b = call_function[target=aten::exp](args = (%a,))
    return b)");
  const Tensor batch = torch::ones({8, 1024});
  options.max_memory = 2 * 8 * 1024;
  EXPECT_THAT(error_of([&] { split_pipeline(*wide, 2, {batch}, options); }), HasSubstr("smaller micro-batches"));
  options.micro_batches = 4;
  EXPECT_EQ(split_pipeline(*wide, 2, {batch}, options).plan.stages[0].peak_bytes, 16 * 1024);
}

TEST(SplitPipeline, CostsAreThoseOfMicroBatches) {
  const PipelineCase model = testing::pipeline_case("bert");
  PipelineOptions options;
  const PipelinePlan whole = split_pipeline(*model.module, 2, model.inputs, options).plan;
  options.micro_batches = 4;
  const PipelinePlan parts = split_pipeline(*model.module, 2, model.inputs, options).plan;
  EXPECT_EQ(parts.micro_batches, 4u);
  EXPECT_LT(parts.stages[0].peak_bytes * 3, whole.stages[0].peak_bytes);
  EXPECT_GT(parts.stages[0].seconds, whole.stages[0].seconds) << "calls are made four times";
  const auto row = program(
      "%x = placeholder[target=x]\n    %a = call_function[target=aten::neg](args = (%x,))\n"
      "    %b = call_function[target=aten::exp](args = (%a,))\n    return b");
  for (const std::size_t count : {1u, 2u, 3u, 8u}) {
    const PipelinePlan plan = split_pipeline(*row, 2, {torch::ones({8, 16})}, {.micro_batches = count}).plan;
    EXPECT_EQ(plan.stages[0].sent_bytes, 8 * 16 * 4) << "the batch goes over once, in parts";
    EXPECT_EQ(plan.stages[0].sends.size(), 1u);
  }
  options.micro_batches = 9;
  EXPECT_THAT(error_of([&] { split_pipeline(*model.module, 2, model.inputs, options); }),
              HasSubstr("a batch of 8 cannot be cut into 9"));
}

TEST(SplitPipeline, MeasuresTheStagesThatItMade) {
  const PipelineCase model = testing::pipeline_case("resnet50");
  PipelineOptions options;
  options.cost = PipelineOptions::Cost::measured;
  options.micro_batches = 2;
  const PipelinePlan plan = split_pipeline(*model.module, 2, model.inputs, options).plan;
  EXPECT_TRUE(plan.measured);
  EXPECT_GT(plan.threads, 0);
  for (const StageForecast& stage : plan.stages) EXPECT_GT(stage.seconds, 1e-4);
  const PipelinePlan again = PipelinePlan::from_json(plan.json());
  EXPECT_EQ(again.json(), plan.json());
  EXPECT_EQ(again.digest(), plan.digest());
  EXPECT_EQ(again.stages[0].sends, plan.stages[0].sends);
}

TEST(SplitPipeline, SaysWhenResultsOfMicroBatchesAreNoBatch) {
  const auto not_joined = [](const std::string& result, const std::vector<c10::IValue>& inputs) {
    return split_pipeline(*program("%x = placeholder[target=x]\n"
                                   "    %w = get_attr[target=w]\n"
                                   "    %a = call_function[target=aten::exp](args = (%x,))\n"
                                   "    %t = call_function[target=aten::t](args = (%a,))\n"
                                   "    %f = call_function[target=aten::flatten.using_ints](args = (%a, 0, 1))\n"
                                   "    %v = call_function[target=aten::reshape](args = (%a, [2, -1]))\n"
                                   "    %c = call_function[target=aten::exp](args = (%w,))\n"
                                   "    %m = call_function[target=aten::mean](args = (%a,))\n"
                                   "    return " +
                                   result),
                          2, inputs)
        .plan.not_joined;
  };
  const std::vector<c10::IValue> x = {torch::rand({6, 4})};
  EXPECT_THAT(not_joined("a", x), IsEmpty());
  EXPECT_THAT(not_joined("(a, f)", x), IsEmpty()) << "four rows a sample";
  EXPECT_THAT(not_joined("t", x), HasSubstr("the first dimension of the result %t, float32[4, 6], is not the batch"));
  EXPECT_THAT(not_joined("(a, [c])", x), HasSubstr("the result %c, float32[4, 4]"));
  EXPECT_THAT(not_joined("v", x), HasSubstr("the result %v")) << "two rows, whatever the batch is";
  EXPECT_THAT(not_joined("m", x), IsEmpty()) << "which joining refuses by itself";
  EXPECT_THAT(not_joined("a", {torch::rand({1, 4})}), IsEmpty());
  EXPECT_THAT(not_joined("t", {torch::rand({1, 4})}), HasSubstr("%t"));
}

TEST(SplitPipeline, StagesHoldTheirOwnWeightsAlone) {
  const PipelineCase model = testing::pipeline_case("gpt");
  const PipelineStages stages = split_pipeline(*model.module, 4, model.inputs);
  std::map<std::string, int> held;
  for (std::size_t i = 0; i < stages.modules.size(); ++i) {
    std::int64_t bytes = 0;
    for (const auto& parameter : stages.modules[i]->named_parameters()) {
      ++held[parameter.key()];
      bytes += static_cast<std::int64_t>(parameter.value().nbytes());
    }
    for (const Tensor& buffer : stages.modules[i]->buffers()) bytes += static_cast<std::int64_t>(buffer.nbytes());
    EXPECT_EQ(bytes, stages.plan.stages[i].weight_bytes) << i;
  }
  for (const auto& parameter : model.module->named_parameters()) {
    // The embedding is tied to the last layer: the first and the last stage have it.
    EXPECT_EQ(held[parameter.key()], parameter.key() == "tokens.weight" ? 2 : 1) << parameter.key();
  }
}

}  // namespace fx::split_pipeline_test
