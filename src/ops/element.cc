#include <fxgraph/ops/element.h>

#include <algorithm>

#include <fxgraph/ops/call.h>

namespace fx {

std::optional<Element> named_element(const Node& node) {
  Node* of = node.args()[0].node_or_null();
  if (!of || !node.args()[1].is_string()) return std::nullopt;
  const Call call = call_of(*of);
  if (!call || call.schema().returns.size() < 2) return std::nullopt;
  const std::vector<SchemaReturn>& results = call.schema().returns;
  const auto at = std::ranges::find(results, Symbol::find(node.args()[1].as_string()), &SchemaReturn::name);
  if (at == results.end() || at->name.empty()) return std::nullopt;
  return Element{of, at - results.begin()};
}

}  // namespace fx
