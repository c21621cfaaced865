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

/// How a value comes.
enum class ValueKind : std::uint8_t { tensor, undefined, pickle };

/// A value of a message, as its words say it.
struct DescribedValue {
  ValueKind kind = ValueKind::undefined;
  at::ScalarType type = at::ScalarType::Undefined;  ///< of a tensor, as are sizes and strides
  std::vector<std::int64_t> sizes{}, strides{};
  std::int64_t pickled_bytes = 0;
};

/// What the words of a message say.
struct Description {
  std::vector<DescribedValue> values;
  std::vector<std::int64_t> notes;
};

/// Reads what `from` describes. Throws Error(execution) that names it where that cannot be: a number out of its range,
/// a tensor that is larger than any memory. Makes no tensor.
Description read_description(at::IntArrayRef words, int from);

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
