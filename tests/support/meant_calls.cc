#include "tests/support/meant_calls.h"

#include <algorithm>
#include <optional>

#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx::testing {

using internal::PatternData;
using internal::PatternKind;
using internal::PatternNode;

bool is_number(const PatternData& data, std::uint32_t index) {
  return data.nodes[index].kind == PatternKind::literal || data.nodes[index].kind == PatternKind::hole;
}

static bool says_number(const PatternData& data, const PatternNode& call, const OperatorSchema& schema,
                        std::size_t at) {
  std::optional<std::uint32_t> operand;
  if (at < call.args.size()) operand = call.args[at];
  for (const auto& [name, index] : call.kwargs) {
    if (name == schema.arguments[at].name) operand = index;
  }
  return operand && is_number(data, *operand);
}

bool is_meant(const PatternData& data, const PatternNode& pattern, const Node& node) {
  if (node.op() == pattern.op && pattern.targets.contains(node.target())) return true;
  const Call call = pattern.op == Op::call_function ? call_of(node) : Call();
  if (!call) return false;
  const auto named = [&](Symbol name) { return std::ranges::find(pattern.operators, name) != pattern.operators.end(); };
  if (named(operator_name(call.schema()))) return true;
  return std::ranges::any_of(internal::target_info(call.schema().target).counterparts, [&](const auto& other) {
    const Argument* given = call.argument(other.at);
    const bool number = given && internal::is_number_type(internal::argument_type(*given));
    const bool wants_number = !other.schema->arguments[other.at].type.is_tensor();
    return named(other.name) && number && (wants_number || says_number(data, pattern, *other.schema, other.at));
  });
}

}  // namespace fx::testing
