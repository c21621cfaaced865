// Random draws in stages: each process draws from its own generator, in the order of the micro-batches, and the
// gradients are those of what it drew. Every rank is this program once more.
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/partition/pipeline.h>
#include <fxgraph/run/micro_batches.h>
#include <fxgraph/text/parse.h>
#include "tests/partition/ranks.h"
#include "tests/support/error_of.h"

namespace fx::dropout_ranks_test {

using testing::Ranks;
using torch::Tensor;

constexpr std::size_t kDropMicroBatches = 3;
constexpr std::int64_t kDropBatch = 7;

std::shared_ptr<GraphModule> dropping_module() {
  torch::manual_seed(3);
  GraphModule::Attributes attributes;
  for (const char* name : {"a", "b", "c"}) attributes.emplace_back(name, torch::nn::Linear(8, 8).ptr());
  attributes.emplace_back("drop", torch::nn::Dropout(0.4).ptr());
  return std::make_shared<GraphModule>(attributes, parse_graph(R"(graph():
    %x = placeholder[target=x]
    %a = call_module[target=a](args = (%x,))
    %d = call_module[target=drop](args = (%a,))
    %b = call_module[target=b](args = (%d,))
    %e = call_function[target=aten::dropout](args = (%b, 0.5, True))
    %c = call_module[target=c](args = (%e,))
    %f = call_function[target=aten::dropout](args = (%c, 0.3, True))
    return f
)"));
}

Tensor mean_square(const c10::IValue& output, const std::vector<Tensor>&) { return output.toTensor().square().mean(); }

/// All stages in this process, each with the generator that its rank has. The stages stand in a row.
Tensor train_in_a_row(const PipelineStages& stages, const Tensor& x, std::vector<Tensor>& generators) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  Tensor total;
  for (std::size_t i = 0; i < kDropMicroBatches; ++i) {
    c10::IValue value = cut(x, kDropBatch, i, kDropMicroBatches);
    for (std::size_t stage = 0; stage < stages.modules.size(); ++stage) {
      generator.set_state(generators[stage]);
      value = stages.modules[stage]->run({value});
      generators[stage] = generator.get_state();
    }
    const auto samples = static_cast<double>(part_of(kDropBatch, i, kDropMicroBatches).second);
    const Tensor loss = mean_square(value, {}) * (samples / static_cast<double>(kDropBatch));
    loss.backward();
    total = total.defined() ? total + loss.detach() : loss.detach();
  }
  return total;
}

// A rank of the test below, which starts it.
TEST(DropoutRank, DISABLED_Run) {
  try {
    torch::set_num_threads(1);
    Workers workers = connect(*workers_from_environment());
    const auto count = static_cast<std::size_t>(workers.world());
    const Tensor x = torch::arange(static_cast<double>(kDropBatch * 8)).reshape({kDropBatch, 8}).to(torch::kFloat) / 20;
    const PipelineOptions options{.allow_random = true};
    const PipelineStages oracle = split_pipeline(*dropping_module(), count, {x}, options);
    Pipeline pipe(split_pipeline(*dropping_module(), count, {x}, options), workers);
    std::vector<Tensor> generators;
    for (std::size_t stage = 0; stage < count; ++stage) {
      torch::manual_seed(100 + static_cast<std::uint64_t>(stage));
      generators.push_back(at::detail::getDefaultCPUGenerator().get_state());
    }
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    Tensor own = generators.at(static_cast<std::size_t>(workers.rank()));
    for (const auto schedule : {PipelineRun::Schedule::one_forward_one_backward, PipelineRun::Schedule::fill_drain}) {
      const Tensor expected = train_in_a_row(oracle, x, generators);
      generator.set_state(own);
      const Tensor loss =
          pipe.train_step({x}, {x}, &mean_square, {.micro_batches = kDropMicroBatches, .schedule = schedule});
      own = generator.get_state();
      if (loss.defined() && !torch::allclose(loss, expected)) throw std::runtime_error("another loss");
      const auto& alone = oracle.modules[static_cast<std::size_t>(workers.rank())];
      for (const auto& parameter : pipe.module().named_parameters()) {
        const Tensor gradient = alone->attribute(parameter.key()).grad();
        if (!torch::allclose(parameter.value().grad(), gradient, 1e-4, 1e-6))
          throw std::runtime_error("another gradient of " + parameter.key());
      }
    }
    pipe.finish();
  } catch (const std::exception& error) {
    testing::end_rank(error.what());
  }
  std::_Exit(0);
}

class DropoutInStagesNight : public ::testing::TestWithParam<int> {};

TEST_P(DropoutInStagesNight, DrawsInEachProcessAndTrainsWhatItDrew) {
  if (!can_connect()) GTEST_SKIP() << "built without gloo's headers";
  const Tensor x = torch::rand({kDropBatch, 8});
  EXPECT_THAT(testing::error_of([&] { split_pipeline(*dropping_module(), 2, {x}); }),
              ::testing::HasSubstr("%d draws random numbers, which each process does by itself"));
  Ranks ranks;
  ranks.start("DropoutRank", GetParam(), {});
  testing::expect_all_done(ranks.wait(60), ranks);
}

INSTANTIATE_TEST_SUITE_P(Stages, DropoutInStagesNight, ::testing::Values(2, 3));

}  // namespace fx::dropout_ranks_test
