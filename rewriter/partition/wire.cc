// A tensor keeps its strides: dense ones are sent as they lie, others as their elements, those of expanded dimensions
// once. What is sparse or quantized is pickled.
//
// Three kinds of message on three tags of a channel: a head of one size, which holds the description (for each value
// its kind, type, sizes and strides, or the size of its pickle; and the notes) when it fits, else only its size; the
// description that does not; the tensors, all asked for at once. A wait costs more than a few bytes.
#include <fxgraph/rewriter/partition/wire.h>

#include <ATen/ATen.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <utility>

#include <fxgraph/nn/without_repeats.h>
#include <fxgraph/support/error.h>

namespace fx {
namespace {

enum Kind : std::int64_t { kTensor, kUndefined, kPickle };

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

/// The tag of one of the three kinds of message. Tags are 32 bits: after 3·10^8 micro-batches they come again, when
/// those of before have long arrived.
int tag_of(Channel channel, int kind) {
  constexpr std::int64_t kChannels = std::int64_t{1} << 29;
  return static_cast<int>(3 * ((2 * channel.micro_batch + (channel.back ? 1 : 0)) % kChannels)) + kind;
}

class Reader {
 public:
  /// Of words that outlive it.
  explicit Reader(const at::Tensor& words) : at_(words.data_ptr<std::int64_t>()), end_(at_ + words.numel()) {}
  bool at_end() const { return at_ == end_; }
  std::int64_t next() {
    if (at_ == end_) throw Error(ErrorKind::execution, "a message between stages ends too early");
    return *at_++;
  }
  std::vector<std::int64_t> next(std::int64_t count) {
    std::vector<std::int64_t> words;
    for (std::int64_t i = 0; i < count; ++i) words.push_back(next());
    return words;
  }

 private:
  const std::int64_t *at_, *end_;
};

}  // namespace

void send_values(Workers& workers, const std::vector<c10::IValue>& values, const std::vector<std::int64_t>& notes,
                 int to, Channel channel) {
  std::vector<std::int64_t> words = {0, static_cast<std::int64_t>(values.size())};
  std::vector<at::Tensor> payload;
  for (const c10::IValue& value : values) {
    if (value.isTensor() && !value.toTensor().defined()) {
      words.push_back(kUndefined);
    } else if (!is_pickled(value)) {
      words.push_back(kTensor);
      const at::Tensor plain = sendable(value.toTensor());
      describe(plain, words);
      payload.push_back(payload_of(plain));
    } else {
      words.push_back(kPickle);
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

Received Incoming::receive() {
  workers_->finish(head_);
  at::Tensor words = head_.tensor;
  const std::int64_t size = *words.data_ptr<std::int64_t>();
  if (size > kHead) {
    Workers::Arriving rest = workers_->begin_receive(at::empty({size}, at::kLong), from_, tag_of(channel_, 1));
    workers_->finish(rest);
    words = rest.tensor;
  }
  Reader reader(words.narrow(0, 1, size - 1));
  Received result;
  result.values.resize(static_cast<std::size_t>(reader.next()));
  std::vector<Workers::Arriving> payload;
  std::vector<std::pair<c10::IValue*, at::Tensor>> pickles;
  std::vector<std::pair<at::Tensor, at::Tensor>> elements;  // a part of a tensor, and what comes there
  const auto expect = [&](const at::Tensor& bytes) {
    if (bytes.numel()) payload.push_back(workers_->begin_receive(bytes, from_, tag_of(channel_, 2)));
  };
  for (c10::IValue& value : result.values) {
    const std::int64_t kind = reader.next();
    if (kind == kUndefined) {
      value = at::Tensor();
    } else if (kind == kTensor) {
      const auto type = static_cast<at::ScalarType>(reader.next());
      const std::int64_t dims = reader.next();
      const std::vector<std::int64_t> sizes = reader.next(dims), strides = reader.next(dims);
      const at::Tensor tensor = at::empty_strided(sizes, strides, type);
      if (tensor.is_non_overlapping_and_dense()) {
        expect(flat(tensor));
      } else {
        const at::Tensor once = without_repeats(tensor);
        elements.emplace_back(once, at::empty(once.sizes(), type));
        expect(elements.back().second);
      }
      value = tensor;
    } else {
      pickles.emplace_back(&value, at::empty({reader.next()}, at::kByte));
      expect(pickles.back().second);
    }
  }
  while (!reader.at_end()) result.notes.push_back(reader.next());
  for (Workers::Arriving& arriving : payload) workers_->finish(arriving);
  for (auto& [tensor, came] : elements) tensor.copy_(came);
  for (auto& [value, bytes] : pickles) {
    const char* begin = reinterpret_cast<const char*>(bytes.data_ptr());
    *value = torch::jit::pickle_load({begin, begin + bytes.numel()});
  }
  return result;
}

}  // namespace fx
