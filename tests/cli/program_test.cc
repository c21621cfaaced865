// The program as a user meets it: exit codes, one-line errors, files that are there whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include <fxgraph/run/value.h>
#include "tests/cli/program_testing.h"

namespace fx::program_test {

namespace fs = std::filesystem;
using fx::testing::file_text;
using fx::testing::kModel;
using fx::testing::kText;
using fx::testing::Program;
using fx::testing::Result;
using ::testing::HasSubstr;

TEST_F(Program, ShowReadsStandardInputAndPrintsItBack) {
  const Result shown = run("show - --format text", write("in.fx", kText));
  EXPECT_EQ(shown.code, 0);
  EXPECT_EQ(shown.out, kText);
}

TEST_F(Program, EveryFormatOfShowIsMade) {
  const std::string file = write("in.fx", kText);
  EXPECT_THAT(run("show " + file).out, HasSubstr("call_function"));
  EXPECT_THAT(run("show --format python " + file).out, HasSubstr("def forward(self, x, y):"));
  EXPECT_THAT(run("show --format cpp " + file).out, HasSubstr("forward(torch::Tensor x, torch::Tensor y) {"));
  EXPECT_THAT(run("show --format torchscript " + file).out, HasSubstr("def forward(self, x: Tensor, y: Tensor):"));
  EXPECT_THAT(run("show --format dot " + file).out, HasSubstr("digraph"));
  EXPECT_EQ(nlohmann::json::parse(run("show --format json " + file).out).is_object(), true);
}

TEST_F(Program, BadInputEndsWithOneAndOneLineThatSaysWhere) {
  const std::string unknown = write("unknown.fx", "graph():\n    %x : [num_users=0] = place[target=x]\n    return x\n");
  const std::string later =
      write("later.fx",
            "graph():\n    %a : [num_users=1] = call_function[target=aten::relu](args = (%b,), kwargs = {})\n"
            "    %b : [num_users=1] = placeholder[target=b]\n    return a\n");
  const std::string twice =
      write("twice.fx", "graph():\n    %x : [num_users=1] = placeholder[target=x]\n    return x\n    return x\n");
  std::string archive = file_text(kModel);
  archive.resize(archive.size() / 2);
  const std::string truncated = write("truncated.pt", archive);
  const struct {
    std::string arguments, message;
  } cases[] = {
      {"show " + unknown, "unknown.fx:2:"},
      {"lint " + later, "later.fx:2:"},
      {"lint " + twice, "twice.fx:4:"},
      {"show " + path("missing.fx"), "missing.fx"},
      {"show " + path("missing.pt"), "missing.pt"},
      {"show " + truncated, "cut short"},
      {std::string("run ") + kModel + " --input 1x3xq", "1x3xq"},
      {std::string("run ") + kModel + " --input 1x3x9999999x99999", "of memory; give smaller sizes"},
      {std::string("run ") + kModel, "1 (x)"},
      {std::string("run ") + kModel + " --input 1x4x64x64", "features_0_0"},
      {std::string("optimize ") + kModel + " --rules none-such", "fuse-conv-bn"},
      {"match " + unknown + " --pattern 'aten::relu('", "<pattern>:1:"},
  };
  for (const auto& [arguments, message] : cases) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_THAT(result.err, HasSubstr(message)) << arguments;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "") << arguments;
  }
  EXPECT_THAT(run("show -", kModel).err, HasSubstr("archives are read from files"));
}

TEST_F(Program, WrongUsageEndsWithTwo) {
  for (const char* arguments : {"", "no-such-command", "show", "show --format xml -", "match -"}) {
    EXPECT_EQ(run(arguments).code, 2) << arguments;
  }
  for (const std::string& arguments :
       {"report " + write("in.fx", kText) + " --cost", "report " + write("in.fx", kText) + " --cost --measure",
        std::string("optimize ") + kModel + " --verify", std::string("optimize ") + kModel + " --target cpu"}) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_THAT(result.err, HasSubstr("--input")) << arguments;
  }
  EXPECT_THAT(run("no-such-command").err, HasSubstr("no-such-command"));
  EXPECT_EQ(run("--help").code, 0);
  const Result version = run("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, ::testing::AllOf(HasSubstr("fxgraph "), HasSubstr("LibTorch "), HasSubstr("Boost ")));
}

TEST_F(Program, ManualAndCompletionComeFromTheOptions) {
  const Result manual = run("manual");
  const std::string completion = path("completion");
  write("completion", run("manual bash").out);
  EXPECT_EQ(std::system(("bash -n " + completion).c_str()), 0);
  for (const char* command :
       {"show", "lint", "report", "match", "rewrite", "optimize", "rules", "run", "diff", "draw"}) {
    EXPECT_THAT(manual.out, HasSubstr(std::string(".SS \"") + command)) << "a section of the manual page";
    EXPECT_THAT(run(std::string(command) + " --help").out, HasSubstr("--help"));
  }
  EXPECT_THAT(manual.out, HasSubstr("\\-\\-format table|text|python|torchscript|cpp|dot|operators|json"));
  EXPECT_EQ(run("manual html").code, 2);
}

TEST_F(Program, InputsMayHaveNoDimensions) {
  const std::string text = write("scaled.fx",
                                 "graph():\n    %x : [num_users=1] = placeholder[target=x]\n"
                                 "    %s : [num_users=2] = placeholder[target=s]\n"
                                 "    %a : [num_users=1] = call_function[target=aten::mul.Tensor](args = (%x, %s))\n"
                                 "    %b : [num_users=1] = call_function[target=aten::mul.Tensor](args = (%a, 1.0))\n"
                                 "    %t : [num_users=1] = call_function[target=aten::add.Tensor](args = (%b, %s))\n"
                                 "    return t\n");
  const std::string inputs = " --input 2x3 --input :float32";
  EXPECT_THAT(run("run " + text + inputs).out, HasSubstr("output 0: float32[2, 3]"));
  EXPECT_THAT(run("report --cost " + text + inputs).out, HasSubstr("mul"));
  const Result optimized = run("optimize --verify " + text + inputs);
  EXPECT_THAT(optimized.out, HasSubstr("verified")) << optimized.err;
  EXPECT_THAT(optimized.out, HasSubstr("for inference        gradients of the result may be others"));
}

TEST_F(Program, OptimizeFusesVerifiesAndSavesWhatRunsAgain) {
  const std::string saved = path("out.pt");
  const Result optimized = run(std::string("optimize ") + kModel +
                               " --rules fuse-conv-bn --input 1x3x64x64 --verify --report json -o " + saved);
  ASSERT_EQ(optimized.code, 0) << optimized.err;
  const auto report = nlohmann::json::parse(optimized.out);
  EXPECT_EQ(report["rules"][0]["applied"], 52);
  EXPECT_EQ(report["after"]["nodes"].get<int>(), report["before"]["nodes"].get<int>() - 52);
  EXPECT_LT(report["after"]["peak_bytes"].get<double>(), report["before"]["peak_bytes"].get<double>());
  EXPECT_LT(report["verified"]["difference"].get<double>(), 1e-4);
  const Result ran = run("run " + saved + " --input 1x3x64x64");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("float32[1, 10]"));
}

TEST_F(Program, ALibraryThatIsNotThereIsNamed) {
  const Result result = run("show --library ./libnone.so " + write("in.fx", kText));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, ::testing::StartsWith("fxgraph: --library ./libnone.so: "));
}

TEST_F(Program, OptimizeLeavesTheStateOfTheModelAsItWas) {
  const char* models = std::getenv("FXGRAPH_TEST_MODELS");
  if (!models) GTEST_SKIP() << "FXGRAPH_TEST_MODELS is not set: no model that writes its state";
  // Its buffer counts the runs; measuring, timing and verifying are runs.
  const Result optimized = run(std::string("optimize ") + models +
                               "/written_state.traced.pt --input 2x4x8x8 --verify --report json -o " + path("out.pt"));
  ASSERT_EQ(optimized.code, 0) << optimized.err;
  EXPECT_EQ(nlohmann::json::parse(optimized.out)["verified"]["difference"].get<double>(), 0);
}

// Loading LibTorch takes half a second; text needs none of it.
TEST_F(Program, RunKeepsItsMemoryWhenAsked) {
  const auto held = [&](const std::string& flag) {
    const Result result = run(std::string("run ") + kModel + " --input 2x3x64x64 --repeat 3 --format json" + flag);
    EXPECT_EQ(result.code, 0) << result.err;
    const auto figures = nlohmann::json::parse(result.out);
    EXPECT_GT(figures["seconds"].get<double>(), 0);
    return figures["held_bytes"].get<std::size_t>();
  };
  EXPECT_EQ(held(""), 0u);
  EXPECT_GT(held(" --hold-memory"), 1u << 15);
}

TEST_F(Program, StartsWithoutLibTorchForText) {
  const std::string text =
      write("small.fx", "graph():\n    %x : [num_users=1] = placeholder[target=x]\n    return x\n");
  program_ = "LD_DEBUG=files " + program_;  // the loader lists what it loads
  const auto loaded = [&](const std::string& arguments) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << arguments;
    return result.err;
  };
  for (const char* command : {"show ", "lint ", "report "}) {
    EXPECT_THAT(loaded(command + text), ::testing::Not(HasSubstr("libtorch"))) << command;
  }
  EXPECT_THAT(loaded("rules"), HasSubstr("libtorch"));
}

TEST_F(Program, OptimizesManyFilesAtOnceAndSaysWhatEachNeeded) {
  const std::string text =
      write("small.fx",
            "graph():\n"
            "    %x : [num_users=1] = placeholder[target=x]\n"
            "    %r : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})\n"
            "    return r\n");
  const std::string files = std::string("optimize ") + kModel + " " + path("missing.pt") + " " + text;
  const Result result = run(files + " --jobs 2 --report json -o " + path("out"));
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("missing.pt"));
  const auto reports = nlohmann::json::parse(result.out)["files"];
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_EQ(reports[0]["file"], kModel);
  EXPECT_THAT(reports[1]["error"].get<std::string>(), HasSubstr("missing.pt"));
  EXPECT_EQ(reports[2]["file"], text);
  for (const auto& report : reports) {
    EXPECT_GT(report["seconds"].get<double>(), 0);
    EXPECT_GT(report["peak_memory"].get<double>(), 1 << 20);
  }
  EXPECT_TRUE(fs::exists(path("out/demo.pt")));
  EXPECT_TRUE(fs::exists(path("out/small.fx")));
  const Result twice = run(std::string("optimize ") + kModel + " " + kModel + " -o " + path("out"));
  EXPECT_EQ(twice.code, 1);
  EXPECT_THAT(twice.err, HasSubstr("rename one of them"));
}

TEST_F(Program, NothingIsLeftBehindWhenSavingFails) {
  const Result result = run(std::string("optimize ") + kModel + " --input 1x3x64x64 -o " + path("no/such/folder.pt"));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(files(), ::testing::UnorderedElementsAre("stdout", "stderr"));
}

TEST_F(Program, TheNameOfTheOutputDecidesItsForm) {
  const auto is_archive = [&](const std::string& name) { return file_text(path(name)).starts_with("PK"); };
  const std::string text = write("in.fx", kText);
  for (const char* name : {"a.pt", "a.torchscript", "a.fx", "a.any"})
    EXPECT_EQ(run(std::string("optimize --rules dead-code ") + kModel + " -o " + path(name)).code, 0) << name;
  EXPECT_TRUE(is_archive("a.pt") && is_archive("a.torchscript"))
      << "the model came with weights, so it is saved with them";
  EXPECT_TRUE(is_archive("a.any"));
  EXPECT_FALSE(is_archive("a.fx"));
  EXPECT_EQ(run("optimize --rules dead-code " + text + " -o " + path("b.any")).code, 0);
  EXPECT_FALSE(is_archive("b.any"));
}

TEST_F(Program, WhatCannotBeWrittenIsSaidInALine) {
  const std::string text = write("in.fx", kText);
  fs::create_symlink("/dev/full", path("full"));
  const std::string cases[] = {"draw " + text + " -o " + path("no/folder.svg"),
                               "report " + text + " -o " + path("full"),
                               std::string("optimize ") + kModel + " -o " + path("full")};
  for (const std::string& arguments : cases) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_THAT(result.err, ::testing::StartsWith("fxgraph: cannot write ")) << arguments;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_TRUE(fs::is_symlink(path("full")));
  const int shown = std::system((program_ + " show " + text + " >/dev/full 2>" + path("stderr")).c_str());
  EXPECT_EQ(WEXITSTATUS(shown), 1);
  EXPECT_THAT(file_text(path("stderr")), HasSubstr("cannot write to standard output: No space left on device"));
}

TEST_F(Program, PipesAreReadOnce) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  write("in.fx", kText);
  ASSERT_EQ(std::system(("cat " + path("in.fx") + " >" + pipe + " &").c_str()), 0);
  EXPECT_EQ(run("show --format text " + pipe).out, kText);
}

TEST_F(Program, ErrorsOfLibTorchAreOneLine) {
  const Result result = run("run " + write("in.fx", kText) + " --input 1000000x1000000x1000 --input 1");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

// Newer releases have more element types, and shapes do not say all of quantized ones.
TEST_F(Program, TypesAndModulesThatAreNotThereAreNamed) {
  const std::string file = write("in.fx", kText);
  const auto casts_to = [&](const std::string& type) {
    return write("casts.fx",
                 "graph():\n    %x = placeholder[target=x]\n"
                 "    %r = call_method[target=to](args = (%x, torch." +
                     type + "))\n    return r\n");
  };
  for (const DType type : {DType::uint16, DType::float8_e5m2}) {
    if (is_available(type)) continue;
    const std::string name(to_string(type));
    const Result result = run("run " + file + " --input 2x3:" + name + " --input 2x3");
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.err, HasSubstr("this LibTorch has no torch." + name + "; use another type"));
    const std::string casts = casts_to(name);
    EXPECT_THAT(run("run " + casts + " --input 2").err, HasSubstr("%r: this LibTorch has no torch." + name));
    EXPECT_EQ(run("convert " + casts + " -o " + path("casts.pt")).code, 1);
  }
  EXPECT_THAT(run("run " + file + " --input 2x3:qint8 --input 2x3").err, HasSubstr("does not tell the scale"));
  const std::string calls = write("calls.fx",
                                  "graph():\n    %x = placeholder[target=x]\n"
                                  "    %r = call_module[target=fc](args = (%x,))\n    return r\n");
  EXPECT_THAT(run("run " + calls + " --input 2").err,
              HasSubstr("there is no module 'fc'; text names modules and holds"));
}

TEST_F(Program, ReportFindsWhatIsPlanted) {
  const std::string file =
      write("dead.fx",
            "graph():\n"
            "    %x : [num_users=2] = placeholder[target=x]\n"
            "    %spare : [num_users=0] = placeholder[target=spare]\n"
            "    %a : [num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%x,), kwargs = {})\n"
            "    %b : [num_users=0] = call_function[target=torch.ops.aten.cos.default](args = (%a,), kwargs = {})\n"
            "    %r : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})\n"
            "    return r\n");
  const auto report = nlohmann::json::parse(run("report --dead-code --format json " + file).out);
  EXPECT_EQ(report["dead_code"]["dead_nodes"], 2);
  EXPECT_EQ(report["dead_code"]["unused_inputs"], 1);
  const Result text = run("report --dead-code " + file);
  EXPECT_THAT(text.out, HasSubstr("its only user b is dead"));
}

TEST_F(Program, ReportIsAGateAgainstABaseline) {
  const std::string file = write("in.fx", kText), shapes = " --input 2x3 --input 2x3 ";
  ASSERT_EQ(run("report " + file + shapes + "--format json -o " + path("old.json")).code, 0);
  const std::string against = " --baseline " + path("old.json");
  const Result same = run("report " + file + shapes + against);
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("nothing worse by more than 0 %"));
  const Result larger =
      run("report " + file + " --input 4x3 --input 4x3 --limit 5%" + against + " -o " + path("new.txt"));
  EXPECT_EQ(larger.code, 1);
  EXPECT_THAT(larger.err, HasSubstr("cost.total.flops 12 -> 24 (+100 %)"));
  EXPECT_EQ(std::count(larger.err.begin(), larger.err.end(), '\n'), 1);
  EXPECT_THAT(file_text(path("new.txt")), HasSubstr("! cost.total.flops")) << "the report is written all the same";
  EXPECT_EQ(run("report " + file + " --input 4x3 --input 4x3 --limit 200%" + against).code, 0);
  EXPECT_THAT(run("report " + file + against).err, HasSubstr("and this report has not"));
  EXPECT_THAT(run("report " + file + shapes + "--limit x" + against).err, HasSubstr("--limit x: not a share"));
  EXPECT_THAT(run("report " + file + " --baseline nowhere.json").err, HasSubstr("cannot read nowhere.json"));
  EXPECT_EQ(run("report " + file + " --limit 5%").code, 2);
}

TEST_F(Program, ReportMakesAPage) {
  const Result made = run("report " + write("in.fx", kText) + " --format html -o " + path("page.html"));
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(file_text(path("page.html")), ::testing::StartsWith("<!doctype html>"));
}

TEST_F(Program, MatchPrintsCapturesAndWhyNot) {
  const std::string file = write("in.fx", kText);
  const auto found = nlohmann::json::parse(
      run("match --format json " + file + " --pattern 'aten::relu(sum: aten::add.Tensor(a, b))'").out);
  ASSERT_EQ(found["matches"].size(), 1u);
  EXPECT_EQ(found["matches"][0]["captures"]["sum"], "add");
  const Result explained = run("match --explain " + file + " --pattern 'aten::relu(aten::mul.Tensor(a, b))'");
  EXPECT_EQ(explained.code, 0);
  EXPECT_THAT(explained.out, HasSubstr("0 matches"));
  EXPECT_THAT(explained.out, HasSubstr("mul"));
}

TEST_F(Program, RewriteVerifiesAndWrites) {
  const std::string file = write("in.fx", kText), out = path("out.fx");
  const Result result = run(
      "rewrite " + file +
      " --pattern 'aten::relu(x)' --replacement 'aten::clamp_min(x, 0)' --verify --input 2x3 --input 2x3 -o " + out);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("applied 1"));
  EXPECT_THAT(file_text(out), HasSubstr("torch.ops.aten.clamp_min.default"));
  const Result wrong =
      run("rewrite " + file +
          " --pattern 'aten::relu(x)' --replacement 'aten::neg(x)' --verify --input 2x3 --input 2x3 -o " +
          path("wrong.fx"));
  EXPECT_EQ(wrong.code, 1);
  EXPECT_FALSE(fs::exists(path("wrong.fx")));
}

TEST_F(Program, RewriteSharesMemoryWhenItIsTold) {
  const std::string copy =
      "rewrite " +
      write("copy.fx",
            "graph(%x):\n  %c = call_function[target=torch.ops.aten.clone.default](args = (%x,))\n  return %c\n") +
      " --pattern 'aten::clone(v)' --replacement v";
  EXPECT_THAT(run(copy).err, HasSubstr("--allow-output-aliases"));
  EXPECT_THAT(run(copy + " --allow-output-aliases").err, HasSubstr("applied 1"));
}

TEST_F(Program, RewriteKnowsTypesOfModulesAndShapes) {
  const std::string rewrite = std::string("rewrite ") + kModel + " -o " + path("out.pt");
  EXPECT_THAT(run(rewrite + " --pattern 'call_module<ReLU6>(x)' --replacement 'aten::relu6(x)'").out,
              HasSubstr("applied 35"));
  const std::string shaped = " --pattern 'call_module<ReLU6>(x: f32[1, 96, *, *])' --replacement 'aten::relu6(x)'";
  EXPECT_THAT(run(rewrite + shaped + " --verify --input 1x3x64x64").out, HasSubstr("applied 6\n"));
  EXPECT_THAT(run(rewrite + shaped).err, HasSubstr("--input SHAPE"));
  EXPECT_THAT(run(rewrite + shaped + " --input 1x3x64x64 --input 1").err, HasSubstr("takes 1 (x)"));
  EXPECT_THAT(run(std::string("match ") + kModel + " --pattern " + kModel).err, HasSubstr("patterns are text"));
}

TEST_F(Program, DiffNamesWhatChanged) {
  const std::string a = write("a.fx", kText);
  std::string changed = kText;
  changed.replace(changed.find("aten.relu"), 9, "aten.tanh");
  const std::string b = write("b.fx", changed);
  EXPECT_EQ(run("diff " + a + " " + a).code, 0);
  const Result result = run("diff " + a + " " + b);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr(": 1 differ"));
}

}  // namespace fx::program_test
