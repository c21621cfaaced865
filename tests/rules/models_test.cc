// Every model of tests/models, whole: load, run, fuse, run again, save, load, run again.
//
// FXGRAPH_TEST_MODELS names the folder that make_models.py wrote; without it the tests are skipped, saying so.
// What is saved is listed in FXGRAPH_TEST_MODELS/saved/pairs.txt, for check_saved.py to load in Python.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <fxgraph/ir/target.h>
#include <fxgraph/rewriter/rules/optimize.h>
#include <fxgraph/run/value.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <fxgraph/torchscript/export.h>
#include <fxgraph/torchscript/import.h>
#include "tests/torchscript/model_files.h"

namespace fx::models_test {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::entries;
using testing::Example;
using testing::label;
using testing::models_folder;
using testing::read_example;
using testing::run;

void collect(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) tensors.push_back(value.toTensor());
  if (value.isTuple())
    for (const c10::IValue& element : value.toTupleRef().elements()) collect(element, tensors);
  if (value.isList())
    for (const c10::IValue& element : value.toListRef()) collect(element, tensors);
  if (value.isGenericDict())
    for (const auto& item : value.toGenericDict()) collect(item.value(), tensors);
}

// The largest difference over the largest magnitude, over all tensors of both; infinite when they do not correspond.
double difference(const c10::IValue& expected, const c10::IValue& found, bool shapes_only) {
  std::vector<at::Tensor> a, b;
  collect(expected, a);
  collect(found, b);
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].sizes() != b[i].sizes()) return INFINITY;
    if (shapes_only || a[i].numel() == 0) continue;
    const at::Tensor x = a[i].to(at::kDouble), y = b[i].to(at::kDouble);
    worst = std::max(worst, (x - y).abs().max().item<double>() / std::max(x.abs().max().item<double>(), 1e-12));
  }
  return worst;
}

/// What the inputs look like, when all are tensors.
std::vector<TensorInfo> input_shapes(const Example& example) {
  std::vector<TensorInfo> shapes;
  for (const c10::IValue& input : example.inputs) {
    if (!input.isTensor()) return {};
    shapes.push_back(tensor_info(input.toTensor()));
  }
  return shapes;
}

class SavedModels : public ::testing::TestWithParam<json> {
 protected:
  void SetUp() override {
    if (models_folder().empty()) GTEST_SKIP() << "FXGRAPH_TEST_MODELS is not set: no models to test with";
  }
  static std::string path(const json& entry) { return models_folder() + "/" + entry["file"].get<std::string>(); }
};

class BadModels : public SavedModels {};

TEST_P(BadModels, AreRefusedInOneLineThatSaysWhere) {
  const json& entry = GetParam();
  try {
    load(path(entry));
    FAIL() << "loaded, but should not";
  } catch (const Error& error) {
    const std::string message = error.what();
    if (entry["expected"].contains("error")) {
      EXPECT_THAT(message, ::testing::HasSubstr(entry["expected"]["error"].get<std::string>()));
    } else {
      EXPECT_THAT(message, ::testing::HasSubstr(entry["file"].get<std::string>()));
    }
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST_P(SavedModels, LoadFuseSaveLoad) {
  const at::NoGradGuard no_grad;
  const json& entry = GetParam();
  const json& expected = entry["expected"];
  std::shared_ptr<GraphModule> module;
  try {
    module = load(path(entry));
  } catch (const Error& error) {
    ASSERT_TRUE(expected["loads"].is_null()) << error.what();
    return;  // as this model may be
  }
  module->graph().lint();
  const std::string text = print_graph(module->graph());
  EXPECT_EQ(print_graph(parse_graph(text)), text);

  const Example example = read_example(entry);
  const bool runs = entry["runs"].get<bool>(), shapes_only = !entry["compare"].get<bool>();
  const double tolerance = entry["rtol"].get<double>();
  // Each model is run once only: some change their own state.
  if (runs) {
    EXPECT_LE(difference(example.output, run(*load(path(entry)), example), shapes_only), tolerance) << "as loaded";
  }

  const std::vector<TensorInfo> shapes = runs ? input_shapes(example) : std::vector<TensorInfo>();
  const RuleOutcome outcome = optimize(*module, {.rules = {"fuse-conv-bn"}, .inputs = shapes}).rules.front();
  const auto foldable = expected["foldable_bn"].get<std::size_t>();
  EXPECT_GE(outcome.applied, foldable) << (outcome.refused.empty() ? "" : outcome.refused[0].reason);
  EXPECT_LE(outcome.applied, foldable + expected["optional_bn"].get<std::size_t>());
  optimize(*module, {.inputs = shapes});
  EXPECT_EQ(optimize(*module, {.inputs = shapes}).applied(), 0u) << "done once is done";

  const fs::path saved_folder = fs::path(models_folder()) / "saved";
  fs::create_directories(saved_folder);
  const std::string saved = (saved_folder / entry["file"].get<std::string>()).string();
  save(*module, saved);
  const std::shared_ptr<GraphModule> again = load(saved);
  again->graph().lint();
  if (runs) {
    EXPECT_LE(difference(example.output, run(*module, example), shapes_only), tolerance) << "fused";
    EXPECT_LE(difference(example.output, run(*again, example), shapes_only), tolerance) << "saved and loaded";
    torch::jit::Module script = torch::jit::load(saved);
    EXPECT_LE(difference(example.output, script.forward(example.inputs), shapes_only), tolerance) << "run by LibTorch";
  }
  if (!shapes_only) {
    std::ofstream(saved_folder / "pairs.txt", std::ios::app)
        << models_folder() << "/" << entry["io"].get<std::string>() << " " << saved << " " << tolerance << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(All, SavedModels, ::testing::ValuesIn(entries(true)),
                         [](const auto& info) { return label(info.param); });
INSTANTIATE_TEST_SUITE_P(All, BadModels, ::testing::ValuesIn(entries(false)),
                         [](const auto& info) { return label(info.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SavedModels);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BadModels);

// Scripted norms ask what they get for its rank, which is then no value that the norm alone reads.
TEST(WrittenOutModel, IsFusedAsCalledModulesAre) {
  for (const std::vector<std::string>& rules :
       {std::vector<std::string>{"fuse-conv-bn"}, std::vector<std::string>{"inline-modules", "fuse-conv-bn"}}) {
    const auto module = load("examples/models/demo.pt");
    module->eval();
    const OptimizeReport report = optimize(*module, {.rules = rules, .inputs = {TensorInfo{.sizes = {1, 3, 64, 64}}}});
    EXPECT_EQ(report.rules.back().applied, 52u);
    EXPECT_THAT(report.rules.back().refused, ::testing::IsEmpty());
  }
}

}  // namespace fx::models_test
