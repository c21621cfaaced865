// Calls that compute into their first argument, and what computes the same into a tensor of its own.
#pragma once

#include <fxgraph/effects/tracked_effects.h>
#include <fxgraph/ops/schema.h>

namespace fx {

/// True when the result is the first argument, written to, in its old size: `aten::add_`, `aten::copy_`.
bool writes_first(const OperatorSchema& schema);

/// The overload that computes the same into its first argument, `aten::add_.Tensor` for `aten::add.Tensor`; null when
/// there is none. Views have none: `detach_` makes no tensor, and throws on views.
const OperatorSchema* in_place_overload(const OperatorSchema& schema);

/// The overload that in_place_overload() says has this one; null when there is none.
const OperatorSchema* functional_overload(const OperatorSchema& schema);

/// Who sees what an in-place call writes, but by its result: a later reader, or, of inputs, attributes and modules, the
/// value itself; null when nobody does. Then the call is the functional one, where size and type are the same: `add_`
/// of a half and a float stays half. `effects` must know of storage (expect_writes()). O(values of the storage, uses).
const Node* sees_write(const Node& call, const internal::TrackedEffects& effects);

}  // namespace fx
