#include <fxgraph/export/overwritten.h>

#include <fxgraph/ops/schema.h>

namespace fx::pt2 {
namespace {

bool may_be_named_again(const Node& user) {
  const OperatorSchema* schema = find_schema(user.target());
  return !user.is(Op::output) && (!schema || schema->traits.view || schema->traits.may_copy);
}

}  // namespace

bool writes_to(const Node& user, const Node& tensor) {
  if (user.is(Op::output)) return false;
  const OperatorSchema* schema = find_schema(user.target());
  if (!schema) return true;
  for (std::size_t i = 0; i < schema->arguments.size(); ++i) {
    const SchemaArgument& argument = schema->arguments[i];
    const Argument* value = bound_argument(*schema, user, i);
    bool is_given = false;
    if (value) for_each_node(*value, [&](const Node& node) { is_given |= &node == &tensor; });
    if (is_given && (argument.alias.writes || argument.hidden_write)) return true;
  }
  return false;
}

bool is_overwritten(const Node& node) {
  for (const Node& user : node.users()) {
    if (!writes_to(user, node)) continue;
    if (may_be_named_again(node)) return true;
    for (const Node& other : node.users()) {
      if (&other != &user && (user.is_before(other) || may_be_named_again(other))) return true;
    }
  }
  return false;
}

}  // namespace fx::pt2
