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
    record->sizes_given_by = sizes_given_by(*known);
    if (record->takes_tensors && record->all_results_are_tensors && has_shape_row(*known) &&
        known->arguments.size() == record->arguments.size())
      record->schema = known;
  }
  record->takes_values = record->takes_tensors && !packet_of(record->target.view()).ends_with("_like");
  record->keeps_constants = contains(kKeepsConstants, packet_of(record->target.view()));
  record->builds_constants = record->target == "aten::empty.memory_format";
  return record;
}

}  // namespace

OpRecord& OpTable::find(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  std::uint32_t& index = index_[reinterpret_cast<std::uintptr_t>(&schema)];
  if (index == 0) {
    records_.push_back(make_record(schema));
    OpRecord& record = *records_.back();
    record.shape_depends_on_data = data_decide_sizes(op, record.target);
    record.changes_shape = op.hasTag(at::Tag::inplace_view);
    index = static_cast<std::uint32_t>(records_.size());
  }
  return *records_[index - 1];
}

bool depends_on_data(const OpRecord& op, const c10::IValue* arguments) {
  if (!op.shape_depends_on_data || !op.sizes_given_by) return op.shape_depends_on_data;
  const c10::IValue& given = arguments[*op.sizes_given_by];
  return given.isNone() || (given.isInt() && given.toInt() < 0);
}

std::optional<std::size_t> result_list_length(const OpRecord& op, const c10::IValue* arguments) {
  using enum OperatorFlag;
  // _foreach_* answer one tensor for each tensor of their first list.
  const bool answers = has_flag(op.target, answers_each) || packet_of(op.target.view()).starts_with("aten::_foreach_");
  if (answers && arguments[0].isList()) return arguments[0].toListRef().size();
  const bool counts = has_flag(op.target, counts_parts), lists = has_flag(op.target, lists_parts);
  if (counts && arguments[1].isInt()) return static_cast<std::size_t>(arguments[1].toInt());
  if ((counts || lists) && arguments[1].isList()) return arguments[1].toListRef().size() + (counts ? 1 : 0);
  return std::nullopt;
}

}  // namespace fx::internal
