// Operators that core ATen spells out.
#include <algorithm>
#include <span>
#include <string_view>

#include <fxgraph/export/graph_reader.h>

namespace fx::pt2 {
namespace {

/// A call that may be lifted: its arguments by the names of the schema.
class LiftedCall {
 public:
  LiftedCall(GraphReader& reader, const std::vector<NamedValue>& inputs) : reader(reader), inputs_(inputs) {}

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

bool lift_convolution(const LiftedCall& call) {
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

bool batch_norm(const LiftedCall& call, const Argument& mean, const Argument& variance, const Argument& training) {
  return call.make("aten::batch_norm", {call["input"], call["weight"], call["bias"], mean, variance, training,
                                        call["momentum"], call["eps"], false});
}

bool lift_batch_norm(const LiftedCall& call) {
  if (!call.only_first_is_used()) return false;
  const Argument training = call.has("training") ? call["training"] : Argument(false);
  return batch_norm(call, call["running_mean"], call["running_var"], training);
}

// Statistics that are computed anew and then written to their buffers are what batch_norm writes itself.
bool lift_functional_batch_norm(const LiftedCall& call) {
  const std::vector<std::string>& results = call.reader.results();
  if (results.size() != 5 || call.reader.is_used(1) || call.reader.is_used(2)) return false;
  const Argument mean = call["running_mean"], variance = call["running_var"];
  if (!call.reader.only_updates(results[3], mean) || !call.reader.only_updates(results[4], variance)) return false;
  batch_norm(call, mean, variance, call["training"]);
  call.reader.bind(results[3], mean);
  call.reader.bind(results[4], variance);
  return true;
}

// Operators that differ in their name, and in results that nobody reads. What is not given ends the arguments.
struct Respelt {
  std::string_view from;
  const char* to;
  std::vector<std::string_view> arguments;
};
const Respelt kRespelt[] = {
    {"torch.ops.aten.native_layer_norm.default",
     "aten::layer_norm",
     {"input", "normalized_shape", "weight", "bias", "eps"}},
    {"torch.ops.aten.native_group_norm.default", "aten::group_norm", {"input", "group", "weight", "bias", "eps"}},
    {"torch.ops.aten.native_dropout.default", "aten::dropout", {"input", "p", "train"}},
    {"torch.ops.aten._softmax.default", "aten::softmax.int", {"self", "dim"}},
    {"torch.ops.aten._log_softmax.default", "aten::log_softmax.int", {"self", "dim"}},
    {"torch.ops.aten.max_pool2d_with_indices.default",
     "aten::max_pool2d",
     {"self", "kernel_size", "stride", "padding", "dilation", "ceil_mode"}},
    {"torch.ops.aten.max_pool3d_with_indices.default",
     "aten::max_pool3d",
     {"self", "kernel_size", "stride", "padding", "dilation", "ceil_mode"}},
    {"torch.ops.aten._adaptive_avg_pool2d.default", "aten::adaptive_avg_pool2d", {"self", "output_size"}},
    {"torch.ops.aten._adaptive_avg_pool3d.default", "aten::adaptive_avg_pool3d", {"self", "output_size"}},
};

bool respell(const LiftedCall& call, const Respelt& row) {
  const bool is_trained_by_tensor = call.has("train") && !call["train"].is_bool();
  if (!call.only_first_is_used() || is_trained_by_tensor || !call.is("half_to_float", false, true)) return false;
  std::vector<Argument> args;
  for (const std::string_view name : row.arguments) {
    if (!call.has(name)) break;
    args.push_back(call[name]);
  }
  return call.make(row.to, args);
}

// A copy into another type is what `to` makes too. (Into the same type `to` makes none.)
bool lift_to_copy(const LiftedCall& call) {
  const TensorMeta* meta = call.reader.meta_of(call["self"]);
  for (const char* name : {"layout", "device", "pin_memory", "memory_format"}) {
    if (call.has(name) && !call[name].is_none()) return false;
  }
  if (!meta || call["dtype"].kind() != ArgumentKind::dtype || call["dtype"] == Argument(meta->dtype)) return false;
  return call.make("aten::to.dtype", {call["self"], call["dtype"]});
}

// A permutation that exchanges the last two of three or more dimensions is the transpose that attention is written
// with.
bool lift_permute(const LiftedCall& call) {
  const Argument dims = call["dims"];
  const std::int64_t rank = call.rank("self");
  if (rank < 3 || !dims.is_sequence() || static_cast<std::int64_t>(dims.elements().size()) != rank) return false;
  for (std::int64_t i = 0; i < rank; ++i) {
    const std::int64_t wanted = i == rank - 2 ? rank - 1 : i == rank - 1 ? rank - 2 : i;
    if (dims.elements()[static_cast<std::size_t>(i)] != Argument(wanted)) return false;
  }
  return call.make("aten::transpose.int", {call["self"], rank - 2, rank - 1});
}

// The weight under a transpose of its two dimensions; null when `value` is none.
Node* transposed(const LiftedCall& call, const Argument& value) {
  Node* node = value.node_or_null();
  if (!node || !node->is(Op::call_function) || call.rank("mat2") != 2) return nullptr;
  const bool is_transpose =
      (node->target() == "aten::t" && node->args().size() == 1) ||
      (node->target() == "aten::permute" && node->arg(1) == Argument::list({1, 0})) ||
      (node->target() == "aten::transpose.int" && node->arg(1) == Argument(0) && node->arg(2) == Argument(1));
  return is_transpose ? node->arg(0).node_or_null() : nullptr;
}

bool lift_linear(const LiftedCall& call) {
  Node* weight = transposed(call, call["mat2"]);
  const bool has_bias = call.has("mat1");
  const Argument input = has_bias ? call["mat1"] : call["self"];
  if (!weight || !call.is("alpha", 1, true) || !call.is("beta", 1, true)) return false;
  if (has_bias && call.rank("self") != 1) return false;
  if (!has_bias) return call.make("aten::linear", {input, weight});
  return call.make("aten::linear", {input, weight, call["self"]});
}

// ── What is spelled out around a view ─────────────────────────────────────────────────────────────────────────────

using Sizes = std::vector<SymbolicSize>;

bool same_sizes(std::span<const SymbolicSize> left, std::span<const SymbolicSize> right) {
  return std::ranges::equal(left, right, {}, &SymbolicSize::expr, &SymbolicSize::expr);
}

// The sizes but the last `count`.
std::span<const SymbolicSize> leading(const Sizes& sizes, std::size_t count) {
  return std::span(sizes).first(sizes.size() - std::min(count, sizes.size()));
}

// What the call of `target` was made from; null when `value` is none.
Node* made_from(const Argument& value, std::string_view target) {
  Node* node = value.node_or_null();
  const bool is_made = node && node->is(Op::call_function) && node->target().view() == target && !node->args().empty();
  return is_made ? node->arg(0).node_or_null() : nullptr;
}

// view(linear(view(x, [n, k]), w), [..., m]) is linear(x, w).
bool lift_viewed_linear(const LiftedCall& call, const TensorMeta& result) {
  Node* flat = made_from(call["self"], "aten::linear");
  Node* input = made_from(flat, "aten::view");
  const TensorMeta* whole = input ? call.reader.meta_of(input) : nullptr;
  const TensorMeta* rows = flat ? call.reader.meta_of(flat) : nullptr;
  const TensorMeta* product = call.reader.meta_of(call["self"]);
  if (!whole || !rows || !product || !flat->kwargs().empty() || whole->sizes.empty() || rows->sizes.size() != 2 ||
      product->sizes.size() != 2)
    return false;
  if (whole->sizes.back().expr != rows->sizes[1].expr || result.sizes.back().expr != product->sizes[1].expr ||
      !same_sizes(leading(whole->sizes, 1), leading(result.sizes, 1)))
    return false;
  std::vector<Argument> args = call["self"].node().args().to_vector();
  args[0] = input;
  return call.make("aten::linear", args);
}

// An operand of bmm that is a tensor of more dimensions; `sizes` are what it was expanded to.
Node* batched(const LiftedCall& call, const Argument& operand, Sizes& sizes) {
  Node* node = made_from(operand, "aten::view");
  if (Node* copied = made_from(node, "aten::clone")) node = copied;
  if (!node) return nullptr;
  const TensorMeta* meta = call.reader.meta_of(node);
  if (!meta || meta->sizes.size() < 3) return nullptr;
  sizes = meta->sizes;
  Node* base = made_from(node, "aten::expand");
  const TensorMeta* before = base ? call.reader.meta_of(base) : nullptr;
  if (!before) return node;
  if (same_sizes(before->sizes, sizes)) return base;
  const bool is_matrix = before->sizes.size() == 2 && same_sizes(before->sizes, std::span(sizes).last(2));
  return is_matrix ? base : node;
}

// view(bmm(view(expand(a, …)), view(expand(b, …)))) is matmul(a, b).
bool lift_viewed_matmul(const LiftedCall& call, const TensorMeta& result) {
  const Node* product = call["self"].node_or_null();
  if (!product || product->target() != "aten::bmm") return false;
  Sizes left_sizes, right_sizes;
  Node* left = batched(call, product->arg(0), left_sizes);
  Node* right = batched(call, product->arg(1), right_sizes);
  if (!left || !right || result.sizes.size() < 3 || left_sizes.size() != result.sizes.size() ||
      right_sizes.size() != result.sizes.size() || call.reader.meta_of(left)->sizes.size() < 3)
    return false;
  const auto batch = leading(result.sizes, 2);
  const std::size_t rows = result.sizes.size() - 2, columns = rows + 1;
  if (!same_sizes(leading(left_sizes, 2), batch) || !same_sizes(leading(right_sizes, 2), batch) ||
      left_sizes[rows].expr != result.sizes[rows].expr || right_sizes[columns].expr != result.sizes[columns].expr)
    return false;
  return call.make("aten::matmul", {left, right});
}

bool lift_view(const LiftedCall& call) {
  const TensorMeta* result = call.reader.meta_named(call.reader.results()[0]);
  if (!result || result->sizes.empty()) return false;
  return lift_viewed_linear(call, *result) || lift_viewed_matmul(call, *result);
}

// clamp(clamp(x, low), None, high)
bool lift_clamp(const LiftedCall& call) {
  Node* input = made_from(call["self"], "aten::clamp");
  if (!input || !call["min"].is_none() || call["max"].is_none()) return false;
  const Node& lower = call["self"].node();
  if (lower.args().size() != 2 || !lower.kwargs().empty()) return false;
  return call.make("aten::clamp", {input, lower.arg(1), call["max"]});
}

struct Lift {
  const char* target;
  bool (*apply)(const LiftedCall& call);
};
const Lift kLifts[] = {
    {"torch.ops.aten.convolution.default", lift_convolution},
    {"torch.ops.aten._native_batch_norm_legit.default", lift_batch_norm},
    {"torch.ops.aten._native_batch_norm_legit.no_stats", lift_batch_norm},
    {"torch.ops.aten._native_batch_norm_legit_no_training.default", lift_batch_norm},
    {"torch.ops.aten._native_batch_norm_legit_functional.default", lift_functional_batch_norm},
    {"torch.ops.aten._to_copy.default", lift_to_copy},
    {"torch.ops.aten.addmm.default", lift_linear},
    {"torch.ops.aten.mm.default", lift_linear},
    {"torch.ops.aten.permute.default", lift_permute},
    {"torch.ops.aten.view.default", lift_view},
    {"torch.ops.aten.clamp.default", lift_clamp},
};

}  // namespace

bool lift(GraphReader& reader, const std::string& target, const std::vector<NamedValue>& inputs) {
  if (reader.results().empty() || reader.results()[0].empty()) return false;
  const LiftedCall call(reader, inputs);
  for (const Lift& row : kLifts) {
    if (target == row.target) return row.apply(call);
  }
  const auto* row = std::ranges::find(kRespelt, target, &Respelt::from);
  return row != std::end(kRespelt) && respell(call, *row);
}

void remove_left_over(Graph& graph) {
  static constexpr std::string_view kLifted[] = {"aten::t",      "aten::permute", "aten::transpose.int",
                                                 "aten::view",   "aten::linear",  "aten::bmm",
                                                 "aten::expand", "aten::clone",   "aten::clamp"};
  std::vector<Node*> calls;
  for (Node& node : graph.nodes()) {
    if (node.is(Op::call_function) && std::ranges::find(kLifted, node.target().view()) != std::end(kLifted))
      calls.push_back(&node);
  }
  for (auto node = calls.rbegin(); node != calls.rend(); ++node) {
    if (!(*node)->has_users()) graph.erase_node(**node);
  }
}

}  // namespace fx::pt2
