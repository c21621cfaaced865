// Values packed into the tuples, lists and dicts of a call, and taken out of them: TreeSpec for values.
//
// Costs: linear in the values. Thread-safety: pure functions.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>

#include <fxgraph/export/tree_spec.h>

namespace fx::pt2 {

/// The values that `next_leaf` gives, packed like this.
c10::IValue packed_value(const TreeSpec& spec, const std::function<c10::IValue()>& next_leaf);

/// How `value` is packed. Throws Error(unsupported) for keys that are neither strings nor ints.
TreeSpec spec_of_value(const c10::IValue& value);

}  // namespace fx::pt2
