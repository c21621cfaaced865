#include "tests/cli/test_models.h"

#include <torch/script.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include <fxgraph/support/error.h>
#include <fxgraph/torchscript/import.h>

namespace fx::testing {

int for_each_test_model(bool inlined, const std::function<void(TestModel&)>& visit) {
  const char* variable = std::getenv("FXGRAPH_TEST_MODELS");
  const std::string folder = variable ? variable : "";
  std::ifstream manifest(folder + "/manifest.json");
  if (!manifest) return 0;
  const at::NoGradGuard no_grad;
  int count = 0;
  for (const nlohmann::json& entry : nlohmann::json::parse(manifest)) {
    if (!entry["runs"].get<bool>() || (entry["kind"] == "scripted") != inlined) continue;
    TestModel model;
    model.file = entry["file"];
    LoadOptions options;
    if (inlined) options.is_leaf = [](const std::string&, const std::string&) { return false; };
    try {
      model.module = load(folder + "/" + model.file, options);
    } catch (const Error&) {
      continue;  // tests/torchscript says which must load
    }
    const torch::jit::Module io = torch::jit::load(folder + "/" + entry["io"].get<std::string>());
    for (const c10::IValue& value : io.attr("inputs").toTupleRef().elements()) model.inputs.push_back(value.deepcopy());
    visit(model);
    ++count;
  }
  return count;
}

}  // namespace fx::testing
