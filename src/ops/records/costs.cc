#include <fxgraph/ops/records/costs.h>

#include <algorithm>
#include <iterator>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/ops/records/operator_records.h>

namespace fx {

namespace {

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

}  // namespace

namespace internal::cost {

std::optional<Operations> convolution(const CallShapes& c) {
  const TensorType* weight = input(c, 1);
  if (!weight || weight->sizes.size() < 2 || weight->sizes[0] == SizeExpr(0)) return std::nullopt;
  const SizeExpr filter = floor_div(weight->numel(), weight->sizes[0]);
  return product(c, (is_transposed(c) ? in_numel(c) : out_numel(c)) * filter, 2);
}

std::optional<Operations> matrix_product(const CallShapes& c, std::size_t left) {
  const TensorType* tensor = input(c, left);
  if (!input(c, left + 1) || tensor->sizes.empty()) return std::nullopt;
  const SizeExpr macs = out_numel(c) * tensor->sizes.back();
  return Operations{macs, 2 * macs + (left > 0 ? out_numel(c) : SizeExpr(0))};
}

std::optional<Operations> linear(const CallShapes& c) {
  const TensorType* weight = input(c, 1);
  if (!weight || weight->sizes.empty()) return std::nullopt;
  return product(c, out_numel(c) * weight->sizes.back(), 2);
}

std::optional<Operations> per_output(const CallShapes& c, int operations) {
  return Operations{0, operations * out_numel(c)};
}
std::optional<Operations> per_input(const CallShapes& c, int operations) {
  return Operations{0, operations * in_numel(c)};
}

std::optional<Operations> pooling(const CallShapes& c) {
  const Argument* kernel = c.call.argument("kernel_size");
  if (!kernel) return per_input(c, 1);  // a module's: about one visit for each input element
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

}  // namespace internal::cost

namespace {

std::optional<Operations> operations_of(const CallShapes& c) {
  const internal::OperatorRecord* row = internal::operator_record(c.packet);
  if (row && row->cost) return row->cost(c);
  const OperatorSchema* schema = c.call ? &c.call.schema() : nullptr;
  if (c.node.is(Op::call_module)) {
    const auto overloads = overloads_of(c.packet);
    schema = overloads.empty() ? nullptr : overloads.front();
  }
  if (!schema) return std::nullopt;
  if (schema->traits.pointwise) return internal::cost::per_output(c, 1);
  if (schema->traits.reduction) return internal::cost::per_input(c, 1);
  if (c.inputs.empty() && c.call) return Operations();  // zeros, arange
  return std::nullopt;
}

constexpr std::size_t kConvolution[] = {0, 1, 2, 3, 4, 5}, kTransposed[] = {0, 1, 2, 3, 4, 6, 5}, kLinear[] = {0, 1};
constexpr PackedKernel kPackedKernels[] = {
    {"mkldnn_prepacked::conv2d_run", "mkldnn_prepacked::conv2d_prepack", "aten::conv2d", kConvolution},
    {"prepacked::conv2d_clamp_run", "prepacked::conv2d_clamp_prepack", "aten::conv2d", kConvolution},
    {"prepacked::conv2d_transpose_clamp_run", "prepacked::conv2d_transpose_clamp_prepack",
     "aten::conv_transpose2d.input", kTransposed},
    {"prepacked::linear_clamp_run", "prepacked::linear_clamp_prepack", "aten::linear", kLinear},
};

/// Numbers are made of numbers, of sizes and the like, which takes nothing; of data they are read.
bool makes_a_number(const CallShapes& call) {
  if (!call.outputs.empty()) return false;
  if (!call.call) return call.node.is(Op::call_function) && call.inputs.empty();
  return !call.call.schema().returns_tensors();
}

/// A view that cannot be one: its elements are of another type, or lie otherwise.
bool copies(const CallShapes& call) {
  if (!call.call.schema().traits.may_copy || call.inputs.empty() || call.outputs.empty()) return false;
  const TensorType &from = call.inputs[0], &to = call.outputs[0];
  return from.dtype != to.dtype || (from.strides && to.is_contiguous() && !from.is_contiguous());
}

}  // namespace

Symbol packet_symbol(const Node& node, const Call& call) {
  return Symbol(packet_of((call ? operator_name(call.schema()) : node.target()).view()));
}

const PackedKernel* find_packed_kernel(Symbol run) {
  const auto found = std::ranges::find(kPackedKernels, run.view(), &PackedKernel::run);
  return found == std::end(kPackedKernels) ? nullptr : &*found;
}

bool packs(const Node& node) {
  if (!node.is(Op::call_function)) return false;
  const Symbol packet = packet_symbol(node, call_of(node));
  return std::ranges::any_of(kPackedKernels, [&](const PackedKernel& kernel) { return packet.view() == kernel.pack; });
}

const PackedKernel* packed_kernel(const Node& node) {
  if (!node.is(Op::call_function) || node.args().size() < 2 || !node.arg(1).is_node()) return nullptr;
  const PackedKernel* kernel = find_packed_kernel(packet_symbol(node, call_of(node)));
  return kernel && packs(node.arg(1).node()) ? kernel : nullptr;
}

SizeExpr bytes_of(const TensorType& type) { return type.numel() * SizeExpr(element_size(type.dtype)); }

CallCost cost_of_call(const CallShapes& call, const SizeExpr& input_bytes) {
  CallCost cost;
  if (call.packet == python::kGetItem || (call.call && call.call.schema().traits.view && !copies(call))) return cost;
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
