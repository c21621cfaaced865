// Files that Python's torch wrote (tests/models/make_models.py): each loads, computes what it should, is saved and
// loads again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <fxgraph/support/error.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>

#include "tests/support/scratch_folder.h"

namespace fx::models_test {

namespace fs = std::filesystem;
using Values = std::vector<c10::IValue>;

std::string models_folder() {
  const char* folder = std::getenv("FXGRAPH_TEST_MODELS");
  return folder ? folder : "";
}

/// The entries of the manifest; empty when there are no models.
nlohmann::json manifest() {
  std::ifstream file(models_folder() + "/manifest.json");
  return file ? nlohmann::json::parse(file) : nlohmann::json::array();
}

/// Largest |difference| / largest |expected| of all tensors; structure and numbers must be equal.
double difference(const c10::IValue& got, const c10::IValue& expected) {
  const auto of_all = [](auto&& got_parts, auto&& expected_parts) {
    EXPECT_EQ(got_parts.size(), expected_parts.size());
    double worst = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(got_parts.size(), expected_parts.size()); ++i) {
      worst = std::max(worst, difference(got_parts[i], expected_parts[i]));
    }
    return worst;
  };
  if (expected.isTensor()) {
    if (!got.isTensor() || got.toTensor().sizes() != expected.toTensor().sizes()) return 1e9;
    EXPECT_EQ(got.toTensor().scalar_type(), expected.toTensor().scalar_type());
    const torch::Tensor a = got.toTensor().to(torch::kDouble);
    const torch::Tensor b = expected.toTensor().to(torch::kDouble);
    if (a.numel() == 0 || a.equal(b)) return 0;
    return ((a - b).abs().max() / b.abs().max().clamp_min(1e-30)).item<double>();
  }
  if (expected.isTuple())
    return got.isTuple() ? of_all(got.toTuple()->elements(), expected.toTuple()->elements()) : 1e9;
  if (expected.isList()) return got.isList() ? of_all(got.toListRef(), expected.toListRef()) : 1e9;
  if (expected.isGenericDict()) {
    double worst = 0;
    for (const auto& item : expected.toGenericDict())
      worst = std::max(worst, difference(got.toGenericDict().at(item.key()), item.value()));
    return worst;
  }
  return got.tagKind() == expected.tagKind() && got == expected ? 0 : 1e9;
}

Values copy_of(const c10::IValue& tuple) {
  Values values;
  for (const c10::IValue& value : tuple.toTupleRef().elements()) values.push_back(value.deepcopy());
  return values;
}

/// What print_graph says, with the nodes numbered: names may differ where dead nodes took them.
std::string shape_of(const Graph& graph) {
  Graph copy = graph.clone();
  int number = 0;
  for (Node& node : copy.nodes()) {
    if (!node.is(Op::output)) node.rename("n_" + std::to_string(number++) + "_n");
  }
  return print_graph(copy);
}

void check_loaded(const nlohmann::json& entry, const std::string& file) {
  const auto gm = load(file);
  gm->graph().lint();
  if (!entry["runs"].get<bool>()) return;
  const torch::NoGradGuard guard;
  const torch::jit::Module io = torch::jit::load(models_folder() + "/" + entry["io"].get<std::string>());
  torch::manual_seed(0);
  const c10::IValue got = gm->run(copy_of(io.attr("inputs")));
  if (!entry["compare"].get<bool>()) return;
  EXPECT_LE(difference(got, io.attr("output")), entry["rtol"].get<double>());

  // A model that writes its own state gives another result the second time: save a fresh one.
  const testing::ScratchFolder scratch;
  const fs::path saved = scratch / entry["file"].get<std::string>();
  const auto fresh = load(file);
  save(*fresh, saved.string());
  torch::jit::Module script = torch::jit::load(saved.string());
  EXPECT_LE(difference(script.forward(copy_of(io.attr("inputs"))), io.attr("output")), entry["rtol"].get<double>());
  const auto again = load(saved.string());
  EXPECT_EQ(shape_of(again->graph()), shape_of(fresh->graph()));
  EXPECT_LE(difference(again->run(copy_of(io.attr("inputs"))), io.attr("output")), entry["rtol"].get<double>());
  fs::remove(saved);
}

void check(const nlohmann::json& entry) {
  const std::string file = models_folder() + "/" + entry["file"].get<std::string>();
  SCOPED_TRACE(file);
  const nlohmann::json& loads = entry["expected"]["loads"];
  try {
    check_loaded(entry, file);
    EXPECT_TRUE(loads.is_null() || loads.get<bool>()) << "must not load";
  } catch (const Error& error) {
    EXPECT_TRUE(loads.is_null() || !loads.get<bool>()) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    if (entry["expected"].contains("error")) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(entry["expected"]["error"].get<std::string>()));
    }
  }
}

/// Runs the entries that `wanted` accepts.
template <typename Wanted>
void check_all(const Wanted& wanted) {
  const nlohmann::json entries = manifest();
  if (entries.empty()) GTEST_SKIP() << "no test models: FXGRAPH_TEST_MODELS names no folder with a manifest.json";
  int count = 0;
  for (const nlohmann::json& entry : entries) {
    if (!wanted(entry)) continue;
    check(entry);
    ++count;
  }
  EXPECT_GT(count, 0);
}

bool is_torchvision(const nlohmann::json& entry) {
  static const std::vector<std::string> kNames{"resnet18",   "resnet50",    "mobilenet_v2",
                                               "vgg11_bn",   "densenet121", "shufflenet_v2_x1_0",
                                               "mnasnet1_0", "googlenet",   "googlenet_pretrained"};
  return std::find(kNames.begin(), kNames.end(), entry["name"].get<std::string>()) != kNames.end();
}

TEST(Models, ScriptedFiles) {
  check_all([](const nlohmann::json& entry) { return entry["kind"] == "scripted" && !is_torchvision(entry); });
}

TEST(Models, TracedFiles) {
  check_all([](const nlohmann::json& entry) { return entry["kind"] == "traced" && !is_torchvision(entry); });
}

TEST(TorchvisionNight, Files) {
  check_all([](const nlohmann::json& entry) { return entry["kind"] != "bad" && is_torchvision(entry); });
}

TEST(Models, BadFiles) {
  check_all([](const nlohmann::json& entry) { return entry["kind"] == "bad"; });
}

// ── Files without models ───────────────────────────────────────────────────────────────────────────────────────────

std::string load_error(const std::string& path) {
  try {
    load(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(Files, ThatAreNoModelsSayWhy) {
  const testing::ScratchFolder folder;
  const auto write = [&](const char* name, const std::string& content) {
    std::ofstream(folder / name, std::ios::binary) << content;
    return (folder / name).string();
  };
  EXPECT_THAT(load_error("/no/such/file.pt"), ::testing::HasSubstr("/no/such/file.pt: there is no such file"));
  EXPECT_THAT(load_error(folder.path().string()), ::testing::HasSubstr("is a directory"));
  EXPECT_THAT(load_error(write("empty.pt", "")), ::testing::HasSubstr("it is empty"));
  EXPECT_THAT(load_error(write("text.pt", "hello, world")), ::testing::HasSubstr("it is no zip archive"));
  EXPECT_THAT(load_error(write("garbage.pt", std::string(1 << 20, '\x5a'))), ::testing::HasSubstr("torch.jit.save"));
  EXPECT_THAT(load_error(write("cut.pt", "PK\x03\x04" + std::string(1000, 'x'))), ::testing::HasSubstr("is cut short"));
}

TEST(Files, AreWrittenWholeOrNotAtAll) {
  const testing::ScratchFolder folder;
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(graph.call_function("aten::relu", {x}));
  const GraphModule gm(std::move(graph));
  save(gm, (folder / "relu.pt").string());
  EXPECT_TRUE(
      load((folder / "relu.pt").string())->forward(torch::tensor({-1.0, 2.0})).equal(torch::tensor({0.0, 2.0})));
  EXPECT_THROW(save(gm, (folder / "none" / "relu.pt").string()), Error);
  EXPECT_THROW(save(gm, folder.path().string()), Error);
  Graph broken;
  broken.output(broken.call_function("my.function", {broken.placeholder("x")}));
  EXPECT_THROW(save(GraphModule(std::move(broken)), (folder / "broken.pt").string()), Error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1)
      << "only relu.pt is left";
}

}  // namespace fx::models_test
