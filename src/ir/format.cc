// How arguments print: Python's repr, so that FX text, tables and generated code agree on every literal.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include <fxgraph/ir/argument.h>
#include <fxgraph/ir/graph.h>

namespace fx {

namespace {

void format_int(std::string& out, std::int64_t value) {
  std::array<char, 24> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

void format_elements(std::string& out, ArgumentSpan elements, NodeStyle style) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (i > 0) out += ", ";
    format(out, elements[i], style);
  }
}

void format_complex(std::string& out, std::complex<double> value) {
  out += "complex(";
  format_float(out, value.real());
  out += ", ";
  format_float(out, value.imag());
  out += ')';
}

}  // namespace

void format_float(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  // Shortest digits from the library, Python's choice between 0.0001 and 1e-05 from here.
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const std::size_t e = text.find('e');
  int exponent = 0;
  const char* digits = text.data() + e + 1;
  std::from_chars(*digits == '+' ? digits + 1 : digits, text.data() + text.size(), exponent);
  std::string mantissa(text.substr(0, 1));
  if (e > 1) mantissa += text.substr(2, e - 2);
  const int count = static_cast<int>(mantissa.size());
  if (exponent < -4 || exponent >= 16) {
    out += mantissa[0];
    if (count > 1) out.append(1, '.').append(mantissa, 1);
    std::array<char, 16> suffix;
    std::snprintf(suffix.data(), suffix.size(), "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    out += suffix.data();
  } else if (exponent < 0) {
    out.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(mantissa);
  } else if (count <= exponent + 1) {
    out.append(mantissa).append(static_cast<std::size_t>(exponent + 1 - count), '0').append(".0");
  } else {
    out.append(mantissa, 0, static_cast<std::size_t>(exponent + 1))
        .append(1, '.')
        .append(mantissa, static_cast<std::size_t>(exponent + 1));
  }
}

void format_quoted(std::string& out, std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (const char c : text) {
    switch (c) {
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\\': out += "\\\\"; break;
      default:
        if (c == quote) {
          out += '\\';
          out += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          std::array<char, 8> escape;
          std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned char>(c));
          out += escape.data();
        } else {
          out += c;
        }
    }
  }
  out += quote;
}

void format(std::string& out, const Argument& argument, NodeStyle style) {
  using Kind = ArgumentKind;
  const ArgumentSpan elements = argument.elements();
  switch (argument.kind()) {
    case Kind::none: out += "None"; break;
    case Kind::node:
      if (style == NodeStyle::percent) out += '%';
      argument.node().append_name(out);
      break;
    case Kind::boolean: out += argument.as_bool() ? "True" : "False"; break;
    case Kind::integer: format_int(out, argument.as_int()); break;
    case Kind::floating: format_float(out, argument.as_float()); break;
    case Kind::complex: format_complex(out, argument.as_complex()); break;
    case Kind::string: format_quoted(out, argument.as_string()); break;
    case Kind::dtype: out.append("torch.").append(to_string(argument.as_dtype())); break;
    case Kind::device: {
      const Device device = argument.as_device();
      out += "device(type=";
      format_quoted(out, device.type.view());
      if (device.index >= 0) out.append(", index=").append(std::to_string(device.index));
      out += ')';
      break;
    }
    case Kind::layout: out.append("torch.").append(argument.as_layout().name.view()); break;
    case Kind::memory_format: out.append("torch.").append(argument.as_memory_format().name.view()); break;
    case Kind::ellipsis: out += "Ellipsis"; break;
    case Kind::opaque: out += argument.as_string(); break;
    case Kind::list:
      out += '[';
      format_elements(out, elements, style);
      out += ']';
      break;
    case Kind::tuple:
      out += '(';
      format_elements(out, elements, style);
      out += elements.size() == 1 ? ",)" : ")";
      break;
    case Kind::dict:
      out += '{';
      for (std::size_t i = 0; i < elements.size(); i += 2) {
        if (i > 0) out += ", ";
        format(out, elements[i], style);
        out += ": ";
        format(out, elements[i + 1], style);
      }
      out += '}';
      break;
    case Kind::slice:
      out += "slice(";
      format_elements(out, elements, style);
      out += ')';
      break;
  }
}

std::string to_string(const Argument& argument, NodeStyle style) {
  std::string out;
  format(out, argument, style);
  return out;
}

}  // namespace fx
