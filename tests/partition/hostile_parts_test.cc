// Hostile programs (testing/hostile) in parts: lowered to a back end that copies, split by chance, cut into
// stages that send copies. What callers can see stays as it was, or the program is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/module/module_info.h>
#include <fxgraph/rewriter/partition/inline_submodules.h>
#include <fxgraph/rewriter/partition/pipeline_plan.h>
#include <fxgraph/rewriter/partition/split_module.h>
#include <fxgraph/run/value.h>
#include <fxgraph/testing/hostile/judge.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "tests/partition/copying_part.h"
#include "tests/partition/run_stages.h"
#include "tests/program/on_hostile_programs.h"
#include "tests/support/night.h"
#include "tests/support/random.h"
#include "tests/trace/trace_testing.h"

namespace fx::hostile_parts_test {

using hostile::HostileProgram;
using testing::Random;
using testing::run_stages;
using torch::Tensor;

template <typename Action>
void on_programs(std::uint64_t usual, Action&& action) {
  testing::on_hostile_programs(usual, {.motifs = hostile::common_motifs(), .rare = false}, action);
}

/// For what copies: a copy is dense, and LibTorch's kernels for dense tensors may make NaN of an infinity where those
/// for others do not.
template <typename Action>
void on_copied_programs(std::uint64_t usual, Action&& action) {
  on_programs(usual, [&](const HostileProgram& program, std::uint64_t seed) -> std::optional<std::string> {
    const std::optional<std::string> wrong = action(program, seed);
    const bool is_of_kernels = wrong && wrong->find("not finite") != std::string::npos;
    return is_of_kernels && program.numbers != hostile::Numbers::tame ? action(program.with_tame_numbers(), seed)
                                                                      : wrong;
  });
}

std::optional<std::string> difference(const HostileProgram& program, GraphModule& before, GraphModule& after) {
  const hostile::Tolerance tolerance = hostile::tolerance_of(program.narrowest);
  std::optional<std::string> wrong = hostile::difference(before, after, program.inputs, tolerance);
  return wrong && hostile::is_ill_conditioned(program, tolerance) ? std::nullopt : wrong;
}

/// Calls both twice with each set of inputs, on copies; says where results differ, or what is left in the inputs.
template <typename Run>
std::optional<std::string> other_results(const HostileProgram& program, GraphModule& before, Run&& run) {
  const double tolerance = hostile::tolerance_of(program.narrowest).relative + 1e-12;
  for (const hostile::Tensors& set : program.inputs) {
    for (int call = 0; call < 2; ++call) {
      hostile::Tensors one, other;
      for (const Tensor& input : set) {
        one.push_back(input.clone());
        other.push_back(input.clone());
      }
      c10::IValue expected;
      torch::manual_seed(5);
      try {
        expected = before.run(std::vector<c10::IValue>(one.begin(), one.end()));
      } catch (const std::exception&) {
        return std::nullopt;  // this set of inputs does not fit
      }
      torch::manual_seed(5);
      c10::IValue got;
      try {
        got = run(other);
      } catch (const std::exception& error) {
        return std::string("it throws: ") + error.what();
      }
      if (const auto same = testing::same_value(got, expected, tolerance); !same)
        return std::string("another result in call ") + std::to_string(call) + ": " + same.message();
      for (std::size_t i = 0; i < one.size(); ++i) {
        if (!testing::same_value(other[i], one[i], tolerance))
          return "input " + std::to_string(i) + " is left otherwise";
      }
    }
  }
  return std::nullopt;
}

TEST(HostileParts, LoweredToABackEndThatCopies) {
  std::size_t parts = 0;
  on_copied_programs(500, [&](const HostileProgram& program, std::uint64_t seed) -> std::optional<std::string> {
    const auto before = program.build(), after = program.build();
    const OperatorSupport some([seed](const CallFacts& call) -> std::optional<std::string> {
      if (Random(seed + call.node().id() * 77).chance(70)) return std::nullopt;
      return "by chance";
    });
    const Lowered lowered = lower(*after, testing::CopyingBackend(some));
    parts += lowered.parts().size();
    return difference(program, *before, *lowered.module());
  });
  EXPECT_GT(parts, testing::by_night(200));
}

TEST(HostileParts, LoweredWithTensorsAloneGoingInAndOut) {
  std::size_t parts = 0, unknown = 0;
  on_copied_programs(300, [&](const HostileProgram& program, std::uint64_t seed) -> std::optional<std::string> {
    const auto before = program.build(), after = program.build();
    const OperatorSupport some([seed](const CallFacts& call) -> std::optional<std::string> {
      if (Random(seed + call.node().id() * 91).chance(85)) return std::nullopt;
      return "by chance";
    });
    LowerOptions options{.tensors_only = true};
    for (const Tensor& input : program.inputs[0]) options.examples.emplace_back(input.clone());
    std::optional<Lowered> lowered;
    try {
      lowered = lower(*after, testing::CopyingBackend(some), options);
    } catch (const Error&) {
      ++unknown;  // shapes that meta tensors do not show
      return std::nullopt;
    }
    parts += lowered->parts().size();
    return difference(program, *before, *lowered->module());
  });
  EXPECT_GT(parts, testing::by_night(80));
  EXPECT_LT(unknown, 60u);
}

// Parts that are fused and written out again, in the order that effects ask for: nothing is copied, so views and writes
// may go over their ends.
TEST(HostileParts, FusedByPartitionsAndInlinedAgain) {
  std::size_t parts = 0;
  on_programs(400, [&](const HostileProgram& program, std::uint64_t seed) -> std::optional<std::string> {
    const auto before = program.build(), after = program.build();
    const OrderEdges order = Effects(*after).order_edges();
    const auto by_chance = [seed](const Node& node) -> std::optional<std::string> {
      if (Random(seed + node.id() * 53).chance(75)) return std::nullopt;
      return "by chance";
    };
    const std::function<bool(const Node&)> crosses = [seed](const Node& node) {
      return Random(seed + node.id() * 17).chance(85);
    };
    PartitionOptions options{.order = &order};
    if (seed % 2) options.crosses = crosses;
    std::vector<std::vector<Node*>> chosen;
    std::vector<std::string> paths;
    const Partitioning proposed = propose_partitions(after->graph(), by_chance, options);
    for (const Partition& partition : proposed.partitions()) {
      paths.push_back("part_" + std::to_string(chosen.size()));
      chosen.push_back(partition.nodes);
    }
    parts += chosen.size();
    const auto fused = fuse_by_partitions(*after, chosen, "part_");
    torch::NoGradGuard inference;
    const auto wrong = other_results(program, *before, [&](const hostile::Tensors& inputs) {
      return fused->run(std::vector<c10::IValue>(inputs.begin(), inputs.end()));
    });
    if (wrong) return "fused: " + *wrong + "\n" + print_graph(fused->graph());
    const auto again = program.build();
    const auto back = inline_submodules(*fused, paths);
    const auto calls = [](const GraphModule& module) {
      return std::ranges::count_if(module.graph().nodes(), [](const Node& node) { return node.is_callable(); });
    };
    if (calls(*back) != calls(*again)) return "inlined there are other calls";
    auto lifted = again;
    if (!chosen.empty()) {
      std::vector<Node*> nodes;
      for (const Node* node : chosen[0]) nodes.push_back(again->graph().find(node->name()));
      lifted = inline_submodules(*lift_submodule(*again, nodes, "lifted_part"), {"lifted_part"});
    }
    return difference(program, *program.build(), *lifted);
  });
  EXPECT_GT(parts, testing::by_night(300));
}

TEST(HostileParts, SplitByChance) {
  std::size_t split = 0, refused = 0;
  on_programs(500, [&](const HostileProgram& program, std::uint64_t seed) -> std::optional<std::string> {
    const auto before = program.build(), after = program.build();
    Random random(seed);
    NodeMap<std::int64_t> part(after->graph(), 0);
    std::int64_t now = 0;
    for (const Node& node : after->graph().nodes()) {
      now += random.chance(30);
      part[node] = random.chance(85) ? now : random.between(0, now + 1);
    }
    try {
      const auto parts = split_module(*after, [&](const Node& node) { return part[node]; });
      ++split;
      torch::NoGradGuard inference;
      return other_results(program, *before, [&](const hostile::Tensors& inputs) {
        return parts->run(std::vector<c10::IValue>(inputs.begin(), inputs.end()));
      });
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_argument) throw;
      ++refused;
      return std::nullopt;
    }
  });
  EXPECT_GT(split, testing::by_night(100));
  EXPECT_GT(refused, testing::by_night(10));
}

TEST(HostileParts, StagesThatSendCopies) {
  std::size_t cut = 0, refused = 0;
  on_copied_programs(700, [&](const HostileProgram& program, std::uint64_t seed) -> std::optional<std::string> {
    const auto before = program.build(), after = program.build();
    std::vector<c10::IValue> examples(program.inputs[0].begin(), program.inputs[0].end());
    PipelineStages stages;
    try {
      PipelineOptions options;
      options.slack = seed % 3 == 0 ? 2 : 0.1;
      stages = split_pipeline(*after->clone_graph_module(), 1, examples);  // one stage refuses what no cut can mend
      stages = split_pipeline(*after, 2 + seed % 3, examples, options);
    } catch (const Error&) {
      ++refused;
      return std::nullopt;
    }
    ++cut;
    torch::NoGradGuard inference;
    const auto wrong = other_results(program, *before, [&](const hostile::Tensors& inputs) {
      return run_stages(stages, {inputs.begin(), inputs.end()});
    });
    return wrong ? std::optional(*wrong + "\n" + stages.plan.wiring) : std::nullopt;
  });
  EXPECT_GT(cut, testing::by_night(80));
  RecordProperty("cut", static_cast<int>(cut));
  RecordProperty("refused", static_cast<int>(refused));
}

}  // namespace fx::hostile_parts_test
