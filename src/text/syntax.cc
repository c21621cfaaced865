#include <fxgraph/text/syntax.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <vector>

#include <fxgraph/ir/target.h>
#include <fxgraph/ops/schema.h>

namespace fx::internal {

namespace {

constexpr auto kLayouts = std::to_array<std::string_view>(
    {"strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn"});
constexpr auto kMemoryFormats =
    std::to_array<std::string_view>({"contiguous_format", "channels_last", "channels_last_3d", "preserve_format"});
constexpr auto kConstructors =
    std::to_array<std::string_view>({"slice", "device", "torch.device", "complex", "opaque"});

// Functions of Python's builtins and math modules, all of which print as `<built-in function NAME>`; others are
// operator's.
constexpr auto kBuiltins =
    std::to_array<std::string_view>({"all",  "any",  "callable",   "delattr",    "divmod",  "getattr", "hasattr",
                                     "hash", "id",   "isinstance", "issubclass", "iter",    "len",     "max",
                                     "min",  "next", "print",      "repr",       "setattr", "sorted",  "sum"});
constexpr auto kMath =
    std::to_array<std::string_view>({"acos", "asin", "atan", "ceil", "cos", "exp", "log", "sin", "sqrt", "tan"});

template <typename Table>
bool contains(const Table& table, std::string_view word) {
  return std::find(table.begin(), table.end(), word) != table.end();
}

// Length of the quoted text that starts `text`, or 0.
std::size_t quoted_length(std::string_view text) {
  for (std::size_t i = 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[0]) {
      return i + 1;
    }
  }
  return 0;
}

std::size_t line_length(std::string_view text) { return std::min(text.find('\n'), text.size()); }

// Length of the bracketed text that starts `text`, or 0.
std::size_t bracketed_length(std::string_view text, std::size_t& scanned) {
  constexpr std::string_view kOpening = "([{<", kClosing = ")]}>";
  const bool angle = text[0] == '<';  // in `<…>` quotes are prose: <it's>
  std::string open;
  for (std::size_t i = 0; i < text.size(); ++i) {
    scanned = i + 1;
    const char c = text[i];
    if (c == '\n' || is_control(c)) return 0;
    if (!angle && (c == '\'' || c == '"')) {
      const std::size_t length = quoted_length(text.substr(i));
      if (length == 0) {
        scanned = line_length(text);
        return 0;
      }
      i += length - 1;
    } else if (const std::size_t kind = kOpening.find(c); kind != std::string_view::npos && (angle || c != '<')) {
      if (open.size() == Argument::kMaxNesting) return 0;
      open += kClosing[kind];
    } else if (kClosing.find(c) != std::string_view::npos && (angle || c != '>')) {
      if (c == '>' && text[i - 1] == '-') continue;  // an arrow
      if (open.back() != c) return 0;
      open.pop_back();
      if (open.empty()) return i + 1;
    }
  }
  return 0;
}

bool read_int(std::string_view digits, Argument& value) {
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (end != digits.data() + digits.size()) return false;
  if (status == std::errc::result_out_of_range) {
    value = Argument::opaque(digits);
  } else if (status == std::errc()) {
    value = Argument(number);
  } else {
    return false;
  }
  return true;
}

bool read_double(std::string_view digits, double& number) {
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const std::string_view unsigned_digits = digits.starts_with('-') ? digits.substr(1) : digits;
  if (unsigned_digits == "inf" || unsigned_digits == "nan") {
    number =
        unsigned_digits == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    if (digits.size() > unsigned_digits.size() && unsigned_digits == "inf") number = -number;
    return true;
  }
  if (unsigned_digits.empty() || !(is_digit(unsigned_digits[0]) || unsigned_digits[0] == '.')) return false;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (end != digits.data() + digits.size() || status == std::errc::invalid_argument) return false;
  if (status == std::errc::result_out_of_range) number = std::strtod(std::string(digits).c_str(), nullptr);
  return true;
}

// `1j`, `1+2j`, `nan-infj`.
bool read_complex(std::string_view word, Argument& value) {
  if (!word.ends_with('j')) return false;
  word.remove_suffix(1);
  std::size_t split = word.size();
  while (split > 0 && !((word[split - 1] == '+' || word[split - 1] == '-') && (split == 1 || word[split - 2] != 'e')))
    --split;
  if (split > 0) --split;  // at the sign of the imaginary part
  double real = 0, imaginary = 0;
  if (split > 0 && !read_double(word.substr(0, split), real)) return false;
  if (!read_double(word.substr(split), imaginary)) return false;
  value = Argument(std::complex<double>(real, imaginary));
  return true;
}

bool read_number(std::string_view word, Argument& value) {
  if (read_int(word, value)) return true;
  double number = 0;
  if (read_double(word, number)) {
    value = Argument(number);
    return true;
  }
  return read_complex(word, value);
}

bool is_dotted_name(std::string_view text) {
  while (true) {
    const std::size_t dot = text.find('.');
    if (!is_identifier(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool read_torch_constant(std::string_view word, Argument& value) {
  const std::string_view name = word.substr(6);
  if (const std::optional<DType> dtype = parse_dtype(name); dtype && name.find('.') == std::string_view::npos) {
    value = Argument(*dtype);
  } else if (contains(kLayouts, name)) {
    value = Argument(Layout{name});
  } else if (contains(kMemoryFormats, name)) {
    value = Argument(MemoryFormat{name});
  } else if (is_dotted_name(name)) {
    value = Argument::opaque(word);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::size_t object_length(std::string_view text, std::size_t& scanned) {
  scanned = 0;
  if (text.empty()) return 0;
  if (text[0] == '<') return bracketed_length(text, scanned);
  if (text.starts_with("b'") || text.starts_with("b\"")) {
    const std::size_t length = quoted_length(text.substr(1));
    scanned = length == 0 ? line_length(text) : length + 1;
    return length == 0 ? 0 : length + 1;
  }
  std::size_t name = 0;
  while (name < text.size() && (is_name_char(text[name]) || text[name] == '.')) ++name;
  if (name == text.size() || text[name] != '(' || !is_dotted_name(text.substr(0, name))) return 0;
  const std::size_t length = bracketed_length(text.substr(name), scanned);
  scanned += name;
  return length == 0 ? 0 : name + length;
}

bool read_literal(std::string_view word, Argument& value) {
  if (word.empty()) return false;
  const char c = word[0];
  if (is_digit(c) || c == '-' || c == '+' || c == '.') {
    if (word == "...") {
      value = Argument::ellipsis();
      return true;
    }
    return read_number(word, value);
  }
  if (word == "None") {
    value = Argument();
  } else if (word == "True" || word == "False") {
    value = Argument(word == "True");
  } else if (word == "Ellipsis") {
    value = Argument::ellipsis();
  } else if (word == "inf" || word == "nan" || word == "infj" || word == "nanj") {
    return read_number(word, value);
  } else if (word.starts_with("torch.")) {
    return read_torch_constant(word, value);
  } else if (const std::optional<Device> device = parse_device(word)) {
    value = Argument(*device);
  } else {
    return false;
  }
  return true;
}

bool is_constructor(std::string_view name) { return contains(kConstructors, name); }

bool is_plain_object(std::string_view text) {
  Argument literal;
  if (read_literal(text, literal)) return literal.kind() == ArgumentKind::opaque && literal.as_string() == text;
  std::size_t scanned = 0;
  return !text.empty() && object_length(text, scanned) == text.size() &&
         !is_constructor(text.substr(0, text.find('(')));
}

bool is_plain_target(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return is_name_char(c) || c == '.' || c == ':' || c == '*'; });
}

bool is_plain_type(std::string_view text) {
  if (text.empty() || is_blank(text.front()) || is_blank(text.back()) || text.front() == '\'' || text.front() == '"')
    return false;
  if (text.starts_with("[num_users") || text.starts_with("[#users")) return false;
  if (text.find(" [num_users") != std::string_view::npos || text.find(" [#users") != std::string_view::npos)
    return false;
  return std::none_of(text.begin(), text.end(), [](char c) { return is_control(c) || c == '\t' || c == '='; });
}

void format_node_target(std::string& out, Op op, Symbol target) {
  const std::string spelt = op == Op::call_function ? spelled_target(target) : target.str();
  if (is_plain_target(spelt) && (op != Op::call_function || canonical_target(spelt) == target)) {
    out += spelt;
  } else {
    format_quoted(out, target.view());
  }
}

std::string_view read_target(Op op, std::string_view text, std::string& buffer) {
  if (op != Op::call_function || !text.starts_with('<')) return text;
  const auto between = [&](std::string_view before, std::string_view after) {
    if (!text.starts_with(before)) return std::string_view();
    const std::string_view rest = text.substr(before.size());
    return rest.substr(0, std::min(rest.find(after), rest.size()));
  };
  if (const std::string_view name = between("<built-in function ", ">"); is_identifier(name)) {
    buffer = std::string(contains(kBuiltins, name) ? "builtins."
                         : contains(kMath, name)   ? "math."
                                                   : "operator.")
                 .append(name);
  } else if (const std::string_view method = between("<built-in method ", " of type object at ");
             is_identifier(method)) {
    buffer = std::string("torch.").append(method);
  } else if (const std::string_view packet = between("<OpOverload(op='", "'"); is_dotted_name(packet)) {
    const std::size_t overload = text.find("overload='");
    buffer = std::string("torch.ops.").append(packet);
    if (overload != std::string_view::npos) {
      const std::string_view name = text.substr(overload + 10);
      buffer.append(1, '.').append(name.substr(0, std::min(name.find('\''), name.size())));
    }
  } else if (const std::string_view whole = between("<OpOverloadPacket(op='", "'"); is_dotted_name(whole)) {
    buffer = std::string("torch.ops.").append(whole);
  } else {
    return text;
  }
  return buffer;
}

}  // namespace fx::internal
