#include <fxgraph/ops/schema_defaults.h>

#include <charconv>
#include <limits>

namespace fx::internal {

namespace {

using Base = SchemaType::Base;

// In the order of LibTorch's numbers.
constexpr std::string_view kMemoryFormats[] = {"contiguous_format", "preserve_format", "channels_last",
                                               "channels_last_3d"};
constexpr std::string_view kLayouts[] = {"strided",    "sparse_coo", "sparse_csr", "mkldnn",
                                         "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
// native_functions.yaml names them where LibTorch prints the number.
constexpr std::string_view kReductions[] = {"", "Mean", "Sum"};

template <std::size_t N>
std::optional<std::size_t> find_name(const std::string_view (&names)[N], std::string_view name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  return std::nullopt;
}

std::optional<Argument> named_literal(std::string_view name) {
  if (name.empty()) return std::nullopt;
  if (name == "None") return Argument();
  if (name == "True") return Argument(true);
  if (name == "False") return Argument(false);
  if (name == "inf") return Argument(std::numeric_limits<double>::infinity());
  if (name == "nan") return Argument(std::numeric_limits<double>::quiet_NaN());
  if (find_name(kMemoryFormats, name)) return Argument(MemoryFormat{name});
  if (find_name(kLayouts, name)) return Argument(Layout{name});
  if (const auto reduction = find_name(kReductions, name)) return Argument(*reduction);
  if (const auto dtype = parse_dtype(name)) return Argument(*dtype);
  return std::nullopt;
}

Argument typed_integer(const SchemaType& type, std::int64_t value) {
  const auto i = static_cast<std::size_t>(value);
  if (type.base == Base::floating) return Argument(static_cast<double>(value));
  if (type.base == Base::boolean) return Argument(value != 0);
  if (type.base == Base::dtype && i < 256 && element_size(static_cast<DType>(value)) > 0)
    return Argument(static_cast<DType>(value));
  if (type.base == Base::memory_format && i < std::size(kMemoryFormats))
    return Argument(MemoryFormat{kMemoryFormats[i]});
  if (type.base == Base::layout && i < std::size(kLayouts)) return Argument(Layout{kLayouts[i]});
  return Argument(value);
}

Argument read_number(SchemaScanner& in, const SchemaType& type) {
  const std::size_t start = in.position();
  const bool negative = in.peek() == '-';
  if (negative || in.peek() == '+') in.next();
  if (in.take("inf")) {
    const double inf = std::numeric_limits<double>::infinity();
    return Argument(negative ? -inf : inf);
  }
  // Digits, and the sign of an exponent.
  for (char last = '\0';;) {
    const char c = in.peek();
    const bool exponent_sign = (c == '-' || c == '+') && (last == 'e' || last == 'E');
    if (!SchemaScanner::is_word(c) && c != '.' && !exponent_sign) break;
    last = in.next();
  }
  std::string_view digits = in.since(start);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const char* const end = digits.data() + digits.size();
  std::int64_t integer = 0;
  if (const auto [stop, error] = std::from_chars(digits.data(), end, integer); error == std::errc() && stop == end) {
    return typed_integer(type, integer);
  }
  double number = 0;
  if (const auto [stop, error] = std::from_chars(digits.data(), end, number); error == std::errc() && stop == end) {
    return Argument(number);
  }
  in.seek(start);
  in.fail("a number");
}

char unescaped(char c) {
  constexpr std::string_view kLetters = "ntrfv0", kCharacters("\n\t\r\f\v\0", 6);
  const std::size_t at = kLetters.find(c);
  return at == std::string_view::npos ? c : kCharacters[at];
}

Argument read_string(SchemaScanner& in, const SchemaType& type) {
  const std::size_t start = in.position();
  const char quote = in.next();
  std::string value;
  while (!in.at_end() && in.peek() != quote) {
    const char c = in.next();
    value += c == '\\' && !in.at_end() ? unescaped(in.next()) : c;
  }
  if (in.at_end()) {
    in.seek(start);
    in.fail("a string that is closed");
  }
  in.next();
  if (type.base == Base::device) {
    if (const auto device = parse_device(value)) return Argument(*device);
  }
  return Argument(value);
}

Argument read_literal(SchemaScanner& in, const SchemaType& type) {
  in.skip_spaces();
  const char c = in.peek();
  if (c == '"' || c == '\'') return read_string(in, type);
  if (std::isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '+' || c == '.') return read_number(in, type);
  const std::size_t start = in.position();
  if (std::optional<Argument> value = named_literal(in.take_word("."))) return *std::move(value);
  in.seek(start);
  in.fail("a default value");
}

}  // namespace

Argument read_default(SchemaScanner& in, const SchemaType& type) {
  if (!in.take("[")) return read_literal(in, type);
  std::vector<Argument> elements;
  for (bool first = true; !in.take("]"); first = false) {
    if (!first) in.expect(",", "or ']' in a list");
    elements.push_back(read_literal(in, type));
  }
  return Argument::list(elements);
}

}  // namespace fx::internal
