// Values between ranks: tensors of any type, shape and dense layout as they are, everything else pickled.
// Internal to rewriter/partition/pipeline*.cc.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include <fxgraph/rewriter/partition/process_group.h>

namespace fx {

/// Begins to send; `channel` numbers the message between these two ranks.
void send_values(Workers& workers, const std::vector<c10::IValue>& values, int to, int channel);
/// Receives what send_values sent. Tensors are new and require no gradient.
std::vector<c10::IValue> receive_values(Workers& workers, int from, int channel);

}  // namespace fx
