// Writes schemas the way declarations are written.
#include <algorithm>

#include <fxgraph/ops/schema.h>

namespace fx {

namespace {

void append_sets(std::string& out, std::uint32_t sets, bool wildcard) {
  bool first = true;
  const auto separate = [&] {
    if (!first) out += '|';
    first = false;
  };
  if (wildcard) {
    separate();
    out += '*';
  }
  for (int i = 0; i < 26; ++i) {
    if (!(sets >> i & 1)) continue;
    separate();
    out += static_cast<char>('a' + i);
  }
}

void append_type(std::string& out, const SchemaType& type, const AliasInfo& alias) {
  if (alias.empty()) {
    out += type.text;
    return;
  }
  out.append(type.text, 0, alias.position).append(1, '(');
  append_sets(out, alias.sets, alias.wildcard);
  if (alias.writes) out += '!';
  if (alias.sets != alias.sets_after || alias.wildcard != alias.wildcard_after) {
    out += " -> ";
    append_sets(out, alias.sets_after, alias.wildcard_after);
  }
  out.append(1, ')').append(type.text, alias.position, std::string::npos);
}

void append_string(std::string& out, std::string_view text) {
  constexpr std::string_view kCharacters("\n\t\r\f\v\0\"\\", 8), kLetters = "ntrfv0\"\\";
  out += '"';
  for (const char c : text) {
    const std::size_t at = kCharacters.find(c);
    if (at == std::string_view::npos) {
      out += c;
    } else {
      out.append(1, '\\').append(1, kLetters[at]);
    }
  }
  out += '"';
}

void append_default(std::string& out, const Argument& value) {
  switch (value.kind()) {
    case ArgumentKind::string: append_string(out, value.as_string()); return;
    case ArgumentKind::dtype: out += to_string(value.as_dtype()); return;
    case ArgumentKind::device: append_string(out, to_string(value.as_device())); return;
    case ArgumentKind::layout: out += value.as_layout().name.view(); return;
    case ArgumentKind::memory_format: out += value.as_memory_format().name.view(); return;
    case ArgumentKind::list: {
      out += '[';
      bool first = true;
      for (const Argument& element : value.elements()) {
        if (!first) out += ", ";
        first = false;
        append_default(out, element);
      }
      out += ']';
      return;
    }
    default: format(out, value);
  }
}

// One number for a list of fixed size whose elements are alike.
const Argument& shortest(const SchemaType& type, const Argument& value) {
  if (type.fixed_size < 2 || !value.is_sequence() || value.elements().size() != type.fixed_size) return value;
  const ArgumentSpan elements = value.elements();
  const bool alike = std::ranges::all_of(elements, [&](const Argument& each) { return each == elements[0]; });
  return alike ? elements[0] : value;
}

void append_arguments(std::string& out, const OperatorSchema& schema) {
  bool first = true, keyword_only = false;
  const auto separate = [&] {
    if (!first) out += ", ";
    first = false;
  };
  for (const SchemaArgument& argument : schema.arguments) {
    separate();
    if (argument.keyword_only && !keyword_only) out += "*, ";
    keyword_only = argument.keyword_only;
    append_type(out, argument.type, argument.alias);
    out.append(1, ' ').append(argument.name.view());
    if (!argument.default_value) continue;
    out += '=';
    append_default(out, shortest(argument.type, *argument.default_value));
  }
  if (schema.varargs) {
    separate();
    out += "...";
  }
}

void append_returns(std::string& out, const OperatorSchema& schema) {
  const bool one = schema.returns.size() + schema.varreturns == 1;
  if (!one) out += '(';
  bool first = true;
  for (const SchemaReturn& result : schema.returns) {
    if (!first) out += ", ";
    first = false;
    // A single tuple needs its own parentheses within those of the list.
    const bool enclose = one && result.type.text.starts_with('(');
    if (enclose) out += '(';
    append_type(out, result.type, result.alias);
    if (!result.name.empty()) out.append(1, ' ').append(result.name.view());
    if (enclose) out += ')';
  }
  if (schema.varreturns) out += first ? "..." : ", ...";
  if (!one) out += ')';
}

}  // namespace

int OperatorSchema::index_of(Symbol name) const {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::optional<std::size_t> OperatorSchema::written_argument(std::size_t i) const {
  if (!returns[i].alias.writes) return std::nullopt;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    if (arguments[at].alias.writes && arguments[at].alias.sets == returns[i].alias.sets) return at;
  }
  return std::nullopt;
}

std::string OperatorSchema::str() const {
  std::string out(target.view());
  out += '(';
  append_arguments(out, *this);
  out += ") -> ";
  append_returns(out, *this);
  return out;
}

}  // namespace fx
