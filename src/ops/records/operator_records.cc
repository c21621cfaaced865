#include <fxgraph/ops/records/operator_records.h>

#include <array>
#include <string>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/support/flat_map.h>

namespace fx::internal {
namespace other_rows {
namespace {

using enum OperatorFlag;

constexpr OperatorRecord kRows[] = {
    {"Bool", nullptr, reads_data},
    {"Float", nullptr, reads_data},
    {"FloatImplicit", nullptr, reads_data},
    {"Int", nullptr, reads_data},
    {"IntImplicit", nullptr, reads_data},
    {"ScalarImplicit", nullptr, reads_data},
    {"__is__", nullptr, asks_sizes},
    {"__isnot__", nullptr, asks_sizes},
    {"_add_relu", nullptr, keeps_channels_last},
    {"_convolution_mode", nullptr, {}, cost::convolution},
    {"_local_scalar_dense", nullptr, reads_data},
    {"_native_batch_norm_legit_no_training", nullptr, {}, cost::each_output<2>},
    {"_native_multi_head_attention", nullptr, is_composite, cost::multi_head<true>},
    {"_pack_padded_sequence", nullptr, sizes_of_data},
    {"_pad_packed_sequence", nullptr, sizes_of_data},
    {"_scaled_dot_product_attention", nullptr, is_composite, cost::attention},
    {"_transformer_encoder_layer_fwd", nullptr, is_composite},
    {"_unique2", nullptr, sizes_of_data},
    {"align_tensors", nullptr, answers_each},
    {"allclose", nullptr, reads_data},
    {"atleast_1d", nullptr, answers_each},
    {"atleast_2d", nullptr, answers_each},
    {"atleast_3d", nullptr, answers_each},
    {"bincount", nullptr, sizes_of_data},
    {"broadcast_tensors", nullptr, answers_each},
    {"dim", nullptr, asks_sizes},
    {"dsplit", nullptr, counts_parts},
    {"einsum", nullptr, is_composite, cost::einsum},
    {"equal", nullptr, reads_data},
    {"fractional_max_pool2d_backward", nullptr, differs_by_strides},
    {"fractional_max_pool3d_backward", nullptr, differs_by_strides},
    {"hsplit", nullptr, counts_parts},
    {"index_put_", nullptr, differs_by_strides},
    {"is_complex", nullptr, asks_form},
    {"is_contiguous", nullptr, asks_form},
    {"is_floating_point", nullptr, asks_form},
    {"is_nonzero", nullptr, reads_data},
    {"is_same_size", nullptr, asks_sizes},
    {"item", nullptr, reads_data},
    {"len", nullptr, asks_sizes},
    {"linalg_lstsq", nullptr, sizes_of_data},
    {"masked_scatter", nullptr, differs_by_strides},
    {"masked_scatter_", nullptr, differs_by_strides},
    {"max_pool3d_with_indices_backward", nullptr, differs_by_strides},
    {"narrow_copy", nullptr, differs_by_strides},
    {"nonzero_numpy", nullptr, sizes_of_data},
    {"numel", nullptr, asks_sizes},
    {"put", nullptr, differs_by_strides},
    {"put_", nullptr, differs_by_strides},
    {"repeat_interleave.Tensor", nullptr, sizes_of_data, nullptr, nullptr, "output_size"},
    {"repeat_interleave.self_Tensor", nullptr, sizes_of_data, nullptr, nullptr, "output_size"},
    {"requires_grad", nullptr, asks_otherwise},
    {"size", nullptr, asks_sizes},
    {"storage_offset", nullptr, asks_otherwise},
    {"stride", nullptr, asks_form},
    {"sym_numel", nullptr, asks_sizes},
    {"sym_size", nullptr, asks_sizes},
    {"tensor_split.tensor_indices_or_sections", nullptr, counts_parts | sizes_of_data},
    {"unique_consecutive", nullptr, sizes_of_data},
    {"unique_dim", nullptr, sizes_of_data},
    {"unique_dim_consecutive", nullptr, sizes_of_data},
    {"view_as_complex", nullptr, raises_by_strides},
    {"view_copy", nullptr, raises_by_strides},
    {"vsplit", nullptr, counts_parts},
    {"builtins.isinstance", nullptr, asks_sizes},
    {"builtins.len", nullptr, asks_sizes},
    {"fxgraph::packed_linear", nullptr, gives_contiguous, cost::linear},
    {"operator.is_", nullptr, asks_sizes},
    {"operator.is_not", nullptr, asks_sizes},
    {"prim::dtype", nullptr, asks_form},
    {"prim::is_cuda", nullptr, asks_otherwise},
    {"prim::layout", nullptr, asks_otherwise},
    {python::kMultiHeadAttention, nullptr, {}, cost::multi_head<false>},
};

}  // namespace
}  // namespace other_rows

std::span<const OperatorRecord> other_operators() { return other_rows::kRows; }

std::array<std::span<const OperatorRecord>, 12> operator_records() {
  return {pointwise_operators(), view_operators(),    part_operators(),      reduction_operators(),
          product_operators(),   window_operators(),  image_operators(),     layer_operators(),
          index_operators(),     factory_operators(), quantized_operators(), other_operators()};
}

namespace {

const OperatorRecord* record_named(Symbol name) {
  static const auto rows = [] {
    FlatMap<const OperatorRecord*> all;
    for (const std::span<const OperatorRecord> table : operator_records()) {
      for (const OperatorRecord& row : table) {
        const bool is_whole = row.name.find("::") != row.name.npos || row.name.starts_with("builtins.") ||
                              row.name.starts_with("operator.") || row.name.starts_with("torch.");
        all[Symbol((is_whole ? "" : "aten::") + std::string(row.name)).id()] = &row;
      }
    }
    return all;
  }();
  const OperatorRecord* const* row = name.empty() ? nullptr : rows.find(name.id());
  return row ? *row : nullptr;
}

}  // namespace

const OperatorRecord* operator_record(Symbol target) {
  if (const OperatorRecord* row = record_named(target)) return row;
  return target.view().find("::") == std::string_view::npos ? nullptr
                                                            : record_named(Symbol::find(packet_of(target.view())));
}

const OperatorRecord* size_record(Symbol target) {
  std::string_view packet = packet_of(target.view());
  const OperatorRecord* row = record_named(Symbol::find(packet));
  if (row && row->sizes) return row;
  if (!packet.ends_with("_") || packet.ends_with("__")) return nullptr;
  packet.remove_suffix(1);
  row = record_named(Symbol::find(packet));
  return row && row->sizes ? row : nullptr;
}

}  // namespace fx::internal
