// The shapes inside of a call of a module.
//
// Cost: a pass of SymbolicShapes over the operators behind the call. Thread-safety: as `modules`.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <fxgraph/contract/symbolic_shapes.h>
#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// The operators behind a call, and what is known of their values.
struct CalledSizes {
  std::shared_ptr<const Graph> graph;  ///< over paths below the module's
  SymbolicShapes sizes;                ///< of its nodes
  ModuleInfo modules;                  ///< of those that it calls
};
/// The same in numbers.
struct CalledShapes {
  std::shared_ptr<const Graph> graph;  ///< over paths below the module's
  Shapes shapes;                       ///< of its nodes, as far as operators have rows of sizes
  ModuleInfo modules;                  ///< of those that it calls
};

/// For what is known of the call's inputs; nothing where the operators are not known, or where they do not take such
/// inputs, for they were traced on others.
/// @{
std::optional<CalledSizes> sizes_in_call(const Node& call, const std::function<AbstractValue(const Node&)>& value_of,
                                         const ModuleInfo& modules);
std::optional<CalledShapes> shapes_in_call(const Node& call, const Shapes& shapes, const ModuleInfo& modules);
/// @}

}  // namespace fx
