#include <fxgraph/shapes/op_record.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/records/operator_flags.h>
#include <fxgraph/ops/schema.h>
#include <fxgraph/run/operators.h>
#include <fxgraph/run/value.h>
#include <fxgraph/shapes/row_shapes.h>

namespace fx::internal {
namespace {

// What torch::tensor({…}) does between `empty` and its return.
constexpr std::array<std::string_view, 4> kKeepsConstants = {"aten::select", "aten::fill_", "aten::to", "aten::detach"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

OperandKind kind_of(const c10::Type& type) {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) return kind_of(*optional->getElementType());
  switch (type.kind()) {
    case c10::TypeKind::TensorType: return OperandKind::tensor;
    case c10::TypeKind::GeneratorType: return OperandKind::generator;
    case c10::TypeKind::DeviceObjType: return OperandKind::device;
    case c10::TypeKind::ListType: {
      const OperandKind element = kind_of(*type.castRaw<c10::ListType>()->getElementType());
      return element == OperandKind::tensor ? OperandKind::tensor_list : OperandKind::other;
    }
    default: return OperandKind::other;
  }
}

Symbol target_of(const c10::FunctionSchema& schema) {
  std::string target = schema.name();
  if (!schema.overload_name().empty()) target += "." + schema.overload_name();
  return canonical_target(target);
}

OpArgument argument_record(const c10::Argument& argument) {
  OpArgument record;
  record.name = argument.name();
  record.type = argument.real_type();
  record.kind = kind_of(*record.type);
  record.keyword_only = argument.kwarg_only();
  record.repeat = static_cast<std::uint8_t>(std::max(argument.N().value_or(1), 1));
  record.written = argument.alias_info() && argument.alias_info()->isWrite();
  if (argument.default_value()) record.default_value = to_argument(*argument.default_value(), record.type);
  return record;
}

// The argument that an in-place or out= result is: the one written under the same alias set.
int written_argument(const c10::FunctionSchema& schema, const c10::Argument& result) {
  if (!result.alias_info() || !result.alias_info()->isWrite()) return -1;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* info = schema.arguments()[i].alias_info();
    if (info && info->isWrite() && info->beforeSets() == result.alias_info()->beforeSets()) return static_cast<int>(i);
  }
  return -1;
}

std::unique_ptr<OpRecord> make_record(const c10::FunctionSchema& schema) {
  auto record = std::make_unique<OpRecord>();
  record->target = target_of(schema);
  for (const c10::Argument& argument : schema.arguments()) {
    record->arguments.push_back(argument_record(argument));
    const OperandKind kind = record->arguments.back().kind;
    if (kind == OperandKind::tensor || kind == OperandKind::tensor_list) record->takes_tensors = true;
  }
  for (const c10::Argument& result : schema.returns()) {
    record->results.push_back({kind_of(*result.real_type()), written_argument(schema, result)});
    const OperandKind kind = record->results.back().kind;
    if (kind != OperandKind::tensor && kind != OperandKind::tensor_list) record->all_results_are_tensors = false;
  }
  if (const OperatorSchema* known = find_overload(record->target)) {
    record->draws_random_numbers = known->traits.random;
    if (record->takes_tensors && record->all_results_are_tensors && has_shape_row(*known) &&
        known->arguments.size() == record->arguments.size())
      record->schema = known;
  }
  record->takes_values = record->takes_tensors && !packet_of(record->target.view()).ends_with("_like");
  record->keeps_constants = contains(kKeepsConstants, packet_of(record->target.view()));
  record->builds_constants = record->target == "aten::empty.memory_format";
  return record;
}

// LibTorch gives the tag to `unique_dim`, but not to `unique_dim.out`.
bool may_depend_on_data(const c10::OperatorHandle& op) {
  constexpr auto kTag = at::Tag::dynamic_output_shape;
  if (op.hasTag(kTag)) return true;
  const TorchOperator* returning = returning_variant(op.schema());
  return returning && returning->handle->hasTag(kTag);
}

}  // namespace

OpRecord& OpTable::find(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  std::uint32_t& index = index_[reinterpret_cast<std::uintptr_t>(&schema)];
  if (index == 0) {
    records_.push_back(make_record(schema));
    // Indexing has the tag for the sake of masks, which are looked for where it is recorded.
    OpRecord& record = *records_.back();
    record.shape_depends_on_data = may_depend_on_data(op) && record.target != "aten::index.Tensor";
    record.changes_shape = op.hasTag(at::Tag::inplace_view);
    index = static_cast<std::uint32_t>(records_.size());
  }
  return *records_[index - 1];
}

bool depends_on_data(const OpRecord& op, const c10::IValue* arguments) {
  static const Symbol kOneHot("aten::one_hot");
  return op.shape_depends_on_data && !(op.target == kOneHot && arguments[1].isInt() && arguments[1].toInt() > 0);
}

std::optional<std::size_t> result_list_length(const OpRecord& op, const c10::IValue* arguments) {
  if (const std::optional<ListLength> told = list_length(op.target)) {
    const c10::IValue& value = arguments[told->argument];
    if (told->kind == ListLength::Kind::number) return static_cast<std::size_t>(value.toInt());
    return value.toListRef().size() + (told->kind == ListLength::Kind::length_plus_one ? 1 : 0);
  }
  // _foreach_* answer one tensor for each tensor of their first list.
  if (packet_of(op.target.view()).starts_with("aten::_foreach_")) return arguments[0].toListRef().size();
  return std::nullopt;
}

}  // namespace fx::internal
