#include <fxgraph/ops/records/operator_flags.h>

#include <algorithm>
#include <string_view>

#include <fxgraph/ir/target.h>

namespace fx {
namespace flag_rows {
namespace {

using enum OperatorFlag;

struct FlagRow {
  std::string_view name;  // a packet, or a function of Python
  std::uint16_t flags;
};
constexpr std::uint16_t operator|(OperatorFlag a, OperatorFlag b) {
  return static_cast<std::uint16_t>(static_cast<int>(a) | static_cast<int>(b));
}
constexpr std::uint16_t operator|(std::uint16_t a, OperatorFlag b) {
  return static_cast<std::uint16_t>(a | static_cast<std::uint16_t>(b));
}
constexpr FlagRow row(std::string_view name, std::uint16_t flags) { return {name, flags}; }
constexpr FlagRow row(std::string_view name, OperatorFlag flag) { return {name, static_cast<std::uint16_t>(flag)}; }

// Sorted.
constexpr FlagRow kFlags[] = {
    row("aten::Bool", reads_data),
    row("aten::Float", reads_data),
    row("aten::FloatImplicit", reads_data),
    row("aten::Int", reads_data),
    row("aten::IntImplicit", reads_data),
    row("aten::ScalarImplicit", reads_data),
    row("aten::__is__", asks_sizes),
    row("aten::__isnot__", asks_sizes),
    row("aten::_add_relu", keeps_channels_last),
    row("aten::_local_scalar_dense", reads_data),
    row("aten::_native_multi_head_attention", is_composite),
    row("aten::_scaled_dot_product_attention", is_composite),
    row("aten::_to_copy", keeps_channels_last),
    row("aten::_transformer_encoder_layer_fwd", is_composite),
    row("aten::abs", keeps_channels_last),
    row("aten::adaptive_avg_pool2d", keeps_type | keeps_channels_last),
    row("aten::add", keeps_channels_last),
    row("aten::addcmul", keeps_channels_last),
    row("aten::alias", keeps_type),
    row("aten::allclose", reads_data),
    row("aten::avg_pool2d", keeps_type | keeps_channels_last),
    row("aten::batch_norm", keeps_channels_last),
    row("aten::cat", keeps_channels_last),
    row("aten::cdist", is_composite),
    row("aten::clamp", keeps_type | keeps_channels_last),
    row("aten::clamp_max", keeps_type | keeps_channels_last),
    row("aten::clamp_min", keeps_type | keeps_channels_last),
    row("aten::clone", keeps_type),
    row("aten::constant_pad_nd", keeps_channels_last),
    row("aten::contiguous", keeps_type),
    row("aten::detach", keeps_type),
    row("aten::dim", asks_sizes),
    row("aten::div", keeps_channels_last),
    row("aten::dropout", keeps_type),
    row("aten::einsum", is_composite),
    row("aten::elu", keeps_channels_last),
    row("aten::embedding", looks_up),
    row("aten::equal", reads_data),
    row("aten::exp", keeps_type | keeps_channels_last),
    row("aten::expand", keeps_type),
    row("aten::flatten", keeps_type),
    row("aten::gather", looks_up),
    row("aten::gelu", keeps_channels_last),
    row("aten::gru", is_composite),
    row("aten::gru_cell", is_composite),
    row("aten::hardsigmoid", keeps_channels_last),
    row("aten::hardswish", keeps_channels_last),
    row("aten::hardtanh", keeps_channels_last),
    row("aten::index_select", looks_up),
    row("aten::is_complex", asks_form),
    row("aten::is_contiguous", asks_form),
    row("aten::is_floating_point", asks_form),
    row("aten::is_nonzero", reads_data),
    row("aten::is_same_size", asks_sizes),
    row("aten::item", reads_data),
    row("aten::leaky_relu", keeps_type | keeps_channels_last),
    row("aten::len", asks_sizes),
    row("aten::lstm", is_composite),
    row("aten::lstm_cell", is_composite),
    row("aten::max_pool2d", keeps_type | keeps_channels_last),
    row("aten::maximum", keeps_channels_last),
    row("aten::mean", keeps_type | reads_any_layout),
    row("aten::minimum", keeps_channels_last),
    row("aten::mish", keeps_channels_last),
    row("aten::mul", keeps_channels_last),
    row("aten::neg", keeps_type | keeps_channels_last),
    row("aten::numel", asks_sizes),
    row("aten::permute", keeps_type),
    row("aten::pow", keeps_channels_last),
    row("aten::relu", keeps_type | keeps_channels_last),
    row("aten::relu6", keeps_type | keeps_channels_last),
    row("aten::requires_grad", asks_otherwise),
    row("aten::reshape", keeps_type),
    row("aten::rnn_relu", is_composite),
    row("aten::rnn_relu_cell", is_composite),
    row("aten::rnn_tanh", is_composite),
    row("aten::rnn_tanh_cell", is_composite),
    row("aten::rsqrt", keeps_type | keeps_channels_last),
    row("aten::scaled_dot_product_attention", is_composite),
    row("aten::select", keeps_type),
    row("aten::sigmoid", keeps_type | keeps_channels_last),
    row("aten::silu", keeps_channels_last),
    row("aten::size", asks_sizes),
    row("aten::slice", keeps_type),
    row("aten::softplus", keeps_channels_last),
    row("aten::sqrt", keeps_type | keeps_channels_last),
    row("aten::squeeze", keeps_type),
    row("aten::storage_offset", asks_otherwise),
    row("aten::stride", asks_form),
    row("aten::sub", keeps_channels_last),
    row("aten::sum", keeps_type | reads_any_layout),
    row("aten::sym_numel", asks_sizes),
    row("aten::sym_size", asks_sizes),
    row("aten::t", keeps_type),
    row("aten::tanh", keeps_type | keeps_channels_last),
    row("aten::transpose", keeps_type),
    row("aten::unsqueeze", keeps_type),
    row("aten::upsample_bilinear2d", keeps_channels_last),
    row("aten::upsample_nearest2d", keeps_channels_last),
    row("aten::view", keeps_type),
    row("aten::view_as", keeps_type),
    row("builtins.isinstance", asks_sizes),
    row("builtins.len", asks_sizes),
    row("fxgraph::max_pool2d", keeps_channels_last),
    row("fxgraph::packed_gru", is_composite),
    row("fxgraph::packed_lstm", is_composite),
    row("operator.is_", asks_sizes),
    row("operator.is_not", asks_sizes),
    row("prim::dtype", asks_form),
    row("prim::is_cuda", asks_otherwise),
    row("prim::layout", asks_otherwise),
};
static_assert(std::ranges::is_sorted(kFlags, {}, &FlagRow::name));

struct LengthRow {
  std::string_view overload;
  ListLength length;
};
constexpr LengthRow kLengths[] = {
    {"aten::chunk", {1, ListLength::Kind::number}},
    {"aten::unsafe_chunk", {1, ListLength::Kind::number}},
    {"aten::tensor_split.sections", {1, ListLength::Kind::number}},
    {"aten::hsplit.int", {1, ListLength::Kind::number}},
    {"aten::vsplit.int", {1, ListLength::Kind::number}},
    {"aten::dsplit.int", {1, ListLength::Kind::number}},
    {"aten::split_with_sizes", {1, ListLength::Kind::length}},
    {"aten::unsafe_split_with_sizes", {1, ListLength::Kind::length}},
    {"aten::split.sizes", {1, ListLength::Kind::length}},
    {"aten::tensor_split.indices", {1, ListLength::Kind::length_plus_one}},
    {"aten::hsplit.array", {1, ListLength::Kind::length_plus_one}},
    {"aten::vsplit.array", {1, ListLength::Kind::length_plus_one}},
    {"aten::dsplit.array", {1, ListLength::Kind::length_plus_one}},
    {"aten::broadcast_tensors", {0, ListLength::Kind::length}},
    {"aten::meshgrid", {0, ListLength::Kind::length}},
    {"aten::meshgrid.indexing", {0, ListLength::Kind::length}},
    {"aten::atleast_1d.Sequence", {0, ListLength::Kind::length}},
    {"aten::atleast_2d.Sequence", {0, ListLength::Kind::length}},
    {"aten::atleast_3d.Sequence", {0, ListLength::Kind::length}},
    {"aten::align_tensors", {0, ListLength::Kind::length}},
};

}  // namespace
}  // namespace flag_rows

bool has_flag(Symbol target, OperatorFlag flag) {
  const auto find = [&](std::string_view name) {
    const auto at = std::ranges::lower_bound(flag_rows::kFlags, name, {}, &flag_rows::FlagRow::name);
    return at != std::end(flag_rows::kFlags) && at->name == name && (at->flags & static_cast<std::uint16_t>(flag)) != 0;
  };
  const std::string_view name = target.view();
  return find(name) || (name.find("::") != name.npos && find(packet_of(name)));
}

std::optional<ListLength> list_length(Symbol overload) {
  const auto at = std::ranges::find(flag_rows::kLengths, overload.view(), &flag_rows::LengthRow::overload);
  return at == std::end(flag_rows::kLengths) ? std::nullopt : std::optional(at->length);
}

}  // namespace fx
