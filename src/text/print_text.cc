// FX's str(graph).
#include <array>
#include <charconv>
#include <ostream>

#include <fxgraph/support/flat_map.h>
#include <fxgraph/text/print.h>
#include <fxgraph/text/syntax.h>

namespace fx {

namespace {

// Writes lines; remembers how the targets it has met are spelt.
class Printer {
 public:
  explicit Printer(std::string& out) : out_(out) {}

  void line(const Node& node) {
    if (node.is(Op::output) && node.args().size() == 1 && node.kwargs().empty()) {
      out_ += "return ";
      value(node.args()[0], NodeStyle::plain);
      return;
    }
    out_ += '%';
    node.append_name(out_);
    out_ += " : ";
    type(node);
    out_ += "[num_users=";
    number(node.num_users());
    out_ += "] = ";
    out_ += to_string(node.op());
    out_ += "[target=";
    target(node);
    out_ += ']';
    arguments(node);
  }

 private:
  void type(const Node& node) {
    const Meta* meta = node.find_meta();
    const std::string* text = meta ? meta->get<std::string>(meta_key::kType) : nullptr;
    if (!text || text->empty()) return;
    if (internal::is_plain_type(*text)) {
      out_ += *text;
    } else {
      format_quoted(out_, *text);
    }
    out_ += ' ';
  }

  void target(const Node& node) {
    const std::uint64_t key = (std::uint64_t{node.is(Op::call_function)} << 32) | node.target().id();
    Spelling& known = spellings_[key];
    if (known.size == 0) {
      known.start = spelt_.size();
      internal::format_node_target(spelt_, node.op(), node.target());
      known.size = spelt_.size() - known.start;
    }
    out_.append(spelt_, known.start, known.size);
  }

  void arguments(const Node& node) {
    const ArgumentSpan args = node.args();
    const KwargSpan kwargs = node.kwargs();
    if (kwargs.empty()) {
      if (node.is(Op::placeholder) && args.size() == 1) {
        out_ += "(default=";
        value(args[0], NodeStyle::percent);
        out_ += ')';
        return;
      }
      if (args.empty() && (node.is(Op::placeholder) || node.is(Op::get_attr))) return;
    }
    out_ += "(args = (";
    elements(args, NodeStyle::percent);
    out_ += args.size() == 1 ? ",), kwargs = {" : "), kwargs = {";
    for (std::size_t i = 0; i < kwargs.size(); ++i) {
      if (i > 0) out_ += ", ";
      const std::string_view name = kwargs.name(i).view();
      if (is_identifier(name)) {
        out_ += name;
      } else {
        format_quoted(out_, name);
      }
      out_ += ": ";
      value(kwargs.value(i), NodeStyle::percent);
    }
    out_ += "})";
  }

  void elements(ArgumentSpan elements, NodeStyle style) {
    bool first = true;
    for (const Argument& element : elements) {
      if (!first) out_ += ", ";
      first = false;
      value(element, style);
    }
  }

  // Nodes and ints are written here because there are so many, containers and objects because format() need not read
  // back.
  void value(const Argument& argument, NodeStyle style, bool key = false) {
    const ArgumentSpan parts = argument.elements();
    switch (argument.kind()) {
      case ArgumentKind::node:
        if (style == NodeStyle::percent) out_ += '%';
        argument.node_or_null()->append_name(out_);
        break;
      case ArgumentKind::integer: number(argument.as_int()); break;
      case ArgumentKind::opaque: object(argument.as_string(), style == NodeStyle::plain || key); break;
      case ArgumentKind::list:
        out_ += '[';
        elements(parts, style);
        out_ += ']';
        break;
      case ArgumentKind::tuple:
        out_ += '(';
        elements(parts, style);
        out_ += parts.size() == 1 ? ",)" : ")";
        break;
      case ArgumentKind::dict: dict(parts, style); break;
      case ArgumentKind::slice:
        out_ += "slice(";
        elements(parts, NodeStyle::plain);  // Python's repr, as FX leaves slices to it
        out_ += ')';
        break;
      default: format(out_, argument, style); break;
    }
  }

  void dict(ArgumentSpan pairs, NodeStyle style) {
    out_ += '{';
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      if (i > 0) out_ += ", ";
      value(pairs[i], style, true);
      out_ += ": ";
      value(pairs[i + 1], style);
    }
    out_ += '}';
  }

  // Where bare words are looked up among the nodes, `name(…)` might seem to hold one.
  void object(std::string_view text, bool careful) {
    if (internal::is_plain_object(text) && !(careful && text.find('(') != std::string_view::npos)) {
      out_ += text;
    } else {
      out_ += "opaque(";
      format_quoted(out_, text);
      out_ += ')';
    }
  }

  template <typename Int>
  void number(Int value) {
    std::array<char, 24> buffer;
    out_.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
  }

  struct Spelling {
    std::size_t start = 0, size = 0;
  };
  std::string& out_;
  std::string spelt_;
  FlatMap<Spelling> spellings_;
};

}  // namespace

void format_node(std::string& out, const Node& node) { Printer(out).line(node); }

std::string format_node(const Node& node) {
  std::string out;
  format_node(out, node);
  return out;
}

std::string source_place(const Node& node) {
  const Meta* meta = node.find_meta();
  const std::string* trace = meta ? meta->get<std::string>(meta_key::kStackTrace) : nullptr;
  if (!trace) return {};
  const std::size_t last = trace->find_last_not_of(" \t\n");
  if (last == std::string::npos) return {};
  const std::size_t line = trace->rfind('\n', last);
  const std::size_t first = trace->find_first_not_of(" \t", line == std::string::npos ? 0 : line + 1);
  return trace->substr(first, last + 1 - first);
}

std::string print_graph(const Graph& graph) {
  std::string out = "graph():\n";
  Printer printer(out);
  for (const Node& node : graph.nodes()) {
    out += "    ";
    printer.line(node);
    out += '\n';
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Graph& graph) { return out << print_graph(graph); }

}  // namespace fx
