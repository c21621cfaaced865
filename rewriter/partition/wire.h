// Values between ranks: tensors of any type, shape and dense layout as they are, everything else pickled.
// Internal to rewriter/partition/pipeline*.cc.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <vector>

#include <fxgraph/rewriter/partition/process_group.h>

namespace fx {

/// Tells the messages between two ranks apart.
struct Channel {
  std::int64_t micro_batch = 0;
  bool back = false;
};

/// Begins to send.
void send_values(Workers& workers, const std::vector<c10::IValue>& values, int to, Channel channel);
/// Receives what send_values sent. Tensors are new and require no gradient.
std::vector<c10::IValue> receive_values(Workers& workers, int from, Channel channel);

}  // namespace fx
