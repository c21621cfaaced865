// Archives that PyTorch wrote, each with the inputs and outputs that it had there: loaded, run, differentiated, printed.
#include <ATen/ATen.h>
#include <fxgraph/export/load.h>
#include <fxgraph/text/parse.h>
#include <fxgraph/text/print.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fx {
namespace {

namespace fs = std::filesystem;

fs::path corpus() {
  const char* other = std::getenv("FXGRAPH_TEST_PT2");
  return other ? other : "tests/corpus/pt2";
}

std::vector<std::string> archives() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(corpus())) {
    if (entry.path().extension() == ".pt2") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

c10::Dict<c10::IValue, c10::IValue> recorded(const std::string& name) {
  const std::string stem = name.ends_with(".core") ? name.substr(0, name.size() - 5) : name;
  std::ifstream file(corpus() / (stem + ".io"), std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  return torch::jit::pickle_load(bytes).toGenericDict();
}

void flatten(const c10::IValue& value, std::vector<c10::IValue>& leaves) {
  if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements()) flatten(each, leaves);
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) flatten(each, leaves);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) flatten(item.value(), leaves);
  } else {
    leaves.push_back(value);
  }
}

void expect_equal(const c10::IValue& got, const c10::IValue& wanted, const std::string& what) {
  if (!wanted.isTensor()) {
    if (wanted.isInt() || wanted.isDouble()) {
      EXPECT_EQ(got.toScalar().toDouble(), wanted.toScalar().toDouble()) << what;
    }
    return;
  }
  const at::Tensor a = got.toTensor().detach(), b = wanted.toTensor();
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  ASSERT_EQ(a.scalar_type(), b.scalar_type()) << what;
  if (b.numel() == 0) return;
  EXPECT_TRUE(at::allclose(a, b, 1e-4, 1e-5, /*equal_nan=*/true))
      << what << ": largest difference " << (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

class Archive : public testing::TestWithParam<std::string> {};

TEST_P(Archive, GivesTheOutputsAndGradientsOfPython) {
  const auto record = recorded(GetParam());
  const auto gm = load_exported((corpus() / (GetParam() + ".pt2")).string());
  gm->graph().lint();
  std::vector<c10::IValue> inputs;
  for (const c10::IValue& value : record.at("inputs").toListRef())
    inputs.push_back(value.isTensor() ? c10::IValue(value.toTensor().clone()) : value);
  at::manual_seed(0);
  const c10::IValue result = gm->run(pack_inputs(*gm, inputs));
  std::vector<c10::IValue> outputs;
  flatten(result, outputs);
  const auto wanted = record.at("outputs").toListRef();
  ASSERT_EQ(outputs.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) expect_equal(outputs[i], wanted[i], "output " + std::to_string(i));
  if (!record.contains("grads")) return;

  const auto after = record.at("after").toListRef();
  for (std::size_t i = 0; i < after.size(); ++i) expect_equal(inputs[i], after[i], "input " + std::to_string(i));
  for (const auto& item : record.at("state").toGenericDict()) {
    expect_equal(gm->attribute(item.key().toStringRef()), item.value(), item.key().toStringRef());
  }
  at::Tensor loss;
  for (const c10::IValue& value : outputs) {
    if (!value.isTensor() || !value.toTensor().requires_grad()) continue;
    const at::Tensor real = value.toTensor().is_complex() ? at::real(value.toTensor()) : value.toTensor();
    loss = loss.defined() ? loss + real.to(at::kDouble).sum() : real.to(at::kDouble).sum();
  }
  const auto grads = record.at("grads").toGenericDict();
  if (loss.defined()) loss.backward();
  for (const auto& item : grads) {
    const at::Tensor grad = gm->attribute(item.key().toStringRef()).grad();
    ASSERT_TRUE(grad.defined()) << item.key().toStringRef();
    expect_equal(grad, item.value(), "gradient of " + item.key().toStringRef());
  }
}

TEST_P(Archive, PrintsATextThatReadsBack) {
  const auto gm = load_exported((corpus() / (GetParam() + ".pt2")).string());
  const std::string text = print_graph(gm->graph());
  EXPECT_EQ(print_graph(parse_graph(text)), text);
}

INSTANTIATE_TEST_SUITE_P(OfPython, Archive, testing::ValuesIn(archives()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace fx
