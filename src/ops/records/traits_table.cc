#include <fxgraph/ops/records/traits_table.h>

#include <algorithm>
#include <cctype>

namespace fx::internal {

namespace {

using Base = SchemaType::Base;
using Effect = EffectSwitch::Effect;

// Names are those of ATen operators without namespace. In the tables of groups the in-place form belongs to its
// operator.
// clang-format off

// Each output element depends on the input elements at its broadcast place only. Sorted.
constexpr std::string_view kPointwise[] = {
    "__and__", "__iand__", "__ilshift__", "__ior__", "__irshift__", "__ixor__", "__lshift__", "__or__", "__rshift__",
    "__xor__", "_add_relu", "_to_copy", "abs", "absolute", "acos",
    "acosh", "add", "addcdiv", "addcmul", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "celu", "clamp", "clamp_max", "clamp_min", "clip",
    "clone", "complex", "conj_physical", "copy", "copysign", "cos", "cosh", "deg2rad", "digamma", "div", "divide",
    "elu", "eq", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fill", "fix", "float_power", "floor",
    "floor_divide", "fmax", "fmin", "fmod", "frac", "gcd", "ge", "gelu", "greater", "greater_equal", "gt",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "heaviside", "hypot", "i0", "igamma", "igammac", "isclose",
    "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "lcm", "ldexp", "le", "leaky_relu", "lerp", "less",
    "less_equal", "lgamma", "log", "log10", "log1p", "log2", "log_sigmoid", "logaddexp", "logaddexp2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logit", "lt", "masked_fill", "maximum", "minimum", "mish", "mul",
    "multiply", "mvlgamma", "nan_to_num", "ne", "neg", "negative", "nextafter", "not_equal", "polar", "polygamma",
    "positive", "pow", "rad2deg", "reciprocal", "relu", "relu6", "remainder", "round", "rsqrt", "rsub", "selu", "sgn",
    "sigmoid", "sign", "signbit", "silu", "sin", "sinc", "sinh", "softplus", "softshrink", "special_erf",
    "special_erfc", "special_exp2", "special_expit", "special_expm1", "special_gammaln", "special_i0",
    "special_log1p", "special_logit", "special_xlog1py", "special_xlogy", "sqrt", "square", "sub", "subtract", "tan",
    "tanh", "threshold", "true_divide", "trunc", "where", "xlogy", "zero",
};

// Combine elements along dimensions. `max` and `min` of two tensors are pointwise. Sorted.
constexpr std::string_view kReduction[] = {
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "frobenius_norm", "kthvalue",
    "linalg_matrix_norm", "linalg_norm", "linalg_vector_norm", "logsumexp", "max", "mean", "median", "min", "mode",
    "nanmean", "nanmedian", "nanquantile", "nansum", "norm", "nuclear_norm", "prod", "quantile", "special_logsumexp",
    "std", "std_mean", "sum", "trace", "var", "var_mean",
};

// The first two operands may be swapped when all else has its default. Sorted.
constexpr std::string_view kCommutative[] = {
    "__and__", "__or__", "__xor__", "add", "bitwise_and", "bitwise_or", "bitwise_xor", "dot", "eq", "equal", "fmax",
    "fmin", "gcd", "hypot", "l1_loss", "lcm", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor",
    "max", "maximum", "min", "minimum", "mse_loss", "mul", "multiply", "ne", "not_equal",
};

// Of those: give one of their operands, of 0.0 and -0.0 the one that stands first, or last. Sorted.
constexpr std::string_view kZerosByOrder[] = {"fmax", "fmin", "max", "maximum", "min", "minimum"};

// Return a view where they can and a copy where they cannot, whatever their declarations say. Sorted.
constexpr std::string_view kMayCopy[] = {
    "_autocast_to_full_precision", "_autocast_to_reduced_precision", "_coalesce", "_reshape_from_tensor", "coalesce", "contiguous", "cpu",
    "cuda", "flatten", "pin_memory", "ravel", "reshape", "reshape_as", "resolve_conj", "resolve_neg", "to",
    "to_dense", "to_mkldnn", "to_sparse",
};

// Ask for the strides of a tensor. Sorted.
constexpr std::string_view kReadsStrides[] = {"is_contiguous", "stride", "sym_stride"};

// Ask where in its storage a tensor lies, or read what lies beside it: a copy that lies as it does gives something else.
// Sorted.
constexpr std::string_view kReadsStorage[] = {
    "_reshape_alias", "_reshape_alias_copy", "as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter",
    "resize_", "resize_as_", "set_", "storage_offset", "sym_storage_offset",
};

// Give the tensor that they write other sizes, strides or storage, so that whoever holds it sees another shape. Sorted.
constexpr std::string_view kRestructures[] = {
    "_resize_output_", "as_strided_", "detach_", "rename_", "resize_", "resize_as_", "resize_as_sparse_", "set_",
    "set_data", "sparse_resize_", "sparse_resize_and_clear_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_",
    "unsqueeze_",
};

// Draw from a random generator: LibTorch's tag nondeterministic_seeded, and composites of such operators. Sorted.
constexpr std::string_view kRandom[] = {
    "_efficient_attention_forward", "_flash_attention_forward", "_fused_dropout",
    "_fused_sdp_choice", "_sample_dirichlet", "_scaled_dot_product_attention",
    "_scaled_dot_product_attention_forward", "_scaled_dot_product_attention_math", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_fused_attention_overrideable",
    "_standard_gamma", "alpha_dropout", "bernoulli", "binomial", "cauchy", "dropout", "exponential",
    "feature_alpha_dropout", "feature_dropout", "geometric", "gru",
    "log_normal", "lstm", "multinomial", "native_dropout", "normal", "normal_functional", "poisson", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "random", "randperm", "rnn_relu", "rnn_tanh",
    "rrelu", "rrelu_with_noise", "rrelu_with_noise_functional", "scaled_dot_product_attention", "uniform",
};

// Change or check more than their arguments. Operators that return nothing and write nothing are found without. Sorted.
constexpr std::string_view kSideEffect[] = {
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_functional_assert_async",
    "_functional_sym_constrain_range", "_functional_sym_constrain_range_for_size",
    "_record_function_enter", "_record_function_enter_new", "_record_function_exit", "is_grad_enabled", "manual_seed",
    "set_grad_enabled", "sym_constrain_range", "sym_constrain_range_for_size", "warn",
};

// Whole namespaces whose operators talk to other processes or to the profiler.
constexpr std::string_view kSideEffectNamespaces[] = {
    "_c10d_functional", "_c10d_functional_autograd", "c10d", "c10d_functional", "profiler", "symm_mem",
};

struct Named {
  std::string_view packet;
  std::string_view argument;
};

// Arguments that are written although the declaration has no `!`.
constexpr Named kHiddenWrites[] = {
    {"_saturate_weight_to_fp16", "weight"},
    {"_batch_norm_impl_index", "running_mean"}, {"_batch_norm_impl_index", "running_var"},
    {"batch_norm", "running_mean"},             {"batch_norm", "running_var"},
    {"batch_norm_update_stats", "running_mean"}, {"batch_norm_update_stats", "running_var"},
    {"cudnn_batch_norm", "running_mean"},       {"cudnn_batch_norm", "running_var"},
    {"instance_norm", "running_mean"},
    {"instance_norm", "running_var"},           {"miopen_batch_norm", "running_mean"},
    {"miopen_batch_norm", "running_var"},       {"native_batch_norm", "running_mean"},
    {"native_batch_norm", "running_var"},
    {"rrelu_with_noise", "noise"},              {"rrelu_with_noise_", "noise"},
};

// Arguments that the result may be, or share storage with, although the declaration does not say so. Found by reading
// LibTorch's composite kernels: each returns its input, or a view of it, for some arguments.
constexpr Named kHiddenAliases[] = {
    // Sparse and quantized tensors hold those that they are made of, packed weights their bias.
    {"_sparse_bsc_tensor_unsafe", "ccol_indices"}, {"_sparse_bsc_tensor_unsafe", "row_indices"},
    {"_sparse_bsc_tensor_unsafe", "values"}, {"_sparse_bsr_tensor_unsafe", "crow_indices"},
    {"_sparse_bsr_tensor_unsafe", "col_indices"}, {"_sparse_bsr_tensor_unsafe", "values"},
    {"_sparse_compressed_tensor_unsafe", "compressed_indices"},
    {"_sparse_compressed_tensor_unsafe", "plain_indices"}, {"_sparse_compressed_tensor_unsafe", "values"},
    {"_sparse_coo_tensor_unsafe", "indices"}, {"_sparse_coo_tensor_unsafe", "values"},
    {"_sparse_coo_tensor_with_dims_and_tensors", "indices"}, {"_sparse_coo_tensor_with_dims_and_tensors", "values"},
    {"_sparse_csc_tensor_unsafe", "ccol_indices"}, {"_sparse_csc_tensor_unsafe", "row_indices"},
    {"_sparse_csc_tensor_unsafe", "values"}, {"_sparse_csr_tensor_unsafe", "crow_indices"},
    {"_sparse_csr_tensor_unsafe", "col_indices"}, {"_sparse_csr_tensor_unsafe", "values"},
    {"sparse_bsc_tensor", "ccol_indices"}, {"sparse_bsc_tensor", "row_indices"}, {"sparse_bsc_tensor", "values"},
    {"sparse_bsr_tensor", "crow_indices"}, {"sparse_bsr_tensor", "col_indices"}, {"sparse_bsr_tensor", "values"},
    {"sparse_compressed_tensor", "compressed_indices"}, {"sparse_compressed_tensor", "plain_indices"},
    {"sparse_compressed_tensor", "values"}, {"sparse_coo_tensor", "indices"}, {"sparse_coo_tensor", "values"},
    {"sparse_csc_tensor", "ccol_indices"}, {"sparse_csc_tensor", "row_indices"}, {"sparse_csc_tensor", "values"},
    {"sparse_csr_tensor", "crow_indices"}, {"sparse_csr_tensor", "col_indices"}, {"sparse_csr_tensor", "values"},
    {"_make_per_channel_quantized_tensor", "scale"}, {"_make_per_channel_quantized_tensor", "zero_point"},
    {"q_per_channel_scales", "self"}, {"q_per_channel_zero_points", "self"},
    {"quantize_per_channel", "scales"}, {"quantize_per_channel", "zero_points"},
    {"quantized::conv1d_prepack", "weight"}, {"quantized::conv1d_prepack", "bias"},
    {"quantized::conv2d_prepack", "weight"}, {"quantized::conv2d_prepack", "bias"},
    {"quantized::conv3d_prepack", "weight"}, {"quantized::conv3d_prepack", "bias"},
    {"quantized::conv_transpose1d_prepack", "weight"}, {"quantized::conv_transpose1d_prepack", "bias"},
    {"quantized::conv_transpose2d_prepack", "weight"}, {"quantized::conv_transpose2d_prepack", "bias"},
    {"quantized::conv_transpose3d_prepack", "weight"}, {"quantized::conv_transpose3d_prepack", "bias"},
    {"quantized::linear_prepack", "W"}, {"quantized::linear_prepack", "B"},
    {"quantized::linear_prepack_fp16", "W"}, {"quantized::linear_prepack_fp16", "B"},
    {"_reshape_from_tensor", "self"}, {"set_data", "self"}, {"set_data", "new_data"},
    {"sorted", "self"}, {"sorted", "input"},
    {"_cast_Byte", "self"}, {"_cast_Char", "self"}, {"_cast_Double", "self"}, {"_cast_Float", "self"},
    {"_cast_Half", "self"}, {"_cast_Int", "self"}, {"_cast_Long", "self"}, {"_cast_Short", "self"},
    {"shallow_copy_data_", "source"}, {"to_dense_backward", "grad"},
    {"_remove_batch_dim", "self"}, {"_saturate_weight_to_fp16", "weight"}, {"_to_cpu", "tensors"}, {"align_as", "self"}, {"copy", "src"},
    {"cumprod_backward", "grad"}, {"set", "source"}, {"to_mkldnn_backward", "grad"},
    {"_unsafe_view", "self"},          {"align_tensors", "tensors"},         {"alpha_dropout", "input"},
    {"atleast_1d", "self"},            {"atleast_1d", "tensors"},            {"atleast_2d", "self"},
    {"atleast_2d", "tensors"},         {"atleast_3d", "self"},               {"atleast_3d", "tensors"},
    {"broadcast_tensors", "tensors"},  {"cartesian_prod", "tensors"},        {"chain_matmul", "matrices"},
    {"channel_shuffle", "self"},       {"conj_physical", "self"},            {"data", "self"},
    {"diff", "self"},
    {"dequantize", "self"},            {"dequantize", "tensors"},            {"dropout", "input"},
    {"einsum", "tensors"},             {"feature_alpha_dropout", "input"},   {"feature_dropout", "input"},
    {"flatten_dense_tensors", "tensors"},
    {"histogramdd", "bins"}, {"lift", "self"},                  {"meshgrid", "tensors"},
    {"native_channel_shuffle", "self"}, {"native_dropout", "input"},        
    {"set_", "source"},                {"sum_to_size", "self"},              {"to_dense", "self"},
    {"type_as", "self"},               {"unflatten_dense_tensors", "flat"},  {"unsafe_chunk", "self"},
    {"unsafe_split", "self"},          {"unsafe_split_with_sizes", "self"},
};

// Literals that turn an effect off.
enum class Off : std::uint8_t { is_false, is_zero, is_one };
struct SwitchRow {
  std::string_view packet;
  std::string_view argument;
  Off off;
  Effect effect;
};
constexpr SwitchRow kSwitches[] = {
    {"_batch_norm_impl_index", "training", Off::is_false, Effect::writes},
    {"_native_batch_norm_legit", "training", Off::is_false, Effect::writes},
    {"_scaled_dot_product_attention", "dropout_p", Off::is_zero, Effect::random},
    {"_scaled_dot_product_attention_forward", "dropout_p", Off::is_zero, Effect::random},
    {"_scaled_dot_product_attention_math", "dropout_p", Off::is_zero, Effect::random},
    {"_scaled_dot_product_cudnn_attention", "dropout_p", Off::is_zero, Effect::random},
    {"_scaled_dot_product_efficient_attention", "dropout_p", Off::is_zero, Effect::random},
    {"_scaled_dot_product_flash_attention", "dropout_p", Off::is_zero, Effect::random},
    {"_scaled_dot_product_flash_attention_for_cpu", "dropout_p", Off::is_zero, Effect::random},
    {"_scaled_dot_product_fused_attention_overrideable", "dropout_p", Off::is_zero, Effect::random},
    {"alpha_dropout", "p", Off::is_zero, Effect::random},
    {"alpha_dropout", "train", Off::is_false, Effect::random},
    {"batch_norm", "training", Off::is_false, Effect::writes},
    {"cudnn_batch_norm", "training", Off::is_false, Effect::writes},
    {"diff", "n", Off::is_one, Effect::aliases},  // a negative n gives the tensor itself
    {"dropout", "p", Off::is_zero, Effect::random},
    {"dropout", "train", Off::is_false, Effect::random},
    {"feature_alpha_dropout", "p", Off::is_zero, Effect::random},
    {"feature_alpha_dropout", "train", Off::is_false, Effect::random},
    {"feature_dropout", "p", Off::is_zero, Effect::random},
    {"feature_dropout", "train", Off::is_false, Effect::random},
    {"gru", "dropout", Off::is_zero, Effect::random},
    {"gru", "train", Off::is_false, Effect::random},
    {"lstm", "dropout", Off::is_zero, Effect::random},
    {"lstm", "train", Off::is_false, Effect::random},
    {"miopen_batch_norm", "training", Off::is_false, Effect::writes},
    {"native_batch_norm", "training", Off::is_false, Effect::writes},
    {"native_dropout", "train", Off::is_false, Effect::random},
    {"rnn_relu", "dropout", Off::is_zero, Effect::random},
    {"rnn_relu", "train", Off::is_false, Effect::random},
    {"rnn_tanh", "dropout", Off::is_zero, Effect::random},
    {"rnn_tanh", "train", Off::is_false, Effect::random},
    {"rrelu", "training", Off::is_false, Effect::random},
    {"rrelu_with_noise", "training", Off::is_false, Effect::random},
    {"rrelu_with_noise", "training", Off::is_false, Effect::writes},
    {"scaled_dot_product_attention", "dropout_p", Off::is_zero, Effect::random},
};
// clang-format on

static_assert(std::ranges::is_sorted(kPointwise) && std::ranges::is_sorted(kReduction) &&
              std::ranges::is_sorted(kCommutative) && std::ranges::is_sorted(kZerosByOrder) &&
              std::ranges::is_sorted(kRandom) && std::ranges::is_sorted(kSideEffect) &&
              std::ranges::is_sorted(kSideEffectNamespaces) && std::ranges::is_sorted(kMayCopy) &&
              std::ranges::is_sorted(kReadsStrides) && std::ranges::is_sorted(kReadsStorage) &&
              std::ranges::is_sorted(kRestructures));

template <std::size_t N>
bool contains(const std::string_view (&sorted)[N], std::string_view name) {
  return std::ranges::binary_search(sorted, name);
}

struct Name {
  std::string_view name_space;  // `aten`
  std::string_view packet;      // `add_`
  std::string_view base;        // `add`: without the underscore of the in-place form
};

Name split_name(const OperatorSchema& schema) {
  const std::string_view packet = packet_of(schema.target.view());
  const std::size_t colons = packet.find("::");
  if (colons == std::string_view::npos) return {{}, packet, packet};
  Name name{packet.substr(0, colons), packet.substr(colons + 2), packet.substr(colons + 2)};
  if (name.base.ends_with('_') && !name.base.ends_with("__")) name.base.remove_suffix(1);
  return name;
}

bool is_one_tensor(const SchemaType& type) { return type.is_tensor() && !type.list; }
bool is_number(const SchemaType& type) {
  return !type.list && (type.base == Base::scalar || type.base == Base::integer || type.base == Base::floating ||
                        type.base == Base::boolean || type.base == Base::complex);
}

void derive_from_aliases(OperatorSchema& schema) {
  std::uint32_t read_only_sets = 0;
  for (const SchemaArgument& argument : schema.arguments) {
    schema.traits.writes |= argument.alias.writes || argument.hidden_write;
    if (!argument.alias.writes) read_only_sets |= argument.alias.sets;
  }
  for (const SchemaReturn& result : schema.returns) {
    schema.traits.view |= (result.alias.sets & read_only_sets) != 0 && result.type.is_tensor();
  }
}

void set_groups(OperatorSchema& schema, const Name& name) {
  const auto& arguments = schema.arguments;
  const bool two_tensors =
      arguments.size() >= 2 && is_one_tensor(arguments[0].type) && is_one_tensor(arguments[1].type);
  const bool one_result = schema.returns.size() == 1 && is_one_tensor(schema.returns[0].type);
  const bool from_tensor =
      std::ranges::any_of(arguments, [](const auto& argument) { return is_one_tensor(argument.type); });
  const bool of_two = two_tensors && (name.base == "max" || name.base == "min");
  OperatorTraits& traits = schema.traits;
  traits.pointwise = one_result && from_tensor && (of_two || contains(kPointwise, name.base));
  traits.reduction =
      !of_two && !arguments.empty() && is_one_tensor(arguments[0].type) && contains(kReduction, name.base);
  if (arguments.size() >= 2 && !arguments[0].alias.writes && contains(kCommutative, name.base)) {
    const bool two_numbers = is_number(arguments[0].type) && arguments[0].type.text == arguments[1].type.text;
    traits.commutative = !arguments[1].keyword_only && (two_tensors || two_numbers);
    traits.zeros_by_order = traits.commutative && contains(kZerosByOrder, name.base);
  }
}

void add_hidden(OperatorSchema& schema, std::string_view packet) {
  const auto mark = [&](const auto& table, bool SchemaArgument::*flag) {
    for (const Named& row : table) {
      if (row.packet != packet) continue;
      for (SchemaArgument& argument : schema.arguments) {
        if (argument.name == row.argument && argument.type.is_tensor()) argument.*flag = true;
      }
    }
  };
  mark(kHiddenWrites, &SchemaArgument::hidden_write);
  mark(kHiddenAliases, &SchemaArgument::hidden_alias);
}

// Lists, dictionaries and tuples of anything hold what those hold that they are made of, without an annotation:
// `aten::add.t(t[] a, t[] b) -> t[]`, `aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()`.
void add_contents(OperatorSchema& schema) {
  const auto is_any = [](const auto& value) { return value.type.base == Base::other; };
  const auto is_kept = [&](const SchemaArgument& argument) { return is_any(argument) && argument.alias.writes; };
  const bool keeps = schema.returns.empty() && std::ranges::any_of(schema.arguments, is_kept);
  const bool annotated =
      std::ranges::any_of(schema.returns, [](const SchemaReturn& result) { return !result.alias.empty(); });
  if (annotated || (!keeps && std::ranges::none_of(schema.returns, is_any))) return;
  for (SchemaArgument& argument : schema.arguments) argument.hidden_alias |= is_any(argument);
}

void add_switches(OperatorSchema& schema, const Name& name) {
  for (const SwitchRow& row : kSwitches) {
    // The in-place form always writes, but draws under the same condition.
    if (row.packet != name.packet && !(row.packet == name.base && row.effect == Effect::random)) continue;
    const int index = schema.index_of(Symbol(row.argument));
    if (index < 0) continue;
    const Argument off = row.off == Off::is_false  ? Argument(false)
                         : row.off == Off::is_zero ? Argument(0.0)
                                                   : Argument(1);
    schema.switches.push_back({static_cast<std::uint32_t>(index), off, row.effect});
  }
}

bool has_side_effect(const OperatorSchema& schema, const Name& name) {
  if (contains(kSideEffectNamespaces, name.name_space)) return true;
  if ((name.name_space == "aten" || name.name_space == "prim") && contains(kSideEffect, name.base)) return true;
  // A call that returns nothing is made for what else it does.
  return schema.returns.empty() && !schema.varreturns && !schema.traits.writes;
}

}  // namespace

void complete_schema(OperatorSchema& schema) {
  const Name name = split_name(schema);
  if (name.name_space == "aten") {
    add_hidden(schema, name.packet);
    add_switches(schema, name);
    schema.traits.random = contains(kRandom, name.base);
    set_groups(schema, name);
    schema.traits.may_copy = contains(kMayCopy, name.base);
    schema.traits.reads_strides = contains(kReadsStrides, name.base);
    schema.traits.reads_storage = contains(kReadsStorage, name.base);
    schema.traits.restructures = contains(kRestructures, name.packet);
  }
  if (name.name_space == "quantized") add_hidden(schema, packet_of(schema.target.view()));
  if (name.name_space == "aten" || name.name_space == "prim") add_contents(schema);
  derive_from_aliases(schema);
  // A tensor given as `out` is resized when it is of another size.
  for (const SchemaArgument& argument : schema.arguments)
    schema.traits.restructures |= argument.keyword_only && argument.alias.writes;
  // A result that may be anything is an argument at times.
  for (const SchemaReturn& result : schema.returns)
    schema.traits.may_copy |= result.alias.wildcard && result.type.is_tensor();
  schema.traits.side_effect = has_side_effect(schema, name);
}

}  // namespace fx::internal
