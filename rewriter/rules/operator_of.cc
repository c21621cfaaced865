#include <fxgraph/rewriter/rules/operator_of.h>

#include <algorithm>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>

namespace fx::rules {

std::string path_of(const Node& node) { return node.target().str(); }

Symbol operator_of(const Node& node) {
  const Call call = call_of(node);
  return call ? operator_name(call.schema()) : Symbol();
}

std::string_view last_name(const Node& call) {
  const std::string_view packet = packet_of(call.target().view());
  return packet.substr(packet.find_last_of(":.") + 1);
}

bool is_one_of(std::span<const std::string_view> packets, Symbol target) {
  return std::ranges::find(packets, packet_of(target.view())) != packets.end();
}

}  // namespace fx::rules
