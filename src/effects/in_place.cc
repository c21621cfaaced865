#include <fxgraph/effects/in_place.h>

#include <string>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>

namespace fx {

bool writes_first(const OperatorSchema& schema) {
  return schema.returns.size() == 1 && !schema.traits.restructures && !schema.traits.view &&
         !schema.arguments.empty() && schema.arguments.front().alias.writes && schema.returns.front().alias.writes;
}

const OperatorSchema* in_place_overload(const OperatorSchema& schema) {
  if (schema.arguments.empty() || schema.traits.view) return nullptr;
  const std::string name = schema.target.str();
  const std::string packet(packet_of(name));
  const OperatorSchema* found = find_overload(Symbol(packet + "_" + name.substr(packet.size())));
  if (!found || schema.returns.size() != 1 || found->arguments.size() != schema.arguments.size()) return nullptr;
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    const SchemaArgument &a = schema.arguments[i], &b = found->arguments[i];
    if (a.name != b.name || a.type.base != b.type.base || a.type.list != b.type.list || a.alias.writes) return nullptr;
    if (b.alias.writes != (i == 0)) return nullptr;
  }
  return found;
}

const OperatorSchema* functional_overload(const OperatorSchema& schema) {
  const std::string name = schema.target.str();
  const std::string packet(packet_of(name));
  if (!packet.ends_with('_')) return nullptr;
  const OperatorSchema* found = find_overload(Symbol(packet.substr(0, packet.size() - 1) + name.substr(packet.size())));
  return found && in_place_overload(*found) == &schema ? found : nullptr;
}

const Node* sees_write(const Node& call, const internal::TrackedEffects& effects) {
  const Call called = call_of(call);
  const Argument* first = called && writes_first(called.schema()) ? called.argument(0) : nullptr;
  if (!first || !first->is_node()) return &call;
  for (const Node* member : effects.members(first->node())) {
    if (effects.is_outside(*member)) return member;
    // A module may keep what it gives, and what was taken out of a list is still in it.
    if (!member->is(Op::call_function) && !member->is(Op::call_method)) return member;
    if (!member->is_before(call)) continue;
    for (const Node& user : member->users()) {
      if (call.is_before(user)) return &user;
    }
  }
  return nullptr;
}

}  // namespace fx
