// `fxgraph quantize` as a user meets it: every mode and engine, what it writes, and that bad input ends in one line
// with nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fxgraph/rewriter/quantize/config.h>
#include <fxgraph/torchscript/import.h>
#include <fxgraph/trace/symbolic_trace.h>

#include "tests/cli/program_testing.h"

namespace fx::quantize_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Result;

struct Net : torch::nn::Module {
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear fc{nullptr};
  Net() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)));
    norm = register_module("norm", torch::nn::BatchNorm2d(8));
    fc = register_module("fc", torch::nn::Linear(8, 4));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(norm(conv(x)));
    return fc(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }
};

class QuantizeProgram : public testing::Program {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Program::SetUp());
    torch::manual_seed(1);
    auto net = std::make_shared<Net>();
    net->eval();
    const auto traced = symbolic_trace(net, {torch::rand({2, 3, 8, 8})});
    traced->save(path("net.pt"));
    traced->save(path("net.pt2"));
    std::vector<torch::Tensor> samples;
    for (int i = 0; i < 4; ++i) samples.push_back(torch::randn({2, 3, 8, 8}));
    write_samples("samples.pt", c10::List<torch::Tensor>(samples));
  }

  void write_samples(const std::string& name, const c10::IValue& samples) const {
    const std::vector<char> bytes = torch::pickle_save(samples);
    std::ofstream(path(name), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  /// Later releases of LibTorch say of every quantized tensor that there will be none: "[W1122 … Quantizer.cpp:111] …".
  static std::string without_deprecations(const std::string& text) {
    std::istringstream lines(text);
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("[W") || line.find("Quantizer.cpp") == line.npos) kept += line + "\n";
    }
    return kept;
  }

  /// The program, run in the folder of the models.
  Result run_here(const std::string& arguments) const {
    return run_command("cd " + folder_.path().string() + " && " + program_ + " " + arguments);
  }
  /// `fxgraph quantize net.pt ARGUMENTS`, or another model.
  Result run(const std::string& arguments) const {
    Result result = run_here("quantize " + model_ + " " + arguments);
    result.err = without_deprecations(result.err);
    return result;
  }

  /// It ends with one line that holds `words`, exit code 1, and writes nothing.
  void expect_refused(const std::string& arguments, const std::string& words) const {
    const Result result = run(arguments + " -o out.pt");
    EXPECT_EQ(result.code, 1) << arguments << "\n" << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr(words)) << arguments;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_FALSE(fs::exists(path("out.pt"))) << arguments;
  }

  /// What was saved runs in LibTorch and is near the float program.
  void expect_saved_and_near() const {
    const auto inputs = std::vector<c10::IValue>{torch::randn({2, 3, 8, 8})};
    const torch::Tensor expected = load(path("net.pt"))->run(inputs).toTensor();
    const torch::Tensor found = torch::jit::load(path("out.pt")).forward(inputs).toTensor();
    EXPECT_LT((expected - found).abs().max().item<double>(), 0.1);
    EXPECT_TRUE(torch::equal(found, load(path("out.pt"))->run(inputs).toTensor()));
    fs::remove(path("out.pt"));
  }

  std::string model_ = "net.pt";
};
struct QuantizeProgramNight : QuantizeProgram {};

TEST_F(QuantizeProgram, ProgramsOfTorchExport) {
  model_ = "net.pt2";
  for (const char* arguments : {"--calibrate samples.pt", "--mode dynamic --input 2x3x8x8"}) {
    const Result result = run(std::string(arguments) + " -o out.pt");
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    expect_saved_and_near();
  }
}

TEST_F(QuantizeProgramNight, EveryModeAndEngine) {
  for (const std::string mode : {"static", "dynamic", "weight-only"}) {
    std::vector<std::string> backends = {"auto", "reference"};
    if (mode != "weight-only") {
      for (const QuantBackend each : available_quant_backends()) backends.emplace_back(to_string(each));
    }
    for (const std::string& backend : backends) {
      SCOPED_TRACE(mode + " " + backend);
      const std::string samples = mode == "static" ? " --calibrate samples.pt" : " --input 2x3x8x8";
      const Result result = run("--mode " + mode + " --backend " + backend + samples + " -o out.pt");
      ASSERT_EQ(result.code, 0) << result.err;
      EXPECT_THAT(result.out, HasSubstr("mode " + mode));
      EXPECT_EQ(result.err, "");
      expect_saved_and_near();
    }
  }
}

TEST_F(QuantizeProgramNight, RandomSamplesSayWhatTheyAreWorth) {
  const Result result = run("--calibrate random --input 2x3x8x8 -o out.pt");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("on random numbers"));
  EXPECT_THAT(result.out, HasSubstr("accuracy needs real samples"));
  expect_saved_and_near();
}

TEST_F(QuantizeProgram, ReportsAsJson) {
  const Result result = run("--calibrate samples.pt --report json --compare --keep-float fc");
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["samples"], 4);
  EXPECT_EQ(report["random_samples"], false);
  EXPECT_GT(report["comparison"]["output"]["sqnr_db"], 20);
  EXPECT_FALSE(report["comparison"]["nodes"].empty());
  bool found = false;
  for (const auto& node : report["nodes"]) {
    if (node["path"] != "fc") continue;
    found = true;
    EXPECT_EQ(node["quantized"], false);
    EXPECT_EQ(node["reason"], "the configuration keeps it in float");
  }
  EXPECT_TRUE(found) << result.out;
}

TEST_F(QuantizeProgramNight, ReportsAsPage) {
  const Result result = run("--calibrate samples.pt --report html");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, ::testing::StartsWith("<!doctype html>"));
  for (const std::string part : {"Values, worst first", "quantized::linear", "aten::conv2d", "</html>"})
    EXPECT_THAT(result.out, HasSubstr(part));
}

TEST_F(QuantizeProgramNight, ConfigurationsAndGoals) {
  std::ofstream(path("quant.json"))
      << R"({"global": {"activation": {"range": "min-max"}}, "types": {"Conv2d": {"mode": "float"}}})";
  Result result = run("--calibrate samples.pt --config quant.json --reasons -o out.pt");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("aten::conv2d: float, the configuration keeps it in float"));
  expect_saved_and_near();
  result = run("--calibrate samples.pt --min-sqnr 15dB -o out.pt");
  ASSERT_EQ(result.code, 0) << result.err;
  expect_saved_and_near();
  expect_refused("--calibrate samples.pt --min-sqnr 90dB", "less than asked");
  result = run("--calibrate samples.pt --min-sqnr 45dB --keep-float auto -o out.pt");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("kept float"));
  expect_saved_and_near();
}

TEST_F(QuantizeProgramNight, BadSamplesEndInOneLine) {
  const torch::Tensor good = torch::randn({2, 3, 8, 8});
  torch::Tensor spoilt = good.clone();
  spoilt[0][0][0][0] = NAN;
  const auto list = [](std::vector<torch::Tensor> all) { return c10::List<torch::Tensor>(std::move(all)); };
  write_samples("nan.pt", list({good, spoilt}));
  write_samples("infinite.pt", list({good / 0.0}));
  write_samples("channels.pt", list({torch::randn({2, 4, 8, 8})}));
  write_samples("rank.pt", list({torch::randn({3})}));
  write_samples("whole.pt", list({torch::ones({2, 3, 8, 8}, torch::kLong)}));
  write_samples("none.pt", list({}));
  write_samples("pairs.pt", c10::ivalue::Tuple::create(
                                {c10::IValue(c10::ivalue::Tuple::create({c10::IValue(good), c10::IValue(good)}))}));
  write_samples("words.pt", c10::IValue("words"));
  std::ofstream(path("text.pt")) << "no pickle";
  expect_refused("--calibrate nan.pt", "nan.pt: sample 2 is not finite");
  expect_refused("--calibrate infinite.pt", "sample 1 is not finite");
  expect_refused("--calibrate channels.pt", "channels.pt: sample 1");
  expect_refused("--calibrate channels.pt --input 2x3x8x8", "sample 1 is float32[2, 4, 8, 8], --input says");
  expect_refused("--calibrate rank.pt", "rank.pt: sample 1");
  expect_refused("--calibrate whole.pt", "whole.pt: sample 1");
  expect_refused("--calibrate none.pt", "holds no samples");
  expect_refused("--calibrate pairs.pt", "sample 1 has 2 values, the program takes 1");
  expect_refused("--calibrate words.pt", "not a list of samples");
  expect_refused("--calibrate text.pt", "no file of samples");
  expect_refused("--calibrate missing.pt", "missing.pt: cannot be read");
  expect_refused("", "add --calibrate samples.pt");
  expect_refused("--calibrate random", "add --input");
}

TEST_F(QuantizeProgramNight, WhatIsNotThereEndsInOneLine) {
  const auto config = [&](const std::string& text) {
    std::ofstream(path("quant.json")) << text;
    return std::string("--calibrate samples.pt --config quant.json");
  };
  expect_refused(config(R"({"paths": {"features.*": {"mode": "float"}}})"), "'features.*' fits no module");
  expect_refused(config(R"({"nodes": {"add_7": {"mode": "float"}}})"), "the node 'add_7'");
  expect_refused(config(R"({"types": {"Conv9d": {"mode": "float"}}})"), "the type 'Conv9d'");
  expect_refused(config(R"({"globel": {}})"), "globel");
  expect_refused(config(R"({"global": {"mode": "int4"}})"), "int4");
  expect_refused(config("{"), "quant.json");
  expect_refused("--calibrate samples.pt --config nowhere.json", "nowhere.json: cannot be read");
  expect_refused("--calibrate samples.pt --keep-float nothing", "'nothing' fits no module");
  expect_refused("--calibrate samples.pt --keep-float auto", "--keep-float auto needs a goal");
  expect_refused("--calibrate samples.pt --min-sqnr much", "is no ratio");
  const auto available = available_quant_backends();
  for (const QuantBackend each : {QuantBackend::fbgemm, QuantBackend::onednn, QuantBackend::qnnpack}) {
    if (std::ranges::find(available, each) != available.end()) continue;
    expect_refused("--calibrate samples.pt --backend " + std::string(to_string(each)), std::string(to_string(each)));
  }
  const Result text = run("--calibrate samples.pt -o out.fx");
  EXPECT_EQ(text.code, 1);
  EXPECT_FALSE(fs::exists(path("out.fx")));
}

TEST_F(QuantizeProgram, NothingToQuantizeIsSaidFirst) {
  auto net = torch::nn::Sequential(torch::nn::Conv2d(3, 4, 3), torch::nn::GELU());
  net->eval();
  symbolic_trace(net.ptr(), {torch::rand({2, 3, 8, 8})})->save(path("convolution.pt"));
  model_ = "convolution.pt";
  Result result = run("--mode dynamic --input 2x3x8x8 -o out.pt");
  ASSERT_EQ(result.code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("nothing, mode dynamic: the mode dynamic is for linear, recurrent and"));
  EXPECT_THAT(result.err, HasSubstr("fxgraph: convolution.pt: nothing was quantized: "));
  EXPECT_THAT(result.err, HasSubstr("; nothing was saved"));
  EXPECT_FALSE(fs::exists(path("out.pt")));
  result = run("--mode dynamic --input 2x3x8x8 --report json");
  ASSERT_EQ(result.code, 1) << result.err;
  const nlohmann::json report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["num_quantized"], 0);
  EXPECT_THAT(std::string(report["nothing_quantized"]), HasSubstr("the mode dynamic is for"));
}

TEST_F(QuantizeProgramNight, LayersOfOneEngineSayHowToLoadThem) {
  const auto all = available_quant_backends();
  for (const QuantBackend each : {QuantBackend::qnnpack, QuantBackend::onednn}) {
    if (std::ranges::find(all, each) == all.end()) GTEST_SKIP() << "needs qnnpack and onednn";
  }
  auto net = torch::nn::Sequential(
      torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(4, 4, 3).stride(2).padding(1).output_padding(1)));
  net->eval();
  symbolic_trace(net.ptr(), {torch::rand({2, 4, 8, 8})})->save(path("transposed.pt"));
  model_ = "transposed.pt";
  Result result = run("--calibrate random --input 2x4x8x8 --backend qnnpack -o out.pt");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("set torch.backends.quantized.engine = 'qnnpack' first"));
  const auto before = at::globalContext().qEngine();
  at::globalContext().setQEngine(at::QEngine::ONEDNN);
  EXPECT_ANY_THROW(torch::jit::load(path("out.pt")));
  result = run("--calibrate random --input 2x4x8x8 -o out.pt");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("torch.backends")));
  torch::jit::load(path("out.pt"));
  at::globalContext().setQEngine(before);
}

TEST_F(QuantizeProgramNight, OtherCommandsKnowQuantizedValues) {
  ASSERT_EQ(run("--calibrate samples.pt -o out.pt").code, 0);
  const Result report = run_here("report out.pt --input 2x3x8x8 --format json");
  ASSERT_EQ(report.code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("quint8"));
}

TEST_F(QuantizeProgramNight, PythonRunsWhatItSaves) {
  const char* python = std::getenv("FXGRAPH_TEST_PYTHON");
  if (!python) GTEST_SKIP() << "needs Python with torch: FXGRAPH_TEST_PYTHON";
  ASSERT_EQ(run("--calibrate samples.pt -o out.pt").code, 0);
  const torch::Tensor expected = torch::jit::load(path("out.pt")).forward({torch::full({2, 3, 8, 8}, 0.25)}).toTensor();
  const std::string script = "import torch; print(float(torch.jit.load('" + path("out.pt") +
                             "')(torch.full((2, 3, 8, 8), 0.25)).double().sum()))";
  const Result sum = run_command(std::string(python) + " -c \"" + script + "\"");
  ASSERT_EQ(sum.code, 0) << sum.err;
  EXPECT_NEAR(std::stod(sum.out), expected.to(torch::kDouble).sum().item<double>(), 1e-6);
}

}  // namespace fx::quantize_test
