// JSON. The schema is in text/print.h.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include <fxgraph/text/print.h>

namespace fx {

namespace {

// Length of the well-formed UTF-8 sequence that starts `text`, or 0 (RFC 3629).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;  // overlong; surrogates
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char c = text[0];
    std::size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escape.data();
    } else if (length == 0) {
      out += "\xEF\xBF\xBD";
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void append_value(std::string& out, const Argument& argument);

void append_elements(std::string& out, ArgumentSpan elements) {
  out += '[';
  bool first = true;
  for (const Argument& element : elements) {
    if (!first) out += ", ";
    first = false;
    append_value(out, element);
  }
  out += ']';
}

void append_pairs(std::string& out, ArgumentSpan pairs) {
  out += '[';
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    out += i > 0 ? ", [" : "[";
    append_value(out, pairs[i]);
    out += ", ";
    append_value(out, pairs[i + 1]);
    out += ']';
  }
  out += ']';
}

void append_tagged(std::string& out, std::string_view key, std::string_view text) {
  out.append("{\"").append(key).append("\": ");
  append_string(out, text);
  out += '}';
}

void append_value(std::string& out, const Argument& argument) {
  using Kind = ArgumentKind;
  const ArgumentSpan elements = argument.elements();
  switch (argument.kind()) {
    case Kind::none: out += "null"; break;
    case Kind::node: append_tagged(out, "node", argument.node().name()); break;
    case Kind::boolean: out += argument.as_bool() ? "true" : "false"; break;
    case Kind::integer: out += std::to_string(argument.as_int()); break;
    case Kind::floating:
      if (std::isfinite(argument.as_float())) {
        format_float(out, argument.as_float());
      } else {
        append_tagged(out, "float", to_string(argument));
      }
      break;
    case Kind::string: append_string(out, argument.as_string()); break;
    case Kind::dtype: append_tagged(out, "dtype", to_string(argument.as_dtype())); break;
    case Kind::device: append_tagged(out, "device", to_string(argument.as_device())); break;
    case Kind::layout: append_tagged(out, "layout", argument.as_layout().name.view()); break;
    case Kind::memory_format: append_tagged(out, "memory_format", argument.as_memory_format().name.view()); break;
    case Kind::ellipsis: out += "{\"ellipsis\": true}"; break;
    case Kind::opaque: append_tagged(out, "opaque", argument.as_string()); break;
    case Kind::list: append_elements(out, elements); break;
    case Kind::tuple:
    case Kind::slice:
    case Kind::complex:
      out.append("{\"").append(to_string(argument.kind())).append("\": ");
      append_elements(out, elements);
      out += '}';
      break;
    case Kind::dict:
      out += "{\"dict\": ";
      append_pairs(out, elements);
      out += '}';
      break;
  }
}

void append_kwargs(std::string& out, KwargSpan kwargs) {
  out += '{';
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    if (i > 0) out += ", ";
    append_string(out, kwargs.name(i).view());
    out += ": ";
    append_value(out, kwargs.value(i));
  }
  out += '}';
}

void append_node(std::string& out, const Node& node) {
  out += "  {\"name\": ";
  append_string(out, node.name());
  out.append(", \"op\": \"").append(to_string(node.op())).append("\", \"target\": ");
  append_string(out, node.target().view());
  const Meta* meta = node.find_meta();
  if (const std::string* type = meta ? meta->get<std::string>(meta_key::kType) : nullptr; type && !type->empty()) {
    out += ", \"type\": ";
    append_string(out, *type);
  }
  out += ", \"args\": ";
  append_elements(out, node.args());
  out += ", \"kwargs\": ";
  append_kwargs(out, node.kwargs());
  out += ", \"users\": [";
  bool first = true;
  for (const Node& user : node.users()) {
    if (!first) out += ", ";
    first = false;
    append_string(out, user.name());
  }
  out += "]}";
}

}  // namespace

std::string print_json(const Graph& graph) {
  std::string out = "{\"nodes\": [";
  bool first = true;
  for (const Node& node : graph.nodes()) {
    out += first ? "\n" : ",\n";
    first = false;
    append_node(out, node);
  }
  out += first ? "]}\n" : "\n]}\n";
  return out;
}

}  // namespace fx
