// Two calls that make the same nodes one after the other; and what calls replace.
#include <fxgraph/trace/same_calls.h>
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

bool is_alike(const Graph& a, const Session& of_a, const Graph& b, const Session& of_b) {
  const auto same_id = [](const Node& x, const Node& y) { return x.id() == y.id(); };
  const auto is_same = [&](const Node& x, const Node& y) {
    const Node *kept = of_a.kept_value(x), *kept_too = of_b.kept_value(y);
    return same_id(x, y) && same_call(x, y, same_id) && !kept == !kept_too && (!kept || same_id(*kept, *kept_too));
  };
  return same_nodes(a, b, is_same) && same_constants(of_a, of_b);
}

}  // namespace fx::internal
