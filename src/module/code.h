// Source code from a GraphModule, and folders of code with weights.
//
//   std::cout << gm.code();                                // Python's forward, as torch.fx prints it
//   std::cout << fx::code(gm, fx::Language::cpp);          // a torch::nn::Module; torch::load reads its weights
//   fx::to_folder(gm, "net", "Net");                       // net/module.py and net/weights.pt, for Python
#pragma once

#include <string>

#include <fxgraph/codegen/code.h>
#include <fxgraph/module/graph_module.h>

namespace fx {

/// Returns the source. For C++ and TorchScript the modules that the graph calls are written out (inline_modules), in
/// the mode that they are in. Throws Error(unsupported) naming the node for what the language cannot say.
std::string code(const GraphModule& module, Language language = Language::python);

/// FX's to_folder: writes `folder`/module.py, a class of that name, and `folder`/weights.pt, which it loads; makes the
/// folder. Python's torch runs the class, and torch.fx can trace it. Files that are there are replaced, each whole or
/// not at all. A module whose computation the graph does not hold is made by Python's class of it. Throws
/// Error(unsupported) where it is not known how, Error(io) when a file cannot be written.
void to_folder(const GraphModule& module, const std::string& folder, const std::string& class_name = "Module");

}  // namespace fx
