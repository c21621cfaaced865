#include <fxgraph/ops/records/operator_flags.h>

#include <fxgraph/ops/call.h>
#include <fxgraph/ops/records/operator_records.h>

namespace fx {

bool has_flag(Symbol target, OperatorFlag flag) {
  const internal::OperatorRecord* row = internal::operator_record(target);
  return row && row->flags.has(flag);
}

std::optional<std::size_t> sizes_given_by(const OperatorSchema& schema) {
  const internal::OperatorRecord* row = internal::operator_record(schema.target);
  const int index = row && !row->decided_by.empty() ? schema.index_of(Symbol(row->decided_by)) : -1;
  return index < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(index));
}

bool data_decide_sizes(const Call& call) {
  if (!has_flag(call.schema().target, OperatorFlag::sizes_of_data)) return false;
  const std::optional<std::size_t> at = sizes_given_by(call.schema());
  const Argument* given = at ? call.argument(*at) : nullptr;
  return !given || given->is_none() || (given->is_int() && given->as_int() < 0);
}

}  // namespace fx
