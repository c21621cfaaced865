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
    {"Bool Float FloatImplicit Int IntImplicit ScalarImplicit allclose equal is_nonzero", nullptr, reads_data},
    {"__is__ __isnot__ dim is_same_size len numel size sym_numel sym_size builtins.isinstance builtins.len "
     "operator.is_ operator.is_not torch.jit.isinstance",
     nullptr, asks_sizes},
    {"_add_relu", nullptr, keeps_channels_last},
    {"_convolution_mode", nullptr, {}, cost::convolution},
    {"_native_batch_norm_legit_no_training", nullptr, {}, cost::each_output<2>},
    {"_native_multi_head_attention", nullptr, is_composite, cost::multi_head<true>},
    {"_pack_padded_sequence _pad_packed_sequence _unique2 bincount linalg_lstsq nonzero_numpy unique_consecutive "
     "unique_dim unique_dim_consecutive",
     nullptr, sizes_of_data},
    {"_scaled_dot_product_attention", nullptr, is_composite, cost::attention},
    {"_transformer_encoder_layer_fwd", nullptr, is_composite},
    {"align_tensors atleast_1d atleast_2d atleast_3d broadcast_tensors", nullptr, answers_each},
    {"dsplit hsplit vsplit", nullptr, counts_parts},
    {"fractional_max_pool2d_backward fractional_max_pool3d_backward index_put_ masked_scatter masked_scatter_ "
     "max_pool3d_with_indices_backward narrow_copy put put_",
     nullptr, differs_by_strides},
    {"is_complex is_contiguous is_floating_point stride prim::dtype", nullptr, asks_form},
    {"repeat_interleave.Tensor repeat_interleave.self_Tensor", nullptr, sizes_of_data, nullptr, nullptr, "output_size"},
    {"requires_grad storage_offset prim::is_cuda prim::layout", nullptr, asks_otherwise},
    {"tensor_split.tensor_indices_or_sections", nullptr, counts_parts | sizes_of_data},
    {"view_as_complex view_copy", nullptr, raises_by_strides},
    {"fxgraph::packed_linear", nullptr, gives_contiguous, cost::linear},
    {python::kMultiHeadAttention, nullptr, {}, cost::multi_head<false>},
};

}  // namespace
}  // namespace other_rows

std::span<const OperatorRecord> other_operators() { return other_rows::kRows; }

std::array<std::span<const OperatorRecord>, 13> operator_records() {
  return {pointwise_operators(), view_operators(),      part_operators(),  reduction_operators(), product_operators(),
          window_operators(),    image_operators(),     layer_operators(), index_operators(),     join_operators(),
          factory_operators(),   quantized_operators(), other_operators()};
}

namespace {

const OperatorRecord* record_named(Symbol name) {
  static const auto rows = [] {
    FlatMap<const OperatorRecord*> all;
    for (const std::span<const OperatorRecord> table : operator_records()) {
      for (const OperatorRecord& row : table)
        for_each_name(row, [&](std::string_view name) { all[Symbol(name).id()] = &row; });
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
