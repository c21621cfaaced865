// Hostile programs, and small ones that are hard to take apart, in real processes: every rank works the whole out by
// itself and compares. Results, buffers and gradients are those of one process, or the program is refused by name.
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/rewriter/partition/pipeline.h>
#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/run/micro_batches.h>
#include <fxgraph/testing/hostile/generator.h>
#include <fxgraph/testing/hostile/judge.h>
#include "tests/partition/copying_part.h"
#include "tests/partition/ranks.h"
#include "tests/partition/ranks_cases.h"
#include "tests/program/quiet.h"
#include "tests/trace/trace_testing.h"

namespace fx::hostile_ranks_test {

using testing::expect_all_done;
using ::testing::HasSubstr;
using testing::Ranks;
using testing::RanksCase;
using testing::same_value;
using testing::setting;
using torch::Tensor;

// ── A rank ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Tensor loss_of(const c10::IValue& output, const std::vector<Tensor>&) { return output.toTensor().square().mean(); }

void expect_same(const c10::IValue& got, const c10::IValue& expected, double tolerance, const std::string& what) {
  const auto same = same_value(got, expected, tolerance);
  if (!same) throw std::runtime_error(what + ": " + same.message());
}

/// What a stage holds is what the whole holds under the same names.
void expect_same_state(GraphModule& stage, const GraphModule& whole, double tolerance, const std::string& what) {
  for (const auto& buffer : stage.named_buffers()) {
    const Tensor expected = whole.find_attribute(buffer.key());
    if (expected.defined()) expect_same(buffer.value(), expected, tolerance, what + ", buffer " + buffer.key());
  }
  for (const auto& parameter : stage.named_parameters()) {
    const Tensor expected = whole.find_attribute(parameter.key());
    if (!expected.defined()) continue;
    expect_same(parameter.value(), expected, tolerance, what + ", parameter " + parameter.key());
    expect_same(parameter.value().grad(), expected.grad(), tolerance, what + ", gradient of " + parameter.key());
  }
}

/// The whole, micro-batch after micro-batch, as a pipeline does it.
c10::IValue whole_result(GraphModule& whole, const RanksCase& one, const std::vector<c10::IValue>& inputs) {
  const std::int64_t batch = batch_of(inputs);
  std::vector<c10::IValue> results;
  for (std::size_t i = 0; i < one.micro_batches; ++i) {
    std::vector<c10::IValue> part;
    for (const c10::IValue& input : inputs) part.push_back(cut(input, batch, i, one.micro_batches));
    results.push_back(whole.run(part));
    if (!one.train) continue;
    const auto samples = static_cast<double>(part_of(batch, i, one.micro_batches).second);
    (loss_of(results.back(), {}) * (samples / static_cast<double>(batch))).backward();
  }
  return join(results, batch);
}

/// Twice: gradients of the second training step are added to those of the first.
void run_case(const RanksCase& one, Workers& workers, std::int64_t batch) {
  const auto whole = testing::ranks_module(one), part = testing::ranks_module(one);
  const std::vector<c10::IValue> inputs = testing::ranks_inputs(*whole, batch);
  PipelineStages stages = split_pipeline(*part->clone_graph_module(), one.stages, copies_of(inputs));
  Pipeline pipe(stages, workers);
  for (int call = 0; call < 2; ++call) {
    const std::string what = std::string(one.name) + ", call " + std::to_string(call);
    const torch::AutoGradMode gradients(one.train);
    const c10::IValue expected = whole_result(*whole, one, copies_of(inputs));
    c10::IValue got;
    if (one.train) {
      const auto schedule = call ? PipelineRun::Schedule::fill_drain : PipelineRun::Schedule::one_forward_one_backward;
      const std::vector<Tensor> targets = {inputs.at(0).toTensor()};
      pipe.train_step(copies_of(inputs), targets, &loss_of, {.micro_batches = one.micro_batches, .schedule = schedule});
    } else {
      got = pipe.run(copies_of(inputs), {.micro_batches = one.micro_batches});
      if (workers.rank() == workers.world() - 1) expect_same(got, expected, 1e-6, what);
    }
    expect_same_state(pipe.module(), *whole, 1e-5, what);
  }
}

/// Says whether the program was cut; the same in every process.
bool run_hostile(std::uint64_t seed, Workers& workers) {
  const hostile::HostileProgram program =
      hostile::draw_program(seed, {.motifs = hostile::common_motifs(), .rare = false});
  if (!hostile::runs(program)) return false;
  const auto whole = program.build(), part = program.build();
  const torch::NoGradGuard inference;
  PipelineStages stages;
  const std::vector<c10::IValue> inputs(program.inputs[0].begin(), program.inputs[0].end());
  try {
    stages = split_pipeline(*part, static_cast<std::size_t>(workers.world()), copies_of(inputs));
  } catch (const Error&) {
    return false;
  }
  const hostile::Tolerance tolerance = hostile::tolerance_of(program.narrowest);
  if (hostile::is_ill_conditioned(program, tolerance)) return false;
  std::vector<c10::IValue> expected;
  try {
    for (int call = 0; call < 2; ++call) expected.push_back(copy_of(whole->run(copies_of(inputs))));
  } catch (const std::exception&) {
    return false;
  }
  Pipeline pipe(stages, workers);
  for (int call = 0; call < 2; ++call) {
    const c10::IValue got = pipe.run(copies_of(inputs));
    if (workers.rank() < workers.world() - 1) continue;
    expect_same(got, expected[static_cast<std::size_t>(call)], tolerance.relative + 1e-12,
                "call " + std::to_string(call) + "\n" + program.str() + stages.plan.wiring);
  }
  return true;
}

// A rank of the tests below, which start it.
TEST(HostileRank, DISABLED_Run) {
  const testing::Quiet quiet;
  WorkerAddress address = *workers_from_environment();
  std::string at = "before the first";
  try {
    Workers workers = connect(address);
    std::size_t cut = 0;
    try {
      if (const std::string task = setting("FX_TASK"); task == "cases") {
        for (const RanksCase& one : testing::ranks_cases()) {
          if (one.stages != static_cast<std::size_t>(workers.world())) continue;
          at = one.name;
          for (const std::int64_t batch :
               one.micro_batches > 1 ? std::vector<std::int64_t>{6, 7, 12} : std::vector<std::int64_t>{6}) {
            run_case(one, workers, batch);
            ++cut;
          }
        }
      } else {
        const std::uint64_t first = std::stoull(setting("FX_SEED")), count = std::stoull(setting("FX_COUNT"));
        for (std::uint64_t seed = first; seed < first + count; ++seed) {
          at = "seed " + std::to_string(seed);
          cut += run_hostile(seed, workers);
        }
      }
      workers.leave();
    } catch (const std::exception& error) {
      workers.give_up(at + ": " + error.what());
      throw;
    }
    std::ofstream(setting("FX_OUT") + "/cut" + setting("RANK")) << cut;
  } catch (const std::exception& error) {
    testing::end_rank(at + ": " + error.what());
  }
  std::_Exit(0);
}

// ── All ranks ────────────────────────────────────────────────────────────────────────────────────────────────────────

class CasesInProcesses : public ::testing::TestWithParam<int> {};

TEST_P(CasesInProcesses, AreThoseOfOneProcess) {
  if (!can_connect()) GTEST_SKIP() << "built without gloo's headers";
  Ranks ranks;
  ranks.start("HostileRank", GetParam(), {{"FX_TASK", "cases"}});
  expect_all_done(ranks.wait(120), ranks);
  std::size_t cases = 0;
  std::ifstream(ranks.folder() / "cut0") >> cases;
  EXPECT_GE(cases, 3u);
}

INSTANTIATE_TEST_SUITE_P(Stages, CasesInProcesses, ::testing::Values(2, 3, 4));

TEST(HostileProgramsInProcessesNight, ComputeWhatTheWholeComputes) {
  if (!can_connect()) GTEST_SKIP() << "built without gloo's headers";
  Ranks ranks;
  const std::string count = setting("FXGRAPH_HOSTILE_PROGRAMS", "120");
  ranks.start("HostileRank", 3,
              {{"FX_TASK", "hostile"}, {"FX_SEED", setting("FXGRAPH_HOSTILE_SEED", "4000")}, {"FX_COUNT", count}});
  expect_all_done(ranks.wait(60 + std::stod(count)), ranks);
  std::size_t cut = 0;
  std::ifstream(ranks.folder() / "cut2") >> cut;
  EXPECT_GE(cut, std::stoull(count) / 20) << "of " << count;
}

}  // namespace fx::hostile_ranks_test
