// A program's parameters, buffers and constants as an archive holds them.
//
// Tensors that share memory share it in the archive, or what is written to one, by the program or by an optimiser, is
// not seen in the other. An archive keeps what is saved apart from constants, and both apart in memory. So a view that
// no module has registered (`_tensor_constant0`) is taken in the graph of the tensor that it looks at; where that
// cannot be, both are saved. Thread-safety: as running the module.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx::pt2 {

/// One tensor of the program.
struct SavedState {
  enum class Held : std::uint8_t { parameter, buffer, not_saved, constant };
  std::string path;
  at::Tensor tensor;  ///< those that share memory share it here, too; no memory that none of them needs
  Held held = Held::parameter;
};

/// All of `module`, in the order in which they are written: constants last. Rewrites reads of views in `graph`, which
/// runs over the module. Throws Error(unsupported), naming the tensors, for what cannot be kept: memory that is read as
/// two types, and what was computed of a parameter before the program ran.
std::vector<SavedState> settle_state(const GraphModule& module, Graph& graph);

}  // namespace fx::pt2
