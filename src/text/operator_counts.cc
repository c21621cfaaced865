#include <fxgraph/text/operator_counts.h>

#include <algorithm>
#include <map>
#include <tuple>

#include <fxgraph/ops/schema.h>
#include <fxgraph/support/error.h>

namespace fx {

std::string get_node_target(const Node& node, const ModuleInfo& modules) {
  if (!node.is_callable()) {
    throw Error(ErrorKind::invalid_argument,
                "%" + node.name() + " calls nothing: it is a " + std::string(to_string(node.op())), node.name());
  }
  if (node.is(Op::call_function)) return spelled_target(node.target());
  if (!node.is(Op::call_module)) return node.target().str();
  const std::string type = modules.type_of(node.target().view());
  return type.empty() ? node.target().str() : type;
}

std::vector<OperatorCount> count_operators(const Graph& graph, const ModuleInfo& modules) {
  std::map<std::pair<Op, std::string>, std::size_t> counts;
  for (const Node& node : graph.nodes()) {
    if (node.is_callable()) ++counts[{node.op(), get_node_target(node, modules)}];
  }
  std::vector<OperatorCount> all;
  for (const auto& [what, count] : counts) all.push_back({what.second, what.first, count});
  std::ranges::sort(all, [](const OperatorCount& a, const OperatorCount& b) {
    return std::tie(b.count, a.target, a.op) < std::tie(a.count, b.target, b.op);
  });
  return all;
}

std::string operator_table(const Graph& graph, const ModuleInfo& modules) {
  const std::vector<OperatorCount> all = count_operators(graph, modules);
  std::size_t sum = 0;
  std::string text;
  const auto add_line = [&](std::size_t count, const std::string& what) {
    const std::string number = std::to_string(count);
    text += std::string(number.size() < 8 ? 8 - number.size() : 0, ' ') + number + "  " + what + "\n";
  };
  for (const OperatorCount& one : all) {
    add_line(one.count, one.target);
    sum += one.count;
  }
  add_line(sum, sum == 1 ? "call" : "calls");
  return text;
}

}  // namespace fx
