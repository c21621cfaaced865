#include <fxgraph/trace/kept_constants.h>

#include <fxgraph/trace/known_values.h>
#include <fxgraph/trace/proxy_impl.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/tensor_memory.h>

namespace fx::internal {
namespace {

at::Tensor value_of(const Session& session, const ProxyImpl& proxy) {
  if (proxy.is_constant()) return own_copy(proxy.value());
  if (!proxy.node() || proxy.node()->is_erased()) return {};
  const std::optional<KnownValues> known = known_values(session, {proxy.node()});
  if (!known || known->of_attribute || !known->values.front().isTensor()) return {};
  return known->values.front().toTensor();
}

}  // namespace

std::vector<std::pair<ProxyImpl*, at::Tensor>> kept_constants(const Session& session,
                                                              const std::vector<ProxyImpl*>& proxies) {
  std::vector<std::pair<ProxyImpl*, at::Tensor>> found;
  for (ProxyImpl* proxy : proxies) {
    if (proxy->session().get() != &session) continue;
    if (at::Tensor value = value_of(session, *proxy); value.defined()) found.emplace_back(proxy, std::move(value));
  }
  return found;
}

namespace {
std::vector<ProxyImpl*> alive_of(Session& session) {
  std::vector<ProxyImpl*> alive;
  session.proxies().for_each([&](ProxyImpl& proxy) { alive.push_back(&proxy); });
  return alive;
}
}  // namespace

bool settle_left_over(Session& session, const std::function<at::Tensor(const ProxyImpl&)>& before) {
  const std::vector<ProxyImpl*> alive = alive_of(session);
  std::vector<const Node*> nodes;
  std::vector<std::pair<ProxyImpl*, at::Tensor>> settled;
  for (ProxyImpl* proxy : alive) {
    at::Tensor value = proxy->is_constant() ? own_copy(proxy->value()) : before(*proxy);
    if (value.defined() || !proxy->node() || proxy->node()->is_erased()) {
      settled.emplace_back(proxy, std::move(value));
    } else {
      nodes.push_back(proxy->node());
      settled.emplace_back(proxy, at::Tensor());
    }
  }
  std::vector<at::Tensor> values(nodes.size());
  try {
    values = values_of_call(session, nodes);
  } catch (const std::exception&) {  // as often at the end of a trace that has failed: then they stay traced
  }
  std::size_t next = 0;
  for (auto& [proxy, value] : settled) {
    if (!value.defined() && next < nodes.size() && proxy->node() == nodes[next]) value = values[next++];
    if (value.defined()) {
      proxy->become(value);
    } else {
      proxy->forget_node();
    }
  }
  return !alive.empty();
}

void settle_kept_constants(Session& session) {
  for (const auto& [proxy, value] : kept_constants(session, alive_of(session))) proxy->become(value);
}

}  // namespace fx::internal
