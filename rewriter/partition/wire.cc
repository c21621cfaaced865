// A tensor keeps its strides: dense ones are sent as they lie, others as their elements, those of expanded dimensions
// once. What is sparse or quantized is pickled.
//
// Three kinds of message on three tags of a channel: a head of one size, which holds the description (for each value
// its kind, type, sizes and strides, or the size of its pickle; and the notes) when it fits, else only its size; the
// description that does not; the tensors, all asked for at once. A wait costs more than a few bytes.
#include <fxgraph/rewriter/partition/wire.h>

#include <ATen/ATen.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <utility>

#include <fxgraph/nn/without_repeats.h>
#include <fxgraph/run/stored_values.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

constexpr std::int64_t kHead = 64;  // words; the first says how many there are

bool is_plain(const at::Tensor& tensor) { return tensor.layout() == at::kStrided && !tensor.is_quantized(); }

void describe(const at::Tensor& tensor, std::vector<std::int64_t>& words) {
  words.push_back(static_cast<std::int64_t>(tensor.scalar_type()));
  words.push_back(tensor.dim());
  words.insert(words.end(), tensor.sizes().begin(), tensor.sizes().end());
  words.insert(words.end(), tensor.strides().begin(), tensor.strides().end());
}

// The elements in the order in which they lie.
at::Tensor flat(const at::Tensor& dense) { return dense.as_strided({dense.numel()}, {1}); }

// Conjugates and negatives that are only marked as such would lose the mark.
at::Tensor sendable(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu()) {
    throw Error(ErrorKind::unsupported, "a tensor on " + tensor.device().str() +
                                            " cannot be sent: only those on the CPU go from stage to stage");
  }
  return tensor.detach().resolve_conj().resolve_neg();
}

at::Tensor payload_of(const at::Tensor& plain) {
  return plain.is_non_overlapping_and_dense() ? flat(plain) : without_repeats(plain).contiguous();
}

bool is_pickled(const c10::IValue& value) {
  return !value.isTensor() || (value.toTensor().defined() && !is_plain(value.toTensor()));
}

[[noreturn]] void refuse_message(int from, const std::string& why) {
  throw Error(ErrorKind::execution, "a message of worker " + std::to_string(from) + " " + why +
                                        "; let all workers run the same program of the same version");
}

/// The tag of one of the three kinds of message. Tags are 32 bits: after 3·10^8 micro-batches they come again, when
/// those of before have long arrived.
int tag_of(Channel channel, int kind) {
  constexpr std::int64_t kChannels = std::int64_t{1} << 29;
  return static_cast<int>(3 * ((2 * channel.micro_batch + (channel.back ? 1 : 0)) % kChannels)) + kind;
}

class Reader {
 public:
  /// Of words that outlive it.
  Reader(at::IntArrayRef words, int from) : from_(from), words_(words) {}
  bool at_end() const { return words_.empty(); }
  std::int64_t next() {
    if (at_end()) refuse_message(from_, "ends too early");
    const std::int64_t word = words_.front();
    words_ = words_.slice(1);
    return word;
  }
  /// A word that is none of these numbers is refused.
  std::int64_t next_of(std::int64_t least, std::int64_t most) {
    const std::int64_t word = next();
    if (word < least || word > most) refuse_message(from_, "has " + std::to_string(word) + " where it may not");
    return word;
  }
  /// How many of the words behind it.
  std::int64_t next_count() { return next_of(0, static_cast<std::int64_t>(words_.size()) - 1); }
  DescribedValue next_value() {
    DescribedValue value;
    value.kind = static_cast<ValueKind>(next_of(0, static_cast<std::int64_t>(ValueKind::pickle)));
    if (value.kind == ValueKind::tensor) read_tensor(value);
    if (value.kind == ValueKind::pickle) value.pickled_bytes = next_of(0, kMostBytes);
    return value;
  }

 private:
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 46;

  void read_tensor(DescribedValue& value) {
    constexpr std::int64_t kMostDims = 64;
    value.type = static_cast<at::ScalarType>(next_of(0, static_cast<std::int64_t>(at::ScalarType::NumOptions) - 1));
    if (value.type == at::ScalarType::Undefined || at::isQIntType(value.type))
      refuse_message(from_, "has a tensor of no plain type");
    const std::int64_t dims = next_of(0, kMostDims);
    for (std::int64_t i = 0; i < dims; ++i) value.sizes.push_back(next_of(0, kMostBytes));
    for (std::int64_t i = 0; i < dims; ++i) value.strides.push_back(next_of(0, kMostBytes));
    const auto element = static_cast<std::int64_t>(c10::elementSize(value.type));
    std::int64_t bytes = element, repeated = element;
    bool is_too_large = false;
    for (std::size_t i = 0; i < value.sizes.size() && !is_too_large; ++i) {
      const std::int64_t size = std::max<std::int64_t>(value.sizes[i], 1);
      std::int64_t step = 0;
      is_too_large = __builtin_mul_overflow(repeated, size, &repeated) ||
                     __builtin_mul_overflow(size - 1, value.strides[i], &step) ||
                     __builtin_mul_overflow(step, element, &step) || __builtin_add_overflow(bytes, step, &bytes) ||
                     bytes > kMostBytes;
    }
    if (is_too_large) refuse_message(from_, "has a tensor that is larger than any memory");
  }

  const int from_;
  at::IntArrayRef words_;
};

}  // namespace

void send_values(Workers& workers, const std::vector<c10::IValue>& values, const std::vector<std::int64_t>& notes,
                 int to, Channel channel) {
  std::vector<std::int64_t> words = {0, static_cast<std::int64_t>(values.size())};
  std::vector<at::Tensor> payload;
  for (const c10::IValue& value : values) {
    if (value.isTensor() && !value.toTensor().defined()) {
      words.push_back(static_cast<std::int64_t>(ValueKind::undefined));
    } else if (!is_pickled(value)) {
      words.push_back(static_cast<std::int64_t>(ValueKind::tensor));
      const at::Tensor plain = sendable(value.toTensor());
      describe(plain, words);
      payload.push_back(payload_of(plain));
    } else {
      words.push_back(static_cast<std::int64_t>(ValueKind::pickle));
      const std::vector<char> pickled =
          torch::jit::pickle_save(value.isTensor() ? c10::IValue(sendable(value.toTensor())) : value);
      words.push_back(static_cast<std::int64_t>(pickled.size()));
      payload.push_back(at::empty({static_cast<std::int64_t>(pickled.size())}, at::kByte));
      std::copy(pickled.begin(), pickled.end(), reinterpret_cast<char*>(payload.back().data_ptr()));
    }
  }
  words.insert(words.end(), notes.begin(), notes.end());
  words[0] = static_cast<std::int64_t>(words.size());
  const auto send = [&](const at::Tensor& tensor, int kind) {
    workers.send(tensor, to, tag_of(channel, kind), channel.micro_batch);
  };
  const at::Tensor description = at::tensor(words, at::kLong);
  if (words[0] > kHead) {
    send(at::full({kHead}, words[0], at::kLong), 0);
    send(description, 1);
  } else {
    send(at::cat({description, at::zeros({kHead - words[0]}, at::kLong)}), 0);
  }
  for (const at::Tensor& tensor : payload) {
    if (tensor.numel()) send(tensor, 2);
  }
}

Incoming::Incoming(Workers& workers, int from, Channel channel)
    : workers_(&workers),
      from_(from),
      channel_(channel),
      head_(workers.begin_receive(at::empty({kHead}, at::kLong), from, tag_of(channel, 0))) {}

Description read_description(at::IntArrayRef words, int from) {
  Reader reader(words, from);
  Description described;
  for (std::int64_t left = reader.next_count(); left > 0; --left) described.values.push_back(reader.next_value());
  while (!reader.at_end()) described.notes.push_back(reader.next());
  return described;
}

Received Incoming::receive() {
  workers_->finish(head_);
  at::Tensor words = head_.tensor;
  const std::int64_t size = *words.data_ptr<std::int64_t>();
  constexpr std::int64_t kMostWords = std::int64_t{1} << 28;
  if (size < 2 || size > kMostWords) refuse_message(from_, "has " + std::to_string(size) + " words");
  if (size > kHead) {
    Workers::Arriving rest = workers_->begin_receive(at::empty({size}, at::kLong), from_, tag_of(channel_, 1));
    workers_->finish(rest);
    words = rest.tensor;
  }
  const Description described =
      read_description({words.data_ptr<std::int64_t>() + 1, static_cast<std::size_t>(size - 1)}, from_);
  Received result{std::vector<c10::IValue>(described.values.size()), described.notes};
  std::vector<Workers::Arriving> payload;
  std::vector<std::pair<c10::IValue*, at::Tensor>> pickles;
  std::vector<std::pair<at::Tensor, at::Tensor>> elements;  // a part of a tensor, and what comes there
  const auto expect = [&](const at::Tensor& bytes) {
    if (bytes.numel()) payload.push_back(workers_->begin_receive(bytes, from_, tag_of(channel_, 2)));
  };
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const DescribedValue& value = described.values[i];
    if (value.kind == ValueKind::undefined) {
      result.values[i] = at::Tensor();
    } else if (value.kind == ValueKind::tensor) {
      const at::Tensor tensor = at::empty_strided(value.sizes, value.strides, value.type);
      if (tensor.is_non_overlapping_and_dense()) {
        expect(flat(tensor));
      } else {
        const at::Tensor once = without_repeats(tensor);
        elements.emplace_back(once, at::empty(once.sizes(), value.type));
        expect(elements.back().second);
      }
      result.values[i] = tensor;
    } else {
      pickles.emplace_back(&result.values[i], at::empty({value.pickled_bytes}, at::kByte));
      expect(pickles.back().second);
    }
  }
  for (Workers::Arriving& arriving : payload) workers_->finish(arriving);
  for (auto& [tensor, came] : elements) tensor.copy_(came);
  for (auto& [value, bytes] : pickles) {
    const char* begin = reinterpret_cast<const char*>(bytes.data_ptr());
    ArchiveReader archive("a message of worker " + std::to_string(from_), {begin, begin + bytes.numel()});
    *value = stored_value(archive);
  }
  return result;
}

}  // namespace fx
