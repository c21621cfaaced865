// Pipelines in processes of their own on the loopback address: equal results and gradients, and no rank that hangs when
// another fails. Every rank is this program once more, run as the test PipelineWorker.Run.
#include <fxgraph/rewriter/partition/pipeline.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include <fxgraph/trace/symbolic_trace.h>
#include "tests/partition/pipeline_models.h"
#include "tests/partition/ranks.h"
#include "tests/trace/trace_testing.h"

namespace fx::pipeline_test {

using ::testing::AllOf;
using testing::expect_all_done;
using ::testing::HasSubstr;
using testing::PipelineCase;
using testing::Ranks;
using testing::setting;
using torch::Tensor;

// ── A rank ───────────────────────────────────────────────────────────────────────────────────────────────────────────

// The one that holds few micro-batches first: the peak is that of all steps so far.
constexpr PipelineRun::Schedule kSchedules[] = {PipelineRun::Schedule::one_forward_one_backward,
                                                PipelineRun::Schedule::fill_drain};
std::string prefix_of(PipelineRun::Schedule schedule) {
  return schedule == PipelineRun::Schedule::fill_drain ? "fill/" : "turns/";
}

void run_rank(const std::string& task, const PipelineCase& model, Pipeline& pipe, const PipelineRun& how) {
  const int rank = std::stoi(setting("RANK"));
  const std::string out = setting("FX_OUT") + "/" + std::to_string(rank);
  if (task == "forward" || task == "loop") {
    c10::IValue result;
    for (int i = 0; i < (task == "loop" ? 100'000 : 1); ++i) {
      if (setting("FX_THROW") == std::to_string(rank) && i == 3) throw std::runtime_error("the cooling failed");
      if (setting("FX_HANG") == std::to_string(rank) && i == 3) std::this_thread::sleep_for(std::chrono::hours(1));
      result = pipe.run(model.inputs, how);
    }
    if (!result.isNone()) {
      const std::vector<char> bytes = torch::pickle_save(result);
      std::ofstream(out, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    return;
  }
  c10::Dict<std::string, Tensor> found;
  if (const c10::IValue result = pipe.run(model.inputs, how); !result.isNone())
    found.insert("result", result.toTensor());
  for (const auto schedule : kSchedules) {
    for (Tensor& parameter : pipe.module().parameters()) parameter.mutable_grad() = Tensor();
    const Tensor loss = pipe.train_step(model.inputs, model.targets, model.loss,
                                        {.micro_batches = how.micro_batches, .schedule = schedule});
    const std::string prefix = prefix_of(schedule);
    for (const auto& parameter : pipe.module().named_parameters()) {
      if (parameter.value().grad().defined()) found.insert(prefix + parameter.key(), parameter.value().grad().clone());
    }
    if (loss.defined()) found.insert(prefix + "loss", loss);
    found.insert(prefix + "held", torch::tensor(static_cast<double>(pipe.statistics().peak_micro_batches)));
  }
  const std::vector<char> bytes = torch::pickle_save(found);
  std::ofstream(out, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A rank of the other tests, which start it.
TEST(PipelineWorker, DISABLED_Run) {
  const std::string task = setting("FX_TASK");
  torch::set_num_threads(1);
  WorkerAddress address = *workers_from_environment();
  address.timeout = std::chrono::milliseconds(std::stoi(setting("FX_TIMEOUT", "20000")));
  try {
    const PipelineCase model = testing::pipeline_case(setting("FX_MODEL"));
    PipelineStages stages = split_pipeline(*model.module, std::stoul(setting("FX_STAGES")), model.inputs);
    if (setting("FX_WRONG") == setting("RANK")) stages.plan.stages[0].seconds += 1;
    Workers workers = connect(address);
    Pipeline pipe(stages, workers);
    PipelineRun how{.micro_batches = std::stoul(setting("FX_MICRO", "1"))};
    try {
      run_rank(task, model, pipe, how);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      workers.give_up("rank " + setting("RANK") + ": " + error.what());
      throw;
    }
    pipe.finish();
  } catch (const std::exception& error) {
    testing::end_rank(error.what());
  }
  std::_Exit(0);
}

// ── All ranks ────────────────────────────────────────────────────────────────────────────────────────────────────────

class PipelineNight : public ::testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(PipelineNight, ResultsAndGradientsAreThoseOfOneProcess) {
  if (!can_connect()) GTEST_SKIP() << "built without gloo's headers";
  const auto [name, stages] = GetParam();
  PipelineCase model = testing::pipeline_case(name);
  const PipelineStages split = split_pipeline(*model.module, static_cast<std::size_t>(stages), model.inputs);
  const c10::IValue output = model.module->run(model.inputs);
  const Tensor loss = model.loss(output, model.targets);
  loss.backward();
  constexpr int kMicroBatches = 4;
  Ranks ranks;
  ranks.start("PipelineWorker", stages,
              {{"FX_TASK", "train"}, {"FX_MODEL", name}, {"FX_MICRO", std::to_string(kMicroBatches)}});
  expect_all_done(ranks.wait(180), ranks);
  std::size_t compared = 0;
  for (int rank = 0; rank < stages; ++rank) {
    const c10::IValue file = ranks.result(rank);
    ASSERT_TRUE(file.isGenericDict()) << ranks.said(rank);
    const auto got = c10::impl::toTypedDict<std::string, Tensor>(file.toGenericDict());
    if (rank == stages - 1) {
      EXPECT_TRUE(torch::allclose(got.at("result"), output.toTensor(), 1e-4, 1e-5)) << name;
    }
    for (const auto schedule : kSchedules) {
      const std::string prefix = prefix_of(schedule);
      if (rank == stages - 1) {
        EXPECT_TRUE(torch::allclose(got.at(prefix + "loss"), loss.detach(), 1e-5, 1e-6)) << name;
      }
      const bool fill = schedule == PipelineRun::Schedule::fill_drain;
      EXPECT_LE(got.at(prefix + "held").item<double>(), fill ? kMicroBatches : stages - rank) << prefix << rank;
      // The stages share their parameters with the whole: there the gradients are.
      for (const auto& parameter : split.modules[static_cast<std::size_t>(rank)]->named_parameters()) {
        const Tensor expected = parameter.value().grad();
        ASSERT_EQ(expected.defined(), got.contains(prefix + parameter.key())) << name << parameter.key();
        if (!expected.defined()) continue;
        const Tensor found = got.at(prefix + parameter.key());
        EXPECT_LE((found - expected).abs().max().item<double>(), 1e-5 + 1e-3 * expected.abs().max().item<double>())
            << name << " " << prefix << parameter.key();
        compared += fill;
      }
    }
  }
  EXPECT_GE(compared, model.module->parameters().size());
}

INSTANTIATE_TEST_SUITE_P(All, PipelineNight,
                         ::testing::Combine(::testing::Values("resnet50", "bert", "gpt"), ::testing::Values(2, 4)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + std::to_string(std::get<1>(info.param));
                         });

// ── Faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────

// Seconds, most of them for starting on a busy machine. So are the milliseconds that a rank waits for the others
// (FX_TIMEOUT, 20 s where a test does not say): few only where the test is that they pass, and even then time for all
// ranks to load LibTorch.
constexpr double kLimit = 120;
constexpr const char* kShortTimeout = "10000";

TEST(PipelineFaultsNight, AStageThatThrowsIsNamedByAll) {
  if (!can_connect()) GTEST_SKIP() << "built without gloo's headers";
  Ranks ranks;
  ranks.start("PipelineWorker", 3, {{"FX_TASK", "loop"}, {"FX_MODEL", "mlp"}, {"FX_THROW", "1"}});
  EXPECT_EQ(ranks.wait(kLimit), (std::vector<int>{1, 1, 1}));
  EXPECT_THAT(ranks.said(1), HasSubstr("the cooling failed"));
  for (const int rank : {0, 2}) EXPECT_THAT(ranks.said(rank), HasSubstr("rank 1: the cooling failed")) << rank;
}

TEST(PipelineFaultsNight, AStageThatHangsIsLeft) {
  if (!can_connect()) GTEST_SKIP() << "built without gloo's headers";
  Ranks ranks;
  ranks.start("PipelineWorker", 3,
              {{"FX_TASK", "loop"}, {"FX_MODEL", "mlp"}, {"FX_HANG", "2"}, {"FX_TIMEOUT", kShortTimeout}});
  const std::vector<int> codes = ranks.wait(kLimit, 2);
  EXPECT_EQ(codes[0], 1) << ranks.said(0);
  EXPECT_EQ(codes[1], 1) << ranks.said(1);
  EXPECT_EQ(codes[2], -1);
}

TEST(PipelineFaultsNight, ARankTooFewOrTooManyAndAWrongPlan) {
  if (!can_connect()) GTEST_SKIP() << "built without gloo's headers";
  Ranks few;
  few.start("PipelineWorker", 2,
            {{"FX_TASK", "forward"}, {"FX_MODEL", "mlp"}, {"FX_STAGES", "3"}, {"FX_TIMEOUT", kShortTimeout}}, 3);
  Ranks many;
  many.start("PipelineWorker", 3, {{"FX_TASK", "forward"}, {"FX_MODEL", "mlp"}, {"FX_STAGES", "2"}});
  Ranks wrong;
  wrong.start("PipelineWorker", 3, {{"FX_TASK", "forward"}, {"FX_MODEL", "mlp"}, {"FX_WRONG", "2"}});
  EXPECT_EQ(few.wait(kLimit), (std::vector<int>{1, 1}));
  EXPECT_THAT(few.said(0), HasSubstr("not all ranks met at 127.0.0.1"));
  for (const int rank : {0, 1}) EXPECT_THAT(few.said(rank), HasSubstr("rank 2 of 3 did not come")) << rank;
  EXPECT_EQ(many.wait(kLimit), (std::vector<int>{1, 1, 1}));
  EXPECT_THAT(many.said(2), HasSubstr("the plan has 2 stages and there are 3 ranks"));
  EXPECT_EQ(wrong.wait(kLimit), (std::vector<int>{1, 1, 1}));
  EXPECT_THAT(wrong.said(0), HasSubstr("has another plan"));
}

// A rank killed at a random moment: before they meet, while they do, in the middle of a micro-batch.
// FXGRAPH_PIPELINE_KILLS is how often.
TEST(PipelineFaultsNight, KilledAtRandomMomentsNobodyHangs) {
  if (!can_connect()) GTEST_SKIP() << "built without gloo's headers";
  std::mt19937 random(17);
  const int kills = std::stoi(setting("FXGRAPH_PIPELINE_KILLS", "2"));
  for (int i = 0; i < kills; ++i) {
    Ranks ranks;
    const int victim = static_cast<int>(random() % 4);
    const auto moment = std::chrono::milliseconds(random() % 2500);
    ranks.start("PipelineWorker", 4,
                {{"FX_TASK", "loop"}, {"FX_MODEL", "mlp"}, {"FX_MICRO", "2"}, {"FX_TIMEOUT", kShortTimeout}});
    std::this_thread::sleep_for(moment);
    ranks.end(victim, SIGKILL);
    const std::vector<int> codes = ranks.wait(kLimit);
    for (int rank = 0; rank < 4; ++rank) {
      const int code = codes[static_cast<std::size_t>(rank)];
      EXPECT_EQ(code, rank == victim ? 128 + SIGKILL : 1)
          << "rank " << rank << ", victim " << victim << " after " << moment.count() << " ms: " << ranks.said(rank);
      if (rank != victim) {
        EXPECT_THAT(ranks.said(rank), HasSubstr("rank")) << moment.count();
      }
    }
  }
}

}  // namespace fx::pipeline_test
