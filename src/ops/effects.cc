#include <fxgraph/ops/effects.h>

#include <algorithm>

#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/python_call.h>
#include <fxgraph/ops/python_names.h>
#include <fxgraph/ops/schema_registry.h>

namespace fx {

namespace {

using internal::AtenCall;
using internal::KnownEffect;
using internal::Overloads;
using internal::TargetInfo;
using Base = SchemaType::Base;
using Effect = EffectSwitch::Effect;

// ── One overload
// ──────────────────────────────────────────────────────────────────────────────────────────────────────

bool is_off(const Argument& value, const Argument& off) {
  const bool numbers = off.is_float() && (value.is_int() || value.is_float());
  return numbers ? value.as_float() == off.as_float() : value == off;
}

bool is_switched_off(const OperatorSchema& schema, Effect effect, ArgumentSpan args, KwargSpan kwargs) {
  return std::ranges::any_of(schema.switches, [&](const EffectSwitch& row) {
    if (row.effect != effect) return false;
    const Argument* value = bound_argument(schema, args, kwargs, row.argument);
    return value && is_off(*value, row.off);
  });
}

// What an operator writes to and returns, `self` and `out`, it always writes.
bool is_returned(const OperatorSchema& schema, const SchemaArgument& argument) {
  return argument.alias.writes && std::ranges::any_of(schema.returns, [&](const SchemaReturn& result) {
           return (result.alias.sets & argument.alias.sets) != 0;
         });
}

// Calls `visit(const Argument*)` for each argument that calls of the schema may write; null when it is not known which.
template <typename Visit>
void for_each_schema_write(const OperatorSchema& schema, ArgumentSpan args, KwargSpan kwargs, Visit&& visit) {
  if (!schema.traits.writes) return;
  const bool off = is_switched_off(schema, Effect::writes, args, kwargs);
  bool declared = false;
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    if (!schema.arguments[i].alias.writes && !schema.arguments[i].hidden_write) continue;
    declared = true;
    if (off && !is_returned(schema, schema.arguments[i])) continue;
    const Argument* value = bound_argument(schema, args, kwargs, i);
    if (value && !value->is_none()) visit(value);
  }
  if (!declared) visit(static_cast<const Argument*>(nullptr));
}

bool result_may_alias(const OperatorSchema& schema) {
  return schema.traits.view || std::ranges::any_of(schema.arguments, &SchemaArgument::hidden_alias) ||
         std::ranges::any_of(schema.returns, [](const SchemaReturn& result) { return !result.alias.empty(); });
}

// Dropout that is switched off returns its input. What else aliases behind its declaration does so at times.
bool surely_aliases(const OperatorSchema& schema, const NodeEffects& effects) {
  if (!effects.may_alias || schema.traits.may_copy) return false;
  const bool hidden = std::ranges::any_of(schema.arguments, &SchemaArgument::hidden_alias);
  return !hidden || (schema.traits.random && !effects.random);
}

NodeEffects schema_effects(const OperatorSchema& schema, ArgumentSpan args, KwargSpan kwargs) {
  NodeEffects effects;
  for_each_schema_write(schema, args, kwargs, [&](const Argument*) { effects.writes = true; });
  effects.random = schema.traits.random && !is_switched_off(schema, Effect::random, args, kwargs);
  effects.side_effect = schema.traits.side_effect;
  effects.may_alias = result_may_alias(schema);
  effects.aliases = surely_aliases(schema, effects);
  effects.restructures = schema.traits.restructures && effects.writes;
  return effects;
}

// ── A function or method of several overloads
// ───────────────────────────────────────────────────────────────────────── What all of them do is remembered with the
// target, in 16 bits; so is that they differ, and the call decides.

constexpr std::uint16_t kAsked = 1 << 15;
constexpr std::uint16_t kDepends = 1 << 14;
constexpr std::uint16_t kAliasesBit = 1 << 5;

std::uint16_t to_bits(const NodeEffects& effects) {
  return static_cast<std::uint16_t>(effects.writes | effects.random << 1 | effects.side_effect << 2 |
                                    effects.unknown << 3 | effects.may_alias << 4 | effects.aliases << 5 |
                                    effects.restructures << 6);
}

NodeEffects from_bits(unsigned bits) {
  return {(bits & 1) != 0,  (bits & 2) != 0,  (bits & 4) != 0, (bits & 8) != 0,
          (bits & 16) != 0, (bits & 32) != 0, (bits & 64) != 0};
}

constexpr NodeEffects kUnknownEffects{.unknown = true, .may_alias = true};

// An overload that writes only what is given by keyword (`out=`); calls without such keywords are not of this overload.
bool is_out_overload(const OperatorSchema& schema) {
  bool writes = false;
  for (const SchemaArgument& argument : schema.arguments) {
    if (!argument.alias.writes) continue;
    if (!argument.keyword_only) return false;
    writes = true;
  }
  return writes;
}

bool depends_on_literals(const OperatorSchema& schema) {
  return !schema.switches.empty() || std::ranges::any_of(schema.arguments, &SchemaArgument::hidden_write);
}

// The union of what the overloads do when called without `out`, and whether they differ.
std::uint16_t common_effects(const std::vector<const Overloads*>& candidates) {
  std::uint16_t all = 0, first = 0;
  bool any = false, differ = false;
  for (const Overloads* overloads : candidates) {
    for (const OperatorSchema* schema : *overloads) {
      if (is_out_overload(*schema)) continue;
      NodeEffects effects{schema->traits.writes, schema->traits.random, schema->traits.side_effect, false,
                          result_may_alias(*schema)};
      effects.aliases = surely_aliases(*schema, effects);
      effects.restructures = schema->traits.restructures;
      const std::uint16_t bits = to_bits(effects);
      if (!any) first = bits;
      any = true;
      differ |= bits != first || depends_on_literals(*schema);
      all |= bits;
    }
  }
  return differ || !any ? static_cast<std::uint16_t>((all & ~kAliasesBit) | kDepends) : all;
}

std::uint16_t known_effects(KnownEffect effect) {
  switch (effect) {
    case KnownEffect::pure: return 0;
    case KnownEffect::aliases: return to_bits({.may_alias = true}) | kDepends;
    case KnownEffect::random: return to_bits({.random = true}) | kDepends;
    case KnownEffect::side_effect: return to_bits({.side_effect = true});
    case KnownEffect::writes_first: return to_bits({.writes = true});
    case KnownEffect::writes_any: return to_bits({.writes = true}) | kDepends;
  }
  return to_bits(kUnknownEffects);
}

std::uint16_t ask(Op op, Symbol target, const TargetInfo& info) {
  std::vector<const Overloads*> candidates;
  if (op == Op::call_function && !info.overloads->empty()) {
    candidates.push_back(info.overloads);
  } else {
    for (const Symbol packet : internal::candidate_packets(op, target)) {
      candidates.push_back(&internal::overload_list(packet));
    }
  }
  std::uint16_t bits = candidates.empty() ? 0 : common_effects(candidates);
  if (const KnownEffect* known = internal::known_effect(internal::python_name(op, target))) {
    bits = static_cast<std::uint16_t>((bits & ~kAliasesBit) | known_effects(*known));
  } else if (candidates.empty()) {
    bits = to_bits(kUnknownEffects);
  }
  return bits | kAsked;
}

std::uint16_t target_effects(const Node& node, const TargetInfo& info) {
  auto& cache = node.is(Op::call_method) ? info.method_effects : info.function_effects;
  std::uint16_t bits = cache.load(std::memory_order_relaxed);
  if (bits == 0) {
    bits = ask(node.op(), node.target(), info);
    cache.store(bits, std::memory_order_relaxed);
  }
  return bits;
}

// True when a keyword may pick an overload that writes there.
bool may_be_out_call(const Node& node, const TargetInfo& info) {
  if (node.kwargs().empty()) return false;
  if (node.is(Op::call_function) && !info.overloads->empty()) return true;
  static const Symbol kOut("out");
  const Argument* out = node.kwarg(kOut);
  return out && !out->is_none();
}

// A number or dtype read off a tensor or a list shares no storage.
bool is_plain_value(const Node& node) {
  const internal::ArgumentType kind = internal::argument_type(Argument(const_cast<Node&>(node)));
  return kind.known && kind.base != Base::tensor && kind.base != Base::other;
}

// Numbers, slices, `...` and None make views of a tensor, and take out of a tuple what is in it; a bool or a list of
// numbers copies.
bool is_basic_index(const Argument& index) {
  switch (index.kind()) {
    case ArgumentKind::none:
    case ArgumentKind::integer:
    case ArgumentKind::ellipsis:
    case ArgumentKind::slice: return true;
    case ArgumentKind::tuple: return std::ranges::all_of(index.elements(), is_basic_index);
    default: return false;
  }
}

bool takes_element(const Node& node) {
  return node.target() == "operator.getitem" && node.args().size() == 2 && node.args()[0].is_node() &&
         is_basic_index(node.args()[1]);
}

NodeEffects call_effects(const Node& node, const TargetInfo& info, std::uint16_t common) {
  if (const std::optional<AtenCall> call = internal::aten_call(node)) {
    return schema_effects(*call->schema, call->args, call->kwargs);
  }
  NodeEffects effects = from_bits(common);
  if (internal::is_pure_python_call(node)) return {.may_alias = effects.may_alias};
  effects.writes |= may_be_out_call(node, info);
  if (effects.may_alias && is_plain_value(node)) effects.may_alias = false;
  effects.aliases = effects.may_alias && (effects.aliases || takes_element(node));
  return effects;
}

// An operator that writes nothing and has no switches does the same in every call.
NodeEffects exact_effects(const Node& node, const TargetInfo& info) {
  std::uint16_t bits = info.function_effects.load(std::memory_order_relaxed);
  if (bits == 0) {
    const bool depends = info.schema->traits.writes || depends_on_literals(*info.schema);
    bits = kAsked | (depends ? kDepends : to_bits(schema_effects(*info.schema, {}, {})));
    info.function_effects.store(bits, std::memory_order_relaxed);
  }
  return bits & kDepends ? schema_effects(*info.schema, node.args(), node.kwargs()) : from_bits(bits);
}

NodeEffects module_effects(const Node& node, const ModuleEffects& modules) {
  return modules ? modules(node) : NodeEffects{.may_alias = true};
}

// ── Visits
// ────────────────────────────────────────────────────────────────────────────────────────────────────────────

bool holds_node(const Argument& argument) {
  bool found = false;
  for_each_node(argument, [&](Node&) { found = true; });
  return found;
}

void visit_all(const Node& node, const std::function<void(const Argument&)>& visit) {
  for (const Argument& argument : node.args()) {
    if (holds_node(argument)) visit(argument);
  }
  for (const Argument& argument : node.kwargs().values()) {
    if (holds_node(argument)) visit(argument);
  }
}

// The overload that the node calls, with the arguments as they stand in `call` when they are not the node's own.
const OperatorSchema* called_schema(const Node& node, std::optional<AtenCall>& call, ArgumentSpan& args,
                                    KwargSpan& kwargs) {
  args = node.args();
  kwargs = node.kwargs();
  if (node.is(Op::call_function)) {
    const TargetInfo& info = internal::target_info(node.target());
    if (info.exact) return info.schema;
  }
  call = internal::aten_call(node);
  if (!call) return nullptr;
  args = call->args;
  kwargs = call->kwargs;
  return call->schema;
}

const KnownEffect* known_effect_of(const Node& node) {
  if (!node.is(Op::call_function) && !node.is(Op::call_method)) return nullptr;
  return internal::known_effect(internal::python_name(node.op(), node.target()));
}

// Whether the results may alias this argument.
bool is_aliased(const OperatorSchema& schema, const SchemaArgument& argument) {
  if (argument.hidden_alias) return true;
  const AliasInfo& alias = argument.alias;
  return std::ranges::any_of(schema.returns, [&](const SchemaReturn& result) {
    // An element put into a list that is returned: `append.t(t[](a!) self, t(c -> *) el) -> t[](a!)`.
    if (alias.wildcard_after && result.alias.writes) return true;
    return result.alias.wildcard ||
           ((alias.sets | alias.sets_after) & (result.alias.sets | result.alias.sets_after)) != 0;
  });
}

bool names_aliases(const OperatorSchema& schema) {
  return std::ranges::any_of(schema.arguments,
                             [&](const SchemaArgument& argument) { return is_aliased(schema, argument); });
}

}  // namespace

NodeEffects effects_of(const Node& node, const ModuleEffects& modules) {
  if (node.is(Op::call_module)) return module_effects(node, modules);
  if (!node.is(Op::call_function) && !node.is(Op::call_method)) return {};
  const TargetInfo& info = internal::target_info(node.target());
  if (node.is(Op::call_function) && info.exact) return exact_effects(node, info);
  const std::uint16_t common = target_effects(node, info);
  if (!(common & kDepends) && !may_be_out_call(node, info)) return from_bits(common);
  return call_effects(node, info, common);
}

void for_each_written(const Node& node, const std::function<void(const Argument&)>& visit,
                      const ModuleEffects& modules) {
  const NodeEffects effects = effects_of(node, modules);
  if (!effects.writes && !effects.unknown) return;
  std::optional<AtenCall> call;
  ArgumentSpan args;
  KwargSpan kwargs;
  if (const OperatorSchema* schema = called_schema(node, call, args, kwargs)) {
    for_each_schema_write(*schema, args, kwargs, [&](const Argument* written) {
      if (written) {
        visit(*written);
      } else {
        visit_all(node, visit);
      }
    });
    return;
  }
  const KnownEffect* known = known_effect_of(node);
  if (known && *known == KnownEffect::writes_first && !node.args().empty()) {
    visit(node.args()[0]);
  } else {
    visit_all(node, visit);
  }
}

void for_each_aliased_input(const Node& node, const std::function<void(Node&)>& visit, const ModuleEffects& modules) {
  const NodeEffects effects = effects_of(node, modules);
  if (!effects.may_alias && !effects.unknown) return;
  std::optional<AtenCall> call;
  ArgumentSpan args;
  KwargSpan kwargs;
  const OperatorSchema* schema = called_schema(node, call, args, kwargs);
  if (schema && names_aliases(*schema)) {
    for (std::size_t i = 0; i < schema->arguments.size(); ++i) {
      if (!is_aliased(*schema, schema->arguments[i])) continue;
      if (const Argument* value = bound_argument(*schema, args, kwargs, i)) for_each_node(*value, visit);
    }
    return;
  }
  if (node.target() == "operator.getitem" || node.target() == "builtins.getattr") {
    if (!node.args().empty()) for_each_node(node.args()[0], visit);
    return;
  }
  node.for_each_input(visit);
}

std::size_t eliminate_dead_code(Graph& graph, const ModuleEffects& modules) {
  return graph.eliminate_dead_code([&](const Node& node) { return effects_of(node, modules).impure(); });
}

}  // namespace fx
