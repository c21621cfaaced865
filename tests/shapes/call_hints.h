// What fits operators, as tests/shapes/drawn_calls.h writes it.
#pragma once

#include <algorithm>
#include <string_view>

#include <fxgraph/ops/schema.h>
#include "tests/shapes/drawn_calls.h"

namespace fx::testing {

/// For packets or overloads, `add` or `add.Tensor`, separated by blanks.
struct Hint {
  std::string_view packets, lines, common{};
};
inline constexpr Hint kHints[] = {
    {"__and__ __or__ __xor__ bitwise_and bitwise_or bitwise_xor bitwise_not",
     "self:*a@i other:~*a@i|self:*a@b other:*a@b"},
    {"__lshift__", "self:*a@i other:~*a@i"},
    {"linalg_inv_ex linalg_cholesky_ex _linalg_det", "A:*aa self:*aa check_errors:0"},
    {"_linalg_solve_ex", "A:*aa B:*ab left:1|A:aa B:ba left:0|A:naa B:nab left:1|A:aa B:a left:1", "check_errors:0 "},
    {"_linalg_svd", "A:*ab"},
    {"item _local_scalar_dense", "self:1@i|self:11@i"},
    {"trace", "self:ab|self:ab@i"},
    {"quantize_per_tensor.tensor dequantize_per_tensor.tensor", "quant_min:-128 quant_max:127 dtype:1",
     "input:*a scale:1 zero_point:1 "},
    {"quantize_per_tensor.tensor2 dequantize_per_tensor.tensor2", "quant_min:1 quant_max:1 dtype:1",
     "input:*a scale:1 zero_point:1 "},
    {"quantize_per_tensor dequantize_per_tensor", "quant_min:-128 quant_max:127 dtype:1|dtype:0",
     "input:*a zero_point:0..3 "},
    {"quantize_per_channel dequantize_per_channel fake_quant_per_channel",
     "input:ab scales:a zero_points:a@i axis:0|input:abc scales:b zero_points:b@i axis:1|input:ab scales:b "
     "zero_points:1@i axis:-1",
     "quant_min:-128 quant_max:127 dtype:1 "},
    {"quantize_per_token dequantize_per_token", "input:ab scales:a1 zero_points:a1|input:*b scales:1 zero_points:1",
     "quant_min:-128 quant_max:127 dtype:1 output_dtype:6 "},
    {"choose_qparams choose_qparams_symmetric choose_qparams_per_token choose_qparams_per_token_asymmetric "
     "_choose_qparams_per_token_asymmetric_impl",
     "input:*a", "dtype:1 eps:1 quant_min:-128 quant_max:127 "},
    {"mm", "self:ab mat2:bc"},
    {"bmm", "self:nab mat2:nbc"},
    {"matmul linalg_matmul", "self:*ab other:*bc|self:ab other:*bc|self:b other:*bc|self:*ab other:b|self:b other:b"},
    {"addmm", "self:~ac mat1:ab mat2:bc"},
    {"addmm_", "self:ac mat1:ab mat2:bc"},
    {"baddbmm", "self:~nac batch1:nab batch2:nbc"},
    {"baddbmm_", "self:nac batch1:nab batch2:nbc"},
    {"addbmm", "self:~ac batch1:nab batch2:nbc"},
    {"addbmm_", "self:ac batch1:nab batch2:nbc"},
    {"linear", "input:*a weight:ba bias:b|input:na weight:ba bias:b|input:*a weight:a bias:-"},
    {"mv", "self:ab vec:b"},
    {"addmv", "self:~a mat:ab vec:b"},
    {"addmv_", "self:a mat:ab vec:b"},
    {"dot", "self:a tensor:a"},
    {"vdot", "self:a other:a"},
    {"outer ger", "self:a vec2:b"},
    {"einsum",
     "equation:ij,jk tensors:ij,jk path:0,1|equation:ij,jk->ki tensors:ij,jk path:1,0|equation:...ij,...jk "
     "tensors:*ij,*jk|equation:i...j,jk->...k tensors:i*j,jk|equation:ii->i tensors:ii path:0|equation:ii tensors:ii|"
     "equation:Ab,cb,Ac->cA tensors:ab,cb,ac path:0,2,0,1|equation:ij,ij->ij tensors:~ij,ij|equation:...,j "
     "tensors:~*,j path:0,1|equation:bii,i->b tensors:bii,i|equation:ij->ijj tensors:ij|equation:i,j->k tensors:i,j"},
    {"cdist", "x1:*ab x2:*cb compute_mode:0..2|x1:~*ab x2:*ab"},
    {"pdist", "self:ab"},
    {"bilinear", "input1:*a input2:*b weight:cab bias:c"},
    {"conv1d", "input:n{gc}w weight:{go}ck bias:{go} groups:g|input:{gc}w weight:{go}ck bias:- groups:g",
     "stride:1..3 padding:0..2 dilation:1..2"},
    {"conv2d", "input:n{gc}hw weight:{go}ckl bias:{go} groups:g|input:{gc}hw weight:{go}ckl bias:- groups:g",
     "stride:1..3 padding:0..2 dilation:1..2"},
    {"conv3d", "input:n{gc}dhw weight:{go}cklm bias:{go} groups:g", "stride:1..3 padding:0..2 dilation:1..2"},
    {"conv_transpose1d", "input:n{gc}w weight:{gc}ok bias:{go} groups:g|input:{gc}w weight:{gc}ok bias:- groups:g",
     "stride:1..3 padding:0..2 dilation:1..2 output_padding:0..1"},
    {"conv_transpose2d", "input:n{gc}hw weight:{gc}okl bias:{go} groups:g|input:{gc}hw weight:{gc}okl bias:- groups:g",
     "stride:1..3 padding:0..2 dilation:1..2 output_padding:0..1"},
    {"conv_transpose3d", "input:n{gc}dhw weight:{gc}oklm bias:{go} groups:g",
     "stride:1..3 padding:0..1 dilation:1..2 output_padding:0..1"},
    {"convolution _convolution",
     "input:n{gc}hw weight:{go}ckl bias:{go} transposed:0|input:n{gc}hw weight:{gc}okl bias:{go} transposed:1",
     "groups:g stride:1..3,1..2 padding:0..2,0..2 dilation:1..2,1..2 output_padding:0,0"},
    {"max_pool1d max_pool1d_with_indices avg_pool1d", "self:ncw|self:cw",
     "kernel_size:1..4 stride:1..3 padding:0..1 dilation:1..2"},
    {"max_pool2d max_pool2d_with_indices avg_pool2d",
     "self:nchw|self:chw|self:nchw stride:", "kernel_size:1..4 stride:1..3 padding:0..1 dilation:1..2"},
    {"max_pool3d max_pool3d_with_indices avg_pool3d", "self:ncdhw|self:cdhw",
     "kernel_size:1..4 stride:1..3 padding:0..1 dilation:1..2"},
    {"adaptive_avg_pool1d adaptive_max_pool1d", "self:ncw|self:cw", "output_size:1..5"},
    {"adaptive_avg_pool2d adaptive_max_pool2d _adaptive_avg_pool2d", "self:nchw|self:chw", "output_size:1..5"},
    {"adaptive_avg_pool3d adaptive_max_pool3d _adaptive_avg_pool3d", "self:ncdhw|self:cdhw", "output_size:1..5"},
    {"upsample_nearest1d upsample_linear1d _upsample_nearest_exact1d",
     "self:ncw input:ncw output_size:1..9 scale_factors:-|self:ncw input:ncw output_size:3"},
    {"upsample_nearest2d upsample_bilinear2d upsample_bicubic2d _upsample_nearest_exact2d _upsample_bilinear2d_aa "
     "_upsample_bicubic2d_aa",
     "self:nchw input:nchw output_size:1..9,1..9 scale_factors:-|self:nchw input:nchw output_size:3,4"},
    {"upsample_nearest3d upsample_trilinear3d _upsample_nearest_exact3d",
     "self:ncdhw input:ncdhw output_size:1..9,1..9,1..5 scale_factors:-|self:ncdhw input:ncdhw output_size:3,4,5"},
    {"pad", "self:nchw pad:0..2,0..3,-1..2,1|self:ncw pad:0..2,0..3|self:ncdhw pad:1,1,1,2,2,0|self:chw pad:1,1,2,0"},
    {"constant_pad_nd", "self:nchw pad:0..2,0..3,-1..2,1|self:cw pad:0..2,0..3|self:ab pad:1,-2,1,2"},
    {"reflection_pad1d replication_pad1d", "self:ncw padding:0..3,0..3|self:cw padding:-1..3,0..3"},
    {"reflection_pad2d replication_pad2d", "self:nchw padding:0..3,0..3,-1..3,1|self:chw padding:0,1,0..3,0..3"},
    {"reflection_pad3d replication_pad3d", "self:ncdhw padding:0..3,0..3,-1..3,1,0,0..2|self:cdhw padding:0,1,0,3,1,1"},
    {"pixel_shuffle", "self:*{kkc}hw upscale_factor:k"},
    {"pixel_unshuffle", "self:*c{kh}{kw} downscale_factor:k"},
    {"grid_sampler", "input:nchw grid:nab2|input:ncdhw grid:nabe3",
     "interpolation_mode:0..1 padding_mode:0..2 align_corners:0..1"},
    {"im2col", "self:nchw|self:chw", "kernel_size:1..3 dilation:1..2 padding:0..2 stride:1..3"},
    {"batch_norm native_batch_norm", "input:nc training:1|input:nchw training:0|input:ncw|input:ncdhw training:0",
     "weight:c bias:c running_mean:c running_var:c"},
    {"layer_norm native_layer_norm",
     "input:*a normalized_shape:a weight:a bias:a|input:*ab normalized_shape:a,b weight:ab bias:ab"},
    {"group_norm", "input:n{gc}hw num_groups:g weight:{gc} bias:{gc}|input:n{gc} num_groups:g weight:- bias:{gc}"},
    {"instance_norm",
     "input:nchw|input:ncw use_input_stats:1|input:ncdhw running_mean:- running_var:- use_input_stats:1",
     "weight:c bias:c running_mean:c running_var:c"},
    {"embedding", "weight:{a+1}b indices:*c@i"},
    {"lstm",
     "input:tbi hx:1bh,1bh params:{4h}i,{4h}h,{4h},{4h} has_biases:1 num_layers:1 bidirectional:0 batch_first:0|"
     "input:bti hx:2bh,2bh params:{4h}i,{4h}h,{4h}h,{4h}h has_biases:0 num_layers:2 bidirectional:0 batch_first:1|"
     "input:bti hx:2bh,2bh params:{4h}i,{4h}h,{4h}i,{4h}h has_biases:0 num_layers:1 bidirectional:1"},
    {"gru",
     "input:tbi hx:1bh params:{3h}i,{3h}h,{3h},{3h} has_biases:1 num_layers:1 bidirectional:0 batch_first:0|"
     "input:bti hx:2bh params:{3h}i,{3h}h,{3h}h,{3h}h has_biases:0 num_layers:2 bidirectional:0 batch_first:1|"
     "input:bti hx:2bh params:{3h}i,{3h}h,{3h}i,{3h}h has_biases:0 num_layers:1 bidirectional:1"},
    {"rnn_tanh rnn_relu",
     "input:tbi hx:1bh params:hi,hh,h,h has_biases:1 num_layers:1 bidirectional:0 batch_first:0|"
     "input:bti hx:2bh params:hi,hh,h,h,hh,hh,h,h has_biases:1 num_layers:2 bidirectional:0 batch_first:1|"
     "input:bti hx:2bh params:hi,hh,hi,hh has_biases:0 num_layers:1 bidirectional:1"},
    {"lstm_cell", "input:bi hx:bh,bh w_ih:{4h}i w_hh:{4h}h b_ih:{4h} b_hh:{4h}"},
    {"gru_cell", "input:bi hx:bh w_ih:{3h}i w_hh:{3h}h b_ih:{3h} b_hh:{3h}"},
    {"rnn_tanh_cell rnn_relu_cell", "input:bi hx:bh w_ih:hi w_hh:hh b_ih:h b_hh:h"},
    {"binary_cross_entropy binary_cross_entropy_with_logits",
     "self:*a target:*a weight:~*a pos_weight:a|self:*a target:*a weight:- pos_weight:-"},
    {"cross_entropy_loss nll_loss_nd",
     "self:nc target:n@i weight:c|self:nchw target:nhw@i weight:c|self:c target:@i weight:c"},
    {"prelu", "self:nchw weight:c|self:nc weight:1|self:*a weight:1|self:nca weight:c"},
    {"glu", "self:n{2a} dim:-1..-1|self:{2a}b dim:0"},
    {"one_hot", "self:*a@i num_classes:1..5"},
    {"index",
     "self:abc indices:n@i|self:ab indices:n@i,n1@i|self:abc indices:-,n@i|self:abcd indices:n@i,-,n@i|self:ab "
     "indices:ab@b"},
    {"index_put",
     "self:abc indices:n@i values:nbc|self:ab indices:n@i,n1@i values:~nn|self:abc indices:-,n@i values:~anc"},
    {"index_add index_copy", "self:{a+1}bc dim:-3 index:n@i source:nbc|self:b{a+1} dim:1 index:n@i source:bn"},
    {"index_fill", "self:{a+1}bc dim:0 index:n@i value:|self:b{a+1} dim:-1 index:n@i value:"},
    {"searchsorted", "sorted_sequence:a self:*b sorter:-"},
    {"bucketize", "self:*b boundaries:a"},
    {"isin", "elements:*a test_elements:b"},
    {"hstack", "tensors:ab,ac,ad|tensors:a,b|tensors:ab,a"},
    {"vstack", "tensors:ab,cb,b|tensors:a,a"},
    {"dstack", "tensors:abc,abd|tensors:ab,ab,abc|tensors:a,a"},
    {"meshgrid", "tensors:a,b|tensors:a,b,|tensors:a"},
    {"native_group_norm", "input:n{gc}hw weight:{gc} bias:{gc} N:n C:gc HxW:hw group:g"},
    {"copy", "self:*a src:~*a"},
    {"native_dropout", "input:*a"},
    {"index_select", "self:abc dim:-3..2 index:n@i|self:ab dim:0 index:@i"},
    {"gather scatter scatter_reduce scatter_add gather_ scatter_ scatter_add_",
     "self:{a+1}{b+1} dim:0..1 index:{a+1}b@i src:{a+1}{b+1}|self:{a+1}bc dim:-3 index:abc@i src:abc|self:a index:b@i "
     "dim:0 src:b"},
    {"take", "self:{a+1}b index:*c@i"},
    {"cat concat", "tensors:abc,abc,abc dim:-3..2|tensors:ab,cb,db dim:0|tensors:a,0,b dim:0|tensors:ab,0,ac dim:1"},
    {"stack", "tensors:ab,ab,ab dim:-3..2"},
    {"repeat", "self:ab repeats:0..3,1..2|self:a repeats:1,2,3|self:*a repeats:1,2,1,2"},
    {"tile", "self:ab dims:0..3,1..2|self:abc dims:2|self:a dims:1,2,3"},
    {"flip", "self:abc dims:1,-3|self:ab dims:0"},
    {"roll", "self:abc shifts:1..4 dims:0..2|self:abc shifts:1,2 dims:0,-1|self:ab shifts:3 dims:"},
    {"rot90", "self:ab k:-2..3 dims:0,1|self:abc k:-2..3 dims:2,0"},
    {"masked_select", "self:*a mask:~*a@b"},
    {"masked_fill masked_fill_", "self:*a mask:~*a@b value:"},
    {"fill fill_", "self:*a value:"},
    {"where", "condition:~*a@b self:*a other:~*a"},
    {"view reshape _unsafe_view",
     "self:abc size:ab,c shape:ab,c|self:abc size:-1,c shape:-1,c|self:abc size:a,-1 shape:a,-1|self:{2a}b size:2,a,b "
     "shape:2,ab"},
    {"_reshape_alias", "self:abc size:ab,c stride:c,1"},
    {"view_as reshape_as", "self:abc other:{ab}c|self:abc other:{abc}"},
    {"flatten", "self:abcd start_dim:0..1 end_dim:-2..-1|self:abc|self:*a start_dim:0 end_dim:-1"},
    {"unflatten", "self:{ab}c dim:0 sizes:a,b|self:c{ab} dim:-1 sizes:-1,b"},
    {"squeeze squeeze_", "self:1ab dim:0|self:a1b dim:-3..2|self:1a1"},
    {"unsqueeze unsqueeze_", "self:ab dim:-3..2"},
    {"t t_ numpy_T", "self:ab|self:a|self:"},
    {"permute", "self:abc dims:2,0,1|self:ab dims:-1,0|self:abcd dims:0,2,3,1"},
    {"movedim moveaxis", "self:abc source:0..2 destination:-3..2|self:abcd source:0,1 destination:2,0"},
    {"select", "self:{a+1}{b+1} dim:0..1 index:0..0|self:{a+2}b dim:0 index:-2..1"},
    {"slice", "self:hw dim:-2..1 start:-3..3 end:2..12 step:1..3"},
    {"narrow", "self:hw dim:-2..1 start:0..2 length:0..2"},
    {"expand broadcast_to", "self:1b size:a,b|self:b size:a,-1|self:1a1 size:3,a,c|self:ab size:c,a,b"},
    {"expand_as", "self:1b other:ab|self:~*a other:*a"},
    {"split unsafe_split", "self:{a+b}c split_size:1..4 dim:0|self:{ab}c split_size:b dim:-2"},
    {"split.sizes", "self:{a+b}c split_size:a,b dim:0|self:c{a+b} split_size:a,b dim:1"},
    {"split_with_sizes unsafe_split_with_sizes", "self:{a+b}c split_sizes:a,b dim:0|self:c{a+b} split_sizes:a,b dim:1"},
    {"chunk unsafe_chunk tensor_split",
     "self:ab chunks:1..4 sections:1..4 indices:1..2,2..4 tensor_indices_or_sections:2@i"},
    {"diagonal", "self:ab offset:-2..2 dim1:0 dim2:1|self:abc offset:0 dim1:-1 dim2:0"},
    {"unfold", "self:hw dimension:-2..1 size:0..4 step:1..3"},
    {"as_strided as_strided_", "self:hw size:2,2 stride:3,1 storage_offset:0..1"},
    {"topk kthvalue", "self:*{a+3}|self:*b", "k:1..3 dim:-1"},
    {"arange", "step:1..2 start:0..3 end:3..9"},
    {"linspace", "steps:0..5"},
    {"to", "self:abcd other:b"},
    {"randint", "high:4..9 low:0..3 dtype:4 size:a,b"},
    {"multinomial", "self:a{b+3} num_samples:1..3|self:{a+2} num_samples:1..2"},
    {"_pad_enum", "self:nchw pad:0..2,0..3,1..2,1|self:ncw pad:0..2,0..3|self:chw pad:1,1,2,0", "mode:0..3 value:-"},
};

inline std::string_view name_of(std::string_view target) {
  target.remove_prefix(std::min(target.find("::") + 2, target.size()));
  return target;
}

// Of `split.sizes`, or else `split`, or else of what it does not in place.
inline const Hint& hint_of(const OperatorSchema& schema) {
  const std::string_view overload = name_of(schema.target.view()), packet = overload.substr(0, overload.find('.'));
  for (const std::string_view name : {overload, packet, packet.substr(0, packet.size() - packet.ends_with('_'))}) {
    for (const Hint& hint : kHints) {
      const auto packets = parts_of(hint.packets, ' ');
      if (std::ranges::find(packets, name) != packets.end()) return hint;
    }
  }
  static constexpr Hint kNone{"", ""};
  return kNone;
}

}  // namespace fx::testing
