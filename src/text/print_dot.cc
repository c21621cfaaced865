// Graphviz.
#include <array>
#include <string>

#include <fxgraph/ops/schema.h>
#include <fxgraph/text/print.h>

namespace fx {

namespace {

// By opcode; light enough for black text.
constexpr std::array<std::string_view, 6> kColours = {"#cfe2f3", "#fff2cc", "#ffffff", "#fce5cd", "#d9ead3", "#ead1dc"};

// Record labels give `{`, `|`, `<` and blanks a meaning of their own.
void append_label(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += ' ';
    } else {
      if (std::string_view("{}|<>\"\\ ").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
}

void append_record(std::string& out, const Node& node) {
  out += "  n" + std::to_string(node.id()) + " [label=\"{";
  append_label(out, node.name());
  out.append("|").append(to_string(node.op()));
  if (!node.is(Op::output)) {
    out += '|';
    append_label(out, node.is(Op::call_function) ? spelled_target(node.target()) : node.target().str());
  }
  const Meta* meta = node.find_meta();
  if (const std::string* type = meta ? meta->get<std::string>(meta_key::kType) : nullptr; type && !type->empty()) {
    out += '|';
    append_label(out, *type);
  }
  out.append("}\", fillcolor=\"").append(kColours[static_cast<std::size_t>(node.op())]).append("\"];\n");
}

}  // namespace

std::string print_dot(const Graph& graph) {
  std::string out = "digraph graph_ {\n  node [shape=record, style=filled, fontname=\"monospace\"];\n";
  for (const Node& node : graph.nodes()) append_record(out, node);
  for (const Node& node : graph.nodes()) {
    node.for_each_input([&](const Node& input) {
      out += "  n" + std::to_string(input.id()) + " -> n" + std::to_string(node.id()) + ";\n";
    });
  }
  out += "}\n";
  return out;
}

}  // namespace fx
