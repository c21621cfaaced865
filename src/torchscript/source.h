// Where a piece of TorchScript was written, and what its classes are called.
#pragma once

#include <string>

#include <fxgraph/support/error.h>

namespace torch::jit {
struct Node;
}

namespace fx::torchscript {

/// The Python file and line that `node` came from; unknown when the file does not say.
SourceLocation location_of(const torch::jit::Node& node);

/// That line's text, without indentation; may be empty.
std::string source_line(const torch::jit::Node& node);

/// `__torch__.torch.nn.modules.conv.___torch_mangle_25.Conv2d` -> `torch.nn.modules.conv.Conv2d`.
std::string demangle(const std::string& qualified_name);

/// `Conv2d` of `torch.nn.modules.conv.Conv2d`.
std::string last_atom(const std::string& qualified_name);

}  // namespace fx::torchscript
