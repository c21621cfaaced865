// The models that make_models.py wrote, with examples: FXGRAPH_TEST_MODELS names their folder.
#pragma once

#include <torch/script.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx::testing {

using nlohmann::json;

inline std::string models_folder() {
  const char* folder = std::getenv("FXGRAPH_TEST_MODELS");
  return folder ? folder : "";
}

inline json manifest() {
  std::ifstream file(models_folder() + "/manifest.json");
  return file ? json::parse(file) : json::array();
}

/// A name for test reports.
inline std::string label(const json& entry) {
  std::string name = entry["file"].get<std::string>();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

struct Example {
  std::vector<c10::IValue> inputs;
  c10::IValue output;
};

inline Example read_example(const json& entry) {
  const torch::jit::Module io = torch::jit::load(models_folder() + "/" + entry["io"].get<std::string>());
  return {io.attr("inputs").toTupleRef().elements().vec(), io.attr("output")};
}

inline c10::IValue run(GraphModule& module, const Example& example) {
  std::vector<c10::IValue> inputs;
  for (const c10::IValue& input : example.inputs) inputs.push_back(input.deepcopy());
  return module.run(std::move(inputs));
}

/// The models that load, or those that do not.
inline std::vector<json> entries(bool loadable) {
  std::vector<json> selected;
  for (const json& entry : manifest()) {
    const json& loads = entry["expected"]["loads"];
    const bool refused = loads.is_boolean() && !loads.get<bool>();
    if (refused != loadable) selected.push_back(entry);
  }
  return selected;
}

}  // namespace fx::testing
