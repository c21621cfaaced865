#include <fxgraph/export/overwritten.h>

#include <fxgraph/effects/effects_of.h>
#include <fxgraph/ops/call.h>

namespace fx::pt2 {
namespace {

bool may_be_named_again(const Node& user) {
  const Call call = call_of(user);
  return !user.is(Op::output) && (!call || call.schema().traits.view || call.schema().traits.may_copy);
}

}  // namespace

bool writes_to(const Node& user, const Node& tensor) {
  if (user.is(Op::output)) return false;
  if (!call_of(user)) return true;
  bool found = false;
  for_each_written(user, [&](const Argument& written) {
    for_each_node(written, [&](const Node& node) { found |= &node == &tensor; });
  });
  return found;
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
