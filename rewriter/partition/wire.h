// Values between ranks: tensors of any type, shape and strides as they are, everything else pickled.
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

/// What comes of it: the values, new and requiring no gradient, and the notes.
struct Received {
  std::vector<c10::IValue> values;
  std::vector<std::int64_t> notes;
};

/// Begins to send values, and a few numbers with them.
void send_values(Workers& workers, const std::vector<c10::IValue>& values, const std::vector<std::int64_t>& notes,
                 int to, Channel channel);

/// A message that is awaited. What describes it may be asked for before it is needed, so that it is there by then.
class Incoming {
 public:
  Incoming(Workers& workers, int from, Channel channel);
  /// Waits for all that send_values sent. Once.
  Received receive();

 private:
  Workers* workers_;
  int from_;
  Channel channel_;
  Workers::Arriving head_;
};

}  // namespace fx
