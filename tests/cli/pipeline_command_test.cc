// fxgraph pipeline and fxgraph run of its stages, as processes on the loopback address; and a folder of many models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fxgraph/cli/torch/backend.h>
#include <fxgraph/rewriter/partition/process_group.h>
#include <fxgraph/torchscript/import.h>

#include "tests/support/free_port.h"
#include "tests/support/scratch_folder.h"

namespace fx {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class PipelineCommandSlow : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* program = std::getenv("FXGRAPH_PROGRAM");
    if (!program || !can_connect()) GTEST_SKIP() << "the program or gloo is missing";
    program_ = program;
  }

  /// Exit code; what is printed goes to `out` and `err` in the folder.
  int shell(const std::string& command) const {
    const int status = std::system(("cd '" + folder_.path().string() + "' && { " + command + "; } >out 2>err").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string out() const { return text_of(folder_ / "out"); }
  std::string err() const { return text_of(folder_ / "err"); }
  std::string demo() const { return std::filesystem::absolute("examples/models/demo.pt").string(); }

  std::string program_;
  testing::ScratchFolder folder_;
};

TEST_F(PipelineCommandSlow, StagesComputeWhatTheProgramComputes) {
  ASSERT_EQ(shell(program_ + " pipeline " + demo() +
                  " --stages 2 --input 4x3x32x32 --micro-batches 2 -o stages --format json"),
            0)
      << err();
  const nlohmann::json plan = nlohmann::json::parse(out());
  EXPECT_EQ(plan.at("stages").size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "stages/stage_1.pt"));
  const std::string port = std::to_string(testing::free_port());
  // Each rank on its own: it has the plan and its own stage, and no other. The plan says how many micro-batches.
  for (const char* rank : {"0", "1"}) {
    const std::filesystem::path own = folder_ / (std::string("rank") + rank);
    std::filesystem::create_directories(own);
    for (const std::string& file : {std::string("plan.json"), std::string("stage_") + rank + ".pt"})
      std::filesystem::copy_file(folder_ / "stages" / file, own / file);
  }
  // In it are the weights of the stage, and no others.
  for (const std::size_t stage : {0u, 1u}) {
    std::int64_t bytes = 0;
    const auto module = load((folder_ / "stages" / ("stage_" + std::to_string(stage) + ".pt")).string());
    for (const torch::Tensor& tensor : module->parameters()) bytes += static_cast<std::int64_t>(tensor.nbytes());
    for (const torch::Tensor& tensor : module->buffers()) bytes += static_cast<std::int64_t>(tensor.nbytes());
    EXPECT_EQ(plan.at("stages")[stage].at("weight_bytes"), bytes);
  }
  std::filesystem::remove_all(folder_ / "stages");
  const auto run = [&](const std::string& rank) {
    return program_ + " run rank" + rank + " --world 2 --master 127.0.0.1:" + port + " --timeout 60 --rank " + rank;
  };
  ASSERT_EQ(shell(run("1") + " -o result.pt & " + run("0") + " --repeat 2 --format json && wait $!"), 1)
      << "one runs two rounds and one a single one";
  EXPECT_THAT(err(), HasSubstr("lost rank 1: it has finished; all ranks must call the same, as often"));
  ASSERT_EQ(shell(run("1") + " -o result.pt & " + run("0") + " --format json && wait $!"), 0) << err();
  EXPECT_THAT(out(), HasSubstr("rank 1 of 2: "));
  const nlohmann::json figures =
      nlohmann::json::parse(out().substr(out().find('{'), out().find('\n', out().find('{'))));
  EXPECT_EQ(figures.at("micro_batches"), 2);
  EXPECT_EQ(figures.at("machines"), 1);
  EXPECT_GT(figures.at("forecast").at("seconds").get<double>(), 0);
  const std::string bytes = text_of(folder_ / "result.pt");
  const torch::Tensor result = torch::pickle_load({bytes.begin(), bytes.end()}).toTensor();
  EXPECT_EQ(result.size(0), 4);
  torch::NoGradGuard inference;
  const auto whole = load(demo());
  torch::manual_seed(0);
  EXPECT_TRUE(torch::allclose(result, whole->run(cli::random_inputs({TensorInfo{.sizes = {4, 3, 32, 32}}})).toTensor(),
                              1e-4, 1e-5));
}

TEST_F(PipelineCommandSlow, WhatIsWrongIsASentence) {
  EXPECT_EQ(shell(program_ + " pipeline " + demo() + " --stages 5000 --input 4x3x32x32 -o stages"), 1);
  EXPECT_THAT(err(), HasSubstr("the program can be cut into"));
  EXPECT_EQ(shell(program_ + " run . --rank 0 --world 2"), 1);
  EXPECT_THAT(err(), HasSubstr("plan.json cannot be read; write the stages with fxgraph pipeline"));
  ASSERT_EQ(shell(program_ + " pipeline " + demo() + " --stages 2 --input 4x3x32x32 -o stages"), 0) << err();
  EXPECT_EQ(shell(program_ + " run stages --rank 0 --world 3"), 1);
  EXPECT_THAT(err(), HasSubstr("has 2 stages and there are 3 ranks"));
  EXPECT_EQ(shell(program_ + " run stages --rank 1 --world 2 --master here"), 1);
  EXPECT_THAT(err(), HasSubstr("'here' is no address of the first rank"));
  const std::string port = std::to_string(testing::free_port());
  EXPECT_EQ(shell(program_ + " run stages --rank 0 --world 2 --timeout 1 --master 127.0.0.1:" + port), 1);
  EXPECT_THAT(err(), HasSubstr("not all ranks met at 127.0.0.1:" + port + " within 1 s: rank 1 of 2 did not come"));
  EXPECT_EQ(shell(program_ + " run stages --rank 1 --world 2 --timeout 1.5 --master 127.0.0.1:" + port), 1);
  EXPECT_EQ(err(), "fxgraph: rank 1 of 2: not all ranks met at 127.0.0.1:" + port +
                       " within 1.5 s: nobody answers there: rank 0 did not come, or has another address\n");
  EXPECT_EQ(shell(program_ + " run stages --rank 1 --world 2 --timeout 1 --master nowhere.invalid:" + port), 1);
  EXPECT_THAT(err(), HasSubstr("the host 'nowhere.invalid' is not known"));
  const std::string zero = program_ + " run stages --world 2 --rank 0 --master 127.0.0.1:" + port;
  EXPECT_EQ(shell(zero + " --timeout 6 & sleep 2; " + zero + " --timeout 2; a=$?; wait $!; exit $a"), 1);
  EXPECT_THAT(err(), HasSubstr("port " + port + " is in use, by another rank 0 or program; give all ranks another\n"));
  const auto both = [&](const std::string& zero, const std::string& one) {
    const std::string run =
        program_ + " run stages --world 2 --timeout 20 --master 127.0.0.1:" + std::to_string(testing::free_port());
    return shell("{ " + run + " --rank 1 " + one + "; } & " + run + " --rank 0 " + zero +
                 "; a=$?; wait $!; [ $? = 1 ] && exit $a");
  };
  EXPECT_EQ(both("--micro-batches 2", "--micro-batches 4"), 1);
  EXPECT_THAT(err(), HasSubstr("rank 1: rank 0 runs in 2 micro-batches and this one runs in 4 micro-batches"));
  std::filesystem::copy_file(folder_ / "stages/stage_0.pt", folder_ / "stages/stage_1.pt",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(both("", ""), 1);
  const std::string said = err();
  const std::string wanted = "stage_1.pt is not the file that the plan was made with";
  const std::size_t once = said.find(wanted);
  ASSERT_NE(once, std::string::npos) << said;
  EXPECT_NE(said.find(wanted, once + 1), std::string::npos) << "both ranks say it: " << said;
}

TEST_F(PipelineCommandSlow, AFolderOfModelsGoesOnWhereItStopped) {
  const std::string examples = std::filesystem::absolute("examples/many_models").string();
  const char* identity = "graph():\n    %x = placeholder[target=x]\n    return x\n";
  std::filesystem::create_directories(folder_ / "models");
  std::filesystem::copy_file(demo(), folder_ / "models/a.pt");
  std::ofstream(folder_ / "models/a.fx") << identity;  // the same name but for the ending
  std::ofstream(folder_ / "models/b b.fx") << identity;
  std::ofstream(folder_ / "models/c.fx") << "no graph";
  const std::string run = "FXGRAPH=" + program_ + " JOBS=2 " + examples + "/optimize_folder models done";
  // Two tasks of an array.
  for (const char* task : {"3", "5"}) {
    EXPECT_EQ(
        shell("export SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_ID=" +
              std::string(task) + "; " + run),
        0)
        << err();
  }
  EXPECT_EQ(shell(examples + "/merge_reports done --json"), 1);
  nlohmann::json report = nlohmann::json::parse(out());
  EXPECT_EQ(report.at("models").size(), 4u);
  EXPECT_EQ(report.at("failed"), 1);
  EXPECT_THAT(report.dump(), HasSubstr("c.fx"));
  const auto written = [&](const char* name) { return std::filesystem::last_write_time(folder_ / "done" / name); };
  const auto first = written("a.pt.json");
  std::ofstream(folder_ / "models/c.fx") << identity;
  EXPECT_EQ(shell(run), 0) << err();
  EXPECT_EQ(shell(examples + "/merge_reports done"), 0) << out();
  EXPECT_THAT(out(), HasSubstr("4 models, 0 failed"));
  EXPECT_EQ(written("a.pt.json"), first);
  EXPECT_EQ(shell(run + " --rules drop-no-ops"), 0) << err();
  EXPECT_NE(written("a.pt.json"), first) << "the options are others";
}

}  // namespace
}  // namespace fx
