// Beside Python's FX quantization of the same weights and samples, default observers on both sides: as many kernels,
// and results at least as near to the float program's.
//
// The weights are drawn, so that both results are one draw of the noise each: half a decibel is luck; where the noise
// nearly drowns the signal it is more, and several draws are taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include <fxgraph/rewriter/quantize/compare.h>
#include <fxgraph/torchscript/import.h>
#include "tests/quantize/programs.h"
#include "tests/support/scratch_folder.h"

namespace fx::python_test {

namespace fs = std::filesystem;

testing::Samples read_samples(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  testing::Samples samples;
  const c10::IValue all = torch::pickle_load(bytes);
  for (const c10::IValue& each : all.toListRef()) samples.push_back({each});
  return samples;
}

/// A model and how many times its weights are drawn.
struct Peer {
  std::string name;
  int draws = 1;

  std::string draw(int seed) const { return name + ":" + std::to_string(seed); }
};
void PrintTo(const Peer& each, std::ostream* out) { *out << each.name; }

const Peer kPeers[] = {
    {"mlp"},        {"lstm"},         {"bert_layer"},  {"resnet18"},     {"mobilenet_v2"}, {"mobilenet_v3_small", 6},
    {"mnasnet0_5"}, {"googlenet", 3}, {"densenet121"}, {"squeezenet1_1"}};

/// What Python makes of all of them, in one process: it takes seconds to start.
const testing::ScratchFolder& made_by_python(const std::string& python) {
  static const testing::ScratchFolder folder;
  static const bool is_made = [&] {
    std::string command = python + " tests/quantize/python_models.py " + folder.path().string();
    for (const Peer& peer : kPeers) {
      for (int seed = 1; seed <= peer.draws; ++seed) command += " " + peer.draw(seed);
    }
    return std::system((command + " 2>/dev/null").c_str()) == 0;
  }();
  EXPECT_TRUE(is_made);
  return folder;
}

/// One draw, both ways.
struct Result {
  double decibels = 0, peer_decibels = 0;
  std::size_t kernels = 0, peer_kernels = 0;
};

Result beside_python(const std::string& stem) {
  std::ifstream file(stem + ".json");
  const nlohmann::json theirs = nlohmann::json::parse(file);
  const auto gm = load(stem + ".pt");
  const testing::Samples samples = read_samples(stem + ".samples.pt");
  const QuantConfig config =
      theirs["mode"] == "dynamic" ? QuantConfig::dynamic() : QuantConfig::defaults(QuantBackend::automatic);
  const auto int8 = convert(*testing::calibrated(*gm, samples, config));
  return {compare_outputs(*gm, *int8, samples).output.sqnr_db, theirs["sqnr_db"],
          testing::count_prefix(*int8, "quantized::") + testing::count_prefix(*int8, "aten::quantized_"),
          theirs["kernels"]};
}

class BesidePythonNight : public ::testing::TestWithParam<Peer> {};

TEST_P(BesidePythonNight, AsManyKernelsAndNoMoreNoise) {
  const char* python = std::getenv("FXGRAPH_TEST_PYTHON");
  if (!python) GTEST_SKIP() << "needs Python with torch and torchvision: FXGRAPH_TEST_PYTHON";
  const testing::ScratchFolder& made = made_by_python(python);
  const torch::NoGradGuard no_grad;
  double gained = 0;
  for (int seed = 1; seed <= GetParam().draws; ++seed) {
    const Result result = beside_python((made / GetParam().draw(seed)).string());
    std::cout << GetParam().name << ": " << result.decibels << " dB with " << result.kernels << " kernels, Python "
              << result.peer_decibels << " dB with " << result.peer_kernels << "\n";
    // A clamp of Python's own is part of the layer before it here.
    EXPECT_GE(result.kernels, result.peer_kernels * 9 / 10);
    gained += result.decibels - result.peer_decibels;
  }
  // A bit of the weights that Python keeps, and adds up wrongly where it is too many, is worth six decibels.
  const bool lacks_a_bit = QuantConfig::defaults().global.weight.reduce_range;
  EXPECT_GE(gained / GetParam().draws, lacks_a_bit ? -6 : -0.5);
}

INSTANTIATE_TEST_SUITE_P(Models, BesidePythonNight, ::testing::ValuesIn(kPeers),
                         [](const auto& info) { return info.param.name; });

}  // namespace fx::python_test
