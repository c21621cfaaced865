#include <fxgraph/trace/kept_values.h>

#include <fxgraph/trace/known_values.h>
#include <fxgraph/trace/proxy_impl.h>
#include <fxgraph/trace/session.h>
#include <fxgraph/trace/tensor_memory.h>

namespace fx::internal {
namespace {

bool has_node(const ProxyImpl& proxy) { return proxy.node() && !proxy.node()->is_erased(); }

at::Tensor constant_value(const Session& session, const ProxyImpl& proxy) {
  if (proxy.is_constant()) return own_copy(proxy.value());
  if (!has_node(proxy)) return {};
  const std::optional<KnownValues> known = known_values(session, {proxy.node()});
  if (!known || known->of_attribute || !known->values.front().isTensor()) return {};
  return known->values.front().toTensor();
}

}  // namespace

std::vector<ProxyImpl*> alive_proxies(Session& session) {
  std::vector<ProxyImpl*> alive;
  session.proxies().for_each([&](ProxyImpl& proxy) { alive.push_back(&proxy); });
  return alive;
}

void become_buffers(Session& session, const std::vector<KeptUpdate>& updates) {
  if (updates.empty()) return;
  for (ProxyImpl* proxy : alive_proxies(session)) {
    for (const KeptUpdate& update : updates) {
      if (proxy->is_constant() || proxy->node() != update.value) continue;
      proxy->become(update.buffer);
      break;
    }
  }
}

bool become_constants(Session& session) {
  bool any = false;
  for (ProxyImpl* proxy : alive_proxies(session)) {
    const at::Tensor value = constant_value(session, *proxy);
    if (!value.defined()) continue;
    proxy->become(value);
    any = true;
  }
  return any;
}

const Node* become_values(Session& session) {
  std::vector<ProxyImpl*> computed;
  std::vector<const Node*> nodes;
  for (ProxyImpl* proxy : alive_proxies(session)) {
    if (proxy->is_constant()) {
      proxy->become(own_copy(proxy->value()));
    } else if (has_node(*proxy)) {
      computed.push_back(proxy);
      nodes.push_back(proxy->node());
    } else {
      proxy->forget_node();
    }
  }
  std::vector<at::Tensor> values(nodes.size());
  try {
    values = values_of_call(session, nodes);
  } catch (const std::exception&) {  // as often at the end of a trace that has failed: then they stay traced
  }
  const Node* unknown = nullptr;
  for (std::size_t i = 0; i < computed.size(); ++i) {
    if (values[i].defined()) {
      computed[i]->become(values[i]);
    } else {
      computed[i]->forget_node();
      unknown = unknown ? unknown : nodes[i];
    }
  }
  return unknown;
}

}  // namespace fx::internal
