#include <fxgraph/effects/module_info.h>

namespace fx {

ModuleInfo ModuleInfo::or_else(const ModuleInfo& other) const {
  const auto either = [](const auto& first, const auto& second) { return first ? first : second; };
  return {either(effects, other.effects), either(storage, other.storage), either(state, other.state),
          either(type, other.type),       either(body, other.body),       either(cost, other.cost)};
}

}  // namespace fx
