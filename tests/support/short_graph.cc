#include "tests/support/short_graph.h"

#include <sstream>

#include "text/parse.h"

namespace fx::testing {

Graph graph_of(const std::string& body, const std::string& inputs) {
  std::string text = "graph():\n";
  std::istringstream names(inputs);
  for (std::string name; names >> name;)
    text += "    %" + name + " : [num_users=0] = placeholder[target=" + name + "]\n";
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(" = ");
    const std::size_t open = line.find('(');
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    if (const std::size_t ret = line.find("return"); ret != std::string::npos) {
      text += "    " + line.substr(ret) + "\n";
      continue;
    }
    const std::size_t start = line.find_first_not_of(' ');
    const std::string target = line.substr(equals + 3, open - equals - 3);
    std::string args = line.substr(open + 1, line.rfind(')') - open - 1);
    if (args.find(',') == std::string::npos && !args.empty()) args += ",";
    text += "    %" + line.substr(start, equals - start) +
            " : [num_users=0] = " + (target.starts_with("get_attr") ? target : "call_function[target=" + target + "]") +
            "(args = (" + args + "), kwargs = {})\n";
  }
  return parse_graph(text);
}

std::string calls_of(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    if (node.is(Op::placeholder)) continue;
    text += node.is(Op::output) ? "return " : node.name() + " = " + node.target().str() + "(";
    std::string args;
    for (const Argument& arg : node.args()) args += (args.empty() ? "" : ", ") + to_string(arg, NodeStyle::plain);
    for (const auto& [name, value] : node.kwargs())
      args += (args.empty() ? "" : ", ") + name.str() + "=" + to_string(value, NodeStyle::plain);
    text += args + (node.is(Op::output) ? "\n" : ")\n");
  }
  return text;
}

}  // namespace fx::testing
