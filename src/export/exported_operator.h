// The operator that an exported program means by a target: `aten::cat` is aten.cat.default, whatever other overloads
// there are. (Elsewhere a name without overload may leave the choice to the values: run/operators.h.)
//
// Thread-safety: as find_torch_operator.
#pragma once

#include <fxgraph/run/operators.h>

namespace fx::pt2 {

/// The operator; null when there is none.
const TorchOperator* find_exported_operator(Symbol target);

}  // namespace fx::pt2
