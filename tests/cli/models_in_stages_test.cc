// Every model of tests/models in stages that are given copies and give copies, as sending does: what they compute is
// what the whole computes, twice in a row, or they are refused; and once more when every stage was saved and loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include <fxgraph/rewriter/program/verify.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/partition/run_stages.h"
#include "tests/support/scratch_folder.h"
#include "tests/torchscript/model_files.h"

namespace fx::models_in_stages_test {

using testing::Example;
using testing::run_stages;

TEST(ModelsInStagesNight, ComputeWhatTheWholeComputes) {
  if (testing::models_folder().empty()) GTEST_SKIP() << "FXGRAPH_TEST_MODELS is not set: no models to test with";
  torch::NoGradGuard inference;
  std::size_t compared = 0, loaded = 0;
  const testing::ScratchFolder folder;
  const std::string saved = (folder / "stage.pt").string();
  std::map<std::string, std::size_t> refused;
  for (const nlohmann::json& entry : testing::entries(true)) {
    if (entry["kind"] != "scripted" || !entry["runs"].get<bool>()) continue;
    const std::string file = testing::models_folder() + "/" + entry["file"].get<std::string>();
    SCOPED_TRACE(file);
    const Example example = testing::read_example(entry);
    for (const std::size_t count : {2, 4}) {
      std::shared_ptr<GraphModule> whole;
      PipelineStages stages;
      try {
        whole = load(file);
        stages = split_pipeline(*load(file), count, copies_of(example.inputs));
      } catch (const Error& error) {
        ++refused[std::string(error.what()).substr(0, 60)];
        continue;
      }
      ASSERT_EQ(stages.modules.size(), count);
      // Files keep plans and stages apart: the plan is read again from its text.
      stages.plan = PipelinePlan::from_json(stages.plan.json());
      for (int call = 0; call < 2; ++call) {
        const c10::IValue expected = whole->run(copies_of(example.inputs));
        EXPECT_LE(relative_difference(expected, run_stages(stages, example.inputs), 1e-6), 1e-5) << count << " stages";
      }
      ++compared;
      const c10::IValue expected = load(file)->run(copies_of(example.inputs));
      try {
        stages = split_pipeline(*load(file), count, copies_of(example.inputs));
        for (auto& stage : stages.modules) {
          save(*stage, saved);
          stage = load(saved);
        }
      } catch (const Error& error) {
        ++refused[std::string(error.what()).substr(0, 60)];
        continue;
      }
      EXPECT_LE(relative_difference(expected, run_stages(stages, example.inputs), 1e-6), 1e-5) << count << " files";
      ++loaded;
    }
  }
  EXPECT_GT(loaded, 100u);
  EXPECT_GT(compared, 100u);
  for (const auto& [why, times] : refused) std::printf("%zu refused: %s\n", times, why.c_str());
}

}  // namespace fx::models_in_stages_test
