#include <fxgraph/ops/records/costs.h>

#include <algorithm>
#include <array>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/ops/records/operator_flags.h>
#include <fxgraph/ops/records/sequence_costs.h>
#include <fxgraph/support/flat_map.h>

namespace fx {

namespace {

using Formula = std::optional<Operations> (*)(const CallShapes&);

SizeExpr out_numel(const CallShapes& c) { return c.outputs.empty() ? SizeExpr(0) : c.outputs[0].numel(); }
SizeExpr in_numel(const CallShapes& c) { return c.inputs.empty() ? SizeExpr(0) : c.inputs[0].numel(); }

const TensorType* input(const CallShapes& c, std::size_t i) { return i < c.inputs.size() ? &c.inputs[i] : nullptr; }

/// Adds the bias, if there is one, to a product of this many macs.
Operations product(const CallShapes& c, const SizeExpr& macs, std::size_t bias) {
  return {macs, 2 * macs + (input(c, bias) ? out_numel(c) : SizeExpr(0))};
}

bool is_transposed(const CallShapes& c) {
  if (c.packet.view().find("transpose") != std::string_view::npos) return true;
  const Argument* transposed = c.call.argument("transposed");
  return transposed && transposed->is_bool() && transposed->as_bool();
}

// Each output element (of a transposed convolution, each input element) meets one filter: a slice of the weight along
// its first dimension.
std::optional<Operations> convolution(const CallShapes& c) {
  const TensorType* weight = input(c, 1);
  if (!weight || weight->sizes.size() < 2 || weight->sizes[0] == SizeExpr(0)) return std::nullopt;
  const SizeExpr filter = floor_div(weight->numel(), weight->sizes[0]);
  return product(c, (is_transposed(c) ? in_numel(c) : out_numel(c)) * filter, 2);
}

template <std::size_t Left>
std::optional<Operations> matrix_product(const CallShapes& c) {
  const TensorType* left = input(c, Left);
  if (!input(c, Left + 1) || left->sizes.empty()) return std::nullopt;
  const SizeExpr macs = out_numel(c) * left->sizes.back();
  return Operations{macs, 2 * macs + (Left > 0 ? out_numel(c) : SizeExpr(0))};
}

std::optional<Operations> linear(const CallShapes& c) {
  const TensorType* weight = input(c, 1);
  if (!weight || weight->sizes.empty()) return std::nullopt;
  return product(c, out_numel(c) * weight->sizes.back(), 2);
}

template <std::size_t FirstWeight>
std::optional<Operations> cell(const CallShapes& c) {
  return recurrent_cell(c, FirstWeight);
}
template <bool BatchFirst>
std::optional<Operations> multi_head(const CallShapes& c) {
  return multi_head_attention(c, BatchFirst);
}

template <int PerElement>
std::optional<Operations> per_output(const CallShapes& c) {
  return Operations{0, PerElement * out_numel(c)};
}
template <int PerElement>
std::optional<Operations> per_input(const CallShapes& c) {
  return Operations{0, PerElement * in_numel(c)};
}

std::optional<Operations> pooling(const CallShapes& c) {
  const Argument* kernel = c.call.argument("kernel_size");
  if (!kernel) return per_input<1>(c);  // a module's: about one visit for each input element
  std::int64_t window = 1;
  if (kernel->is_int()) {
    const bool cube = c.packet.view().find("3d") != std::string_view::npos;
    const bool line = c.packet.view().find("1d") != std::string_view::npos;
    for (int i = 0; i < (cube ? 3 : line ? 1 : 2); ++i) window *= kernel->as_int();
  }
  const bool square =
      kernel->is_sequence() && kernel->elements().size() == 1 && c.packet.view().find("2d") != std::string_view::npos;
  for (const Argument& side : kernel->elements()) {
    if (side.is_int()) window *= side.as_int() * (square ? side.as_int() : 1);
  }
  return Operations{0, out_numel(c) * window};
}

struct Entry {
  std::string_view packet;
  Formula formula;
};

constexpr Entry kFormulas[] = {
    {"aten::conv1d", convolution},
    {"aten::conv2d", convolution},
    {"aten::conv3d", convolution},
    {"aten::convolution", convolution},
    {"aten::_convolution", convolution},
    {"aten::_convolution_mode", convolution},
    {"aten::conv_transpose1d", convolution},
    {"aten::conv_transpose2d", convolution},
    {"aten::conv_transpose3d", convolution},
    {"aten::linear", linear},
    {"fxgraph::packed_linear", linear},
    {"aten::matmul", matrix_product<0>},
    {"aten::mm", matrix_product<0>},
    {"aten::bmm", matrix_product<0>},
    {"aten::mv", matrix_product<0>},
    {"aten::dot", matrix_product<0>},
    {"aten::addmm", matrix_product<1>},
    {"aten::baddbmm", matrix_product<1>},
    {"aten::addbmm", matrix_product<1>},
    {"aten::einsum", einsum},
    {"aten::lstm", recurrent_layer},
    {"fxgraph::packed_lstm", recurrent_layer},
    {"aten::gru", recurrent_layer},
    {"fxgraph::packed_gru", recurrent_layer},
    {"aten::rnn_tanh", recurrent_layer},
    {"aten::rnn_relu", recurrent_layer},
    {"aten::lstm_cell", cell<3>},
    {"aten::gru_cell", cell<2>},
    {"aten::rnn_tanh_cell", cell<2>},
    {"aten::rnn_relu_cell", cell<2>},
    {"aten::scaled_dot_product_attention", attention},
    {"aten::_scaled_dot_product_attention", attention},
    {"aten::_native_multi_head_attention", multi_head<true>},
    {python::kMultiHeadAttention, multi_head<false>},
    {"aten::batch_norm", per_output<2>},
    {"aten::native_batch_norm", per_output<2>},
    {"aten::_native_batch_norm_legit_no_training", per_output<2>},
    {"aten::layer_norm", per_output<7>},
    {"aten::native_layer_norm", per_output<7>},
    {"aten::group_norm", per_output<7>},
    {"aten::instance_norm", per_output<7>},
    {"aten::softmax", per_output<5>},
    {"aten::_softmax", per_output<5>},
    {"aten::log_softmax", per_output<5>},
    {"aten::max_pool1d", pooling},
    {"aten::max_pool2d", pooling},
    {"fxgraph::max_pool2d", pooling},
    {"aten::max_pool3d", pooling},
    {"aten::max_pool2d_with_indices", pooling},
    {"aten::avg_pool1d", pooling},
    {"aten::avg_pool2d", pooling},
    {"aten::avg_pool3d", pooling},
    {"aten::adaptive_avg_pool1d", per_input<1>},
    {"aten::adaptive_avg_pool2d", per_input<1>},
    {"aten::adaptive_avg_pool3d", per_input<1>},
    {"aten::adaptive_max_pool2d", per_input<1>},
    {"aten::_adaptive_avg_pool2d", per_input<1>},
    {"aten::dropout", per_output<0>},
    {"aten::cat", per_output<0>},
    {"aten::stack", per_output<0>},
    {"aten::embedding", per_output<0>},
    {"aten::index_select", per_output<0>},
    {"aten::gather", per_output<0>},
    {"aten::clone", per_output<0>},
    {"aten::contiguous", per_output<0>},
    {"aten::pad", per_output<0>},
    {"aten::constant_pad_nd", per_output<0>},
};

Formula formula_for(Symbol packet) {
  static const FlatMap<Formula> table = [] {
    FlatMap<Formula> map;
    for (const Entry& entry : kFormulas) map[Symbol(entry.packet).id()] = entry.formula;
    return map;
  }();
  const Formula* formula = table.find(packet.id());
  return formula ? *formula : nullptr;
}

std::optional<Operations> operations_of(const CallShapes& c) {
  if (const Formula formula = formula_for(c.packet)) return formula(c);
  const OperatorSchema* schema = c.call ? &c.call.schema() : nullptr;
  if (c.node.is(Op::call_module)) {
    const auto overloads = overloads_of(c.packet);
    schema = overloads.empty() ? nullptr : overloads.front();
  }
  if (!schema) return std::nullopt;
  if (schema->traits.pointwise) return per_output<1>(c);
  if (schema->traits.reduction) return per_input<1>(c);
  if (c.inputs.empty() && c.call) return Operations();  // zeros, arange
  return std::nullopt;
}

constexpr std::array<PackedKernel, 4> kPackedKernels = {{
    {"mkldnn_prepacked::conv2d_run", "mkldnn_prepacked::conv2d_prepack", "aten::conv2d"},
    {"prepacked::conv2d_clamp_run", "prepacked::conv2d_clamp_prepack", "aten::conv2d"},
    {"prepacked::conv2d_transpose_clamp_run", "prepacked::conv2d_transpose_clamp_prepack", "aten::conv_transpose2d"},
    {"prepacked::linear_clamp_run", "prepacked::linear_clamp_prepack", "aten::linear"},
}};

/// Numbers are made of numbers, of sizes and the like, which takes nothing; of data they are read.
bool makes_a_number(const CallShapes& call) {
  if (!call.outputs.empty()) return false;
  if (!call.call) return call.node.is(Op::call_function) && call.inputs.empty();
  return !call.call.schema().returns_tensors();
}

}  // namespace

Symbol packet_symbol(const Node& node, const Call& call) {
  return Symbol(packet_of((call ? operator_name(call.schema()) : node.target()).view()));
}

bool packs(const Node& node) {
  if (!node.is(Op::call_function)) return false;
  const Symbol packet = packet_symbol(node, call_of(node));
  return std::ranges::any_of(kPackedKernels, [&](const PackedKernel& kernel) { return packet == kernel.pack; });
}

const PackedKernel* packed_kernel(const Node& node) {
  if (!node.is(Op::call_function) || node.args().size() < 2 || !node.arg(1).is_node()) return nullptr;
  const Symbol packet = packet_symbol(node, call_of(node));
  for (const PackedKernel& kernel : kPackedKernels) {
    if (packet == kernel.run && packs(node.arg(1).node())) return &kernel;
  }
  return nullptr;
}

SizeExpr bytes_of(const TensorType& type) { return type.numel() * SizeExpr(element_size(type.dtype)); }

CallCost cost_of_call(const CallShapes& call, const SizeExpr& input_bytes) {
  CallCost cost;
  if (call.packet == python::kGetItem || (call.call && call.call.schema().traits.view)) return cost;
  if (makes_a_number(call)) {
    if (has_flag(call.packet, OperatorFlag::reads_data)) cost.bytes_read = input_bytes;
    return cost;
  }
  const auto operations = operations_of(call);
  cost.known = operations.has_value() && !call.outputs.empty();
  cost.operations = operations.value_or(Operations());
  for (const TensorType& output : call.outputs) cost.bytes_written = cost.bytes_written + bytes_of(output);
  cost.bytes_read = input_bytes;
  if (has_flag(call.packet, OperatorFlag::looks_up) && !call.inputs.empty())
    cost.bytes_read = cost.bytes_read + cost.bytes_written - bytes_of(call.inputs[0]);
  return cost;
}

}  // namespace fx
