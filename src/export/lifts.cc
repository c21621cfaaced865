#include <fxgraph/export/lifts.h>

#include <algorithm>
#include <string_view>

namespace fx::pt2 {
namespace {

/// A call that may be lifted: its arguments by the names of the schema.
class Call {
 public:
  Call(GraphReader& reader, const std::vector<NamedValue>& inputs) : reader(reader), inputs_(inputs) {}

  Argument operator[](std::string_view name) const {
    const auto found = std::ranges::find(inputs_, name, &NamedValue::name);
    return found == inputs_.end() ? Argument() : found->value;
  }
  bool has(std::string_view name) const { return std::ranges::find(inputs_, name, &NamedValue::name) != inputs_.end(); }
  bool is(std::string_view name, const Argument& value, bool otherwise) const {
    return has(name) ? (*this)[name] == value : otherwise;
  }
  std::int64_t rank(std::string_view name) const {
    const TensorMeta* meta = reader.meta_of((*this)[name]);
    return meta ? static_cast<std::int64_t>(meta->sizes.size()) : -1;
  }
  /// True when no result but the first is read.
  bool only_first_is_used() const {
    for (std::size_t i = 1; i < reader.results().size(); ++i) {
      if (reader.is_used(i)) return false;
    }
    return true;
  }
  /// Makes the lifted call, whose value is the first result.
  bool make(const char* target, ArgumentSpan args, KwargSpan kwargs = {}) const {
    const std::string& name = reader.results().at(0);
    reader.bind(name, reader.call(Symbol(target), args, kwargs, name));
    return true;
  }

  GraphReader& reader;

 private:
  const std::vector<NamedValue>& inputs_;
};

bool lift_convolution(const Call& call) {
  static constexpr const char* kPlain[] = {"aten::conv1d", "aten::conv2d", "aten::conv3d"};
  static constexpr const char* kTransposed[] = {"aten::conv_transpose1d", "aten::conv_transpose2d.input",
                                                "aten::conv_transpose3d.input"};
  const std::int64_t dimensions = call.rank("weight") - 2;
  if (dimensions < 1 || dimensions > 3 || call.rank("input") != dimensions + 2) return false;
  const auto row = static_cast<std::size_t>(dimensions - 1);
  if (call["transposed"] == Argument(true)) {
    return call.make(kTransposed[row], {call["input"], call["weight"], call["bias"], call["stride"], call["padding"],
                                        call["output_padding"], call["groups"], call["dilation"]});
  }
  if (call["transposed"] != Argument(false)) return false;
  return call.make(kPlain[row], {call["input"], call["weight"], call["bias"], call["stride"], call["padding"],
                                 call["dilation"], call["groups"]});
}

bool batch_norm(const Call& call, const Argument& mean, const Argument& variance, const Argument& training) {
  return call.make("aten::batch_norm", {call["input"], call["weight"], call["bias"], mean, variance, training,
                                        call["momentum"], call["eps"], false});
}

bool lift_batch_norm(const Call& call) {
  if (!call.only_first_is_used()) return false;
  const Argument training = call.has("training") ? call["training"] : Argument(false);
  return batch_norm(call, call["running_mean"], call["running_var"], training);
}

// Statistics that are computed anew and then written to their buffers are what batch_norm writes itself.
bool lift_functional_batch_norm(const Call& call) {
  const std::vector<std::string>& results = call.reader.results();
  if (results.size() != 5 || call.reader.is_used(1) || call.reader.is_used(2)) return false;
  const Argument mean = call["running_mean"], variance = call["running_var"];
  if (!call.reader.only_updates(results[3], mean) || !call.reader.only_updates(results[4], variance)) return false;
  batch_norm(call, mean, variance, call["training"]);
  call.reader.bind(results[3], mean);
  call.reader.bind(results[4], variance);
  return true;
}

bool lift_layer_norm(const Call& call) {
  return call.only_first_is_used() && call.make("aten::layer_norm", {call["input"], call["normalized_shape"],
                                                                     call["weight"], call["bias"], call["eps"]});
}

bool lift_group_norm(const Call& call) {
  return call.only_first_is_used() &&
         call.make("aten::group_norm", {call["input"], call["group"], call["weight"], call["bias"], call["eps"]});
}

bool lift_dropout(const Call& call) {
  if (!call.only_first_is_used() || (call["train"] != Argument(true) && call["train"] != Argument(false))) return false;
  return call.make("aten::dropout", {call["input"], call["p"], call["train"]});
}

template <const char* const& target>
bool lift_softmax(const Call& call) {
  return call["half_to_float"] == Argument(false) && call.make(target, {call["self"], call["dim"]});
}
constexpr const char* kSoftmax = "aten::softmax.int";
constexpr const char* kLogSoftmax = "aten::log_softmax.int";

template <const char* const& target>
bool lift_max_pool(const Call& call) {
  if (!call.only_first_is_used()) return false;
  std::vector<Argument> args{call["self"], call["kernel_size"]};
  for (const char* name : {"stride", "padding", "dilation", "ceil_mode"}) {
    if (!call.has(name)) break;
    args.push_back(call[name]);
  }
  return call.make(target, args);
}
constexpr const char* kMaxPool2d = "aten::max_pool2d";
constexpr const char* kMaxPool3d = "aten::max_pool3d";

template <const char* const& target>
bool lift_average_pool(const Call& call) {
  return call.make(target, {call["self"], call["output_size"]});
}
constexpr const char* kAveragePool2d = "aten::adaptive_avg_pool2d";
constexpr const char* kAveragePool3d = "aten::adaptive_avg_pool3d";

// A copy into another type is what `to` makes too. (Into the same type `to` makes none.)
bool lift_to_copy(const Call& call) {
  const TensorMeta* meta = call.reader.meta_of(call["self"]);
  for (const char* name : {"layout", "device", "pin_memory", "memory_format"}) {
    if (call.has(name) && !call[name].is_none()) return false;
  }
  if (!meta || call["dtype"].kind() != ArgumentKind::dtype || call["dtype"] == Argument(meta->dtype)) return false;
  return call.make("aten::to.dtype", {call["self"], call["dtype"]});
}

// The weight under a transpose of its two dimensions; null when `value` is none.
Node* transposed(const Call& call, const Argument& value) {
  Node* node = value.node_or_null();
  if (!node || !node->is(Op::call_function) || call.rank("mat2") != 2) return nullptr;
  const bool is_transpose =
      (node->target() == "aten::t" && node->args().size() == 1) ||
      (node->target() == "aten::permute" && node->arg(1) == Argument::list({1, 0})) ||
      (node->target() == "aten::transpose.int" && node->arg(1) == Argument(0) && node->arg(2) == Argument(1));
  return is_transpose ? node->arg(0).node_or_null() : nullptr;
}

bool lift_linear(const Call& call) {
  Node* weight = transposed(call, call["mat2"]);
  const bool has_bias = call.has("mat1");
  const Argument input = has_bias ? call["mat1"] : call["self"];
  if (!weight || !call.is("alpha", 1, true) || !call.is("beta", 1, true)) return false;
  if (has_bias && call.rank("self") != 1) return false;
  if (!has_bias) return call.make("aten::linear", {input, weight});
  return call.make("aten::linear", {input, weight, call["self"]});
}

struct Lift {
  const char* target;
  bool (*apply)(const Call& call);
};
const Lift kLifts[] = {
    {"torch.ops.aten.convolution.default", lift_convolution},
    {"torch.ops.aten._native_batch_norm_legit.default", lift_batch_norm},
    {"torch.ops.aten._native_batch_norm_legit.no_stats", lift_batch_norm},
    {"torch.ops.aten._native_batch_norm_legit_no_training.default", lift_batch_norm},
    {"torch.ops.aten._native_batch_norm_legit_functional.default", lift_functional_batch_norm},
    {"torch.ops.aten.native_layer_norm.default", lift_layer_norm},
    {"torch.ops.aten.native_group_norm.default", lift_group_norm},
    {"torch.ops.aten.native_dropout.default", lift_dropout},
    {"torch.ops.aten._softmax.default", lift_softmax<kSoftmax>},
    {"torch.ops.aten._log_softmax.default", lift_softmax<kLogSoftmax>},
    {"torch.ops.aten.max_pool2d_with_indices.default", lift_max_pool<kMaxPool2d>},
    {"torch.ops.aten.max_pool3d_with_indices.default", lift_max_pool<kMaxPool3d>},
    {"torch.ops.aten._adaptive_avg_pool2d.default", lift_average_pool<kAveragePool2d>},
    {"torch.ops.aten._adaptive_avg_pool3d.default", lift_average_pool<kAveragePool3d>},
    {"torch.ops.aten._to_copy.default", lift_to_copy},
    {"torch.ops.aten.addmm.default", lift_linear},
    {"torch.ops.aten.mm.default", lift_linear},
};

}  // namespace

bool lift(GraphReader& reader, const std::string& target, const std::vector<NamedValue>& inputs) {
  if (reader.results().empty() || reader.results()[0].empty()) return false;
  for (const Lift& row : kLifts) {
    if (target == row.target) return row.apply(Call(reader, inputs));
  }
  return false;
}

void remove_left_over(Graph& graph) {
  for (const char* target : {"aten::t", "aten::permute", "aten::transpose.int"}) {
    for (Node* node : graph.find_nodes(Op::call_function, Symbol(target))) {
      if (!node->has_users()) graph.erase_node(*node);
    }
  }
}

}  // namespace fx::pt2
