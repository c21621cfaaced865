#include <fxgraph/effects/effects_of.h>

#include <algorithm>

#include <fxgraph/ops/argument_type.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_symbols.h>
#include <fxgraph/ops/python_target.h>

namespace fx {

namespace {

using internal::KnownEffect;
using internal::KnownTargetEffects;
using internal::Overloads;
using internal::TargetEffects;
using internal::TargetInfo;
using Base = SchemaType::Base;
using Effect = EffectSwitch::Effect;

// ── One overload ─────────────────────────────────────────────────────────────────────────────────────────────────────

bool is_off(const Argument& value, const Argument& off) {
  const bool numbers = off.is_float() && (value.is_int() || value.is_float());
  return numbers ? value.as_float() == off.as_float() : value == off;
}

bool is_switched_off(const Call& call, Effect effect) {
  return std::ranges::any_of(call.schema().switches, [&](const EffectSwitch& row) {
    if (row.effect != effect) return false;
    const Argument* value = call.argument(row.argument);
    return value && is_off(*value, row.off);
  });
}

// What an operator writes to and returns, `self` and `out`, it always writes.
bool is_returned(const OperatorSchema& schema, const SchemaArgument& argument) {
  return argument.alias.writes && std::ranges::any_of(schema.returns, [&](const SchemaReturn& result) {
           return (result.alias.sets & argument.alias.sets) != 0;
         });
}

// Calls `visit(const Argument*)` for each argument that the call may write; null when it is not known which.
template <typename Visit>
void for_each_argument_written(const Call& call, Visit&& visit) {
  const OperatorSchema& schema = call.schema();
  if (!schema.traits.writes) return;
  const bool off = is_switched_off(call, Effect::writes);
  bool declared = false;
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    if (!schema.arguments[i].alias.writes && !schema.arguments[i].hidden_write) continue;
    declared = true;
    if (off && !is_returned(schema, schema.arguments[i])) continue;
    const Argument* value = call.argument(i);
    if (value && !value->is_none()) visit(value);
  }
  if (!declared) visit(static_cast<const Argument*>(nullptr));
}

bool result_may_alias(const OperatorSchema& schema, bool hidden = true) {
  return schema.traits.view || (hidden && std::ranges::any_of(schema.arguments, &SchemaArgument::hidden_alias)) ||
         std::ranges::any_of(schema.returns, [](const SchemaReturn& result) { return !result.alias.empty(); });
}

// Dropout that is switched off returns its input. What else aliases behind its declaration does so at times.
bool surely_aliases(const OperatorSchema& schema, const NodeEffects& effects) {
  if (!effects.may_alias || schema.traits.may_copy) return false;
  const bool hidden = std::ranges::any_of(schema.arguments, &SchemaArgument::hidden_alias);
  return !hidden || (schema.returns.size() == 1 && schema.traits.random && !effects.random);
}

}  // namespace

NodeEffects effects_of(const Call& call) {
  const OperatorSchema& schema = call.schema();
  NodeEffects effects;
  for_each_argument_written(call, [&](const Argument*) { effects.writes = true; });
  effects.random = schema.traits.random && !is_switched_off(call, Effect::random);
  effects.side_effect = schema.traits.side_effect;
  effects.may_alias = result_may_alias(schema, !is_switched_off(call, Effect::aliases));
  effects.aliases = surely_aliases(schema, effects);
  effects.restructures = schema.traits.restructures && effects.writes;
  return effects;
}

namespace {

// ── A function or method of several overloads ────────────────────────────────────────────────────────────────────────
// What all of them do is remembered with the target; so is that they differ, and the call decides.

constexpr NodeEffects kUnknownEffects{.unknown = true, .may_alias = true};
constexpr NodeEffects kUndescribed{.undescribed = true, .may_alias = true, .may_alias_state = true};

NodeEffects either(const NodeEffects& a, const NodeEffects& b) {
  return {.writes = a.writes || b.writes,
          .random = a.random || b.random,
          .side_effect = a.side_effect || b.side_effect,
          .unknown = a.unknown || b.unknown,
          .undescribed = a.undescribed || b.undescribed,
          .may_alias = a.may_alias || b.may_alias,
          .aliases = a.aliases || b.aliases,
          .restructures = a.restructures || b.restructures,
          .may_alias_state = a.may_alias_state || b.may_alias_state};
}

TargetEffects each_call(const NodeEffects& effects) { return {effects, TargetEffects::Known::each_call}; }
// Which storage a result is for certain, the call alone says.
TargetEffects call_decides(NodeEffects effects) {
  effects.aliases = false;
  return {effects, TargetEffects::Known::call_decides};
}

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
TargetEffects common_effects(const Overloads& candidates) {
  NodeEffects all, first;
  bool any = false, differ = false;
  for (const OperatorSchema* schema : candidates) {
    if (is_out_overload(*schema)) continue;
    NodeEffects effects{.writes = schema->traits.writes,
                        .random = schema->traits.random,
                        .side_effect = schema->traits.side_effect,
                        .may_alias = result_may_alias(*schema)};
    effects.aliases = surely_aliases(*schema, effects);
    effects.restructures = schema->traits.restructures;
    if (!any) first = effects;
    any = true;
    differ |= effects != first || depends_on_literals(*schema);
    all = either(all, effects);
  }
  return differ || !any ? call_decides(all) : each_call(all);
}

TargetEffects known_effects(KnownEffect effect) {
  switch (effect) {
    case KnownEffect::pure: return each_call({});
    case KnownEffect::aliases: return call_decides({.may_alias = true});
    case KnownEffect::random: return call_decides({.random = true});
    case KnownEffect::side_effect: return each_call({.side_effect = true});
    case KnownEffect::writes_first: return each_call({.writes = true});
    case KnownEffect::keeps:
    case KnownEffect::writes_any:
    case KnownEffect::writes_out: return call_decides({.writes = true});
  }
  return each_call(kUnknownEffects);
}

// An operator that writes nothing and has no switches does the same in every call.
TargetEffects ask_exact(const OperatorSchema& schema) {
  const bool depends = schema.traits.writes || depends_on_literals(schema);
  return depends ? call_decides({}) : each_call(effects_of(Call(schema, ArgumentSpan(), KwargSpan())));
}

// Of a target that is not spelt as one overload.
TargetEffects ask(Op op, Symbol target) {
  const Overloads& candidates = internal::candidate_overloads(op, target);
  TargetEffects found = candidates.empty() ? each_call({}) : common_effects(candidates);
  if (const KnownEffect* known = internal::python_target(op, target).effect) {
    const TargetEffects more = known_effects(*known);
    found.effects = either(found.effects, more.effects);
    found.effects.aliases = false;
    if (more.known == TargetEffects::Known::call_decides) found.known = more.known;
  } else if (candidates.empty()) {
    found = each_call(kUnknownEffects);
  }
  return found;
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
  return kind.base != Base::tensor && kind.base != Base::other;
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

const KnownEffect* known_effect_of(const Node& node) {
  if (node.is(Op::call_module)) return nullptr;
  return internal::python_target(node.op(), node.target()).effect;
}

// A part of a list is a list of its own.
bool takes_element(const Node& node) {
  if (node.target() != python::kGetItem || node.args().size() != 2 || !node.args()[0].is_node()) return false;
  const Argument& index = node.args()[1];
  return is_basic_index(index) && !(index.is_slice() && internal::argument_type(node.args()[0]).list);
}

// `x[i] = y` copies into a tensor; a list or dictionary holds y from then on, an object has it as its attribute.
bool keeps_what_it_takes(const Node& node) {
  if (node.args().size() < 2 || node.target() != python::kSetItem) return true;
  return node.args()[1].is_string() || internal::argument_type(node.args()[0]).list;
}

void add_what_is_shared(const Node& node, NodeEffects& effects) {
  const KnownEffect* known = known_effect_of(node);
  if (!known || !effects.writes) return;
  if (*known == KnownEffect::writes_out) effects.may_alias = true;
  if (*known != KnownEffect::keeps) return;
  effects.may_alias = keeps_what_it_takes(node);
  effects.restructures = node.target() == python::kSetAttr;
}

NodeEffects call_effects(const Node& node, const TargetInfo& info, const NodeEffects& common) {
  if (const Call call = call_of(node)) return effects_of(call);
  NodeEffects effects = common;
  if (internal::is_pure_python_call(node)) return {.may_alias = effects.may_alias};
  if (may_be_out_call(node, info)) effects.writes = effects.may_alias = true;
  add_what_is_shared(node, effects);
  if (effects.may_alias && is_plain_value(node)) effects.may_alias = false;
  effects.aliases = effects.may_alias && (effects.aliases || takes_element(node));
  return effects;
}

bool is_exact(Op op, const TargetInfo& info) { return op == Op::call_function && info.exact; }

// These are apart from effects_of(), which answers most questions without them, and then has no registers to save.
[[gnu::noinline]] void find_target_effects(Op op, Symbol target, const TargetInfo& info) {
  KnownTargetEffects& known = op == Op::call_method ? info.method_effects : info.function_effects;
  known.store(is_exact(op, info) ? ask_exact(*info.schema) : ask(op, target));
}

[[gnu::noinline]] NodeEffects effects_of_this_call(const Node& node, const TargetInfo& info) {
  if (is_exact(node.op(), info)) return effects_of(Call(*info.schema, node.args(), node.kwargs()));
  return call_effects(node, info, (node.is(Op::call_method) ? info.method_effects : info.function_effects).effects());
}

bool is_trusted(const Node& call) {
  const Meta* meta = call.find_meta();
  return meta && meta->get<bool>(meta_key::kTrusted);
}

[[gnu::noinline]] NodeEffects effects_of_module(const Node& node, const ModuleInfo& modules) {
  NodeEffects effects = modules.effects ? modules.effects(node) : kUndescribed;
  effects.may_alias |= effects.unknown;
  effects.may_alias_state |= effects.unknown;
  return effects;
}

// ── Visits ───────────────────────────────────────────────────────────────────────────────────────────────────────────

void visit_all(const Node& node, const std::function<void(const Argument&)>& visit) {
  for (const Argument& argument : node.args()) {
    if (names_nodes(argument)) visit(argument);
  }
  for (const Argument& argument : node.kwargs().values()) {
    if (names_nodes(argument)) visit(argument);
  }
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

NodeEffects effects_of(const Node& node, const ModuleInfo& modules) {
  if (node.is(Op::call_module)) return effects_of_module(node, modules);
  if (!node.is(Op::call_function) && !node.is(Op::call_method)) return {};
  const TargetInfo& info = internal::target_info(node.target());
  const KnownTargetEffects& known = node.is(Op::call_method) ? info.method_effects : info.function_effects;
  if (known.known() == TargetEffects::Known::nothing) find_target_effects(node.op(), node.target(), info);
  if (known.known() == TargetEffects::Known::each_call && (is_exact(node.op(), info) || !may_be_out_call(node, info))) {
    const NodeEffects effects = known.effects();
    return effects.unknown && is_trusted(node) ? NodeEffects{} : effects;
  }
  return effects_of_this_call(node, info);
}

void trust(Node& call) {
  if (!call.is(Op::call_module) && !runs_graphs(call) && effects_of(call).unknown)
    call.meta().set(meta_key::kTrusted, true);
}

void trust(Graph& graph, std::string_view name_space) {
  for (Node& node : graph.nodes()) {
    if (node.target().view().starts_with(name_space)) trust(node);
  }
}

std::optional<NodeEffects> effects_of_each(Op op, Symbol target, const ModuleInfo& modules) {
  if (op == Op::call_module) return modules.effects ? std::nullopt : std::optional(kUndescribed);
  if (op != Op::call_function && op != Op::call_method) return NodeEffects{};
  const TargetInfo& info = internal::target_info(target);
  if (!is_exact(op, info)) return std::nullopt;  // a keyword may pick an overload that writes
  if (info.function_effects.known() == TargetEffects::Known::nothing) find_target_effects(op, target, info);
  if (info.function_effects.known() == TargetEffects::Known::call_decides) return std::nullopt;
  return info.function_effects.effects();
}

void for_each_written(const Node& node, const std::function<void(const Argument&)>& visit, const ModuleInfo& modules) {
  const NodeEffects effects = effects_of(node, modules);
  if (!effects.writes && !effects.unknown) return;
  if (const Call call = call_of(node)) {
    for_each_argument_written(call, [&](const Argument* written) {
      if (written) {
        visit(*written);
      } else {
        visit_all(node, visit);
      }
    });
    return;
  }
  const KnownEffect* known = known_effect_of(node);
  const bool first = known && (*known == KnownEffect::writes_first || *known == KnownEffect::keeps);
  if (first && !node.args().empty()) {
    visit(node.args()[0]);
  } else {
    visit_all(node, visit);
  }
}

void for_each_aliased_input(const Node& node, const std::function<void(Node&)>& visit, const ModuleInfo& modules) {
  const NodeEffects effects = effects_of(node, modules);
  if (!effects.may_alias) return;
  if (const Call call = call_of(node); call && names_aliases(call.schema())) {
    for (std::size_t i = 0; i < call.schema().arguments.size(); ++i) {
      if (!is_aliased(call.schema(), call.schema().arguments[i])) continue;
      if (const Argument* value = call.argument(i)) for_each_node(*value, visit);
    }
    return;
  }
  if (node.target() == python::kGetItem) {
    if (!node.args().empty()) for_each_node(node.args()[0], visit);
    return;
  }
  node.for_each_input(visit);
}

std::size_t Graph::eliminate_dead_code() { return fx::eliminate_dead_code(*this); }

std::size_t eliminate_dead_code(Graph& graph, const ModuleInfo& modules) {
  return graph.eliminate_dead_code([&](const Node& node) { return effects_of(node, modules).impure(); });
}

}  // namespace fx
