// What a plan promises: against the recurrence of who waits for whom, and against processes that sleep for their work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include <fxgraph/rewriter/partition/lower.h>
#include <fxgraph/rewriter/partition/pipeline.h>
#include <fxgraph/text/parse.h>
#include "tests/partition/ranks.h"
#include "tests/support/allocations.h"
#include "tests/support/error_of.h"
#include "tests/support/random.h"

namespace fx::pipeline_forecast_test {

using testing::expect_all_done;
using ::testing::HasSubstr;
using testing::Random;
using testing::Ranks;
using testing::setting;

/// Stages in a row, each of so many seconds for the whole batch.
PipelinePlan row_of(const std::vector<double>& seconds, std::int64_t bytes = 0) {
  PipelinePlan plan;
  plan.measured = true;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    StageForecast& stage = plan.stages.emplace_back();
    stage.seconds = seconds[i];
    if (i + 1 < seconds.size()) stage.sends = {{i + 1, bytes}};
  }
  return plan;
}

TEST(PipelineForecast, OfStagesThatAreEqual) {
  const PipelinePlan plan = row_of({4, 4, 4});
  const PipelineForecast alone = plan.forecast({.micro_batches = 4, .message_seconds = 0});
  EXPECT_NEAR(alone.seconds, 6, 1e-9);
  EXPECT_NEAR(alone.bubble, 1 - 12.0 / 18, 1e-9);
  const PipelineForecast on = plan.forecast({.micro_batches = 4, .rounds = 100, .message_seconds = 0});
  EXPECT_NEAR(on.seconds, 4, 0.01);
  for (const double busy : on.busy) EXPECT_NEAR(busy, 1, 0.01);
  EXPECT_NEAR(on.bubble, 0, 0.01);
}

TEST(PipelineForecast, StagesThatShareProcessorsAreSlower) {
  const PipelinePlan plan = row_of({8, 8, 8, 8});
  PipelineSetting setting{.micro_batches = 8, .rounds = 10, .message_seconds = 0};
  EXPECT_NEAR(plan.forecast(setting).seconds, 8, 0.1);
  setting.machine_of = {0, 0, 0, 0};
  setting.processors = {2};
  const PipelineForecast shared = plan.forecast(setting);
  EXPECT_NEAR(shared.seconds, 16, 0.1);
  for (const double busy : shared.busy)
    EXPECT_NEAR(busy, 0.5, 0.01) << "each has one of two processors half of the time";
  setting.processors = {4};
  EXPECT_NEAR(plan.forecast(setting).seconds, 8, 0.1);
  setting.machine_of = {0, 0, 1, 1};
  setting.processors = {1, 2};
  EXPECT_NEAR(plan.forecast(setting).seconds, 16, 0.1);
}

TEST(PipelineForecast, MessagesTakeTheProcessorsOfAMachineToo) {
  const PipelinePlan plan = row_of({8, 8}, 8'000'000'000);
  PipelineSetting setting{.micro_batches = 8, .rounds = 50, .bytes_per_second = 4e9, .message_seconds = 0};
  setting.machine_of = {0, 0};
  setting.processors = {1};
  EXPECT_NEAR(plan.forecast(setting).seconds, 18, 0.2) << "one does it all: twice eight to compute, two to copy";
}

TEST(PipelineForecast, TheSlowestStageAndItsMessagesDecide) {
  const PipelinePlan plan = row_of({1, 3, 1}, 4'000'000'000);
  const PipelineForecast forecast = plan.forecast({.micro_batches = 4, .rounds = 50, .bytes_per_second = 4e9});
  EXPECT_NEAR(forecast.seconds, 4.25, 0.01) << "three to compute, one to receive, and until the last has been taken";
  EXPECT_NEAR(forecast.busy[1], 3 / 4.25, 0.01);
  EXPECT_NEAR(forecast.busy[0], 1 / 4.25, 0.01);
}

TEST(PipelineForecast, IsTheRecurrenceOnRandomRows) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const std::size_t stages = 1 + random.below(5), count = 1 + random.below(random.chance(10) ? 2000 : 15);
    std::vector<double> seconds;
    for (std::size_t i = 0; i < stages; ++i) seconds.push_back(0.01 * static_cast<double>(random.between(0, 30)));
    const double message = random.chance(50) ? 0 : 0.003;
    // Of stage s and micro-batch i: when it has taken its input, and when it has its result.
    std::vector<std::vector<double>> taken(stages + 1, std::vector<double>(count, 0)), done = taken;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t s = 0; s < stages; ++s) {
        double begin = i ? done[s][i - 1] : 0;
        if (s + 1 < stages && i > kPipelineAhead) begin = std::max(begin, taken[s + 1][i - 1 - kPipelineAhead]);
        taken[s][i] = s ? std::max(begin, done[s - 1][i]) + message : begin;
        done[s][i] = taken[s][i] + seconds[s] / static_cast<double>(count);
      }
    }
    const PipelineForecast forecast = row_of(seconds).forecast({.micro_batches = count, .message_seconds = message});
    ASSERT_NEAR(forecast.seconds, done[stages - 1][count - 1], 1e-9) << seed;
    for (std::size_t s = 0; s < stages; ++s) {
      if (forecast.seconds > 0) {
        ASSERT_NEAR(forecast.busy[s], seconds[s] / forecast.seconds, 1e-9) << seed;
      }
    }
  }
}

TEST(PipelineForecast, OfAMillionMicroBatchesKeepsNoneOfThem) {
  PipelineForecast forecast;
  EXPECT_LT(testing::allocations_of([&] {
              forecast = row_of({100, 300, 200}).forecast({.micro_batches = 1'000'000, .message_seconds = 0});
            }),
            10'000u);
  EXPECT_NEAR(forecast.seconds, 300, 0.01);
  EXPECT_NEAR(forecast.busy[2], 2.0 / 3, 1e-3);
}

TEST(PipelineForecast, RefusesWhatDoesNotFit) {
  const auto refused = [](const PipelinePlan& plan, const PipelineSetting& setting) {
    return testing::error_of([&] { plan.forecast(setting); });
  };
  EXPECT_THAT(refused(row_of({1, 1}), {.micro_batches = 0}), HasSubstr("there must be a micro-batch"));
  EXPECT_THAT(refused(row_of({1, 1}), {.machine_of = {0}}), HasSubstr("the machines of 1 stages, and there are 2"));
  EXPECT_THAT(refused(row_of({1, 1}), {.machine_of = {0, 1}, .processors = {1}}),
              HasSubstr("machine 1 has no processors"));
  PipelinePlan plan = row_of({1, 1});
  plan.stages[1].sends = {{0, 5}};
  EXPECT_THAT(refused(plan, {}), HasSubstr("stage 1 sends to no later one"));
}

// Files may be damaged on the way: a plan is refused, or can be played.
TEST(PipelineForecast, PlansThatWereDamagedAreRefusedOrPlayed) {
  PipelinePlan plan = row_of({1, 2, 3}, 1000);
  plan.tied.push_back({{{0, "w"}, {2, "u"}}});
  plan.wiring = "graph():\n    return None\n";
  const std::string text = plan.json();
  ASSERT_EQ(PipelinePlan::from_json(text).json(), text);
  std::size_t refused = 0, played = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    std::string damaged = text;
    for (std::size_t i = 0; i <= random.below(3); ++i) {
      const std::size_t at = random.below(damaged.size());
      if (random.chance(40)) {
        damaged[at] = static_cast<char>(random.between(32, 126));
      } else if (random.chance(50)) {
        damaged.resize(at);
      } else {
        damaged.insert(at, std::to_string(random.between(0, 99)));
      }
      if (damaged.empty()) damaged = "{}";
    }
    try {
      const PipelinePlan read = PipelinePlan::from_json(damaged);
      read.forecast({.micro_batches = read.micro_batches, .rounds = 2});
      ++played;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("json"), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(played, 20u);
}

}  // namespace fx::pipeline_forecast_test
