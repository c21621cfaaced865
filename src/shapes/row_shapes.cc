#include <fxgraph/shapes/row_shapes.h>

#include <ATen/core/List.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <vector>

#include <fxgraph/ops/records/size_inference.h>
#include <fxgraph/run/value.h>

namespace fx::internal {
namespace {

using c10::IValue;
using torch::jit::Stack;
using Ints = std::vector<std::int64_t>;

/// A number that LibTorch has wrapped in a tensor counts as a number.
AbstractValue of_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return AbstractValue::literal(Argument());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    const DType dtype = to_dtype(tensor.scalar_type());
    if (dtype == DType::boolean) return AbstractValue::literal(Argument(true));
    if (tensor.is_complex()) return {};
    return tensor.is_floating_point() ? AbstractValue::literal(Argument(0.0)) : AbstractValue(SizeExpr(0));
  }
  if (!tensor.is_meta() || tensor.layout() != at::kStrided || tensor.is_quantized()) return {};
  TensorType type{to_dtype(tensor.scalar_type()), {tensor.sizes().begin(), tensor.sizes().end()}, {}};
  type.strides.emplace(tensor.strides().begin(), tensor.strides().end());
  return type;
}

AbstractValue of_value(const SchemaType& type, const IValue& value) {
  if (value.isTensor()) return of_tensor(value.toTensor());
  if (value.isNone()) return AbstractValue::literal(Argument());
  if (value.isInt()) {
    if (type.base == SchemaType::Base::dtype)
      return AbstractValue::literal(Argument(static_cast<DType>(value.toInt())));
    if (type.base == SchemaType::Base::memory_format || type.base == SchemaType::Base::layout) return {};
    return SizeExpr(value.toInt());
  }
  if (value.isBool()) return AbstractValue::literal(Argument(value.toBool()));
  if (value.isDouble()) return AbstractValue::literal(Argument(value.toDouble()));
  if (value.isString()) return AbstractValue::literal(Argument(value.toStringRef()));
  if (!value.isList()) return {};
  AbstractValue::List list;
  for (const IValue& each : value.toListRef()) list.push_back(of_value(type, each));
  return list;
}

/// Undefined where sizes or strides are not known.
at::Tensor meta_of(const TensorType& type) {
  const auto is_known = [](const SizeExpr& size) { return size.is_integer(); };
  if (!type.strides || !std::ranges::all_of(type.sizes, is_known)) return {};
  Ints sizes, strides;
  for (const SizeExpr& size : type.sizes) sizes.push_back(size.value());
  for (const SizeExpr& stride : *type.strides) strides.push_back(stride.value());
  return at::empty_strided(sizes, strides, at::TensorOptions(to_scalar_type(type.dtype)).device(at::kMeta));
}

}  // namespace

bool has_shape_row(const OperatorSchema& schema) {
  const auto shares = [](const SchemaReturn& each) { return !each.alias.empty() && !each.alias.writes; };
  return std::ranges::none_of(schema.arguments, &SchemaArgument::hidden_alias) && has_size_row(schema) &&
         !schema.returns.empty() && !schema.is_inplace_view() && !schema.traits.may_copy &&
         std::ranges::none_of(schema.returns, shares);
}

std::optional<Stack> shapes_by_row(const OperatorSchema& schema, std::span<const IValue> arguments) {
  AbstractValue::List values;
  for (std::size_t i = 0; i < arguments.size(); ++i) values.push_back(of_value(schema.arguments[i].type, arguments[i]));
  SizeFacts facts;
  FreshSymbols fresh;
  const InferredCall made = infer(schema, values, facts, fresh);
  TORCH_CHECK(!made.of_types, made.why);  // LibTorch says so when it has unfolded the input
  if (made.outcome != InferredCall::Outcome::known) return std::nullopt;
  Stack results;
  for (std::size_t i = 0; i < made.results.size(); ++i) {
    if (const std::optional<std::size_t> written = schema.written_argument(i)) {
      results.push_back(arguments[*written]);
      continue;
    }
    if (const TensorType* tensor = made.results[i].tensor()) {
      results.emplace_back(meta_of(*tensor));
      if (!results.back().toTensor().defined()) return std::nullopt;
      continue;
    }
    const AbstractValue::List* list = made.results[i].list();
    if (!list) return std::nullopt;
    c10::List<at::Tensor> tensors;
    for (const AbstractValue& each : *list) {
      tensors.push_back(each.tensor() ? meta_of(*each.tensor()) : at::Tensor());
      if (!tensors.get(tensors.size() - 1).defined()) return std::nullopt;
    }
    results.emplace_back(std::move(tensors));
  }
  return results;
}

}  // namespace fx::internal
