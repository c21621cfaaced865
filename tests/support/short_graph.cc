#include "tests/support/short_graph.h"

#include <sstream>

#include <fxgraph/text/parse.h>

namespace fx::testing {

namespace {

/// `%x, [1, 2], alpha=2` as the rest of a line of FX text: `(args = (%x, [1, 2],), kwargs = {alpha: 2})`.
std::string arguments_of(const std::string& list) {
  std::string args, kwargs;
  int depth = 0;
  for (std::size_t start = 0, i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    depth += (c == '[' || c == '(' || c == '{') - (c == ']' || c == ')' || c == '}');
    if (depth > 0 || c != ',') continue;
    std::string argument = list.substr(start, i - start);
    argument.erase(0, argument.find_first_not_of(' '));
    start = i + 1;
    const std::size_t equals = argument.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    if (equals != std::string::npos && equals > 0 && argument[equals] == '=') {
      kwargs += argument.replace(equals, 1, ": ") + ", ";
    } else if (!argument.empty()) {
      args += argument + ",";
    }
  }
  if (!kwargs.empty()) kwargs.resize(kwargs.size() - 2);
  return "(args = (" + args + "), kwargs = {" + kwargs + "})\n";
}

}  // namespace

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
    text += "    %" + line.substr(start, equals - start) +
            " : [num_users=0] = " + (target.ends_with(']') ? target : "call_function[target=" + target + "]") +
            arguments_of(line.substr(open + 1, line.rfind(')') - open - 1));
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
