#include <fxgraph/export/exported_operator.h>

namespace fx::pt2 {

const TorchOperator* find_exported_operator(Symbol target) {
  if (const TorchOperator* known = find_torch_operator(target)) return known;
  for (const TorchOperator* overload : torch_overloads(target)) {
    if (overload->schema->overload_name().empty() && overload->schema->name() == target.view()) return overload;
  }
  return nullptr;
}

}  // namespace fx::pt2
