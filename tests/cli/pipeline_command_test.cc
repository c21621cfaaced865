// fxgraph pipeline and fxgraph run of its stages, as processes on the loopback address; and a folder of many models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <fxgraph/cli/torch/backend.h>
#include <fxgraph/rewriter/partition/process_group.h>
#include <fxgraph/torchscript/import.h>

#include "tests/support/file_text.h"
#include "tests/support/free_port.h"
#include "tests/support/scratch_folder.h"

namespace fx::pipeline_command_test {

using ::testing::AllOf;
using testing::file_text;
using ::testing::HasSubstr;
using ::testing::Not;

class PipelineCommand : public ::testing::Test {
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
  std::string out() const { return file_text(folder_ / "out"); }
  std::string err() const { return file_text(folder_ / "err"); }
  std::string demo() const { return std::filesystem::absolute("examples/models/demo.pt").string(); }

  std::string program_;
  testing::ScratchFolder folder_;
};
struct PipelineCommandNight : PipelineCommand {};

TEST_F(PipelineCommandNight, StagesComputeWhatTheProgramComputes) {
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
  const std::string bytes = file_text(folder_ / "result.pt");
  const torch::Tensor result = torch::pickle_load({bytes.begin(), bytes.end()}).toTensor();
  EXPECT_EQ(result.size(0), 4);
  torch::NoGradGuard inference;
  const auto whole = load(demo());
  torch::manual_seed(0);
  EXPECT_TRUE(torch::allclose(result, whole->run(cli::random_inputs({TensorInfo{.sizes = {4, 3, 32, 32}}})).toTensor(),
                              1e-4, 1e-5));
}

// Token ids, a number and a list of tensors, as values from a file: what shapes cannot say.
TEST_F(PipelineCommandNight, RunsOnValuesOfAFile) {
  std::ofstream(folder_ / "ids.fx") << R"(graph():
    %table = placeholder[target=table]
    %ids : Tensor = placeholder[target=ids]
    %n : int = placeholder[target=n]
    %more : List[Tensor] = placeholder[target=more]
    %all = call_function[target=aten::cat](args = (%more, 0))
    %rows = call_function[target=aten::embedding](args = (%table, %ids))
    %a = call_function[target=aten::tanh](args = (%rows,))
    %b = call_function[target=aten::mul.Scalar](args = (%a, %n))
    %c = call_function[target=aten::add.Tensor](args = (%b, %all))
    return c
)";
  torch::manual_seed(1);
  const torch::Tensor table = torch::randn({50, 4}), one = torch::randn({1, 4}), two = torch::randn({2, 4});
  const torch::Tensor ids = torch::tensor({49, 7, 20});
  const auto write = [&](const c10::IValue& value) {
    const std::vector<char> bytes = torch::jit::pickle_save(value);
    std::ofstream(folder_ / "inputs.pt", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  const auto read = [&] {
    const std::string bytes = file_text(folder_ / "result.pt");
    return torch::pickle_load({bytes.begin(), bytes.end()}).toTensor();
  };
  write(c10::ivalue::Tuple::create({table, ids, std::int64_t{3}, c10::List<at::Tensor>({one, two})}));
  const torch::Tensor expected = torch::tanh(torch::embedding(table, ids)) * 3 + torch::cat({one, two});
  ASSERT_EQ(shell(program_ + " run ids.fx --values inputs.pt -o result.pt"), 0) << err();
  EXPECT_TRUE(torch::allclose(read(), expected));
  std::filesystem::remove(folder_ / "result.pt");
  ASSERT_EQ(shell(program_ + " pipeline ids.fx --stages 2 --values inputs.pt -o parts"), 0) << err();
  const std::string ranks = program_ + " run parts --timeout 60 --world 2 -o result.pt --master 127.0.0.1:" +
                            std::to_string(testing::free_port()) + " --rank ";
  ASSERT_EQ(shell(ranks + "1 & " + ranks + "0 --values inputs.pt && wait $!"), 0) << err();
  EXPECT_TRUE(torch::allclose(read(), expected));

  EXPECT_EQ(shell(program_ + " run parts --world 2 --timeout 20 --rank 1 --master 127.0.0.1:" +
                  std::to_string(testing::free_port()) + " --values inputs.pt --input 3"),
            2);
  ASSERT_EQ(shell(program_ + " pipeline ids.fx --stages 1 --values inputs.pt -o parts"), 0) << err();
  EXPECT_EQ(
      shell(program_ + " run parts --world 1 --rank 0 --master 127.0.0.1:" + std::to_string(testing::free_port())), 1);
  EXPECT_THAT(err(), HasSubstr("parts was made with --values: give rank 0 such a file"));
  write(c10::ivalue::Tuple::create({table, ids}));
  EXPECT_EQ(shell(program_ + " run ids.fx --values inputs.pt"), 1);
  EXPECT_THAT(err(), HasSubstr("the program takes 4 (table, ids, n, more)"));
  std::ofstream(folder_ / "inputs.pt") << "nothing";
  EXPECT_EQ(shell(program_ + " run ids.fx --values inputs.pt"), 1);
  EXPECT_THAT(err(), HasSubstr("inputs.pt: is no file of inputs ("));
}

// Sizes, strides, dtypes and devices go from stage to stage as files have them; results keep their own dtypes.
TEST_F(PipelineCommandNight, NumbersAndViewsGoFromFileToFile) {
  std::ofstream(folder_ / "numbers.fx") << R"(graph():
    %x = placeholder[target=x]
    %size = call_method[target=size](args = (%x,))
    %rows = call_function[target=aten::size.int](args = (%x, 0))
    %two = call_function[target=operator.mul](args = (%rows, 2))
    %flat = call_function[target=aten::view](args = (%x, [-1]))
    %type = call_function[target=prim::dtype](args = (%x,))
    %place = call_function[target=prim::device](args = (%x,))
    %wide = call_function[target=aten::expand](args = (%x, [3, 4, 8]))
    %a = call_function[target=aten::tanh](args = (%flat,))
    %b = call_function[target=aten::sigmoid](args = (%a,))
    %c = call_function[target=aten::exp](args = (%b,))
    %d = call_function[target=aten::view](args = (%c, %size))
    %ones = call_function[target=aten::ones](args = ([%rows, 8],), kwargs = {dtype: %type, device: %place})
    %e = call_function[target=aten::add.Tensor](args = (%d, %ones))
    %f = call_function[target=aten::mul.Scalar](args = (%e, %two))
    %step = call_function[target=aten::stride.int](args = (%wide, 0))
    %pairs = call_function[target=aten::fft_rfft](args = (%f,))
    %turned = call_function[target=aten::conj](args = (%pairs,))
    %real = call_function[target=aten::real](args = (%pairs,))
    return (f, step, two, pairs, turned, real)
)";
  const auto results = [&](int stages) {
    const std::string count = std::to_string(stages), port = std::to_string(testing::free_port());
    EXPECT_EQ(shell(program_ + " pipeline numbers.fx --modelled --input 4x8 -o parts --stages " + count), 0) << err();
    std::string all;
    for (int rank = 0; rank < stages; ++rank) {
      all += "{ " + program_ + " run parts --timeout 60 --world " + count + " --master 127.0.0.1:" + port + " --rank " +
             std::to_string(rank) + " -o result.pt; } " + (rank + 1 < stages ? "& " : "; wait");
    }
    EXPECT_EQ(shell(all), 0) << err();
    const std::string bytes = file_text(folder_ / "result.pt");
    std::filesystem::remove(folder_ / "result.pt");
    return torch::pickle_load({bytes.begin(), bytes.end()});
  };
  const c10::IValue whole = results(1);
  const auto& expected = whole.toTupleRef().elements();
  EXPECT_EQ(expected[4].toTensor().scalar_type(), torch::kComplexFloat);
  EXPECT_TRUE(torch::allclose(expected[4].toTensor(), expected[3].toTensor().conj()));
  for (const int stages : {2, 3, 5}) {
    const c10::IValue result = results(stages);
    const auto& got = result.toTupleRef().elements();
    ASSERT_EQ(got.size(), expected.size());
    for (const std::size_t i : {0u, 3u, 4u, 5u}) {
      EXPECT_EQ(got[i].toTensor().scalar_type(), expected[i].toTensor().scalar_type()) << i;
      EXPECT_TRUE(torch::allclose(got[i].toTensor(), expected[i].toTensor())) << stages << " stages, result " << i;
    }
    EXPECT_EQ(got[1].toInt(), 0) << stages;
    EXPECT_EQ(got[2].toInt(), 8) << stages;
  }
}

TEST_F(PipelineCommand, RefusalsLeaveNothingBehind) {
  std::ofstream(folder_ / "same.fx") << "graph():\n    %x = placeholder[target=x]\n    return x\n";
  EXPECT_EQ(shell(program_ + " pipeline same.fx --stages 1 --modelled --input 4 -o parts"), 1);
  EXPECT_THAT(err(), HasSubstr("the program calls nothing"));
  // What TorchScript has no words for is known when all stages were looked at.
  std::ofstream(folder_ / "late.fx") << R"(graph():
    %x = placeholder[target=x]
    %a = call_function[target=aten::exp](args = (%x,))
    %b = call_function[target=aten::tanh](args = (%a,))
    %c = call_function[target=operator.contains](args = ([1, 2], 2))
    %d = call_function[target=builtins.max](args = (1, 2))
    return (b, c, d)
)";
  if (shell(program_ + " pipeline late.fx --stages 2 --modelled --input 4 -o parts")) {
    EXPECT_FALSE(std::filesystem::exists(folder_ / "parts")) << err();
  }
  EXPECT_EQ(shell(program_ + " pipeline same.fx --stages 1 --input 4 -o parts --max-weights -1"), 2);
}

TEST_F(PipelineCommand, StagesAreReplacedAllOrNone) {
  const std::string split = program_ + " pipeline " + demo() + " --modelled --input 4x3x32x32 -o stages --stages ";
  const auto is_there = [&](const char* name) { return std::filesystem::exists(folder_ / "stages" / name); };
  ASSERT_EQ(shell(split + "3"), 0) << err();
  ASSERT_EQ(shell(split + "2"), 0) << err();
  EXPECT_FALSE(is_there("stage_2.pt")) << "of the plan before";
  const std::string plan = testing::file_text(folder_ / "stages" / "plan.json");
  std::filesystem::create_directories(folder_ / "stages" / "stage_2.pt");
  EXPECT_EQ(shell(split + "3"), 1);
  EXPECT_THAT(err(), HasSubstr("stage_2.pt: it is a folder"));
  EXPECT_EQ(testing::file_text(folder_ / "stages" / "plan.json"), plan);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder_ / "stages")) ++files;
  EXPECT_EQ(files, 4u);
  std::ofstream(folder_ / "stages" / "plan.json") << "[]";
  EXPECT_EQ(shell(program_ + " run stages --rank 0 --world 2"), 1);
  EXPECT_THAT(err(), HasSubstr("plan.json: "));
  EXPECT_THAT(err(), Not(HasSubstr("cannot use")));
}

TEST_F(PipelineCommandNight, WhatIsWrongIsASentence) {
  EXPECT_EQ(shell(program_ + " pipeline " + demo() + " --stages 5000 --input 4x3x32x32 -o stages"), 1);
  EXPECT_THAT(err(), HasSubstr("the program can be cut into"));
  EXPECT_EQ(shell(program_ + " run " + demo() + " --input 4x3x32x32 --rank 0"), 1);
  EXPECT_THAT(err(), HasSubstr("are for the folder of a pipeline, and"));
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
  EXPECT_EQ(shell(zero + " --timeout 12 & sleep 4; " + zero + " --timeout 2; a=$?; wait $!; exit $a"), 1);
  EXPECT_THAT(err(), HasSubstr("port " + port + " is in use, by another rank 0 or program; give all ranks another\n"));
  const auto both = [&](const std::string& zero, const std::string& one) {
    const std::string run =
        program_ + " run stages --world 2 --timeout 20 --master 127.0.0.1:" + std::to_string(testing::free_port());
    return shell("{ " + run + " --rank 1 " + one + "; } & " + run + " --rank 0 " + zero +
                 "; a=$?; wait $!; [ $? = 1 ] && exit $a");
  };
  EXPECT_EQ(both("--micro-batches 2", "--micro-batches 4"), 1);
  EXPECT_THAT(err(), HasSubstr("rank 1: rank 0 runs in 2 micro-batches and this one runs in 4 micro-batches"));
  const auto launched = [&](const std::string& variables) {
    EXPECT_EQ(shell("unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT SLURM_PROCID SLURM_NTASKS; export " + variables +
                    "; " + program_ + " run stages --timeout 0.5"),
              1)
        << variables;
    return err();
  };
  const std::string torchrun = "RANK=1 WORLD_SIZE=2 ", slurm = "SLURM_PROCID=1 SLURM_NTASKS=2 ";
  EXPECT_THAT(launched("RANK=1"), HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(launched(torchrun), HasSubstr("neither MASTER_ADDR nor SLURM_STEP_NODELIST is set"));
  EXPECT_THAT(launched(torchrun + "MASTER_ADDR=127.0.0.1"), HasSubstr("MASTER_PORT is not set"));
  EXPECT_THAT(launched(torchrun + "MASTER_ADDR=127.0.0.1 MASTER_PORT=99999"), HasSubstr("99999, not a port"));
  EXPECT_THAT(launched(slurm), HasSubstr("neither MASTER_ADDR nor SLURM_STEP_NODELIST is set"));
  EXPECT_THAT(launched(slurm + "SLURM_STEP_NODELIST='n[1-'"), HasSubstr("'n[1-' is no list of SLURM's"));
  EXPECT_THAT(launched(slurm + "SLURM_STEP_NODELIST=localhost SLURM_JOB_ID=abc"), HasSubstr("'abc', not a number"));
  EXPECT_THAT(launched(slurm + "SLURM_STEP_NODELIST='localhost,n[2-3]' SLURM_JOB_ID=7"), HasSubstr("localhost:20007"));
  // What is given need not be in the environment.
  EXPECT_EQ(shell("RANK=1 WORLD_SIZE=2 " + program_ + " run stages --timeout 0.5 --master 127.0.0.1:" + port), 1);
  EXPECT_THAT(err(), HasSubstr("rank 1 of 2: not all ranks met at 127.0.0.1:" + port));
  EXPECT_EQ(shell("RANK=x " + program_ + " run stages --rank 1 --world 2 --timeout 0.5 --master 127.0.0.1:" + port), 1);
  EXPECT_THAT(err(), HasSubstr("rank 1 of 2: not all ranks met at 127.0.0.1:" + port));
  EXPECT_EQ(shell(program_ + " run stages --rank 1 --world 2 --timeout 1 --master '[::1]:" + port + "'"), 1);
  EXPECT_THAT(err(), HasSubstr("not all ranks met at ::1:" + port + " within 1 s: nobody answers there"));
  std::filesystem::create_directories(folder_ / "damaged");
  for (const char* plan : {"", "{", "{}", "[]", "{\"version\": 2}"}) {
    std::ofstream(folder_ / "damaged/plan.json") << plan;
    EXPECT_EQ(shell(program_ + " run damaged --rank 0 --world 2"), 1);
    EXPECT_THAT(err(), AllOf(HasSubstr("plan.json: this is no plan of a pipeline"), Not(HasSubstr("json.exc"))))
        << plan;
  }
  std::filesystem::copy_file(folder_ / "stages/stage_0.pt", folder_ / "stages/stage_1.pt",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(both("", ""), 1);
  const std::string said = err();
  const std::string wanted = "stage_1.pt is not the file that the plan was made with";
  const std::size_t once = said.find(wanted);
  ASSERT_NE(once, std::string::npos) << said;
  EXPECT_NE(said.find(wanted, once + 1), std::string::npos) << "both ranks say it: " << said;
}

TEST_F(PipelineCommandNight, AFolderOfModelsGoesOnWhereItStopped) {
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

}  // namespace fx::pipeline_command_test
