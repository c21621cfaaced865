// `fxgraph convert`, and archives of torch.export where other commands read and write programs.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/cli/program_testing.h"

namespace fx::convert_test {

using fx::testing::file_text;
using fx::testing::kModel;
using fx::testing::kText;
using fx::testing::Program;
using fx::testing::Result;
using ::testing::HasSubstr;

constexpr const char* kArchive = "tests/corpus/pt2/mlp.pt2";

class Convert : public Program {
 protected:
  void expect_done(const std::string& arguments) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << arguments << '\n' << result.err;
  }
  std::string text_of(const std::string& file) { return run("show " + file + " --format text").out; }
};

TEST_F(Convert, OptimizeWritesNoTextWithoutTheWeightsThatItMade) {
  const std::string text = path("demo.fx");
  const Result fused = run("optimize " + std::string(kModel) + " --rules fuse-conv-bn -o " + text);
  EXPECT_EQ(fused.code, 1);
  EXPECT_THAT(fused.err, HasSubstr("demo.fx: text has no weights, and the rules made others ("));
  EXPECT_THAT(fused.err, HasSubstr("; save the result as .pt"));
  EXPECT_FALSE(std::filesystem::exists(text));
  const Result cleaned = run("optimize " + std::string(kModel) + " --rules dead-code -o " + text);
  EXPECT_EQ(cleaned.code, 0) << cleaned.err;
  EXPECT_TRUE(std::filesystem::exists(text));
}

TEST_F(Convert, ThereAndBackIsTheSameProgram) {
  const std::string script = path("mlp.pt"), archive = path("again.pt2"), text = path("mlp.fx");
  expect_done(std::string("convert ") + kArchive + " -o " + script);
  expect_done("convert " + script + " -o " + archive + " --input 4x8");
  expect_done(std::string("convert ") + kArchive + " -o " + text);
  EXPECT_THAT(file_text(text),
              ::testing::AllOf(HasSubstr("torch._assert"), ::testing::Not(HasSubstr("target=_guards_fn"))))
      << "a text holds no module to ask";
  for (const char* batch : {"1x8", "9x8"}) {
    for (const std::string& file : {std::string(kArchive), script, archive})
      EXPECT_THAT(run("run " + file + " --input " + batch).out, HasSubstr("output 0")) << file;
  }
  EXPECT_EQ(run("run " + archive + " --input 4x9").code, 1);
}

struct ConvertNight : Convert {};
TEST_F(ConvertNight, ProgramsOfTorchScript) {
  const std::string archive = path("demo.pt2"), fixed = path("fixed.pt2");
  const Result shown = run(std::string("convert ") + kModel + " -o " + archive);
  EXPECT_EQ(shown.code, 1);
  EXPECT_THAT(shown.err, HasSubstr("--input"));
  EXPECT_FALSE(fx::testing::fs::exists(archive));
  const std::string input = " --input 2x3x32x32";
  expect_done(std::string("convert ") + kModel + " -o " + archive + input);
  expect_done("run " + archive + " --input 3x3x32x32");
  expect_done(std::string("convert ") + kModel + " -o " + fixed + input + " --fixed");
  expect_done("run " + fixed + input);
  EXPECT_EQ(run("run " + fixed + " --input 3x3x32x32").code, 1);
}

TEST_F(Convert, TextWithoutWeights) {
  const std::string text = write("in.fx", kText), archive = path("out.pt2");
  expect_done("convert " + text + " -o " + archive + " --input 2x3 --input 2x3");
  EXPECT_THAT(text_of(archive), HasSubstr("torch.ops.aten.relu.default"));
  expect_done("convert " + text + " -o " + path("out.pt"));
}

TEST_F(ConvertNight, EveryCommandReadsArchives) {
  const std::string file = kArchive;
  for (const std::string& command :
       {"show " + file, "show " + file + " --format python", "show " + file + " --format json", "lint " + file,
        "report " + file + " --dead-code --liveness --uses --dominance", "report " + file + " --cost --input 4x8",
        "match " + file + " --pattern 'aten::linear(x, w, b)'", "draw " + file + " -o " + path("out.svg"),
        "run " + file + " --input 4x8", "diff " + file + " " + file})
    expect_done(command);
}

TEST_F(ConvertNight, WhatIsWrittenHasTheFormOfItsEnding) {
  const std::string file = kArchive;
  expect_done("optimize " + file + " --input 4x8 --verify -o " + path("fast.pt2"));
  expect_done("optimize " + file + " --input 4x8 -o " + path("fast.pt"));
  expect_done("rewrite " + file + " --pattern 'aten::relu(x)' --replacement 'aten::gelu(x)' -o " + path("gelu.pt2"));
  expect_done("rewrite " + file + " --pattern 'aten::relu(x)' --replacement 'aten::gelu(x)' -o " + path("gelu"));
  expect_done("quantize " + file + " --mode dynamic --input 4x8 -o " + path("int8.pt"));
  for (const char* name : {"fast.pt2", "gelu.pt2", "gelu"}) {
    EXPECT_THAT(file_text(path(name)), HasSubstr("models/model.json")) << name;
    expect_done("run " + path(name) + " --input 7x8");
  }
  EXPECT_THAT(file_text(path("fast.pt")), ::testing::Not(HasSubstr("models/model.json")));
  expect_done("run " + path("int8.pt") + " --input 7x8");
  EXPECT_THAT(run("quantize " + file + " --mode dynamic --input 4x8 -o " + path("int8.pt2")).err, HasSubstr(".pt"));
}

TEST_F(Convert, AnEndingThatNamesNoFormIsRefused) {
  for (const char* name : {"model.onnx", "model.cpp", "model"}) {
    const Result result = run(std::string("convert ") + kArchive + " -o " + path(name));
    EXPECT_NE(result.code, 0) << name;
    EXPECT_THAT(result.err, HasSubstr("its ending names no form")) << name;
    EXPECT_FALSE(std::filesystem::exists(path(name))) << name;
  }
}

}  // namespace fx::convert_test
