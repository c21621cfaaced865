// What modules do in random graphs of tests.
#pragma once

#include <optional>

#include <fxgraph/analysis/effects.h>

namespace fx::testing {

/// Every call of a module does `call`, or is not known when that is empty. `ties`: "buffer" is the tensor of
/// "layer.weight". `state`: a module at a path has a weight, "layer" also what is in "layer.inner".
inline ModuleInfo module_info(const std::optional<NodeEffects>& call, bool ties, bool state) {
  ModuleInfo modules;
  if (call) modules.effects = [call](const Node&) { return *call; };
  if (ties) modules.storage = [](Symbol path) { return path == "buffer" ? Symbol("layer.weight") : path; };
  if (state) {
    modules.state = [](Symbol path, const std::function<void(Symbol)>& visit) {
      visit(Symbol(path.str() + ".weight"));
      if (path == "layer") visit(Symbol("layer.inner.scale"));
    };
  }
  return modules;
}

}  // namespace fx::testing
