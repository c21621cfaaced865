// Two calls that make the same nodes one after the other; and what calls replace.
#include <algorithm>

#include <fxgraph/trace/same_program.h>

namespace fx::internal {

std::vector<ReplacedBuffer> replaced_buffers(const Session& session,
                                             const std::vector<ModuleState::Replaced>& replaced) {
  std::vector<ReplacedBuffer> result;
  for (const auto& [path, now] : replaced) {
    const ProxyImpl* value = proxy_impl(now);
    const CapturedTensor* buffer = captured_at(session, Symbol(path));
    if (buffer && value && !value->is_constant() && value->node() && value->session().get() == &session)
      result.push_back({buffer, value->node()});
  }
  return result;
}

std::vector<ReplacedBuffer> replaced_buffers(const Session& session, const Graph& graph,
                                             const std::vector<BufferUpdate>& updates) {
  std::vector<ReplacedBuffer> result;
  for (const BufferUpdate& update : updates)
    result.push_back({captured_at(session, Symbol(update.attribute)), graph.node_by_id(update.value->id())});
  return result;
}

namespace {

bool is_alike(const Argument& a, const Argument& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_node()) return a.node().id() == b.node().id();
  if (!a.is_container()) return a == b;
  const ArgumentSpan mine = a.elements(), theirs = b.elements();
  return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                    [](const Argument& left, const Argument& right) { return is_alike(left, right); });
}

bool is_alike(const Node& a, const Node& b) {
  const ArgumentSpan mine = a.args(), theirs = b.args();
  const KwargSpan named = a.kwargs(), named_too = b.kwargs();
  if (a.id() != b.id() || a.op() != b.op() || a.target() != b.target() || mine.size() != theirs.size() ||
      named.size() != named_too.size())
    return false;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (!is_alike(mine[i], theirs[i])) return false;
  }
  auto other = named_too.begin();
  for (const auto& [name, value] : named) {
    if (name != (*other).name || !is_alike(value, (*other).value)) return false;
    ++other;
  }
  return true;
}

}  // namespace

bool is_alike(const Graph& a, const Session& of_a, const Graph& b, const Session& of_b) {
  const Node* other = first_node(b);
  for (const Node& node : a.nodes()) {
    if (!other || !is_alike(node, *other)) return false;
    const Node *kept = of_a.kept_value(node), *other_kept = of_b.kept_value(*other);
    if (!kept != !other_kept || (kept && kept->id() != other_kept->id())) return false;
    other = other->next();
  }
  return !other && same_constants(of_a, of_b);
}

}  // namespace fx::internal
