// Objects that are written as calls or in angle brackets: slices, devices, complex numbers, and those kept as their
// text.
#include <algorithm>

#include <fxgraph/text/syntax.h>
#include <fxgraph/text/value_parser.h>

namespace fx::internal {

bool ValueParser::parse_object(std::size_t start, const ValueContext& context, Argument& value) {
  if (start < no_object_before_) return false;
  std::size_t scanned = 0;
  const std::string_view rest = in_.text().substr(start);
  const std::size_t length = object_length(rest, scanned);
  if (length == 0) {
    no_object_before_ = start + scanned;
    return false;
  }
  in_.seek(start + length);
  if (!ends_value(context)) return false;
  const std::string_view object = rest.substr(0, length);
  if (context.plain && object.front() != '<') refuse_hidden_nodes(start, object);
  value = Argument::opaque(object);
  return true;
}

// `return Point(x=relu)`: kept as an opaque text it would no longer use relu.
void ValueParser::refuse_hidden_nodes(std::size_t start, std::string_view object) const {
  const std::string nowhere;
  Scanner inside(object, nowhere);
  while (!inside.at_end()) {
    const char c = inside.peek();
    if (c == '\'' || c == '"') {
      inside.take_quoted();
    } else if (is_name_start(c)) {
      const std::size_t at = inside.position();
      const std::string_view name = inside.take_name();
      const bool attribute = at > 0 && object[at - 1] == '.';
      const char next = inside.peek();
      if (!attribute && next != '=' && next != '(' && next != '.' && names_.find(name)) {
        in_.fail_at(start + at,
                    "the node " + std::string(name) +
                        " is inside a Python object, where its use would be lost; return a tuple or a list instead");
      }
    } else {
      inside.advance();
    }
  }
}

Argument ValueParser::parse_slice(std::size_t start) {
  in_.advance();
  std::vector<Argument> bounds;
  Nested nested(*this, in_.position() - 1);
  parse_elements(')', true, bounds);
  if (bounds.size() == 1) return Argument::slice(nullptr, bounds[0]);  // Python's slice(stop)
  if (bounds.empty() || bounds.size() > 3)
    in_.fail_at(start, "a slice has one to three bounds: slice(start, stop, step)");
  return Argument::slice(bounds[0], bounds[1], bounds.size() == 3 ? bounds[2] : Argument());
}

// `device(type='cuda', index=0)`, `torch.device('cuda:0')`, `device('cuda', 0)`.
Argument ValueParser::parse_device() {
  const std::size_t opening = in_.position();
  in_.advance();
  in_.skip_blanks();
  const bool repr = in_.accept("type=");  // Python's own text: the type has no index in it
  if (in_.peek() != '\'' && in_.peek() != '"') in_.fail("a quoted device type, as in device(type='cuda', index=0)");
  const std::string type = in_.take_quoted();
  Device device{type};
  if (const std::optional<Device> known = fx::parse_device(type); known && !repr) device = *known;
  in_.skip_blanks();
  if (in_.accept(',')) {
    in_.skip_blanks();
    in_.accept("index=");
    const std::size_t number = in_.position();
    while (is_number_char(in_.peek())) in_.advance();
    Argument index;
    if (!read_literal(in_.from(number), index) || !index.is_int() || index.as_int() < 0 || index.as_int() > 0xffff) {
      in_.seek(number);
      in_.fail("a device index");
    }
    device.index = static_cast<std::int32_t>(index.as_int());
  }
  in_.skip_blanks();
  if (!in_.accept(')')) fail_unclosed(opening);
  return Argument(device);
}

Argument ValueParser::parse_complex(std::size_t start) {
  in_.advance();
  std::vector<Argument> parts;
  Nested nested(*this, in_.position() - 1);
  parse_elements(')', true, parts);
  const bool numbers =
      std::ranges::all_of(parts, [](const Argument& part) { return part.is_int() || part.is_float(); });
  if (parts.empty() || parts.size() > 2 || !numbers)
    in_.fail_at(start, "a complex number has one or two numbers: complex(real, imaginary)");
  return Argument(std::complex<double>(parts[0].as_float(), parts.size() == 2 ? parts[1].as_float() : 0.0));
}

// `(1+2j)`, as Python prints complex numbers.
bool ValueParser::parse_python_complex(Argument& value) {
  constexpr std::size_t kLongest = 64;
  std::size_t length = 1;
  while (length < kLongest && is_number_char(in_.peek(length))) ++length;
  if (in_.peek(length) != ')' || in_.peek(length - 1) != 'j') return false;
  if (!read_literal(in_.rest().substr(1, length - 1), value) || value.kind() != ArgumentKind::complex) return false;
  in_.advance(length + 1);
  return true;
}

}  // namespace fx::internal
