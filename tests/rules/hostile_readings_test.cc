// Hostile programs (testing/hostile/generator.h) rewritten as they are read: through modules, hidden writes and the
// rows of the table of definitions. What callers can see stays as it was.
#include <gtest/gtest.h>

#include <algorithm>

#include <fxgraph/matchers/definitions.h>
#include <fxgraph/module/state_keeper.h>
#include <fxgraph/rewriter/program/replace_pattern.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/shape_prop.h>
#include <fxgraph/testing/hostile/generator.h>

#include "tests/rules/hostile_run.h"

namespace fx::hostile_readings_test {

using hostile::HostileProgram;
using hostile::Rewritten;
using testing::HostileRun;
using testing::Trial;

/// A row with all its texts that this LibTorch has operators for.
struct Row {
  const Definition* definition;
  Pattern call;
  std::vector<Pattern> motifs;
};

const std::vector<Row>& rows() {
  static const std::vector<Row>& all = *[] {
    auto* rows = new std::vector<Row>;
    for (const Definition& row : definitions()) {
      try {
        Row made{&row, Pattern(row.calls.empty() ? row.call : row.calls.front()), {}};
        for (const std::vector<std::string>* texts : {&row.bodies, &row.found}) {
          for (const std::string& text : *texts) made.motifs.emplace_back(text);
        }
        rows->push_back(std::move(made));
      } catch (const Error&) {
        continue;
      }
    }
    return rows;
  }();
  return all;
}

/// Shapes for the first inputs; nothing where the program does not run on made-up ones.
std::optional<Shapes> shapes_of(GraphModule& module, const HostileProgram& program) {
  std::vector<TensorInfo> infos;
  for (const at::Tensor& input : program.inputs[0]) infos.push_back(tensor_info(input));
  const StateKeeper keeper(module);
  try {
    return propagate_shapes(module, infos);
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(HostileReadings, ACallInPlaceOfWhatAddsUpToItIsTheSame) {
  ASSERT_GT(rows().size(), 30u);
  HostileRun run(600);
  run.run([&](std::uint64_t seed) {
    const Row& row = rows()[seed % rows().size()];
    const bool with_shapes = seed % 4 != 0;
    Trial trial{hostile::draw_program(seed, {.motifs = row.motifs}), {}, row.definition->name};
    trial.rewrite = [&row, with_shapes](GraphModule& module, const HostileProgram& program) -> Rewritten {
      ReplaceOptions options;
      options.find.definitions = true;
      std::optional<Shapes> shapes = with_shapes ? shapes_of(module, program) : std::nullopt;
      if (shapes) options.shapes = &*shapes;
      const RewriteReport report = replace_pattern(module, row.call, Replacement(row.definition->call), options);
      const bool rounds = row.definition->promise != Promise::bit_exact;
      return {report.changed(), rounds};
    };
    return trial;
  });
  EXPECT_EQ(run.wrong(), 0u) << run;
  EXPECT_GT(run.changed(), run.programs() / 20);
}

}  // namespace fx::hostile_readings_test
