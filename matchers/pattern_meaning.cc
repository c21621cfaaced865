// What a call of a pattern means: which operators, and in which words a graph may say them.
#include <algorithm>

#include <fxgraph/matchers/compiled_pattern.h>
#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx::internal {

namespace {

bool has(const std::vector<Symbol>& names, Symbol name) { return std::ranges::find(names, name) != names.end(); }

bool has_operator(const PatternNode& node, const TargetInfo& info) { return has(node.operators, info.name); }

}  // namespace

/// `mul.Scalar(x, 2)` is `mul.Tensor(x, 2)`: where the pattern wants a number, of both, or writes one.
bool PatternFacts::may_be_counterpart(std::uint32_t call, const OperatorSchema& schema, std::size_t at) const {
  const PatternNode& test = node(call);
  const bool wants_number = !schema.arguments[at].type.is_tensor();
  if (wants_number || test.bare) return wants_number;
  std::uint32_t operand = at < test.args.size() ? test.args[at] : kNoPattern;
  for (const auto& [name, value] : test.kwargs) {
    if (name == schema.arguments[at].name) operand = value;
  }
  if (operand == kNoPattern) return false;
  const PatternKind kind = node(operand).kind;
  return kind == PatternKind::literal || kind == PatternKind::hole;
}

bool PatternFacts::means(std::uint32_t call, const Call& found) const {
  const TargetSet& targets = node(call).targets;
  const TargetInfo& info = target_info(found.schema().target);
  if (has_operator(node(call), info) || targets.contains(found.schema().target)) return true;
  for (const Counterpart& other : info.counterparts) {
    if (!has(node(call).operators, other.name)) continue;
    if (!may_be_counterpart(call, *other.schema, other.at)) continue;
    const bool number = !other.schema->arguments[other.at].type.is_tensor();
    const Argument* given = found.argument(other.at);
    if (!number || (given && is_number_type(argument_type(*given)))) return true;
  }
  return false;
}

Fit PatternFacts::fit(std::uint32_t call, Op op, Symbol target) const {
  const PatternNode& test = node(call);
  const TargetSet& targets = test.targets;
  if (test.op != op && !(test.op == Op::call_function && op == Op::call_method)) return Fit::no;
  if (!is_function_or_method(op)) return targets.contains(target) ? Fit::written : Fit::no;
  if (test.op == op && targets.is_spelt(target)) return test.meaning.empty() ? Fit::written : Fit::asked;
  if (!test.meaning.empty()) return Fit::no;
  const TargetInfo& info = target_info(target);
  const auto may_be_number = [&](const TargetInfo& called) {
    return std::ranges::any_of(called.counterparts,
                               [&](const Counterpart& other) { return has(test.operators, other.name); });
  };
  if (op == Op::call_function && info.exact) {
    if (has_operator(test, info) || targets.contains(target)) return Fit::written;
    return may_be_number(info) ? Fit::asked : Fit::no;
  }
  const auto may_mean = [&](const OperatorSchema* schema) {
    const TargetInfo& called = target_info(schema->target);
    return has_operator(test, called) || targets.contains(schema->target) || may_be_number(called);
  };
  const Overloads& candidates = candidate_overloads(op, target);
  if (test.op == Op::call_function && std::ranges::any_of(candidates, may_mean)) return Fit::asked;
  if (test.op == op && targets.contains(target)) return Fit::written;
  if (!candidates.empty() || op != Op::call_function || !info.schema) return Fit::no;
  return has_operator(test, info) ? Fit::written : may_mean(info.schema) ? Fit::asked : Fit::no;
}

bool PatternFacts::names_of(std::uint32_t index, std::vector<TargetKey>& names) const {
  const PatternNode& test = node(index);
  if (test.kind == PatternKind::one_of) {
    return std::ranges::all_of(test.args, [&](std::uint32_t arg) { return names_of(arg, names); });
  }
  if (!test.targets.is_finite()) return false;
  const auto add = [&](Symbol name) {
    const TargetKey key{test.op, name};
    if (std::ranges::find(names, key) == names.end()) names.push_back(key);
  };
  for (const Symbol name : test.targets.spellings()) add(name);
  if (!test.meaning.empty()) return true;
  for (const Symbol name : test.names()) {
    add(name);
    const OperatorSchema* schema = test.op == Op::call_function ? target_info(name).schema : nullptr;
    if (!schema) continue;
    for (const Counterpart& other : target_info(name).counterparts) {
      if (may_be_counterpart(index, *schema, other.at)) add(other.name);
    }
  }
  return true;
}

}  // namespace fx::internal
