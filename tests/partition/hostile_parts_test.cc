// Hostile programs (rewriter/program/hostile) in parts: lowered to a back end that copies, split by chance, cut into
// stages that send copies. What callers can see stays as it was, or the program is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <c10/util/Exception.h>
#include <torch/torch.h>

#include <cstdlib>

#include <fxgraph/rewriter/partition/pipeline_plan.h>
#include <fxgraph/rewriter/partition/split_module.h>
#include <fxgraph/rewriter/program/hostile/generator.h>
#include <fxgraph/rewriter/program/hostile/judge.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include "tests/partition/copying_part.h"
#include "tests/support/random.h"
#include "tests/trace/trace_testing.h"

namespace fx {
namespace {

using hostile::Program;
using testing::Random;
using torch::Tensor;

/// How many programs; FXGRAPH_HOSTILE_PROGRAMS and FXGRAPH_HOSTILE_SEED ask for more, and others.
std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

struct Silence : c10::WarningHandler {
  void process(const c10::SourceLocation&, const std::string&, const bool) override {}
};

/// Tries `action` on programs that run; it returns what is wrong, or nothing, and counts what it did.
template <typename Action>
void on_programs(std::uint64_t usual, Action&& action) {
  Silence silence;
  const c10::Warning::WarningHandlerGuard quiet(&silence);
  c10::SetStackTraceFetcher([] { return std::string(); });
  const std::uint64_t first = number("FXGRAPH_HOSTILE_SEED", 0), count = number("FXGRAPH_HOSTILE_PROGRAMS", usual);
  std::size_t ran = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Program program = hostile::draw_program(seed, {.motifs = hostile::common_motifs()});
    if (!hostile::runs(program)) continue;
    ++ran;
    const std::optional<std::string> wrong = action(program, seed);
    ASSERT_FALSE(wrong) << "seed " << seed << ": " << *wrong << "\n" << program.str();
  }
  EXPECT_GT(ran * 2, count);
}

std::optional<std::string> difference(const Program& program, GraphModule& before, GraphModule& after) {
  const hostile::Tolerance tolerance = hostile::tolerance_of(program.narrowest);
  std::optional<std::string> wrong = hostile::difference(before, after, program.inputs, tolerance);
  return wrong && hostile::is_ill_conditioned(program, tolerance) ? std::nullopt : wrong;
}

TEST(HostilePartsSlow, LoweredToABackEndThatCopies) {
  std::size_t parts = 0;
  on_programs(500, [&](const Program& program, std::uint64_t seed) -> std::optional<std::string> {
    const auto before = program.build(), after = program.build();
    const OperatorSupport some([seed](const CallFacts& call) -> std::optional<std::string> {
      if (Random(seed + call.node().id() * 77).chance(70)) return std::nullopt;
      return "by chance";
    });
    const Lowered lowered = lower(*after, testing::CopyingBackend(some));
    parts += lowered.parts().size();
    return difference(program, *before, *lowered.module());
  });
  EXPECT_GT(parts, 200u);
}

TEST(HostilePartsSlow, SplitByChance) {
  std::size_t split = 0, refused = 0;
  on_programs(500, [&](const Program& program, std::uint64_t seed) -> std::optional<std::string> {
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
      return difference(program, *before, *parts);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_argument) throw;
      ++refused;
      return std::nullopt;
    }
  });
  EXPECT_GT(split, 100u);
  EXPECT_GT(refused, 10u);
}

/// Runs the stages in one process, each given copies and giving copies: what sending does.
c10::IValue run_stages(const PipelineStages& stages, const std::vector<Tensor>& inputs) {
  const Graph wiring = parse_graph(stages.plan.wiring);
  NodeMap<c10::IValue> values(wiring);
  const auto value_of = [&](Node& node) { return values[node]; };
  std::size_t input = 0, stage = 0;
  for (const Node& node : wiring.nodes()) {
    if (node.is(Op::placeholder)) values[node] = inputs.at(input++);
    if (node.is(Op::call_module)) {
      std::vector<c10::IValue> arguments;
      for (const Argument& argument : node.args())
        arguments.push_back(testing::copied(to_ivalue(argument, nullptr, value_of)));
      values[node] = testing::copied(stages.modules.at(stage++)->run(std::move(arguments)));
    }
    if (node.is(Op::call_function))
      values[node] = values[node.arg(0).node()].toTupleRef().elements().at(static_cast<std::size_t>(node.arg(1).as_int()));
    if (node.is(Op::output)) return to_ivalue(node.arg(0), nullptr, value_of);
  }
  return {};
}

TEST(HostilePartsSlow, StagesThatSendCopies) {
  std::size_t cut = 0, refused = 0;
  on_programs(700, [&](const Program& program, std::uint64_t seed) -> std::optional<std::string> {
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
    for (const hostile::Tensors& set : program.inputs) {
      for (int call = 0; call < 2; ++call) {
        hostile::Tensors one, other;
        for (const Tensor& input : set) {
          one.push_back(input.detach().clone());
          other.push_back(input.detach().clone());
        }
        c10::IValue expected;
        try {
          expected = before->run(std::vector<c10::IValue>(one.begin(), one.end()));
        } catch (const std::exception&) {
          return std::nullopt;
        }
        const c10::IValue got = run_stages(stages, other);
        if (!testing::same_value(got, expected, hostile::tolerance_of(program.narrowest).relative + 1e-12))
          return "another result in " + std::to_string(stages.modules.size()) + " stages, call " +
                 std::to_string(call) + "\n" + stages.plan.wiring;
      }
    }
    return std::nullopt;
  });
  EXPECT_GT(cut, 80u);
  RecordProperty("cut", static_cast<int>(cut));
  RecordProperty("refused", static_cast<int>(refused));
}

}  // namespace
}  // namespace fx
