// Generated C++ beside the modules that it was made of: compiled against LibTorch, with their weights.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/module/code.h>
#include <fxgraph/module/graph_module.h>
#include "tests/support/scratch_folder.h"

namespace fx::testing {

/// A module, and what it is run on.
struct GeneratedCase {
  std::string name;
  std::shared_ptr<GraphModule> module;
  std::vector<c10::IValue> inputs;
};

// What every generated file ends with: the door through which a test calls its modules.
inline std::string entry(const GeneratedCase& each) {
  std::string arguments;
  for (std::size_t i = 0; i < each.inputs.size(); ++i) {
    const char* taken = each.inputs[i].isTensor() ? ".toTensor()" : each.inputs[i].isInt() ? ".toInt()" : ".toDouble()";
    arguments += (i ? ", inputs[" : "inputs[") + std::to_string(i) + "]" + taken;
  }
  return "extern \"C\" void run_" + each.name +
         "(const std::string& weights, const std::vector<c10::IValue>& inputs, c10::IValue& result) {\n"
         "  auto net = std::make_shared<" +
         each.name +
         ">();\n  if (!weights.empty()) torch::load(net, weights);\n"
         "  torch::NoGradGuard no_grad;\n  result = net->forward(" +
         arguments + ");\n}\n\n";
}

using RunGenerated = void (*)(const std::string&, const std::vector<c10::IValue>&, c10::IValue&);

/// The generated code of all of them, compiled into one library.
class Compiled {
 public:
  explicit Compiled(const std::vector<GeneratedCase>& cases) {
    std::ofstream source(folder_ / "generated.cc");
    for (const GeneratedCase& each : cases) {
      each.module->set_class_name(each.name);
      source << code(*each.module, Language::cpp) << "\n" << entry(each);
    }
    source.close();
    const std::string object = folder_ / "generated.so";
    const std::string command =
        std::string(std::getenv("FXGRAPH_TEST_COMPILE")) + " " + (folder_ / "generated.cc").string() + " " + object;
    if (std::system(command.c_str()) == 0) library_ = dlopen(object.c_str(), RTLD_NOW);
  }

  bool ok() const { return library_ != nullptr; }
  c10::IValue run(const GeneratedCase& each) const { return run(each, each.inputs); }
  c10::IValue run(const GeneratedCase& each, const std::vector<c10::IValue>& given) const {
    std::string weights;
    if (!each.module->parameters().empty() || !each.module->buffers().empty()) {
      weights = folder_ / (each.name + ".pt");
      save(*each.module, weights);
    }
    c10::IValue result;
    const auto run = reinterpret_cast<RunGenerated>(dlsym(library_, ("run_" + each.name).c_str()));
    std::vector<c10::IValue> inputs;
    for (const c10::IValue& input : given) inputs.push_back(input.deepcopy());
    run(weights, inputs, result);
    return result;
  }

 private:
  ScratchFolder folder_;
  void* library_ = nullptr;  // stays loaded: tensors may have deleters in it
};

inline void expect_equal(const c10::IValue& a, const c10::IValue& b, const std::string& where) {
  if (a.isTensor()) {
    ASSERT_TRUE(b.isTensor()) << where;
    EXPECT_TRUE(torch::equal(a.toTensor(), b.toTensor())) << where;
  } else if (a.isTuple() || a.isList()) {
    const auto elements = [](const c10::IValue& v) {
      return v.isTuple() ? v.toTupleRef().elements().vec() : v.toListRef().vec();
    };
    const auto x = elements(a), y = elements(b);
    ASSERT_EQ(x.size(), y.size()) << where;
    for (std::size_t i = 0; i < x.size(); ++i) expect_equal(x[i], y[i], where + "[" + std::to_string(i) + "]");
  } else {
    EXPECT_EQ(a, b) << where;
  }
}

inline void expect_same_outputs(const Compiled& compiled, const std::vector<GeneratedCase>& cases) {
  ASSERT_TRUE(compiled.ok());
  const torch::NoGradGuard no_grad;
  for (const GeneratedCase& each : cases) {
    std::vector<c10::IValue> inputs;
    for (const c10::IValue& input : each.inputs) inputs.push_back(input.deepcopy());
    expect_equal(each.module->run(inputs), compiled.run(each), each.name);
  }
}

inline void expect_same_outputs(const std::vector<GeneratedCase>& cases) {
  expect_same_outputs(Compiled(cases), cases);
}

}  // namespace fx::testing
