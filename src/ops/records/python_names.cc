#include <fxgraph/ops/records/python_names.h>

#include <algorithm>

namespace fx::internal {

namespace {

// clang-format off
#define F "torch.nn.functional."

constexpr std::string_view kAttention =
    "query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, "
    "training=True, key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, "
    "v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True, is_causal=False";

constexpr std::string_view kInterpolate =
    "input, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None, antialias=False";

constexpr std::string_view kStft =
    "input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect', normalized=False, onesided=None, return_complex=None";

#define NORM(name, parameters, when)                                                                                       \
  {name, parameters, when "p='fro', dim=None, dtype=None", "aten::frobenius_norm.dim(input, dim|[], keepdim)"},            \
      {name, parameters, when "p='fro', dtype=None", "aten::frobenius_norm.dim(input, dim@once, keepdim)"},                \
      {name, parameters, when "p='nuc', dim=None, dtype=None", "aten::nuclear_norm(input, keepdim)"},                      \
      {name, parameters, when "p='nuc', dtype=None", "aten::nuclear_norm.dim(input, dim, keepdim)"},                       \
      {name, parameters, when "dim=None, dtype=None", "aten::norm.ScalarOpt_dim(input, p, dim|[], keepdim)"},              \
      {name, parameters, when "dtype=None", "aten::norm.ScalarOpt_dim(input, p, dim@once, keepdim)"},                      \
      {name, parameters, when "dim=None", "aten::norm.ScalarOpt_dim_dtype(input, p, dim|[], keepdim, dtype=dtype)"},       \
      {name, parameters, when "dim!=None", "aten::norm.ScalarOpt_dim_dtype(input, p, dim@once, keepdim, dtype=dtype)"}

// A number before the operands: the order of old programs, which Python still takes.
#define NUMBER_FIRST(name)                                                                                     \
  {"torch." name, "input, alpha, other", "", "aten::" name ".Tensor(input, other, alpha=alpha)"},              \
      {"." name, "self, alpha, other", "", "aten::" name ".Tensor(self, other, alpha=alpha)"},                 \
      {"torch." name, "", "", "aten::" name}, {"." name, "", "", "aten::" name}
#define VALUE_FIRST(name)                                                                                        \
  {"torch." name, "input, value, tensor1, tensor2", "", "aten::" name "(input, tensor1, tensor2, value=value)"}, \
      {"." name, "self, value, tensor1, tensor2", "", "aten::" name "(self, tensor1, tensor2, value=value)"},    \
      {"torch." name, "", "", "aten::" name}, {"." name, "", "", "aten::" name}
#define SCALES_FIRST(name)                                                                                             \
  {"torch." name, "beta, input, alpha, a, b", "", "aten::" name "(input, a, b, beta=beta, alpha=alpha)"},              \
      {"torch." name, "beta, input, a, b", "", "aten::" name "(input, a, b, beta=beta)"},                              \
      {"." name, "self, beta, alpha, a, b", "", "aten::" name "(self, a, b, beta=beta, alpha=alpha)"},                 \
      {"." name, "self, beta, a, b", "", "aten::" name "(self, a, b, beta=beta)"}, {"torch." name, "", "", "aten::" name}, \
      {"." name, "", "", "aten::" name}

constexpr FunctionRow kFunctions[] = {
    // Activations.
    {F "celu", "input, alpha=1.0, inplace=False", "", "aten::celu(input, alpha)"},
    {F "elu", "input, alpha=1.0, inplace=False", "", "aten::elu(input, alpha)"},
    {F "gelu", "input, approximate='none'", "", "aten::gelu(input, approximate=approximate)"},
    {F "glu", "input, dim=-1", "", "aten::glu(input, dim)"},
    {F "hardsigmoid", "input, inplace=False", "", "aten::hardsigmoid(input)"},
    {F "hardswish", "input, inplace=False", "", "aten::hardswish(input)"},
    {F "hardtanh", "input, min_val=-1.0, max_val=1.0, inplace=False", "", "aten::hardtanh(input, min_val, max_val)"},
    {F "leaky_relu", "input, negative_slope=0.01, inplace=False", "", "aten::leaky_relu(input, negative_slope)"},
    {F "log_softmax", "input, dim=None, _stacklevel=3, dtype=None", "dim!=None", "aten::log_softmax.int(input, dim, dtype)"},
    {F "logsigmoid", "input", "", "aten::log_sigmoid(input)"},
    {F "mish", "input, inplace=False", "", "aten::mish(input)"},
    {F "prelu", "input, weight", "", "aten::prelu(input, weight)"},
    {F "relu", "input, inplace=False", "", "aten::relu(input)"},
    {F "relu6", "input, inplace=False", "", "aten::relu6(input)"},
    {F "rrelu", "input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False", "", "aten::rrelu(input, lower, upper, training)"},
    {F "selu", "input, inplace=False", "", "aten::selu(input)"},
    {F "sigmoid", "input", "", "aten::sigmoid(input)"},
    {F "silu", "input, inplace=False", "", "aten::silu(input)"},
    {F "softmax", "input, dim=None, _stacklevel=3, dtype=None", "dim!=None", "aten::softmax.int(input, dim, dtype)"},
    {F "softplus", "input, beta=1, threshold=20", "", "aten::softplus(input, beta, threshold)"},
    {F "tanh", "input", "", "aten::tanh(input)"},
    {F "threshold", "input, threshold, value, inplace=False", "", "aten::threshold(input, threshold, value)"},
    {F "_threshold", "input, threshold, value, inplace=False", "", "aten::threshold(input, threshold, value)"},
    // Dropout. dropout1d and dropout3d reshape inputs without a batch and are no single operator.
    {F "alpha_dropout", "input, p=0.5, training=False, inplace=False", "", "aten::alpha_dropout(input, p, training)"},
    {F "dropout", "input, p=0.5, training=True, inplace=False", "", "aten::dropout(input, p, training)"},
    {F "dropout2d", "input, p=0.5, training=True, inplace=False", "", "aten::feature_dropout(input, p, training)"},
    {F "dropout1d", "input, p=0.5, training=True, inplace=False", "training=False, inplace=False", ""},
    {F "dropout3d", "input, p=0.5, training=True, inplace=False", "training=False, inplace=False", ""},
    {F "feature_alpha_dropout", "input, p=0.5, training=False, inplace=False", "", "aten::feature_alpha_dropout(input, p, training)"},
    // Normalisation. `True` is cudnn_enabled.
    {F "batch_norm", "input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05", "momentum!=None",
     "aten::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)"},
    {F "group_norm", "input, num_groups, weight=None, bias=None, eps=1e-05", "", "aten::group_norm(input, num_groups, weight, bias, eps)"},
    {F "instance_norm", "input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05", "",
     "aten::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)"},
    {F "layer_norm", "input, normalized_shape, weight=None, bias=None, eps=1e-05", "", "aten::layer_norm(input, normalized_shape, weight, bias, eps)"},
    {F "rms_norm", "input, normalized_shape, weight=None, eps=None", "", "aten::rms_norm(input, normalized_shape, weight, eps)"},
    // Pooling. The adaptive maxima always find indices too; without them they are more than one operator.
    {F "adaptive_avg_pool1d", "input, output_size", "", "aten::adaptive_avg_pool1d(input, output_size)"},
    {F "adaptive_avg_pool2d", "input, output_size", "", "aten::adaptive_avg_pool2d(input, output_size)"},
    {F "adaptive_avg_pool3d", "input, output_size", "", "aten::adaptive_avg_pool3d(input, output_size)"},
    {F "adaptive_max_pool1d", "input, output_size, return_indices=False", "return_indices=True", "aten::adaptive_max_pool1d(input, output_size)"},
    {F "adaptive_max_pool2d", "input, output_size, return_indices=False", "return_indices=True", "aten::adaptive_max_pool2d(input, output_size)"},
    {F "adaptive_max_pool3d", "input, output_size, return_indices=False", "return_indices=True", "aten::adaptive_max_pool3d(input, output_size)"},
    {F "max_pool1d", "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False", "return_indices=False",
     "aten::max_pool1d(input, kernel_size, stride|[], padding, dilation, ceil_mode)"},
    {F "max_pool2d", "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False", "return_indices=False",
     "aten::max_pool2d(input, kernel_size, stride|[], padding, dilation, ceil_mode)"},
    {F "max_pool3d", "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False", "return_indices=False",
     "aten::max_pool3d(input, kernel_size, stride|[], padding, dilation, ceil_mode)"},
    {F "max_pool1d", "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False", "return_indices=True",
     "aten::max_pool1d_with_indices(input, kernel_size, stride|[], padding, dilation, ceil_mode)"},
    {F "max_pool2d", "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False", "return_indices=True",
     "aten::max_pool2d_with_indices(input, kernel_size, stride|[], padding, dilation, ceil_mode)"},
    {F "max_pool3d", "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False", "return_indices=True",
     "aten::max_pool3d_with_indices(input, kernel_size, stride|[], padding, dilation, ceil_mode)"},
    {F "adaptive_max_pool1d_with_indices", "input, output_size, return_indices=False", "", "aten::adaptive_max_pool1d(input, output_size)"},
    {F "adaptive_max_pool2d_with_indices", "input, output_size, return_indices=False", "", "aten::adaptive_max_pool2d(input, output_size)"},
    {F "adaptive_max_pool3d_with_indices", "input, output_size, return_indices=False", "", "aten::adaptive_max_pool3d(input, output_size)"},
    {F "max_pool1d_with_indices", "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False", "",
     "aten::max_pool1d_with_indices(input, kernel_size, stride|[], padding, dilation, ceil_mode)"},
    {F "max_pool2d_with_indices", "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False", "",
     "aten::max_pool2d_with_indices(input, kernel_size, stride|[], padding, dilation, ceil_mode)"},
    {F "max_pool3d_with_indices", "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False", "",
     "aten::max_pool3d_with_indices(input, kernel_size, stride|[], padding, dilation, ceil_mode)"},
    // Embedding. With max_norm it renormalises the weight first; a negative padding_idx needs the weight's size.
    {F "embedding", "input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False", "max_norm=None, padding_idx=None",
     "aten::embedding(weight, input, -1, scale_grad_by_freq, sparse)"},
    {F "embedding", "input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False", "max_norm=None, padding_idx>=0",
     "aten::embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)"},
    {F "embedding", "input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False", "max_norm=None", ""},
    {F "embedding_bag", "input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean', sparse=False, "
     "per_sample_weights=None, include_last_offset=False, padding_idx=None", "max_norm=None", ""},
    {F "multi_head_attention_forward", kAttention, "training=False", ""},
    {F "multi_head_attention_forward", kAttention, "dropout_p=0.0", ""},
    {F "normalize", "input, p=2.0, dim=1, eps=1e-12, out=None", "out=None", ""},
    // Losses. Python makes the inputs one size first, as the operators do themselves.
    {F "cross_entropy", "input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', label_smoothing=0.0", "size_average=None, reduce=None",
     "aten::cross_entropy_loss(input, target, weight, reduction@reduction, ignore_index, label_smoothing)"},
    {F "nll_loss", "input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::nll_loss_nd(input, target, weight, reduction@reduction, ignore_index)"},
    {F "binary_cross_entropy", "input, target, weight=None, size_average=None, reduce=None, reduction='mean'", "size_average=None, reduce=None, weight=None",
     "aten::binary_cross_entropy(input, target, weight, reduction@reduction)"},
    {F "binary_cross_entropy_with_logits", "input, target, weight=None, size_average=None, reduce=None, reduction='mean', pos_weight=None", "size_average=None, reduce=None",
     "aten::binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction@reduction)"},
    {F "cosine_embedding_loss", "input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::cosine_embedding_loss(input1, input2, target, margin, reduction@reduction)"},
    {F "ctc_loss", "log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False", "",
     "aten::ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction@reduction, zero_infinity)"},
    {F "hinge_embedding_loss", "input, target, margin=1.0, size_average=None, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::hinge_embedding_loss(input, target, margin, reduction@reduction)"},
    {F "huber_loss", "input, target, reduction='mean', delta=1.0", "",
     "aten::huber_loss(input, target, reduction@reduction, delta)"},
    {F "kl_div", "input, target, size_average=None, reduce=None, reduction='mean', log_target=False", "size_average=None, reduce=None",
     "aten::kl_div(input, target, reduction@reduction, log_target=log_target)"},
    {F "l1_loss", "input, target, size_average=None, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::l1_loss(input, target, reduction@reduction)"},
    {F "margin_ranking_loss", "input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::margin_ranking_loss(input1, input2, target, margin, reduction@reduction)"},
    {F "mse_loss", "input, target, size_average=None, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::mse_loss(input, target, reduction@reduction)"},
    {F "multi_margin_loss", "input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::multi_margin_loss(input, target, p, margin, weight, reduction@reduction)"},
    {F "multilabel_margin_loss", "input, target, size_average=None, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::multilabel_margin_loss(input, target, reduction@reduction)"},
    {F "poisson_nll_loss", "input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::poisson_nll_loss(input, target, log_input, full, eps, reduction@reduction)"},
    {F "smooth_l1_loss", "input, target, size_average=None, reduce=None, reduction='mean', beta=1.0", "size_average=None, reduce=None, beta!=0.0, beta!=0",
     "aten::smooth_l1_loss(input, target, reduction@reduction, beta)"},
    {F "soft_margin_loss", "input, target, size_average=None, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::soft_margin_loss(input, target, reduction@reduction)"},
    {F "triplet_margin_loss", "anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, size_average=None, reduce=None, reduction='mean'", "size_average=None, reduce=None",
     "aten::triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction@reduction)"},
    // Sampling and resizing. `nearest` and `area` are other operators for each rank.
    {F "affine_grid", "theta, size, align_corners=None", "", "aten::affine_grid_generator(theta, size, align_corners|False)"},
    {F "grid_sample", "input, grid, mode='bilinear', padding_mode='zeros', align_corners=None", "",
     "aten::grid_sampler(input, grid, mode@grid, padding_mode@padding, align_corners|False)"},
    {F "interpolate", kInterpolate, "mode='linear', recompute_scale_factor=None, antialias=False", "aten::upsample_linear1d.vec(input, size@once, align_corners|False, scale_factor@once)"},
    {F "interpolate", kInterpolate, "mode='bilinear', recompute_scale_factor=None, antialias=False", "aten::upsample_bilinear2d.vec(input, size@twice, align_corners|False, scale_factor@twice)"},
    {F "interpolate", kInterpolate, "mode='bicubic', recompute_scale_factor=None, antialias=False", "aten::upsample_bicubic2d.vec(input, size@twice, align_corners|False, scale_factor@twice)"},
    {F "interpolate", kInterpolate, "mode='trilinear', recompute_scale_factor=None, antialias=False", "aten::upsample_trilinear3d.vec(input, size@thrice, align_corners|False, scale_factor@thrice)"},
    {F "interpolate", kInterpolate, "scale_factor=None, antialias=False", "aten::__interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)"},
    // Rearranging.
    {F "fold", "input, output_size, kernel_size, dilation=1, padding=0, stride=1", "", "aten::col2im(input, output_size, kernel_size, dilation, padding, stride)"},
    {F "pad", "input, pad, mode='constant', value=None", "", "aten::pad(input, pad, mode, value)"},
    {F "unfold", "input, kernel_size, dilation=1, padding=0, stride=1", "", "aten::im2col(input, kernel_size, dilation, padding, stride)"},
    // Bound directly to operators.
    {F "avg_pool1d", "", "", "aten::avg_pool1d"},
    {F "avg_pool2d", "", "", "aten::avg_pool2d"},
    {F "avg_pool3d", "", "", "aten::avg_pool3d"},
    {F "bilinear", "", "", "aten::bilinear"},
    {F "celu_", "", "", "aten::celu_"},
    {F "channel_shuffle", "", "", "aten::channel_shuffle"},
    {F "conv1d", "", "", "aten::conv1d"},
    {F "conv2d", "", "", "aten::conv2d"},
    {F "conv3d", "", "", "aten::conv3d"},
    {F "conv_transpose1d", "", "", "aten::conv_transpose1d"},
    {F "conv_transpose2d", "", "", "aten::conv_transpose2d"},
    {F "conv_transpose3d", "", "", "aten::conv_transpose3d"},
    {F "cosine_similarity", "", "", "aten::cosine_similarity"},
    {F "elu_", "", "", "aten::elu_"},
    {F "hardshrink", "", "", "aten::hardshrink"},
    {F "hardtanh_", "", "", "aten::hardtanh_"},
    {F "leaky_relu_", "", "", "aten::leaky_relu_"},
    {F "linear", "", "", "aten::linear"},
    {F "one_hot", "", "", "aten::one_hot"},
    {F "pairwise_distance", "", "", "aten::pairwise_distance"},
    {F "pdist", "", "", "aten::pdist"},
    {F "pixel_shuffle", "", "", "aten::pixel_shuffle"},
    {F "pixel_unshuffle", "", "", "aten::pixel_unshuffle"},
    {F "relu_", "", "", "aten::relu_"},
    {F "rrelu_", "", "", "aten::rrelu_"},
    {F "_scaled_dot_product_attention", "", "", "aten::_scaled_dot_product_attention"},
    {F "scaled_dot_product_attention", "", "", "aten::scaled_dot_product_attention"},
    {F "selu_", "", "", "aten::selu_"},
    {F "softshrink", "", "", "aten::softshrink"},
    {F "threshold_", "", "", "aten::threshold_"},
    // torch.*, where Python's parameters are not the operator's. torch.functional.X is looked up as torch.X.
    {"torch.block_diag", "*tensors", "", "aten::block_diag(tensors)"},
    {"torch.broadcast_tensors", "*tensors", "", "aten::broadcast_tensors(tensors)"},
    {"torch.cartesian_prod", "*tensors", "", "aten::cartesian_prod(tensors)"},
    {"torch.chain_matmul", "*matrices, out=None", "out=None", "aten::chain_matmul(matrices)"},
    {"torch.einsum", "equation, *operands", "", "aten::einsum(equation, operands)"},
    {"torch.meshgrid", "*tensors, indexing=None", "indexing=None", "aten::meshgrid(tensors)"},
    {"torch.meshgrid", "*tensors, indexing=None", "indexing!=None", "aten::meshgrid(tensors, indexing=indexing)"},
    {"torch.nonzero", "input, as_tuple=False", "as_tuple=False", "aten::nonzero(input)"},
    {"torch.nonzero", "input, as_tuple=False", "as_tuple=True", "aten::nonzero_numpy(input)"},
    {"torch.split", "tensor, split_size_or_sections, dim=0", "", "aten::split.Tensor(tensor, split_size_or_sections, dim)"},
    {"torch.split", "tensor, split_size_or_sections, dim=0", "", "aten::split_with_sizes(tensor, split_size_or_sections, dim)"},
    {"torch.div", "input, other, rounding_mode=None, out=None", "rounding_mode=None, out=None", "aten::div(input, other)"},
    {"torch.div", "", "", "aten::div"},
    {"torch.tensordot", "a, b, dims=2, out=None", "out=None", "aten::tensordot(a, b, dims@left, dims@right)"},
    {"torch.cdist", "x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary'", "", "aten::cdist(x1, x2, p, compute_mode@cdist)"},
    {"torch.atleast_1d", "tensor", "", "aten::atleast_1d(tensor)"}, {"torch.atleast_1d", "*tensors", "", "aten::atleast_1d.Sequence(tensors)"},
    {"torch.atleast_2d", "tensor", "", "aten::atleast_2d(tensor)"}, {"torch.atleast_2d", "*tensors", "", "aten::atleast_2d.Sequence(tensors)"},
    {"torch.atleast_3d", "tensor", "", "aten::atleast_3d(tensor)"}, {"torch.atleast_3d", "*tensors", "", "aten::atleast_3d.Sequence(tensors)"},
    NORM("torch.norm", "input, p='fro', dim=None, keepdim=False, out=None, dtype=None", "out=None, "),
    NORM(".norm", "input, p='fro', dim=None, keepdim=False, dtype=None", ""),
    {"torch.stft", kStft, "", "aten::stft.center(input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex)"},
    {".stft", kStft, "", "aten::stft.center(input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex)"},
    NUMBER_FIRST("add"), NUMBER_FIRST("sub"), VALUE_FIRST("addcmul"), VALUE_FIRST("addcdiv"),
    SCALES_FIRST("addmm"), SCALES_FIRST("addbmm"), SCALES_FIRST("baddbmm"), SCALES_FIRST("addmv"), SCALES_FIRST("addr"),
    // Attributes of tensors.
    {"builtins.getattr", "object, name", "name='H'", "aten::matrix_H(object)"},
    {"builtins.getattr", "object, name", "name='T'", "aten::numpy_T(object)"},
    {"builtins.getattr", "object, name", "name='data'", "aten::detach(object)"},
    {"builtins.getattr", "object, name", "name='imag'", "aten::imag(object)"},
    {"builtins.getattr", "object, name", "name='mH'", "aten::mH(object)"},
    {"builtins.getattr", "object, name", "name='mT'", "aten::mT(object)"},
    {"builtins.getattr", "object, name", "name='real'", "aten::real(object)"},
    // Tensor methods.
    {".bfloat16", "self, memory_format=None", "", "aten::to.dtype(self, bfloat16, False, False, memory_format)"},
    {".bool", "self, memory_format=None", "", "aten::to.dtype(self, bool, False, False, memory_format)"},
    {".byte", "self, memory_format=None", "", "aten::to.dtype(self, uint8, False, False, memory_format)"},
    {".char", "self, memory_format=None", "", "aten::to.dtype(self, int8, False, False, memory_format)"},
    {".double", "self, memory_format=None", "", "aten::to.dtype(self, float64, False, False, memory_format)"},
    {".float", "self, memory_format=None", "", "aten::to.dtype(self, float32, False, False, memory_format)"},
    {".half", "self, memory_format=None", "", "aten::to.dtype(self, float16, False, False, memory_format)"},
    {".int", "self, memory_format=None", "", "aten::to.dtype(self, int32, False, False, memory_format)"},
    {".long", "self, memory_format=None", "", "aten::to.dtype(self, int64, False, False, memory_format)"},
    {".ndimension", "self", "", "aten::dim(self)"},
    {".nelement", "self", "", "aten::numel(self)"},
    {".nonzero", "self, as_tuple=False", "as_tuple=False", "aten::nonzero(self)"},
    {".nonzero", "self, as_tuple=False", "as_tuple=True", "aten::nonzero_numpy(self)"},
    {".polygamma", "self, n", "", "aten::polygamma(n, self)"},
    {".short", "self, memory_format=None", "", "aten::to.dtype(self, int16, False, False, memory_format)"},
    {".split", "self, split_size, dim=0", "", "aten::split.Tensor(self, split_size, dim)"},
    {".split", "self, split_size, dim=0", "", "aten::split_with_sizes(self, split_size, dim)"},
    {".div", "self, other, rounding_mode=None", "rounding_mode=None", "aten::div(self, other)"}, {".div", "", "", "aten::div"},
    {".type", "self, dtype", "", "aten::to.dtype(self, dtype)"},
    {"torch._C._set_grad_enabled", "mode", "", "aten::set_grad_enabled(mode)"},
    {".where", "self, condition, other", "", "aten::where(condition, self, other)"},
};

constexpr OperatorRow kOperators[] = {
    {"operator.abs", "aten::abs", "prim::abs", ""},
    {"operator.add", "aten::add", "", "aten::add"},
    {"operator.and_", "aten::bitwise_and", "aten::__and__", "aten::bitwise_and"},
    {"operator.eq", "aten::eq", "", "aten::eq"},
    {"operator.floordiv", "aten::floor_divide", "aten::floordiv", ""},
    {"operator.ge", "aten::ge", "", "aten::le"},
    {"operator.gt", "aten::gt", "", "aten::lt"},
    {"operator.iadd", "aten::add_", "aten::add", ""},
    {"operator.iand", "aten::bitwise_and_", "aten::__and__", ""},
    {"operator.ifloordiv", "aten::floor_divide_", "aten::floordiv", ""},
    {"operator.ilshift", "aten::bitwise_left_shift_", "aten::__lshift__", ""},
    {"operator.imatmul", "aten::matmul", "", ""},
    {"operator.imod", "aten::remainder_", "aten::remainder", ""},
    {"operator.imul", "aten::mul_", "aten::mul", ""},
    {"operator.inv", "aten::bitwise_not", "", ""},
    {"operator.invert", "aten::bitwise_not", "", ""},
    {"operator.ior", "aten::bitwise_or_", "aten::__or__", ""},
    {"operator.ipow", "aten::pow_", "aten::pow", ""},
    {"operator.irshift", "aten::bitwise_right_shift_", "aten::__rshift__", ""},
    {"operator.isub", "aten::sub_", "aten::sub", ""},
    {"operator.itruediv", "aten::div_", "aten::div", ""},
    {"operator.ixor", "aten::bitwise_xor_", "aten::__xor__", ""},
    {"operator.le", "aten::le", "", "aten::ge"},
    {"operator.lshift", "aten::__lshift__", "", ""},
    {"operator.lt", "aten::lt", "", "aten::gt"},
    {"operator.matmul", "aten::matmul", "", ""},
    {"operator.mod", "aten::remainder", "", ""},
    {"operator.mul", "aten::mul", "", "aten::mul"},
    {"operator.ne", "aten::ne", "", "aten::ne"},
    {"operator.neg", "aten::neg", "", ""},
    {"operator.or_", "aten::bitwise_or", "aten::__or__", "aten::bitwise_or"},
    {"operator.pos", "aten::positive", "", ""},
    {"operator.pow", "aten::pow", "", ""},
    {"operator.rshift", "aten::__rshift__", "", ""},
    {"operator.sub", "aten::sub", "", "aten::rsub"},
    {"operator.truediv", "aten::div", "", ""},
    {"operator.xor", "aten::bitwise_xor", "aten::__xor__", "aten::bitwise_xor"},
};

constexpr LikeRow kLike[] = {
    {".backward", "aten::backward"},
    {".resize", "aten::resize_"},
    {".unique", "aten::unique_dim"},
    {".unique_consecutive", "aten::unique_consecutive"},
    {"operator.contains", "aten::__contains__"},
    {"operator.is_", "aten::__is__"},
    {"operator.is_not", "aten::__isnot__"},
    {"operator.not_", "aten::__not__"},
    {"torch.align_tensors", "aten::align_tensors"},
    {"torch.lu", "aten::linalg_lu"},
    {"torch.sym_float", "aten::Float"},
    {"torch.sym_int", "aten::Int"},
    {"torch.sym_max", "prim::max"},
    {"torch.sym_min", "prim::min"},
    {"torch.sym_not", "aten::__not__"},
    {"torch.unique", "aten::unique_dim"},
    {"torch.unique_consecutive", "aten::unique_consecutive"},
    {F "adaptive_max_pool1d", "aten::adaptive_max_pool1d"},
    {F "adaptive_max_pool2d", "aten::adaptive_max_pool2d"},
    {F "adaptive_max_pool3d", "aten::adaptive_max_pool3d"},
    {F "dropout1d", "aten::feature_dropout"},
    {F "dropout1d", "aten::feature_dropout_"},
    {F "dropout3d", "aten::feature_dropout"},
    {F "dropout3d", "aten::feature_dropout_"},
};

constexpr LikeRow kScript[] = {
    {"math.log", "aten::log"},
    {"math.sqrt", "aten::sqrt"},
    {"math.trunc", "aten::Int"},
    {"operator.contains", "aten::__contains__"},
    {"operator.is_", "aten::__is__"},
    {"operator.is_not", "aten::__isnot__"},
    {"operator.not_", "aten::__not__"},
    {"torch.sym_float", "aten::Float"},
    {"torch.sym_int", "aten::Int"},
    {"torch.sym_max", "prim::max"},
    {"torch.sym_min", "prim::min"},
    {"torch.sym_not", "aten::__not__"},
};

constexpr PrefixRow kPrefixes[] = {
    {"torch._C._VariableFunctions.", "aten::"}, {"torch._C._fft.", "aten::"}, {"torch._C._linalg.", "aten::"},
    {"torch._C._nn.", "aten::"}, {"torch._C._special.", "aten::"}, {"torch._C._TensorBase.", "aten::"},
    {"torch._C.TensorBase.", "aten::"}, {"torch.Tensor.", "aten::"}, {"torch._VF.", "aten::"},
    {"torch.fft.", "aten::fft_"}, {"torch.linalg.", "aten::linalg_"}, {"torch.special.", "aten::special_"},
    {"torch.", "aten::"},
};

constexpr KeywordRow kKeywords[] = {
    {"input", "self"}, {"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "self"}, {"x1", "self"}, {"x2", "other"}, {"a", "self"},
};
constexpr WordRow kWords[] = {
    {"reduction", "none", 0}, {"reduction", "mean", 1}, {"reduction", "sum", 2},
    {"grid", "bilinear", 0}, {"grid", "nearest", 1}, {"grid", "bicubic", 2},
    {"cdist", "use_mm_for_euclid_dist_if_necessary", 0}, {"cdist", "use_mm_for_euclid_dist", 1}, {"cdist", "donot_use_mm_for_euclid_dist", 2},
    {"padding", "zeros", 0}, {"padding", "border", 1}, {"padding", "reflection", 2},
};
// clang-format on
#undef F
#undef NORM
#undef NUMBER_FIRST
#undef VALUE_FIRST
#undef SCALES_FIRST

}  // namespace

std::span<const FunctionRow> python_functions() { return kFunctions; }
std::span<const OperatorRow> python_operators() { return kOperators; }
std::span<const WordRow> python_words() { return kWords; }
std::span<const LikeRow> like_operators() { return kLike; }
std::string_view script_operator(std::string_view name) {
  const auto row = std::ranges::lower_bound(kScript, name, {}, &LikeRow::name);
  return row != std::end(kScript) && row->name == name ? row->packet : std::string_view();
}
std::span<const PrefixRow> operator_modules() { return kPrefixes; }
std::span<const KeywordRow> keyword_synonyms() { return kKeywords; }

}  // namespace fx::internal
