// The shapes inside of a call of a module.
//
// Cost: a pass of SymbolicShapes over the operators behind the call. Thread-safety: as `modules`.
#pragma once

#include <memory>
#include <optional>

#include <fxgraph/effects/module_info.h>
#include <fxgraph/ir/graph.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// The operators behind a call, and what is known of their values.
struct CalledShapes {
  std::shared_ptr<const Graph> graph;  ///< over paths below the module's
  Shapes shapes;                       ///< of its nodes, as far as operators have rows of sizes
  ModuleInfo modules;                  ///< of those that it calls
};

/// For the shapes that the call's inputs have; nothing where the operators are not known, or where they do not take
/// such inputs, for they were traced on others.
std::optional<CalledShapes> shapes_in_call(const Node& call, const Shapes& shapes, const ModuleInfo& modules);

}  // namespace fx
