// Where samples lie in what each operator returns: the table behind computes_across_samples().
//
// A row names an operator, the rule that answers for it, and a number that the rule reads. Pointwise operators are told
// by their trait. Adding an operator is adding a row.
#include <fxgraph/rewriter/rules/batch_rules.h>

#include <algorithm>
#include <string_view>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ir/target.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/rewriter/rules/operator_of.h>

namespace fx::internal {

using namespace batch_rules;
using Result = CallSamples::Result;

std::optional<BatchInput> input_of(CallSamples& call) {
  const SampleValue value = call.value(std::size_t{0});
  if (!value.is_batched()) return call.no(kOthers);
  const auto rank = call.rank(0);
  if (!rank || value.dim >= *rank) return call.no(kUnknownForm);
  return BatchInput{value, *rank};
}

Result over_last(CallSamples& call, std::size_t count) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  if (!call.shared_from(1)) return call.no(kOthers);
  if (input->at.dim + count >= input->rank) return call.no(kAlong);
  return call.returned(input->at);
}
namespace {

Result last(CallSamples& call, int count) { return over_last(call, static_cast<std::size_t>(count)); }

/// As many as the list in that argument is long, divided by two for paddings.
Result last_listed(CallSamples& call, int argument) {
  const Argument* list = call.argument(static_cast<std::size_t>(argument));
  if (!list || !list->is_sequence()) return call.no(kUnknownForm);
  return over_last(call, list->elements().size());
}
/// One more: channels.
Result last_strided(CallSamples& call, int argument) {
  const Argument* list = call.argument(static_cast<std::size_t>(argument));
  if (!list || !list->is_sequence()) return call.no(kUnknownForm);
  return over_last(call, list->elements().size() + 1);
}
Result last_padded(CallSamples& call, int argument) {
  const Argument* list = call.argument(static_cast<std::size_t>(argument));
  if (!list || !list->is_sequence()) return call.no(kUnknownForm);
  return over_last(call, list->elements().size() / 2);
}

/// Channels are dimension 1: samples must lie before them.
Result first_dim(CallSamples& call, int) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  if (input->at.dim != 0) return call.no(kAlong);
  return over_last(call, 1);
}
Result batch_norm(CallSamples& call, int) {
  const Argument* training = call.argument("training");
  if (!training || !training->is_bool() || training->as_bool()) return call.no("it is normalised over the batch");
  return first_dim(call, 0);
}

/// Indices: dimensions come behind theirs.
Result indexed(CallSamples& call, int) {
  const SampleValue indices = call.value(std::size_t{1});
  if (!call.value(std::size_t{0}).is_shared() || !indices.is_batched() || !call.shared_from(2)) return call.no(kOthers);
  return indices;
}

/// All tensors that are not shared have the samples in one place; over the last `count` dimensions it computes.
Result jointly(CallSamples& call, int count) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  const auto last = static_cast<std::size_t>(count);
  if (input->at.dim + last >= input->rank) return call.no(kAlong);
  for (std::size_t i = 1; i < call.num_arguments(); ++i) {
    const SampleValue other = call.value(i);
    const auto rank = call.rank(i);
    if (other.is_shared() ? rank.value_or(0) > last : other != input->at || rank != input->rank)
      return call.no(kOtherPlaces);
  }
  return call.returned(input->at);
}

enum Removes : int { by_keepdim, never, always };

/// Computes along the dimensions that it names, which must not be that of the samples.
Result along(CallSamples& call, int removes) {
  const auto input = input_of(call);
  if (!input) return std::nullopt;
  if (!call.shared_from(1)) return call.no(kOthers);
  const Argument* named = call.argument("dim");
  if (!named) named = call.argument("dims");
  const auto dims = named ? CallSamples::dims(*named, input->rank) : std::nullopt;
  if (!dims || dims->empty()) return call.no("it computes over all dimensions");
  if (std::ranges::find(*dims, input->at.dim) != dims->end()) return call.no(kAlong);
  const Argument* keeps = call.argument("keepdim");
  if (removes == by_keepdim && (!keeps || !keeps->is_bool())) return call.no(kUnknownForm);
  SampleValue result = call.returned(input->at);
  if (removes == always || (removes == by_keepdim && !keeps->as_bool()))
    result.dim -= static_cast<std::size_t>(std::ranges::count_if(*dims, [&](auto dim) { return dim < input->at.dim; }));
  return result;
}

/// Of all samples a slice is what it was.
Result slice(CallSamples& call, int) {
  constexpr std::int64_t kEnd = std::int64_t{1} << 62;
  const Argument *start = call.argument("start"), *end = call.argument("end"), *step = call.argument("step");
  const bool from_first = start && (start->is_none() || (start->is_int() && start->as_int() == 0));
  const bool to_last = end && (end->is_none() || (end->is_int() && end->as_int() >= kEnd));
  const bool all = from_first && to_last && step && step->is_int() && step->as_int() == 1;
  return all ? over_last(call, 0) : along(call, never);
}

// ── Products ───────────────────────────────────────────────────────────────────────────────────────────────────────

Result product(CallSamples& call, std::size_t left, std::size_t right) {
  const SampleValue a = call.value(left), b = call.value(right);
  const auto a_rank = call.rank(left), b_rank = call.rank(right);
  if (!a_rank || !b_rank) return call.no(kUnknownForm);
  if (a.is_batched() && b.is_shared()) {
    if (*b_rank > 2) return call.no(kOtherPlaces);
    if (a.dim + 1 >= *a_rank) return call.no(kAlong);
    return a;
  }
  const SampleValue& at = b;
  if (!at.is_batched() || at.dim + 2 >= *b_rank) return call.no(kAlong);
  if (a.is_shared() ? *a_rank > 2 : a != b || a_rank != b_rank) return call.no(kOtherPlaces);
  return at;
}
Result multiply(CallSamples& call, int) { return product(call, 0, 1); }
/// What is added is broadcast: it has the samples where the product has, or none.
Result add_product(CallSamples& call, int) {
  const Result made = product(call, 1, 2);
  if (!made) return std::nullopt;
  if (!call.shared_from(3)) return call.no(kOthers);
  const SampleValue added = call.value(std::size_t{0});
  const Argument* bias = call.argument(std::size_t{0});
  const TensorInfo *known = bias ? call.info(*bias) : nullptr, *result = call.result_info();
  if (!known || !result) return call.no(kUnknownForm);
  const std::size_t missing = result->sizes.size() - std::min(result->sizes.size(), known->sizes.size());
  const bool fits = added.is_batched() ? missing == 0 && added == *made
                                       : made->dim < missing || known->sizes[made->dim - missing] == 1;
  if (!fits || (!added.is_batched() && !added.is_shared())) return call.no(kOtherPlaces);
  return made;
}

Result keeps(CallSamples& call, int) { return over_last(call, 0); }
/// Of the other tensor only the type counts.
Result typed(CallSamples& call, int) { return call.value(std::size_t{0}); }

// ── Pointwise ──────────────────────────────────────────────────────────────────────────────────────────────────────

bool is_number(const Node& node) {
  const Call call = call_of(node);
  return call && call.schema().returns.size() == 1 && !call.schema().returns[0].type.is_tensor();
}

/// Operands are aligned at the last dimension; what is shared must not have one for each sample.
Result pointwise(CallSamples& call) {
  const TensorInfo* made = call.result_info();
  if (!made) return call.no(kUnknownForm);
  const std::size_t rank = made->sizes.size();
  std::optional<SampleValue> result;
  for (std::size_t i = 0; i < call.num_arguments(); ++i) {
    SampleValue value = call.value(i);
    if (value.is_shared()) continue;
    const auto own = call.rank(i);
    if (!value.is_batched() || !own || *own > rank) return call.no(kOthers);
    value.dim += rank - *own;
    if (result && *result != value) return call.no(kOtherPlaces);
    result = value;
  }
  if (!result) return call.no(kOthers);
  for (std::size_t i = 0; i < call.num_arguments(); ++i) {
    const Argument* operand = call.argument(i);
    if (!operand || !operand->is_node() || !call.value(i).is_shared() || is_number(operand->node())) continue;
    const TensorInfo* known = call.info(*operand);
    if (!known) return call.no(kUnknownForm);
    if (known->sizes.size() + result->dim < rank) continue;
    if (known->sizes[result->dim - (rank - known->sizes.size())] != 1) return call.no(kOtherPlaces);
  }
  return result;
}

struct Row {
  std::string_view name;  ///< without `aten::`; sorted
  Result (*rule)(CallSamples& call, int parameter);
  int parameter = 0;
};
// clang-format off
constexpr Row kRows[] = {
    {"Int", same_number}, {"_convolution", last_strided, 3}, {"_log_softmax", along, never},
    {"_native_multi_head_attention", jointly, 2}, {"_scaled_dot_product_attention", jointly, 2},
    {"_softmax", along, never}, {"_transformer_encoder_layer_fwd", jointly, 2}, {"_unsafe_view", reshape},
    {"adaptive_avg_pool1d", last, 1}, {"adaptive_avg_pool2d", last, 2}, {"adaptive_avg_pool3d", last, 3},
    {"adaptive_max_pool1d", last, 1}, {"adaptive_max_pool2d", last, 2}, {"adaptive_max_pool3d", last, 3},
    {"addmm", add_product}, {"alias", keeps}, {"all", along, by_keepdim}, {"alpha_dropout", keeps},
    {"alpha_dropout_", keeps}, {"amax", along, by_keepdim}, {"amin", along, by_keepdim}, {"any", along, by_keepdim},
    {"argmax", along, by_keepdim}, {"argmin", along, by_keepdim}, {"argsort", along, never}, {"avg_pool1d", last, 1},
    {"avg_pool2d", last, 2}, {"avg_pool3d", last, 3}, {"baddbmm", add_product}, {"batch_norm", batch_norm},
    {"bmm", jointly, 2}, {"cat", concatenate}, {"channel_shuffle", first_dim}, {"chunk", along, never},
    {"col2im", last, 2}, {"constant_pad_nd", last_padded, 1}, {"contiguous", keeps},
    {"conv1d", last, 2}, {"conv2d", last, 3}, {"conv3d", last, 4}, {"conv_transpose1d", last, 2},
    {"conv_transpose2d", last, 3}, {"conv_transpose3d", last, 4}, {"convolution", last_strided, 3},
    {"cumprod", along, never}, {"cumsum", along, never}, {"detach", keeps}, {"dim", asks}, {"dropout", keeps},
    {"dropout_", keeps}, {"embedding", indexed}, {"expand", expand}, {"expand_as", expand_as},
    {"feature_dropout", keeps}, {"feature_dropout_", keeps}, {"flatten", flatten}, {"flip", along, never},
    {"floordiv", divided}, {"full", filled, 0}, {"full_like", keeps}, {"getitem", item}, {"glu", along, never},
    {"grid_sampler", jointly, 3}, {"group_norm", first_dim}, {"im2col", last, 3}, {"index_select", along, never},
    {"instance_norm", first_dim}, {"is_floating_point", asks}, {"layer_norm", last_listed, 1}, {"len", length},
    {"linalg_vector_norm", along, by_keepdim}, {"linear", last, 1}, {"log_softmax", along, never},
    {"logsumexp", along, by_keepdim}, {"matmul", multiply}, {"max", along, by_keepdim}, {"max_pool1d", last, 1},
    {"max_pool2d", last, 2}, {"max_pool2d_with_indices", last, 2}, {"max_pool3d", last, 3},
    {"mean", along, by_keepdim}, {"min", along, by_keepdim}, {"mm", multiply}, {"mul", times}, {"narrow", along, never},
    {"native_group_norm", first_dim}, {"native_layer_norm", last_listed, 1}, {"new_full", filled, 1},
    {"new_ones", filled, 1}, {"new_zeros", filled, 1}, {"norm", along, by_keepdim}, {"ones", filled, 0},
    {"ones_like", keeps},
    {"pad", last_padded, 1}, {"permute", permute}, {"pixel_shuffle", last, 3}, {"pixel_unshuffle", last, 3},
    {"prelu", first_dim}, {"prim::NumToTensor", same_number}, {"prim::device", asks}, {"prim::dtype", asks},
    {"prod", along, by_keepdim}, {"reflection_pad1d", last, 1}, {"reflection_pad2d", last, 2},
    {"replication_pad1d", last, 1}, {"replication_pad2d", last, 2}, {"reshape", reshape}, {"reshape_as", same_form},
    {"roll", along, never}, {"scaled_dot_product_attention", jointly, 2}, {"select", along, always}, {"size", size},
    {"slice", slice}, {"softmax", along, never}, {"sort", along, never}, {"split", along, never},
    {"split_with_sizes", along, never}, {"squeeze", squeeze}, {"stack", stack}, {"std", along, by_keepdim},
    {"sum", along, by_keepdim}, {"sym_size", size}, {"t", matrix_transpose}, {"tensor_split", along, never},
    {"to", keeps}, {"topk", along, never}, {"transpose", transpose}, {"tril", last, 2}, {"triu", last, 2},
    {"type_as", typed}, {"unbind", along, always}, {"unsafe_chunk", along, never}, {"unsafe_split", along, never},
    {"unsqueeze", unsqueeze}, {"upsample_bicubic2d", last, 2}, {"upsample_bilinear2d", last, 2},
    {"upsample_linear1d", last, 1}, {"upsample_nearest1d", last, 1}, {"upsample_nearest2d", last, 2},
    {"upsample_nearest3d", last, 3}, {"upsample_trilinear3d", last, 3}, {"var", along, by_keepdim}, {"view", reshape},
    {"view_as", same_form}, {"zeros", filled, 0}, {"zeros_like", keeps},
};
// clang-format on
static_assert(std::ranges::is_sorted(kRows, {}, &Row::name));

std::string_view name_of(const CallSamples& call) {
  if (call.node().is_call(python::kGetItem)) return "getitem";
  if (!call.call() && call.node().is_call(python::kMul)) return "mul";
  if (!call.call() && call.node().is_call(python::kFloorDiv)) return "floordiv";
  if (!call.call()) return rules::last_name(call.node());
  const std::string_view packet = packet_of(operator_name(call.call().schema()).view());
  constexpr std::string_view kAten = "aten::";
  return packet.starts_with(kAten) ? packet.substr(kAten.size()) : packet;
}

const Row* row_of(std::string_view name) {
  const auto row = std::ranges::lower_bound(kRows, name, {}, &Row::name);
  return row != std::end(kRows) && row->name == name ? row : nullptr;
}

}  // namespace

Result result_of_batch_call(CallSamples& call) {
  const std::string_view name = name_of(call);
  const Row* row = row_of(name);
  if (row && row->rule == times) {  // of numbers; of tensors it is pointwise
    if (const Result number = times(call, 0)) return number;
  }
  const bool writes = effects_of(call.node()).writes;
  if (call.call() && call.call().schema().traits.pointwise) {
    const Result made = pointwise(call);
    if (made && writes && (!name.ends_with('_') || call.value(std::size_t{0}) != *made)) return call.no(kOtherPlaces);
    return made;
  }
  if (!row || (writes && (row->rule != keeps || !name.ends_with('_')))) return std::nullopt;
  return row->rule(call, row->parameter);
}

SampleValue result_of_shared_call(CallSamples& call) {
  const Row* row = row_of(name_of(call));
  const bool of_numbers = row && (row->rule == times || row->rule == divided || row->rule == same_number);
  return of_numbers ? row->rule(call, row->parameter).value_or(SampleValue()) : SampleValue();
}

}  // namespace fx::internal
