// inline_submodules: calls of GraphModules written out in the program that calls them; lift_submodule: the way back.
//
// FX's split and lift go both ways here: what fuse_by_partitions or split_module cut out comes back under its old names
// and paths. Thread-safety: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <fxgraph/module/graph_module.h>

namespace fx {

/// Returns the program with the calls of these modules, each a GraphModule, written out where they stand. A tensor or
/// module of a part keeps the path that it has there unless something else has it in the program; then the part's path
/// goes before it. Elements of a part's result become the values themselves. Tensors are shared. Throws
/// Error(invalid_argument) naming a path that is no GraphModule or that nothing calls. O(nodes).
std::shared_ptr<GraphModule> inline_submodules(const GraphModule& module, const std::vector<std::string>& paths);

/// Returns the program with these nodes, in one piece, in a module of their own at `path`. Throws
/// Error(invalid_argument) when the path is taken, when there are no nodes or one cannot be lifted (piece_of), or
/// naming the nodes when values would go out and come back.
std::shared_ptr<GraphModule> lift_submodule(const GraphModule& module, const std::vector<Node*>& nodes,
                                            const std::string& path);

}  // namespace fx
