// The models that Python's torch made for the tests (tests/models/make_models.py), loaded with what they are run on.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx::testing {

struct TestModel {
  std::string file;  ///< its name in the folder
  std::shared_ptr<GraphModule> module;
  std::vector<c10::IValue> inputs;
};

/// Calls `visit` with every model that loads and runs. `inlined`: modules of torch.nn are no leaves, so that the graph
/// is made of operators; models that cannot be had so are left out. Returns how many there were; 0 when
/// FXGRAPH_TEST_MODELS names no folder with models.
int for_each_test_model(bool inlined, const std::function<void(TestModel&)>& visit);

}  // namespace fx::testing
