// Graphviz.
#include <array>
#include <string>
#include <vector>

#include <fxgraph/ops/schema.h>
#include <fxgraph/text/dot.h>
#include <fxgraph/text/print.h>

namespace fx {

namespace {

// By opcode; light enough for black text.
constexpr std::array<std::string_view, 6> kColours = {"#cfe2f3", "#fff2cc", "#ffffff", "#fce5cd", "#d9ead3", "#ead1dc"};

// Record labels give `{`, `|`, `<` and blanks a meaning of their own.
void append_label(std::string& out, std::string_view text, bool record) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += ' ';
    } else {
      if (std::string_view(record ? "{}|<>\"\\ " : "\"\\").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
}

bool is_name(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
             std::string_view::npos &&
         (text[0] < '0' || text[0] > '9');
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  append_label(out, text, false);
  return out + "\"";
}

/// `net.py:7` of the innermost `File "net.py", line 7, in forward`; the innermost line of a trace that has none.
std::string place_of(const Node& node) {
  const Meta* meta = node.find_meta();
  const std::string* trace = meta ? meta->get<std::string>(meta_key::kStackTrace) : nullptr;
  const std::size_t file = trace ? trace->rfind("File \"") : std::string::npos;
  const std::size_t end = file == std::string::npos ? file : trace->find("\", line ", file);
  if (end == std::string::npos) return source_place(node);
  const std::size_t number = end + 8, after = trace->find_first_not_of("0123456789", number);
  return trace->substr(file + 6, end - file - 6) + ":" + trace->substr(number, after - number);
}

class DotPrinter {
 public:
  DotPrinter(const Graph& graph, const DotOptions& options)
      : graph_(graph), options_(options), record_(options.shape == "record" || options.shape == "Mrecord") {}

  std::string print() {
    out_ = "digraph " + (is_name(options_.name) ? options_.name : quoted(options_.name)) +
           " {\n  node [shape=" + (is_name(options_.shape) ? options_.shape : quoted(options_.shape)) +
           ", style=filled, fontname=\"monospace\"];\n";
    for (const Node& node : graph_.nodes()) {
      if (is_drawn(node)) append_node(node);
    }
    for (const Node& node : graph_.nodes()) {
      node.for_each_input([&](const Node& input) {
        if (is_drawn(input)) out_ += "  n" + std::to_string(input.id()) + " -> n" + std::to_string(node.id()) + ";\n";
      });
    }
    return std::move(out_) + "}\n";
  }

 private:
  bool is_drawn(const Node& node) const { return !options_.ignore_getattr || !node.is(Op::get_attr); }

  // The parts of a label, from top to bottom.
  std::vector<std::string> parts(const Node& node) const {
    std::vector<std::string> parts = {node.name(), std::string(to_string(node.op()))};
    if (!node.is(Op::output))
      parts.push_back(node.is(Op::call_function) ? spelled_target(node.target()) : node.target().str());
    const Meta* meta = node.find_meta();
    if (const std::string* type = meta ? meta->get<std::string>(meta_key::kType) : nullptr; type && !type->empty())
      parts.push_back(*type);
    if (options_.arguments && !node.is(Op::placeholder) && !node.is(Op::get_attr)) add_arguments(node, parts);
    if (options_.shapes) add_shapes(node, parts);
    if (options_.parse_stack_trace) {
      if (std::string place = place_of(node); !place.empty()) parts.push_back(std::move(place));
    }
    return parts;
  }

  std::string text_of(const Argument& argument) const {
    if (!options_.skip_node_names_in_args) return to_string(argument);
    return to_string(map_nodes(argument, [](Node&) { return Argument::opaque("_"); }));
  }

  void add_arguments(const Node& node, std::vector<std::string>& parts) const {
    std::string text;
    for (const Argument& argument : node.args()) text += (text.empty() ? "" : ", ") + text_of(argument);
    if (!node.args().empty()) parts.push_back("args=(" + text + ")");
    text.clear();
    for (const auto& [name, value] : node.kwargs())
      text += (text.empty() ? "" : ", ") + name.str() + "=" + text_of(value);
    if (!node.kwargs().empty()) parts.push_back("kwargs=(" + text + ")");
  }

  void add_shapes(const Node& node, std::vector<std::string>& parts) const {
    std::string text;
    for (const TensorInfo& tensor : (*options_.shapes)[node].tensors)
      text += (text.empty() ? "" : ", ") + to_string(tensor);
    if (!text.empty()) parts.push_back(std::move(text));
  }

  void append_node(const Node& node) {
    out_ += "  n" + std::to_string(node.id()) + (record_ ? " [label=\"{" : " [label=\"");
    bool first = true;
    for (const std::string& part : parts(node)) {
      if (!first) out_ += record_ ? "|" : "\\n";
      append_label(out_, part, record_);
      first = false;
    }
    const std::string colour = options_.colour ? options_.colour(node) : std::string();
    out_.append(record_ ? "}\", fillcolor=" : "\", fillcolor=");
    out_ += quoted(colour.empty() ? kColours[static_cast<std::size_t>(node.op())] : std::string_view(colour)) + "];\n";
  }

  const Graph& graph_;
  const DotOptions& options_;
  bool record_;
  std::string out_;
};

}  // namespace

std::string print_dot(const Graph& graph, const DotOptions& options) { return DotPrinter(graph, options).print(); }
std::string print_dot(const Graph& graph) { return print_dot(graph, DotOptions()); }

}  // namespace fx
