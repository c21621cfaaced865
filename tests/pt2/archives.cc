#include "tests/pt2/archives.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <fxgraph/ir/types.h>
#include <fxgraph/run/value.h>

namespace fx::testing {
namespace {

// Tensors of types that torch.save's files name in no way that LibTorch reads go as (type, the same bytes).
std::optional<at::Tensor> of_bytes(const c10::IValue& value) {
  if (!value.isTuple() || value.toTupleRef().size() != 2) return std::nullopt;
  const auto& parts = value.toTupleRef().elements();
  if (!parts[0].isString() || !parts[1].isTensor()) return std::nullopt;
  const std::optional<DType> type = parse_dtype(parts[0].toStringRef());
  if (!type) return std::nullopt;
  return parts[1].toTensor().view(to_scalar_type(*type));
}

// Numbers of a type that can be compared and added up.
at::Tensor counted(const at::Tensor& tensor) {
  return tensor.to(tensor.is_complex() ? at::kComplexDouble : tensor.is_floating_point() ? at::kDouble : at::kLong);
}

void add_leaves(const c10::IValue& value, std::vector<c10::IValue>& leaves) {
  if (const std::optional<at::Tensor> tensor = of_bytes(value)) {
    leaves.push_back(*tensor);
  } else if (value.isTuple()) {
    for (const c10::IValue& each : value.toTupleRef().elements()) add_leaves(each, leaves);
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) add_leaves(each, leaves);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) add_leaves(item.value(), leaves);
  } else {
    leaves.push_back(value);
  }
}

std::string path_of(const std::string& name, int call) {
  return corpus() + "/" + name + ".io" + (call == 0 ? "" : std::to_string(call));
}

}  // namespace

std::string corpus() {
  const char* other = std::getenv("FXGRAPH_TEST_PT2");
  return other ? other : "tests/corpus/pt2";
}

std::vector<std::string> archives() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(corpus())) {
    if (entry.path().extension() == ".pt2") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string archive_test_name(const ::testing::TestParamInfo<std::string>& archive) {
  std::string name = archive.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

std::string stem_of(const std::string& name) {
  return name.ends_with(".core") ? name.substr(0, name.size() - 5) : name;
}

bool has_recording(const std::string& name, int call) { return std::filesystem::exists(path_of(name, call)); }

Record recorded(const std::string& name, int call) {
  // A core program has its own recording only where its state was another.
  const bool own = has_recording(name, call);
  const std::string stem = own ? name : stem_of(name);
  std::ifstream file(path_of(stem, call), std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  const auto parts = torch::jit::pickle_load(bytes).toTupleRef().elements().vec();
  const auto named = [](const c10::IValue& pairs) {
    std::vector<std::pair<std::string, c10::IValue>> all;
    for (const c10::IValue& pair : pairs.toTupleRef().elements())
      all.emplace_back(pair.toTupleRef().elements()[0].toStringRef(), leaves_of(pair.toTupleRef().elements()[1]).at(0));
    return all;
  };
  return {leaves_of(parts.at(0)), leaves_of(parts.at(1)),
          named(parts.at(2)),     named(parts.at(3)),
          leaves_of(parts.at(4)), parts.size() > 5 ? leaves_of(parts[5]) : std::vector<c10::IValue>()};
}

std::vector<c10::IValue> recorded_inputs(const std::string& name) {
  std::vector<c10::IValue> inputs;
  for (const c10::IValue& value : recorded(name).inputs)
    inputs.push_back(value.isTensor() ? c10::IValue(value.toTensor().clone()) : value);
  return inputs;
}

std::vector<c10::IValue> leaves_of(const c10::IValue& value) {
  std::vector<c10::IValue> leaves;
  add_leaves(value, leaves);
  return leaves;
}

void expect_equal(const c10::IValue& got, const c10::IValue& wanted, const std::string& what) {
  if (!wanted.isTensor()) {
    if (wanted.isInt() || wanted.isDouble()) {
      EXPECT_EQ(got.toScalar().toDouble(), wanted.toScalar().toDouble()) << what;
    }
    return;
  }
  ASSERT_EQ(got.toTensor().sizes(), wanted.toTensor().sizes()) << what;
  ASSERT_EQ(got.toTensor().scalar_type(), wanted.toTensor().scalar_type()) << what;
  const at::Tensor a = counted(got.toTensor().detach()), b = counted(wanted.toTensor().detach());
  if (b.numel() == 0) return;
  const bool rounds = b.is_floating_point() || b.is_complex();
  const double size = rounds ? at::nan_to_num(at::abs(b), 0, 0, 0).max().item().toDouble() : 0;
  EXPECT_TRUE(at::allclose(a, b, 1e-3, 1e-5 + 1e-4 * size, /*equal_nan=*/true))
      << what << ": largest difference " << (a - b).abs().max().item().toDouble();
}

void expect_all_equal(const c10::IValue& got, const std::vector<c10::IValue>& wanted) {
  const std::vector<c10::IValue> values = leaves_of(got);
  ASSERT_EQ(values.size(), wanted.size());
  for (std::size_t i = 0; i < values.size(); ++i) expect_equal(values[i], wanted[i], "output " + std::to_string(i));
}

}  // namespace fx::testing
