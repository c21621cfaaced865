#include <fxgraph/rewriter/rules/operator_of.h>

#include <algorithm>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/call.h>
#include <fxgraph/ops/python_target.h>

namespace fx::rules {

std::string path_of(const Node& node) { return node.target().str(); }

Symbol operator_of(const Node& node) {
  const Call call = call_of(node);
  return call ? operator_name(call.schema()) : Symbol();
}

std::vector<Symbol> possible_packets(const Node& call) {
  if (const Symbol one = operator_of(call); !one.empty()) return {Symbol(packet_of(one.view()))};
  return internal::python_target(call.op(), call.target()).packets;
}

std::string_view last_name(const Node& call) {
  const std::string_view packet = packet_of(call.target().view());
  return packet.substr(packet.find_last_of(":.") + 1);
}

bool is_one_of(std::span<const std::string_view> packets, Symbol target) {
  return std::ranges::find(packets, packet_of(target.view())) != packets.end();
}

}  // namespace fx::rules
