// Packed weights in files: a call that packs constants (run/packed_once.h) becomes a module of its own, which packs
// when the file is loaded. Included by this folder's files only.
//
// The module holds what goes into the call as parameters and buffers, `pack()` makes the packed object from them, and
// the attribute `packed` holds it. __getstate__ leaves `packed` out, __setstate__ makes it anew: so files are no
// larger, copies of the module work, and any LibTorch loads it with its own packing.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fxgraph/ir/graph.h>
#include <fxgraph/module/graph_module.h>

namespace fx::internal {

inline constexpr const char* kPackedAttribute = "packed";
inline constexpr const char* kPackMethod = "pack";

struct PackedGraph {
  Graph graph;  ///< packing calls are get_attr nodes of `<path>.packed`
  std::vector<std::pair<std::string, torch::jit::Module>> modules{};  ///< by name below the root
  std::unordered_set<std::string> moved{};  ///< tensors that only packing calls read: they are in the modules
};

/// Returns nothing when `graph`, a graph over `module`, packs no constants.
std::optional<PackedGraph> separate_packing(const GraphModule& module, const Graph& graph,
                                            const std::shared_ptr<torch::jit::CompilationUnit>& unit);

/// The method of `owner` that makes what its attribute in `slot` holds; null when that is not a packed object, or was
/// made in another way.
torch::jit::Function* packing_method(const c10::ClassType& owner, std::size_t slot);

}  // namespace fx::internal
