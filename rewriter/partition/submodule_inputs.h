// What the submodules of a program are called with, FX's generate_inputs_for_submodules: examples for their parts.
//
//   fx::SubmoduleInputs inputs = fx::inputs_of_submodules(*split, {x}, {"submod_0", "submod_1"});
//   backend.compile(*split->submodule("submod_1"), inputs.at("submod_1"));
//
// Thread-safety: runs a copy of the module.
#pragma once

#include <ATen/core/ivalue.h>

#include <map>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx {

/// By path; of a module that is called several times what it was called with first.
using SubmoduleInputs = std::map<std::string, std::vector<c10::IValue>>;

/// Runs a copy of the program without gradients and returns copies of what each call_module of these paths is given,
/// keyword arguments behind the others. Without paths: of all modules that the program calls. Throws
/// Error(not_found) naming a path that the program does not call, and what running throws.
SubmoduleInputs inputs_of_submodules(const GraphModule& module, const std::vector<c10::IValue>& inputs,
                                     const std::vector<std::string>& paths = {});

}  // namespace fx
