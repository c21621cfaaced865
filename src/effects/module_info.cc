#include <fxgraph/effects/module_info.h>

namespace fx {

ModuleInfo ModuleInfo::or_else(const ModuleInfo& other) const {
  const auto either = [](const auto& first, const auto& second) { return first ? first : second; };
  return {.effects = either(effects, other.effects),
          .storage = either(storage, other.storage),
          .state = either(state, other.state),
          .type = either(type, other.type),
          .body = either(body, other.body),
          .evaluated = either(evaluated, other.evaluated),
          .operators = either(operators, other.operators),
          .tensor = either(tensor, other.tensor),
          .below = either(below, other.below),
          .cost = either(cost, other.cost)};
}

}  // namespace fx
