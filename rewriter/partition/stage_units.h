// Calls that no cut between stages may part. Internal to rewriter/partition/split_pipeline.cc.
//
// A value that is sent is a copy, and the gradient of a list does not come back. So lists of tensors stay where they
// are made, with what takes them apart; of a storage that the program writes, everything up to the last write is one
// unit: what makes values in it, what writes it, what reads it. Of one that outlives the call (a buffer, a called
// module's state) everything that touches it is, called modules that hold it too, since the next call reads what this
// one wrote.
//
// Cost: O(nodes + uses).
#pragma once

#include <cstdint>

#include <fxgraph/analysis/effects.h>
#include <fxgraph/ir/node_map.h>
#include <fxgraph/ir/tensor_info.h>

namespace fx {

/// By call: 0 for one that may stand by itself, else the number of its unit, counted from 1. Throws Error(unsupported)
/// naming a call that writes to an input.
NodeMap<std::uint32_t> stage_units(const Effects& effects, const Shapes& shapes);

}  // namespace fx
